// Package pluginmanager finds the plugins of a node that listen on sockets in the
// kubelet's registration directory (CSI drivers and DRA drivers), asks them who they are
// and hands them to those who use them. It mirrors upstream's pkg/kubelet/pluginmanager.
//
// # How to use plugins of a type
//
// Implement Handler, and add it for its type in pluginHandlers of package kubelet. A handler
// learns names and endpoints; it connects to an endpoint by Sockets.Dial and calls it by
// the client that is generated of its gRPC service (csi.NewNodeClient, drapb's). In a
// simulation the plugin answers on the node's loop (sim/plugins: Host.Listen), on a machine
// behind its socket. Either way a call waits in the task of who calls, and the deadline of
// its context (loop.WithTimeout) is on the loop's clock.
//
// # How it differs
//
// Upstream looks at all sockets each second. The passes here lie on the same seconds, but
// there is one only if a socket came or went, or a registration is to be tried again: a
// node without plugins has no timer.
package pluginmanager

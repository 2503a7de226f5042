// Package plugins are simulated plugins of kubelets, on their nodes' loops: device
// plugins that offer what they are told to, slowly or with errors where rules say so.
//
// A Host is where a node's plugins run. Kubelets come and go; a host stays, as its
// plugins' processes would. What a plugin is asked and what it answers can be watched.
//
// host.go has the host, rules.go what goes wrong, device.go device plugins, driver.go
// what drivers of CSI and of DRA have in common, csi.go and dra.go each of them, slices.go what
// the latter publish, sockets.go
// what they serve gRPC services on, streams.go those that answer with streams.
package plugins

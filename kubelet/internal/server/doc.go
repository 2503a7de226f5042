// Package server is the kubelet's server on a machine: listeners and certificates,
// who may ask (auth.go), the way to the kubelet's loop (host.go), streams and logs. The
// handlers themselves are kubelet/server's.
package server

//go:build linux

// Package plugins are the plugins of this machine, for a kubelet on a loop of the wall
// clock: drivers that listen on sockets in the registration directory, device plugins that
// register with the kubelet's socket, and who asks for pods' resources.
//
// A call of a plugin runs on a goroutine while the task that makes it waits; what plugins
// ask of the kubelet becomes a task of its loop.
//
// watch.go finds sockets, conn.go connects to them, device.go has device plugins register,
// podresources.go serves the API podresources/v1.
package plugins

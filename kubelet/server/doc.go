// Package server is what the kubelet serves over HTTP: pods, logs, streams into
// containers, statistics, metrics, health. It mirrors upstream's
// pkg/kubelet/server at v1.36, and routes by the same library.
//
// A Server is a handler and knows no sockets, goroutines or clocks. New makes it of
// a Host, the kubelet, and of Options that say who may ask and how logs and
// streams leave the process. In a simulation it is called by a task of the node's
// loop; on a machine by any goroutine, with a Host that goes to the loop
// (kubelet/internal/server), which also has the listeners and who may ask.
//
// routes.go says which path is whose; the handlers stand in the files of their
// subjects.
package server

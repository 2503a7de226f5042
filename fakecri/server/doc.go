// Package server puts a fakecri.Runtime behind a gRPC socket: the runtime.v1 services of the
// Container Runtime Interface, for crictl, kubelets and whoever tests a CRI client without a
// kernel.
//
// A [Server] owns a real-time loop, the runtime on it and a gRPC server. Each call becomes a task
// of the loop, whose context ends when the client's call does; calls that only read are answered
// in a callback, without a task.
//
// # Two worlds
//
// The runtime knows neither goroutines nor locks: everything that touches it runs on the loop.
// gRPC, HTTP and sockets are goroutines. A value crosses in one of two ways: loop.Post runs a
// function on the loop, and a channel with room for one value brings back what came of it. Fields
// that belong to the loop say so. A goroutine may wait for the loop, but never the loop for a
// goroutine: so what goes out of the loop is buffered and bounded (subscribers of events, output
// of commands), and what does not fit makes the writer's task wait, or ends the stream.
//
// The loop's clock may run faster than the wall's ([Options.Speed]). Clients live by the wall:
// times in answers are translated to it (walltime.go), and so are timeouts of requests.
//
// # What is of the machine
//
// Unless the server is isolated, host paths of mounts, logs and profiles are files of the machine
// it runs on, and ports of pods are opened there. A container reaches those files only by the
// mounts that its request names; its own processes are interpreted, never the machine's.
//
// # Files
//
//   - server.go: the parts, their start and end; options.go; grpc.go, the gRPC server
//     with what surrounds each call; call.go, the way to the loop and back
//   - runtime_service.go, image_service.go, stats_service.go, stream_service.go: the
//     methods, which validate what would harm the server (validate.go) and hand on
//     the rest; codec.go encodes a listing once until something changes; events.go
//     streams events
//   - streaming*.go: Exec, Attach and PortForward, with the SPDY and WebSocket
//     protocols of the kubelet's own streaming library
//   - bridge*.go: ports of pods on the machine; hostfs.go, logs.go: its
//     files
//   - control.go, faults.go: an HTTP interface for tests; record.go: a log of calls
package server

// Package streams runs commands in containers, and connects clients to what runs there: ExecSync,
// and what a streaming server does for Exec and Attach.
//
// In a container with processes a command is a process beside them. In one whose program is
// stated, the program says what comes of it (program.ExecRule), or it exits 0. exec.go is
// ExecSync, whose output is kept; stream.go is an exec with a client's streams, attach.go an
// attachment. ExecSync is what probes and lifecycle hooks use, the others are kubectl's.
//
// Who goes away, and what that does: the caller of ExecSync takes its command along, by SIGKILL.
// A client of a stream leaves its command running, with its input at an end and its output
// dropped. A daemon that dies leaves both running. That is what containerd does.
//
// A call ends when the command has and nobody holds its output any more: a process that the
// command has left in the background keeps the pipe, and so the call, open.
package streams

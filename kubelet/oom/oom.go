// Package oom tells the node of processes that the kernel killed for want of
// memory. It mirrors upstream's pkg/kubelet/oom at v1.36.
package oom

import "time"

// Kill is a record of the kernel's: it took a process for want of memory.
type Kill struct {
	Time time.Time
	// Process is the victim's name, PID its number on the node; "" and 0 if
	// they are not known.
	Process string
	PID     int
	// Container is the cgroup whose limit was passed; "/" if the machine itself
	// had no memory left.
	Container string
	// Victim is the cgroup that the victim was in.
	Victim string
}

// Source tells of the kernel's records.
type Source interface {
	// WatchOOM has fn called, as a step of the kubelet's loop, for each kill
	// from now on, until the kubelet ends. fn must not wait.
	WatchOOM(fn func(Kill)) error
}

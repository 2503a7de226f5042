// Package podkernel is what the processes of a node see of it: one kernel, made when
// the first process is interpreted, and for each sandbox the namespaces and files
// that its containers share.
//
// A node on which nothing is interpreted has none of it, which is why Machine is nil
// at first. A power cut takes all of it away; the records of package records stay.
//
// The kernel asks those who stand above it: for the memory that all use, for limits,
// and to open the ports of stated programs once there is a kernel to open them in.
// These are functions of Node, set when the runtime is wired.
//
// podkernel.go has the kernel and the sandboxes, ports.go who is told of open ports,
// names.go host names and cgroups.
package podkernel

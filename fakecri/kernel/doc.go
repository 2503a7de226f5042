// Package kernel is what processes in the fake runtime see of a machine: processes and signals,
// files and pipes, mount, pid and network namespaces, and the memory of a container's cgroup. It
// knows nothing of Kubernetes, the CRI or any command: programs are Go functions ([Command]) that
// the image of a container names.
//
// It exists because most of what a user sees of a pod is made down here: exit codes, OOM kills,
// who gets SIGTERM, what a probe's exec prints, whether a port answers. Stated behaviour alone
// can't show how a shell as process 1 ignores SIGTERM, or that a full pipe stalls its writer;
// simulated system calls can. What is built is what programs in images and in manifests use, with
// Linux's errors for it; there is no scheduler (processes take the virtual time that they say
// they take), no page cache and no IP below connections.
//
// One [Machine] belongs to one node's loop. A process is a task in a group of its own; what it
// waits for (time, a pipe, a child, a connection) parks that task, so an idle process is one
// parked task and its table entries. Death by a signal kills the group: the task unwinds and does
// nothing more to the world. Whatever a dead process still calls while it unwinds (Close, Free)
// is harmless.
//
// Errors are those of Linux: a [syscall.Errno], mostly inside a *fs.PathError.
//
// Files that a program is given (Spec.FDs, Fork, SetFD) follow one rule: a process gets
// references of its own ([File.Dup]) from Start, Spawn and Fork, and the caller's stay the
// caller's to close; SetFD takes its reference over.
//
// # Where what is
//
// Read it in this order. A [Container] (container.go) is a cgroup with namespaces. Processes
// begin in spawn.go, act in process.go and signal.go, and end in exit.go; pids.go numbers them. A
// [Namespace] (mount.go, overmount.go, hostmount.go) is what the runtime mounts; a [View] of it
// is what a process sees: resolve.go follows paths, view.go reads, change.go changes. Files come
// from package memfs, from the machine (package hostfs), or are made up when they are read
// (synth.go): /proc (proc.go), /sys and the cgroup (cgroupfs.go). What is open is a [File]
// (file.go): openfile.go, pipe.go, fifo.go, device.go, tty.go, or a connection of net.go.
// memory.go and cpu.go count what processes take. privilege.go says what they may do. hostview.go
// shows parts of a real machine to those that share its namespaces. Images' files are made by
// package rootfs.
//
// # Executables
//
// A file is a program if it begins with "\x7fELF drydock:NAME\n" ([ELF] makes such content): NAME
// is looked up in the container's Commands; "busybox" means the base of argv[0]. "#!interpreter"
// scripts run by their interpreter. Whatever else has the execute bit gives ENOEXEC. So programs
// are files like any other: they can be copied, linked, lose their execute bit or be hidden by a
// mount, with the consequences that has.
package kernel

// Package process runs containers' programs, in one of three ways, which Runner.Resolve decides
// between:
//
//   - A stated program (package program) is a record and one timer, for the first
//     of the ends that it can come to: by itself, by its stop signal or by its
//     memory limit. It costs nothing while it runs, and nearly all containers of a
//     large simulation are such.
//   - An interpreted one has processes of package kernel, which run the shell and
//     applets over the image's files. They are tasks in a group of the container's
//     own, whose death takes them all along.
//   - Where Options.Interpret asks for it, a stated program gets a process too, that
//     does as stated, so that commands can be run beside it.
//
// # The way of a program
//
// Runner.Start is the only way in, and Runner.Exit the only way out, by whatever a program ends.
// Between them Runner.Signal and Runner.LimitChanged change what a program comes to. A
// container's process record exists exactly as long as the container is alive; a callback that
// fires later finds another process there, or none, and does nothing. That is why each of them
// compares c.Process with the process that it was made for.
//
// What the runtime shows of a start or an end follows containerd and runc: their order, their
// errors' texts (which kubectl describe shows), the time until an end is noticed, the codes 128
// and 137.
//
// # Files
//
// process.go has the way of a program and the stated kind; interpret.go the interpreted one,
// stated.go the third. What an interpreted process finds around it is made by rootfs.go (mounts,
// user, environment), overmounts.go (devices, masked and read-only paths, image volumes),
// privileges.go and seccomp.go. daemons.go and standin.go are what others look for beside a known
// server.
package process

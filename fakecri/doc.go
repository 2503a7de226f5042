// Package fakecri is an in-memory container runtime: what the Container
// Runtime Interface (k8s.io/cri-api, runtime.v1) shows of containerd, without
// a kernel. It runs in process on a [loop.Loop]; package fakecri/server puts a
// gRPC server in front of it.
//
// # A tour
//
// [New] makes a [Runtime]: the state that lives on a node's disk and in its
// processes. [Runtime.StartDaemon] starts its daemon, a group of the loop in
// which calls are handled; [Runtime.StopDaemon] kills that group, and the
// containers live on. [Runtime.Client] returns the view of one caller: plain
// blocking Go that implements RuntimeService and ImageManagerService of
// k8s.io/cri-api/pkg/apis, plus [Client.Generation].
//
//	rt := fakecri.New(fakecri.Options{Loop: l, Recorder: rec})
//	rt.StartDaemon()
//	c := rt.Client(kubelet) // a *loop.Group
//	id, err := c.RunPodSandbox(ctx, config, "")
//
// # Calls
//
// A call that changes something runs in the daemon's group and waits for the
// method's latency ([Options.Latency]) and for what the faults ([Fault]) say: as a
// task or, where it waits for its latency alone, as steps of one. If the caller dies or its deadline passes, the call is
// cancelled as by a closed connection: RunPodSandbox, CreateContainer and
// StartContainer roll back and free the name; StopContainer has sent its
// signal, and no SIGKILL follows; PullImage aborts; StopPodSandbox and the
// removals complete. Calls that only read run in the caller's task: with no
// latency and no fault they give way once. A daemon that is down, or goes down
// during a call, answers Unavailable.
//
// Requests are never written to and are kept, not copied: a caller must not
// change one after the call. What is handed out is shared and must not be
// changed either; a change of state makes a new object.
//
// # Listings
//
// [Client.Generation] grows with every change that a listing of sandboxes or
// containers could show, faults included, so two equal values mean that
// another listing is a waste of time. Listings are made anew; who lists again and
// again can ask for the pods that show otherwise than it was last told
// ([Client.ListPodSandboxChanges], [Client.ListContainersChanges]). A listing by
// the label io.kubernetes.pod.uid looks at that pod only.
//
// # Identity
//
// An image is one id with all the names that it was pulled by. Which names are
// one image says the catalogue ([Image.Aliases]) or, with
// [Options.ImagesByBaseName], their last element and tag. Sandboxes, containers
// and images are found by their id, by a beginning of it that no other has, and
// images by any of their names, of which short ones are completed as containerd
// does ("busybox" is "docker.io/library/busybox:latest").
//
// Requests that containerd, runc or the kernel would refuse for what they say
// are refused with InvalidArgument and leave nothing behind.
//
// # Programs
//
// What a container does is, in this order: the first [Program] that matches;
// what its image is known to do (nginx serves on port 80); the command itself,
// interpreted, if its image has it or can be taken to have it; else it runs until
// it is stopped and exits 0 on SIGTERM.
//
// A stated program is state plus one timer. An interpreted container has
// processes (package kernel) that run the shell (package shell) and applets
// (package busybox) over the image's files ([Trees]), a writable layer, the
// request's mounts of the node's files and the namespaces of its sandbox; they
// are tasks, in groups of their own. A node on which nothing is interpreted has
// none of that. A script for which there is no shell gets the default behaviour
// and one warning ([Options.Warn]) per image and command.
//
// With [Options.Interpret] a known image's server, and a command that nobody
// knows, run as a process too, which does what is known of it and no more.
//
// [Client.ExecSync] runs a command beside an interpreted container's processes;
// elsewhere the stated program says what comes of it. [Runtime.HTTP],
// [Runtime.DialTCP] and [Runtime.GRPCHealth] are the pod network as the node
// sees it, and their Quick variants answer for stated programs without running
// anything.
//
// # Streams
//
// [Client.ExecStream], [Client.AttachStream] and [Client.PortForwardStream] run
// over files of package kernel, which a streaming server ([Options.Streaming])
// makes of its clients' connections. A client that goes away leaves the command
// running, with its input at an end, as under containerd; one that is slow holds
// up who writes to it, once a pipe, or for one that is attached a megabyte, is
// full. [Options.OnListen] tells which ports are open, and [Runtime.Dial] and
// [Runtime.Join] lead connections there.
//
// # Disks
//
// Images and writable layers take space of [Options.ImageDisk] and
// [Options.LayerDisk]; logs and mounts, of whatever the node's files do. What a
// stated program writes is said by curves ([Write], [Behaviour.LogBytes]). A
// layer stays until its container is removed, and an image's files until the
// last container has gone that was made of it. On a full disk pulls, sandboxes
// and containers fail as under containerd, programs get ENOSPC, and logs are
// lost.
//
// # Behind the kubelet's back
//
// Runtime's methods named after what happens, such as
// [Runtime.StopContainerOutside] and [Runtime.PowerCut], do what happens
// outside any call.
//
// # Where things are
//
// This package is the door: it wires the parts (runtime.go), makes their options of
// one (options.go), gives callers names for what they say (aliases.go), and answers
// calls from the records (one file for each group of methods; containerstatus.go,
// stats.go, metrics.go and info.go are what they show). outside.go and doors.go are
// what is no call. The parts stand below it and import one way, from the first to
// the last:
//
//   - internal/lifecycle: the state machine of sandboxes and containers
//   - internal/streams: commands and clients beside what runs
//   - internal/process: programs, stated and interpreted
//   - internal/podnet: addresses, ports and answers
//   - internal/accounts: sums, limits, the OOM killer
//   - internal/output: logs and clients that are attached
//   - internal/disk, internal/podkernel, internal/hostfiles: what is below processes
//   - internal/records: what the runtime knows, and its listings
//   - internal/images: images, their files, and what is known of them
//   - internal/calls: how a call arrives, what it meets, how long it takes
//   - internal/program: what stated programs are
//   - internal/watch: the one kind of watcher
//
// # What is not there
//
// CheckpointContainer and GetContainerEvents (see [Runtime.OnEvent]) return
// Unimplemented, and so do Exec, Attach and PortForward without
// [Options.Streaming]. Network traffic, disk throughput and pressure are counted
// nowhere and show as 0. Of capabilities chown, dac_override, fowner, kill and
// sys_admin count; seccomp and no_new_privs show in /proc only. SELinux and
// AppArmor have no effect. There are no service addresses and there is no DNS.
package fakecri

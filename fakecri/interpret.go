package fakecri

import (
	"errors"
	"path"
	"strings"
	"syscall"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// interpreted is what a container has besides when its processes are
// interpreted.
type interpreted struct {
	c     *container
	kc    *kernel.Container
	view  *kernel.View
	group *loop.Group
	pids  *kernel.PIDNamespace
	net   *kernel.NetNS
	// cred, env and dir are the first process's; commands that are run in the
	// container have the same.
	cred kernel.Cred
	env  []string
	dir  string

	stdout, stderr output
	stdin          kernel.File // the end that an attached client would write to
	tty            *kernel.TTY // of a container with one that clients can attach to
	oom            bool
	oomCgroup      string // whose limit is passed, while the killer is at work; "": its own
	// Of a program that is stated: its behaviour, how many of its log lines it
	// has written, and what ends it from within.
	stated *Behaviour
	logged int
	exit   exitRequest
	// When somebody last asked for the processor time, and what it was.
	askedAt, askedCPU int64
	milli             int64
	// ended is how the first process did, and endedAt when, in nanoseconds
	// since the epoch; 0 until then.
	ended   exitStatus
	endedAt int64
}

// output is a stream of a container's: what is written to it goes to its log and
// to who is attached.
type output interface {
	kernel.File
	flush()
	lastLine() string
}

// argv is the container's command line.
func (c *container) argv() []string {
	cmd, args := c.config.Command, c.config.Args
	if len(cmd) == 0 {
		cmd = c.image.source.Entrypoint
		if len(args) == 0 {
			args = c.image.source.Cmd
		}
	}
	return append(cmd[:len(cmd):len(cmd)], args...)
}

// resolve says what a container runs: a behaviour, or that its processes are
// interpreted.
func (r *runner) resolve(c *container) (*Behaviour, bool) {
	if f := r.opts.Behave; f != nil {
		if b := f(c.sandbox.whole(), c.whole()); b != nil {
			return b, false
		}
	}
	if p := r.programOf(c); p != nil {
		return p.at(c.config.Metadata.Attempt), false
	}
	if len(c.config.Command) == 0 && len(c.config.Args) == 0 && c.image.source.plain() {
		return defaultBehaviour, false
	}
	argv := c.argv()
	if len(argv) == 0 {
		return defaultBehaviour, false
	}
	src := c.image.source
	if k := src.known; k != nil && k.daemon != nil && src.Commands == nil {
		if b := k.daemon(c.config, argv); b != nil {
			return b, false
		}
	}
	trees := r.images.imageTrees()
	switch {
	case src.Commands != nil:
		return defaultBehaviour, !src.states(argv[0]) || trees.has(path.Base(argv[0]))
	case src.known != nil && src.known.closed, trees.runs(argv[0]):
		return defaultBehaviour, true
	}
	if r.warner.to != nil && isShellScript(argv) {
		r.warner.warnScript(c, argv)
	}
	return defaultBehaviour, false
}

// programOf returns the first program that matches the container, or nil.
func (r *runner) programOf(c *container) *Program {
	for i := range r.opts.Programs {
		if p := &r.opts.Programs[i]; p.Match.matches(c.sandbox.metadata, c.config, c.image.tags) {
			return p
		}
	}
	return nil
}

// plain tells whether a container of the image that names no command has the
// default behaviour.
func (src *imageSource) plain() bool {
	return src.known == nil && src.Commands == nil && len(src.Entrypoint) == 0 && len(src.Cmd) == 0
}

// states tells whether the image's stated commands have one, by name or path.
func (src *imageSource) states(command string) bool {
	for _, c := range src.Commands {
		if c == command || !path.IsAbs(c) && command == "/bin/"+c {
			return true
		}
	}
	return false
}

// tree returns the name of the image's files.
func (src *imageSource) tree() string {
	switch {
	case src.Commands != nil:
		return commandsTree(src.Commands, src.Bare)
	case src.known != nil && src.known.tree != "":
		return src.known.tree
	}
	return treeDebian
}

// runs tells whether an image whose files are not known can be taken to have a
// command that is interpreted.
func (t *Trees) runs(command string) bool {
	if !t.has(path.Base(command)) {
		return false
	}
	switch path.Dir(command) {
	case ".":
		return !strings.Contains(command, "/")
	case "/bin", "/usr/bin", "/sbin", "/usr/sbin":
		return true
	}
	return false
}

// imageTrees returns the images' files.
func (r *imageStore) imageTrees() *Trees {
	if r.trees == nil {
		r.trees = NewTrees()
	}
	if r.trees.applets == nil {
		r.trees.prepare(r.l, r.opts.Images)
	}
	return r.trees
}

// runcCreate is what containerd says before runc's own words.
const runcCreate = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "

// startInterpreted makes a container's namespaces and starts its first process.
// done is called when that has ended. The error's text is what StartContainer
// says. With stated that process does what the behaviour says, whatever its
// command line is.
func (r *runner) startInterpreted(c *container, stated *Behaviour, done func(kernel.Exit)) (*interpreted, error) {
	pk := r.kern.podKernelOf(c.sandbox)
	in := &interpreted{c: c, group: r.l.NewGroup(c.sandbox.metadata.Name + "/" + c.config.Metadata.Name), net: pk.net}
	in.stdout = &logStream{r: r.out, c: c, name: stdoutName}
	in.stderr = &logStream{r: r.out, c: c, name: stderrName}
	if err := r.enterImage(in, pk); err != nil {
		in.group.Kill()
		return nil, err
	}
	argv := c.argv()
	if stated != nil {
		in.stated, argv = stated, c.statedArgv()
		r.installStated(in, argv)
	}
	in.pids = r.pidNamespace(c, pk)
	in.kc = r.kern.kernel().NewContainer(r.containerOptions(in, pk))
	fds, held := r.standardFiles(in)
	in.stdin = held
	p, err := in.kc.Start(kernel.Spec{
		Argv: argv, Env: in.env, Dir: in.dir, Cred: in.cred, FDs: fds, Tty: c.config.Tty, Done: done,
	})
	closeAll(fds)
	if in.tty != nil {
		in.tty.SetLeader(p)
	}
	if err == nil {
		if in.stated != nil {
			announce(in, p)
		}
		return in, nil
	}
	in.end()
	var xerr *kernel.ExecError
	if errors.As(err, &xerr) && (xerr.Errno == syscall.ENOEXEC || xerr.Interpreter != "") {
		return nil, &lateExecError{in: in, text: xerr.Error()}
	}
	return nil, errors.New(runcCreate + err.Error())
}

// lateExecError is of a program that runc finds and the kernel refuses: the
// container has started by then, and ends with a line on stderr.
type lateExecError struct {
	in   *interpreted
	text string
}

func (e *lateExecError) Error() string { return e.text }

// standardFiles returns the first three files of a container's process, and the
// other end of its standard input if somebody could attach to it.
func (r *runner) standardFiles(in *interpreted) (fds []kernel.File, held kernel.File) {
	m := r.kern.kernel()
	if in.c.config.Tty && r.opts.Attachable {
		in.tty = m.NewTTY(in.stdout)
		slave := in.tty.Slave()
		return []kernel.File{slave, slave.Dup(), slave.Dup()}, in.tty.Keyboard()
	}
	stdin := m.Null()
	if in.c.config.Stdin {
		stdin, held = m.Pipe()
	}
	if !in.c.config.Tty {
		return []kernel.File{stdin, in.stdout, in.stderr}, held
	}
	if held == nil {
		stdin, held = m.Pipe() // nobody types, but the terminal is there
	}
	out := terminal{in.stdout}
	return []kernel.File{terminal{stdin}, out, out}, held
}

// terminal is the pseudo-terminal of a container that has one.
type terminal struct{ kernel.File }

// IsTTY is what kernel.IsTTY looks for.
func (terminal) IsTTY() bool { return true }

// Dup implements kernel.File.
func (t terminal) Dup() kernel.File { return terminal{t.File.Dup()} }

// Path is the name of the terminal in the container.
func (terminal) Path() string { return "/dev/pts/0" }

func closeAll(fds []kernel.File) {
	for _, f := range fds {
		_ = f.Close()
	}
}

func (r *runner) containerOptions(in *interpreted, pk *podKernel) kernel.ContainerOptions {
	c, lin := in.c, in.c.linuxResources()
	caps, noNew, seccomp := privileges(c.config.GetLinux().GetSecurityContext())
	var standalone func(string) bool
	if c.image.source.Standalone {
		applets := r.images.commandsOf(c.image.source)
		standalone = func(name string) bool { return applets[name] != nil && busybox.Debian(name) }
	}
	return kernel.ContainerOptions{
		Standalone:   standalone,
		Capabilities: caps, NoNewPrivileges: noNew, Seccomp: seccomp, Sysctls: c.sandbox.config.GetLinux().GetSysctls(),
		Group: in.group, Root: in.view, Net: in.net, PIDs: in.pids, Cgroup: pk.cgroup, ID: c.id, CgroupPath: r.kern.cgroupPath(c),
		Hostname:    r.kern.utsName(c.sandbox),
		OOMScoreAdj: oomScoreAdj(c), IDMaps: idMaps(c.sandbox),
		HostIPC:     c.sandbox.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetIpc() == runtimeapi.NamespaceMode_NODE,
		Filter:      r.filterOf(c.config.GetLinux().GetSecurityContext()),
		MemoryLimit: lin.GetMemoryLimitInBytes(),
		OOMGroup:    lin.GetUnified()["memory.oom.group"] == "1",
		CPUShares:   lin.GetCpuShares(), CPUQuota: lin.GetCpuQuota(), CPUPeriod: lin.GetCpuPeriod(),
		Commands: r.commandsFor(in),
		Forks:    func() bool { return r.use.mayFork(c) },
		OOM: func(p *kernel.Process) {
			in.oom = true
			cgroup := in.oomCgroup
			if cgroup == "" {
				cgroup = r.kern.cgroupPath(c)
			}
			r.use.tellOOM(c, processName(p.Argv), p.PIDIn(r.kern.machine.HostPIDs()), cgroup)
		},
		UnknownCommand: func(name string) {
			if c.image.source.Commands != nil {
				return // so the scenario says
			}
			r.warner.warnOnce(c, "unknown\x00"+name, "the command "+name+" is not known here; it ends with 127 (a stated program can say what the container does)")
		},
		StandIn: standIn(in),
		Warn:    func(text string) { r.warner.warnOnce(c, text, text) },
	}
}

// cgroupPath is where containerd puts a container's cgroup.
func (r *nodeKernel) cgroupPath(c *container) string {
	parent := c.sandbox.whole().GetLinux().GetCgroupParent()
	if r.opts.CgroupDriver == "systemd" {
		return path.Join("/", parent, "cri-containerd-"+c.id+".scope")
	}
	return path.Join("/", parent, c.id)
}

// commandsOf returns what the programs of an image do: commands that it states
// and nobody knows exit 0.
func (r *imageStore) commandsOf(src *imageSource) kernel.Commands {
	t := r.imageTrees()
	if src.commands != nil {
		return src.commands
	}
	if r.commands == nil {
		r.commands = t.commands(r.opts.NoElide)
	}
	src.commands = r.commands
	var all kernel.Commands
	for _, c := range src.Commands {
		name := path.Base(c)
		if t.has(name) {
			continue
		}
		if all == nil {
			all = kernel.Commands{}
			for n, cmd := range r.commands { //drydock:unordered copies a map
				all[n] = cmd
			}
		}
		all[name] = statedCommand(name)
	}
	if all != nil {
		src.commands = all
	}
	return src.commands
}

func (r *nodeKernel) hostname(s *sandbox) string {
	if h := s.hostname(); h != "" {
		return h
	}
	return r.opts.Hostname
}

// utsName is what hostname(1) says in a sandbox, which with the host's network
// is the machine's name.
func (r *nodeKernel) utsName(s *sandbox) string {
	if s.hostNetwork() {
		return r.opts.Hostname
	}
	return r.hostname(s)
}

// pidNamespace returns the pid namespace that the container asks for.
func (r *runner) pidNamespace(c *container, pk *podKernel) *kernel.PIDNamespace {
	m := r.kern.kernel()
	o := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	switch o.GetPid() {
	case runtimeapi.NamespaceMode_NODE:
		return m.HostPIDs()
	case runtimeapi.NamespaceMode_POD:
		if o == nil { // POD is the zero value: whoever says nothing gets its own
			return m.NewPIDs()
		}
		if pk.pids == nil {
			pk.pids = m.NewPIDs()
			pk.pids.AddStated("/pause")
		}
		return pk.pids
	case runtimeapi.NamespaceMode_TARGET:
		if t := r.recs.containerFor(o.GetTargetId()); t != nil && t.process != nil && t.process.in != nil {
			return t.process.in.pids
		}
	}
	return m.NewPIDs()
}

// end takes a container's processes and namespaces away. Commands that are
// still run in it end by SIGKILL.
func (in *interpreted) end() {
	if in.kc != nil {
		in.kc.KillAll()
	}
	in.group.Kill()
	in.stdout.flush()
	in.stderr.flush()
	if in.stdin != nil {
		_ = in.stdin.Close()
		in.stdin = nil
	}
}

// exitOf turns the end of a container's first process into what containerd
// shows. If the OOM killer took any of its processes, that is the reason.
func (in *interpreted) exitOf(e kernel.Exit) exitStatus {
	out := exitStatus{code: int32(e.Code), signal: e.Signal}
	if in.oom || e.OOM {
		out.reason = oomReason
	}
	return out
}

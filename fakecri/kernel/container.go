package kernel

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// ErrStopped is what Start returns when the container's first process has
// ended. The text is runc's, which exec in a container that has ended shows to kubectl.
var ErrStopped = errors.New("cannot exec in a stopped container")

// ContainerOptions configure a Container.
type ContainerOptions struct {
	// Group is the container's: when it is killed all its processes vanish
	// without a Done, as by a power cut. Nil means the loop's root.
	Group *loop.Group
	// Root is its mount namespace. Required, and of this container only.
	Root *View
	// Net is its network namespace; nil means the host's.
	Net *NetNS
	// PIDs is its pid namespace; nil means a new one.
	PIDs *PIDNamespace
	// Hostname is what hostname(1) says; empty means the machine's.
	Hostname string
	// MemoryLimit is of its cgroup, in bytes; 0 means none.
	MemoryLimit int64
	// Cgroup, if any, is the pod's cgroup above, with a limit of its own.
	Cgroup *Cgroup
	// OOMGroup has the OOM killer kill all processes (memory.oom.group).
	OOMGroup bool
	// OOMScoreAdj is what the OOM killer adds, from -1000 to 1000; it shows in
	// /proc/PID/oom_score_adj.
	OOMScoreAdj int16
	// HostIPC says that it is in the machine's IPC namespace.
	HostIPC bool
	// CPUShares, CPUQuota and CPUPeriod show in /sys/fs/cgroup; 0 means the
	// kernel's defaults.
	CPUShares, CPUQuota, CPUPeriod int64
	// ID is the container's.
	ID string
	// CgroupPath is where its cgroup is, for /proc/PID/cgroup.
	CgroupPath string
	// Sysctls are what the sandbox sets, by their names with dots.
	Sysctls map[string]string
	// Capabilities are those of its root processes; nil means
	// DefaultCapabilities.
	Capabilities *Capabilities
	// NoNewPrivileges and Seccomp show in /proc/PID/status.
	NoNewPrivileges, Seccomp bool
	// Filter is its seccomp filter, as far as it is acted on; nil means none.
	Filter *Filter
	// IDMaps are those of its user namespace; nil means the machine's own.
	IDMaps *IDMaps
	// Commands are what the image's programs do, by name.
	Commands Commands
	// Standalone, if any, names the applets that a busybox runs wherever PATH
	// leads: FEATURE_SH_STANDALONE, which distributions' static builds have.
	Standalone func(name string) bool
	// Forks, if any, reports whether there can be another process: without it
	// there always can.
	Forks func() bool
	// OOM, if any, is told of each process that the OOM killer chooses, before
	// its Done; not of those that go with it.
	OOM func(victim *Process)
	// UnknownCommand, if any, is told of a program that Commands has not. What
	// it runs writes "NAME: applet not found" and exits 127.
	UnknownCommand func(name string)
	// StandIn, if any, says what runs in place of a program whose file is not
	// there, given as a name or a path; nil means that it can't be run.
	StandIn func(name string) Command
	// Warn, if any, takes what a command can't do as the real one would.
	Warn func(text string)
}

// IDMaps are the contents of /proc/PID/uid_map and gid_map.
type IDMaps struct{ UID, GID string }

// Container is a cgroup and the namespaces of its processes. It lives as long as its first
// process: with that one all others end (ended), and nothing can be started in it again. The
// runtime makes another Container for a restart.
type Container struct {
	m    *Machine
	opts ContainerOptions
	pids *PIDNamespace

	// first is the one that Start was called for first, process 1 unless the pid namespace is
	// shared.
	procs []*Process // the living, oldest first
	first *Process
	ended bool
	// used is charged memory in bytes, peak the most it ever was.
	used, peak int64
	files      int64 // of used: what was written to a tmpfs
	cpu        cpuTime
	// oomKills shows in memory.events and memory.failcnt.
	oomKills int
}

// NewContainer returns a container without processes.
func (m *Machine) NewContainer(opts ContainerOptions) *Container {
	c := &Container{m: m, opts: opts, pids: opts.PIDs}
	if c.pids == nil {
		c.pids = m.NewPIDs()
	}
	// So that /proc and the cgroup of the namespace show this container, and a tmpfs charges it.
	opts.Root.ns.c = c
	if opts.Group != nil {
		// The group's death is how a whole pod vanishes at once when its node loses power.
		opts.Group.OnKill(c.vanish)
	}
	if opts.Cgroup != nil {
		opts.Cgroup.list = append(opts.Cgroup.list, c)
	}
	return c
}

// vanish is a power cut. Done is not called: nobody is left to hear of it.
func (c *Container) vanish() {
	for _, p := range slices.Clone(c.procs) {
		p.vanish()
	}
}

// Machine returns the node's kernel.
func (c *Container) Machine() *Machine { return c.m }

// Options returns what the container was made with. The caller must not write
// to it.
func (c *Container) Options() *ContainerOptions { return &c.opts }

// SetCPU changes what /sys/fs/cgroup says of the processor. It is the in-place resize of a pod
// (KEP-1287); nothing is throttled by it.
func (c *Container) SetCPU(shares, quota, period int64) {
	c.opts.CPUShares, c.opts.CPUQuota, c.opts.CPUPeriod = shares, quota, period
}

// Hostname returns the container's host name.
func (c *Container) Hostname() string {
	if c.opts.Hostname == "" {
		return c.m.opts.Hostname
	}
	return c.opts.Hostname
}

// Warn says, to whoever listens, what a command can't do.
func (c *Container) Warn(text string) {
	if c.opts.Warn != nil {
		c.opts.Warn(text)
	}
}

// Net returns the container's network namespace.
func (c *Container) Net() *NetNS {
	if c.opts.Net == nil {
		return c.m.host
	}
	return c.opts.Net
}

// PIDs returns the container's pid namespace.
func (c *Container) PIDs() *PIDNamespace { return c.pids }

// View returns the container's files as root sees them.
func (c *Container) View() *View { return c.opts.Root }

// ChdirError says that a process can't be started in its working directory.
type ChdirError struct {
	Dir   string
	Errno linux.Errno
}

// Error is the error in runc's words.
func (e *ChdirError) Error() string {
	return "chdir to cwd (" + strconv.Quote(e.Dir) + ") set in config.json failed: " + e.Errno.Error()
}

// Unwrap returns the Errno.
func (e *ChdirError) Unwrap() error { return e.Errno }

// Start runs a program: the container's first, or, while that runs, one more
// (an exec). A name without a slash is looked up in PATH of Spec.Env. The error
// is a *ExecError or *ChdirError, whose text is runc's, or ErrStopped. When the
// first process ends all others get SIGKILL.
//
// The order is runc's: the working directory, then the search for the program, each with an error
// text of its own, which the kubelet reports as the reason of a failed start (StartError).
func (c *Container) Start(spec Spec) (*Process, error) {
	if c.ended {
		return nil, ErrStopped
	}
	if len(spec.Argv) == 0 {
		return nil, &ExecError{Errno: linux.EINVAL}
	}
	// Whether it can run is found out before there is a process, with its
	// credentials: a stand-in lends them to a View.
	dir := cmp.Or(spec.Dir, "/")
	// The View needs a process only for its credentials and directory.
	stand := &Process{Cred: spec.Cred, Dir: dir, c: c, ns: c.pids}
	v := &View{ns: c.opts.Root.ns, p: stand}
	if err := c.enter(v, dir); err != nil {
		return nil, err
	}
	file, eerr := v.runcLookup(spec)
	if eerr != nil {
		return nil, eerr
	}
	prog, eerr := v.program(c, file, spec.Argv, 0)
	if eerr != nil {
		return nil, eerr
	}
	p := c.newProcess(spec.Argv[0], nil)
	p.Argv, p.Env, p.Dir, p.Cred = slices.Clone(prog.argv), spec.Env, stand.Dir, spec.Cred
	p.fds, p.tty, p.done = dup(spec.FDs), spec.Tty, spec.Done
	// Only the first one's end ends the container; execs come and go.
	c.first = cmp.Or(c.first, p)
	// The body starts at a later step of the loop, so Done never comes before Start has returned.
	p.launch(spec.Argv[0], false, prog.run)
	return p, nil
}

// enter makes the working directory, as runc does, and enters it. Making it is runc's doing for
// "workingDir" of a pod that the image lacks. The symbolic links of it are resolved, so Dir is
// where it leads.
func (c *Container) enter(v *View, dir string) error {
	_ = c.opts.Root.MkdirAll(dir, 0o755)
	at, errno := v.resolve(dir, true)
	switch {
	case errno != 0:
	case !at.exists():
		errno = linux.ENOENT
	case !at.mode().IsDir():
		errno = linux.ENOTDIR
	case !v.may(&at, 1):
		errno = linux.EACCES
	}
	if errno != 0 {
		return &ChdirError{dir, errno}
	}
	v.p.Dir = at.path
	return nil
}

// runcLookup is the search for the program as runc does it. It differs from LookPath: PATH is the
// container's environment's last one, as a later entry wins, and whatever is wrong is reported as
// not found in $PATH.
func (v *View) runcLookup(spec Spec) (string, *ExecError) {
	name := spec.Path
	if name == "" {
		name = spec.Argv[0]
	}
	if strings.Contains(name, "/") {
		if errno := v.executable(name); errno != 0 && v.standIn(name, errno) == nil {
			return "", &ExecError{Path: name, Errno: errno}
		}
		return name, nil
	}
	pathEnv, found := "", false
	for _, e := range spec.Env {
		if rest, ok := strings.CutPrefix(e, "PATH="); ok {
			pathEnv, found = rest, true
		}
	}
	// runc sets this PATH when the configuration has none.
	if !found {
		pathEnv = defaultPath
	}
	file, err := v.lookPath(name, pathEnv)
	if err != nil && v.standIn(name, err) != nil {
		return standInDir + name, nil
	}
	if err != nil {
		return "", &ExecError{Path: name, Errno: execError(err), NotInPath: true}
	}
	return file, nil
}

// First returns the container's first process, nil before the start.
func (c *Container) First() *Process { return c.first }

// Processes lists the living processes, oldest first.
func (c *Container) Processes() []*Process { return slices.Clone(c.procs) }

// ProcessCount returns how many there are.
func (c *Container) ProcessCount() int { return len(c.procs) }

// Signal sends a signal to the first process from outside its pid namespace:
// SIGKILL always works, others that it has no handler for are lost on pid 1. The kubelet's
// SIGTERM arrives this way, by the runtime.
func (c *Container) Signal(sig int) {
	if c.first != nil {
		c.first.deliver(sig, false)
	}
}

// KillAll kills all processes with SIGKILL. In the order of their start, so that their ends come
// in the same order in each run.
func (c *Container) KillAll() {
	for _, p := range slices.Clone(c.procs) {
		p.die(Exit{Code: 128 + SIGKILL, Signal: SIGKILL})
	}
}

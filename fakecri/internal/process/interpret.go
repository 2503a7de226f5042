package process

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/accounts"
	"github.com/drydock-sim/drydock/fakecri/internal/busybox"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/output"
	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Resolve says what a container runs: a behaviour, or that its processes are
// interpreted.
//
// The order is from the most to the least certain: what the run's code says (Behave), what a
// scenario states, what is known of the image, and last whether the command is one that can be
// interpreted. It depends on the container alone and has no effects but warnings, so it may be
// asked again.
func (r *Runner) Resolve(c *records.Container) (*program.Behaviour, bool) {
	// It goes before what is stated for many containers alike.
	if f := r.Options.Behave; f != nil {
		if b := f(c.Sandbox.Whole(), c.Whole()); b != nil {
			return b, false
		}
	}
	p := r.programOf(c)
	if p == nil {
		return r.ofCommand(c)
	}
	// A program can differ by attempt: the third restart may be the one that works.
	stated := p.At(c.Config.Metadata.Attempt)
	if p.Beside || p.BesideKnown {
		b, interpret := r.ofCommand(c)
		switch {
		case interpret:
			return b, true
		case p.Beside || !isUnknown(b):
			return r.withBeside(b, stated), false
		}
	}
	return stated, false
}

// silent is what a process does that serves nothing.
var silent = &program.Behaviour{Ports: []program.Port{}}

// besides is a behaviour and what it is with another beside it.
type besides struct{ own, with *program.Behaviour }

// withBeside is a behaviour with what is stated beside. Many
// containers do the same, so the last result is kept for each that is stated.
func (r *Runner) withBeside(own, stated *program.Behaviour) *program.Behaviour {
	last := r.besides[stated]
	if last.own == own {
		return last.with
	}
	if r.besides == nil {
		r.besides = map[*program.Behaviour]besides{}
	}
	with := own.With(stated)
	r.besides[stated] = besides{own, with}
	return with
}

// ofCommand is Resolve for a container of which nobody has stated anything.
func (r *Runner) ofCommand(c *records.Container) (*program.Behaviour, bool) {
	// The common case of a simulation, before anything is looked up.
	if len(c.Config.Command) == 0 && len(c.Config.Args) == 0 && c.Image.Source.Plain() {
		return r.unknown(c), false
	}
	argv := c.Argv()
	if len(argv) == 0 {
		return r.unknown(c), false
	}
	src := c.Image.Source
	// Commands that a scenario states are the image's: what is known of it counts no
	// more.
	if k := src.Known; k != nil && k.Daemon != nil && src.Commands == nil {
		start := &images.Start{Config: c.Config, Argv: argv, Env: func() []string { return r.Environment(c, "/") }, Files: mounted{r.Files, c.Config.Mounts}}
		if b := k.Daemon(start); b != nil {
			return b, false
		}
		argv = src.Unwrapped(argv)
	}
	trees := r.Images.AllTrees()
	switch {
	case src.Commands != nil:
		return program.DefaultBehaviour, !src.States(argv[0]) || trees.Has(path.Base(argv[0]))
	// An image with other commands than its tree's is not closed: what it has besides
	// is not known, and its default behaviour is to run.
	case trees.Runs(argv[0]) && !copiesUnknown(c, argv):
		return program.DefaultBehaviour, true
	case src.Runs(argv): // but with something that nobody knows
	case src.Known != nil && src.Known.Closed:
		return program.DefaultBehaviour, true
	}
	if _, ok := r.Images.Tool(src, argv, nil); ok && src.Known != nil {
		return program.DefaultBehaviour, true
	}
	// The author may think that the script runs.
	if p := r.programOf(c); r.Warner.To != nil && (p == nil || p.Beside) && isShellScript(argv) {
		r.Warner.WarnScript(c, argv)
	}
	return r.unknown(c), false
}

// copiesUnknown reports whether a container does nothing but copy files of an image of which
// nothing is known, as init containers do that hand a program to others: there is nothing to
// copy, and that must not keep its pod from starting. Files of volumes are copied.
func copiesUnknown(c *records.Container, argv []string) bool {
	if path.Base(argv[0]) != "cp" || !c.Image.Source.Unknown() || len(argv) < 3 {
		return false
	}
	return slices.ContainsFunc(argv[1:len(argv)-1], func(file string) bool {
		return !strings.HasPrefix(file, "-") && !slices.ContainsFunc(c.Config.Mounts, func(m *runtimeapi.Mount) bool {
			return strings.HasPrefix(file+"/", m.ContainerPath+"/")
		})
	})
}

// ofUnknown are the commands in containers of images of which nothing is known: a cp there, as in a
// script, does well although what it is to copy isn't in the image's files, for the reason that
// copiesUnknown has. All such containers of a node share the map.
func (r *Runner) ofUnknown(src *images.Source) kernel.Commands {
	if r.unknownImages == nil {
		r.unknownImages = maps.Clone(r.Images.CommandsOf(src))
		copies := r.unknownImages["cp"]
		r.unknownImages["cp"] = func(ctx context.Context, p *kernel.Process) int {
			c := r.Records.ContainerFor(p.Container().Options().ID)
			if c == nil || !copiesUnknown(c, p.Argv) || anyThere(p.View(), p.Argv[1:len(p.Argv)-1]) {
				return copies(ctx, p)
			}
			p.Container().Warn("what is in its image is not known here: " + strings.Join(p.Argv, " ") + " copies nothing and exits 0")
			return 0
		}
	}
	return r.unknownImages
}

// anyThere reports whether any of some files is there.
func anyThere(v *kernel.View, files []string) bool {
	return slices.ContainsFunc(files, func(file string) bool {
		_, err := v.Lstat(file)
		return err == nil && !strings.HasPrefix(file, "-")
	})
}

// AsProcess reports whether a container whose behaviour is known without running
// anything is to have a process all the same, beside which others can be run. What a
// scenario states as a Program stays without one: its author has said all that it does.
func (r *Runner) AsProcess(c *records.Container) bool {
	k := c.Image.Source.Known
	server := k != nil && k.Daemon != nil
	if p := r.programOf(c); p != nil && !p.Beside && !(p.BesideKnown && server) {
		return false
	}
	if r.Options.Interpret {
		return true
	}
	return r.Options.Execs != nil && server && r.Options.Execs(c.Sandbox.Metadata, c.Config.Metadata.Name)
}

// programOf returns the first program that matches the container, or nil. The order of the list
// counts, so that special ones stand before general ones.
func (r *Runner) programOf(c *records.Container) *program.Program {
	for i := range r.Options.Programs {
		if p := &r.Options.Programs[i]; p.Match.Matches(c.Sandbox.Metadata, c.Config, c.Image.Tags) {
			if r.matched == nil {
				r.matched = make([]bool, len(r.Options.Programs))
			}
			r.matched[i] = true
			return p
		}
	}
	return nil
}

// Matched reports of each program, in the order of Options.Programs, whether a container
// that was started took it; nil while none did.
func (r *Runner) Matched() []bool { return r.matched }

// runcCreate is what containerd says before runc's own words.
const runcCreate = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "

// startInterpreted makes a container's namespaces and starts its first process.
// done is called when that has ended. The error's text is what StartContainer
// says. With stated that process does what the behaviour says, whatever its
// command line is. c.Process is not set yet: the process's first step is later, on its own task.
func (r *Runner) startInterpreted(c *records.Container, stated *program.Behaviour, done func(kernel.Exit)) (*records.Interpreted, error) {
	// The order is runc's: the root and its mounts, then the namespaces, then the
	// program. An error on the way leaves nothing behind.
	pk := r.Kernel.Pod(c.Sandbox)
	in := &records.Interpreted{Container: c, Group: r.Loop.NewGroup(c.Sandbox.Metadata.Name + "/" + c.Config.Metadata.Name), Net: pk.Net}
	in.Stdout = &output.Stream{R: r.Output, C: c, Name: program.StdoutName}
	in.Stderr = &output.Stream{R: r.Output, C: c, Name: program.StderrName}
	if err := r.enterImage(in, pk); err != nil {
		// No process was made yet, but tasks may have been.
		in.Group.Kill()
		return nil, err
	}
	argv := c.Image.Source.Unwrapped(c.Argv())
	if stated != nil {
		if in.Stated = stated; len(argv) == 0 {
			argv = c.StatedArgv()
		}
		r.installStated(in, argv)
	}
	if p := r.programOf(c); p != nil && (p.Beside || p.BesideKnown) && stated == nil {
		in.Beside = r.withBeside(silent, p.At(c.Config.Metadata.Attempt))
		r.installStated(in, []string{besideFile})
	}
	in.PIDs = r.pidNamespace(c, pk)
	in.Kernel = r.Kernel.Kernel().NewContainer(r.containerOptions(in, pk))
	// held is the other end of stdin, for attach.
	fds, held := r.standardFiles(in)
	in.Stdin = held
	p, err := in.Kernel.Start(kernel.Spec{
		Argv: argv, Env: in.Env, Dir: in.Dir, Cred: in.Cred, FDs: fds, Tty: c.Config.Tty, Done: done,
	})
	// The process has references of its own.
	records.CloseAll(fds)
	if in.TTY != nil {
		in.TTY.SetLeader(p)
	}
	if err == nil {
		if in.Stated != nil {
			r.announce(in, p)
		}
		if in.Beside != nil {
			err = r.startBeside(in)
		}
		if err == nil {
			return in, nil
		}
	}
	// What was made for the container goes, mounts included.
	in.End()
	var xerr *kernel.ExecError
	// A missing program is runc's error, one that is no program the kernel's.
	if errors.As(err, &xerr) && (xerr.Errno == linux.ENOEXEC || xerr.Interpreter != "") {
		return nil, &lateExecError{in: in, text: xerr.Error()}
	}
	return nil, errors.New(runcCreate + err.Error())
}

// lateExecError is of a program that runc finds and the kernel refuses: the
// container has started by then, and ends with a line on stderr.
type lateExecError struct {
	in   *records.Interpreted
	text string
}

// Error is the kernel's text.
func (e *lateExecError) Error() string { return e.text }

// standardFiles returns the first three files of a container's process, and the
// other end of its standard input if somebody could attach to it. A terminal stands for all
// three. Without Options.Attachable it only looks like one: nobody could type, and no line
// editing is needed.
func (r *Runner) standardFiles(in *records.Interpreted) (fds []kernel.File, held kernel.File) {
	m := r.Kernel.Kernel()
	if in.Container.Config.Tty && r.Options.Attachable {
		in.TTY = m.NewTTY(in.Stdout)
		// Three references to one terminal, as each descriptor is closed by itself.
		slave := in.TTY.Slave()
		return []kernel.File{slave, slave.Dup(), slave.Dup()}, in.TTY.Keyboard()
	}
	stdin := m.Null()
	if in.Container.Config.Stdin {
		stdin, held = m.Pipe()
	}
	if !in.Container.Config.Tty {
		return []kernel.File{stdin, in.Stdout, in.Stderr}, held
	}
	if held == nil {
		stdin, held = m.Pipe() // nobody types, but the terminal is there
	}
	out := terminal{in.Stdout}
	return []kernel.File{terminal{stdin}, out, out}, held
}

// terminal is the pseudo-terminal of a container that has one. Programs ask isatty(3) to decide
// how they write.
type terminal struct{ kernel.File }

// IsTTY is what kernel.IsTTY looks for.
func (terminal) IsTTY() bool { return true }

// Dup implements kernel.File.
func (t terminal) Dup() kernel.File { return terminal{t.File.Dup()} }

// Path is the name of the terminal in the container.
func (terminal) Path() string { return "/dev/pts/0" }

// containerOptions says how the kernel is to set up a container: what the request
// and the image ask for, and whom it calls when memory or processes run out. Functions among them
// are called on the loop, while the process that causes them runs.
func (r *Runner) containerOptions(in *records.Interpreted, pk *podkernel.Pod) kernel.ContainerOptions {
	c, lin := in.Container, in.Container.LinuxResources()
	caps, noNew, seccomp := Privileges(c.Config.GetLinux().GetSecurityContext())
	// A shell that has its applets built in runs them without looking at PATH.
	var standalone func(string) bool
	if c.Image.Source.Standalone {
		applets := r.Images.CommandsOf(c.Image.Source)
		// The set of applets is that of the distribution's static build.
		standalone = func(name string) bool { return applets[name] != nil && busybox.Debian(name) }
	}
	return kernel.ContainerOptions{
		Standalone:   standalone,
		Capabilities: caps, NoNewPrivileges: noNew, Seccomp: seccomp, Sysctls: c.Sandbox.Config.GetLinux().GetSysctls(),
		Group: in.Group, Root: in.View, Net: in.Net, PIDs: in.PIDs, Cgroup: pk.Cgroup, ID: c.ID, CgroupPath: r.Kernel.CgroupPath(c),
		Hostname:    r.Kernel.UtsName(c.Sandbox),
		OOMScoreAdj: records.OomScoreAdj(c), IDMaps: idMaps(c.Sandbox),
		HostIPC:     c.Sandbox.Config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetIpc() == runtimeapi.NamespaceMode_NODE,
		Filter:      r.filterOf(c.Config.GetLinux().GetSecurityContext()),
		MemoryLimit: lin.GetMemoryLimitInBytes(),
		OOMGroup:    lin.GetUnified()["memory.oom.group"] == "1",
		CPUShares:   lin.GetCpuShares(), CPUQuota: lin.GetCpuQuota(), CPUPeriod: lin.GetCpuPeriod(),
		Commands: r.commandsFor(in),
		Forks:    func() bool { return r.Accounts.MayFork(c) },
		OOM: func(p *kernel.Process) {
			in.OOM = true
			cgroup := in.OOMCgroup
			if cgroup == "" {
				// Where the limit was the pod's, the report names the pod's cgroup.
				cgroup = r.Kernel.CgroupPath(c)
			}
			r.Accounts.TellOOM(c, accounts.ProcessName(p.Argv), p.PIDIn(r.Kernel.Machine.HostPIDs()), cgroup)
		},
		UnknownCommand: func(name string) {
			// Of an image with stated commands, what else is asked for is rightly not found.
			if c.Image.Source.Commands != nil {
				return // so the scenario says
			}
			r.Warner.WarnOnce(c, "unknown\x00"+name, "the command "+name+" is not known here; it ends with 127 (a stated program can say what the container does)")
		},
		StandIn: r.standIn(in),
		Warn:    func(text string) { r.Warner.WarnOnce(c, text, text) },
	}
}

// pidNamespace returns the pid namespace that the container asks for. The CRI's NamespaceOption:
// CONTAINER is a fresh one, TARGET is an ephemeral container's (kubectl debug --target).
func (r *Runner) pidNamespace(c *records.Container, pk *podkernel.Pod) *kernel.PIDNamespace {
	m := r.Kernel.Kernel()
	o := c.Config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	// The namespace that processes see each other in; a pod's has its pause process.
	switch o.GetPid() {
	case runtimeapi.NamespaceMode_NODE:
		return m.HostPIDs()
	case runtimeapi.NamespaceMode_POD:
		if o == nil { // POD is the zero value: whoever says nothing gets its own
			return m.NewPIDs()
		}
		// The first container of the pod that shares it makes it; the pause process is number 1.
		if pk.PIDs == nil {
			pk.PIDs = m.NewPIDs()
			pk.PIDs.AddStated("/pause")
		}
		return pk.PIDs
	case runtimeapi.NamespaceMode_TARGET:
		if t := r.Records.ContainerFor(o.GetTargetId()); t != nil && t.Process != nil && t.Process.Interpreted != nil {
			return t.Process.Interpreted.PIDs
		}
	}
	return m.NewPIDs()
}

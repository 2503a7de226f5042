package process

import (
	"context"
	"errors"
	"path"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/accounts"
	"github.com/drydock-sim/drydock/fakecri/internal/disk"
	"github.com/drydock-sim/drydock/fakecri/internal/hostfiles"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/output"
	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/podnet"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// What containerd says of a container that could not be started. 128 is containerd's code for
// what was never started; the kubelet shows both in the container's state.
const (
	startErrorCode   = 128
	startErrorReason = "StartError"
)

// Runner runs containers' programs. There is one for each runtime. Its other fields are parts of
// the same runtime, set once before anything starts.
type Runner struct {
	Loop     *loop.Loop
	Recorder *trace.Recorder
	fields   []trace.Field // of the record being made: memory for the next
	Options  Options
	Records  *records.Store
	Images   *images.Store
	Files    *hostfiles.Files
	Layers   *disk.Layers
	Kernel   *podkernel.Node
	Accounts *accounts.Node
	Output   *output.Outputs
	Net      *podnet.Net
	Warner   *records.Warner
	// Event tells those who stream container events (EventedPLEG).
	Event func(kind runtimeapi.ContainerEventType, id string, s *records.Sandbox)

	matched       []bool          // by program
	unknownImages kernel.Commands // see ofUnknown; made for the first
	besides       map[*program.Behaviour]besides
}

// Options are those of the runtime's Options that concern programs. Behave, if any, comes before
// everything else that is said of a container.
type Options struct {
	Programs              []program.Program
	Behave                func(pod *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) *program.Behaviour
	Interpret, Attachable bool
	// Ends, Execs and Unknown are those of the runtime's options.
	Ends    func(pod *runtimeapi.PodSandboxMetadata, container string) bool
	Execs   func(pod *runtimeapi.PodSandboxMetadata, container string) bool
	Unknown func(image string)
	// Unserved is told of each request to a port that nobody in its pod ever serves.
	Unserved func(Unserved)
}

// isShellScript recognises sh -c '...'. Any option that ends with c counts, such as -ec.
func isShellScript(argv []string) bool {
	if len(argv) < 3 {
		return false
	}
	switch path.Base(argv[0]) {
	case "sh", "bash", "ash", "dash", "zsh", "ksh":
		return len(argv[1]) >= 2 && argv[1][0] == '-' && argv[1][len(argv[1])-1] == 'c'
	}
	return false
}

// Start and Exit are the ends of a program's way; see the package comment.
// Start makes a container's process. What fails before the process is there is a failed start
// (code 128), and the container is EXITED by it; an error of the kernel's after that is an
// ordinary end with 1.
func (r *Runner) Start(c *records.Container) error {
	b, interpret := r.Resolve(c)
	if !interpret {
		r.tellUnknown(c, b)
	}
	// StartedAt is when the process begins, before its first step.
	now := r.Loop.UnixNano()
	// The log comes before the process, so a container that can't start has one, too.
	if err := r.Output.OpenLog(c); err != nil {
		return r.failStart(c, "failed to create containerd task: failed to create container loggers: "+err.Error())
	}
	// A stated error is runc's: the log has been opened by then.
	if b.StartError != "" {
		return r.failStart(c, b.StartError)
	}
	if !interpret {
		// What it writes to memory is added once, here, so that all sums see one curve.
		b = r.Layers.WithMemory(c, b)
	}
	p := &records.Process{Container: c, Behaviour: b, StartedAt: now}
	var late *lateExecError
	var stated *program.Behaviour
	if !interpret && r.AsProcess(c) {
		stated, interpret = b, true
	}
	if interpret {
		in, err := r.startInterpreted(c, stated, func(e kernel.Exit) { r.firstEnded(p, e) })
		// The kernel's refusal comes after the container has started.
		if errors.As(err, &late) {
			in = late.in
		} else if err != nil {
			return r.failStart(c, err.Error())
		}
		p.Interpreted = in
	}
	c.Process = p
	// Processes account for themselves, in the kernel.
	if p.Interpreted == nil {
		r.Accounts.Account(p, 1)
	}
	c.StartedAt = now
	r.Records.SetContainerState(c, records.StateRunning)
	r.Event(records.EventStarted, c.ID, c.Sandbox)
	r.recordProcess(c, "start", records.ExitStatus{})
	// As runc's init does when exec fails: a line on stderr, and code 1.
	if late != nil {
		_, _ = late.in.Stderr.Write(context.Background(), []byte(late.text+"\n"))
		r.Exit(c, records.ExitStatus{Code: 1})
		return nil
	}
	if interpret {
		if stated != nil {
			r.Layers.StartWrites(p)
			r.Net.Serve(c)
		}
		return nil
	}
	sub := c.Subject()
	if b.RunFor.Min > 0 || b.RunFor.Max > 0 {
		// At least a nanosecond, so that 0 stays "never" and a start is never its own end. Draws
		// are by the container and its attempt, so a restart draws anew.
		p.ExitAt = now + max(sub.Draw(r.Loop, b.RunFor, "run for"), 1)
	}
	p.OOMAt = r.oomTime(p, now)
	// Armed before the logs begin: a line at the same instant as the end comes before it, by
	// their order as timers.
	r.arm(p)
	r.Output.StartLogs(p)
	r.Layers.StartWrites(p)
	r.Net.Serve(c)
	return nil
}

// failStart ends a container that could not be started. The error goes to the kubelet as
// StartContainer's, which makes an event of it (Failed), and backs off.
func (r *Runner) failStart(c *records.Container, text string) error {
	c.FinishedAt = r.Loop.UnixNano()
	c.ExitCode, c.Reason, c.Message = startErrorCode, startErrorReason, text
	r.recordProcess(c, "start-failed", records.ExitStatus{Code: startErrorCode, Reason: startErrorReason, Message: text})
	r.Records.SetContainerState(c, records.StateExited)
	r.Output.CloseLog(c)
	return status.Error(codes.Unknown, text)
}

// How long containerd takes to notice that a process has ended: to be told by
// the shim and to delete the task. Until then the container shows as running.
const (
	noticeMin = 30 * time.Millisecond
	noticeMax = 70 * time.Millisecond
)

// firstEnded is the end of an interpreted container's first process. A stop
// that waits for it has that time in its latency. The record keeps the time of the end itself:
// the container's FinishedAt is that, not the notice.
func (r *Runner) firstEnded(p *records.Process, e kernel.Exit) {
	c := p.Container
	// The container may have been ended otherwise meanwhile.
	if c.Process != p {
		return
	}
	p.Interpreted.Ended, p.Interpreted.EndedAt = p.Interpreted.ExitOf(e), r.Loop.UnixNano()
	// Whoever stops the container has the time that containerd takes in the call's
	// latency already. Somebody waits: see waitExit in package lifecycle.
	if c.Exited != nil {
		r.Exit(c, p.Interpreted.Ended)
		return
	}
	sub := c.Subject()
	// The timer is of the powered group: a machine without power notices nothing.
	p.Timer = r.Kernel.Powered.NewTimer("process", func() {
		if c.Process == p {
			r.Exit(c, p.Interpreted.Ended)
		}
	})
	p.Timer.Reset(r.Loop.Between(noticeMin, noticeMax, "notice", sub.Pod, sub.Key()))
}

// oomTime returns when the program's memory passes the container's limit, in
// nanoseconds since the epoch and not before now; 0 for never. Memory is a curve over time
// (package usage), so the instant is computed and not polled for.
func (r *Runner) oomTime(p *records.Process, now int64) int64 {
	limit := p.Container.LinuxResources().GetMemoryLimitInBytes()
	// A limit of 0 is none, as in CRI.
	if limit <= 0 {
		return 0
	}
	// Most programs can never pass their limit: no curve is searched for them.
	if p.Behaviour.Memory.Peak() <= limit {
		return 0
	}
	t, ok := p.Behaviour.Memory.Over(limit, time.Duration(now-p.StartedAt), p.Container.NoiseKey(r.Loop))
	if !ok {
		return 0
	}
	return p.StartedAt + int64(t)
}

// LimitChanged acts on another memory limit. It follows an in-place resize. A limit below what is
// used kills a stated program at once, too, as its time has then passed.
func (r *Runner) LimitChanged(p *records.Process) {
	if p.Interpreted != nil {
		lin := p.Container.LinuxResources()
		p.Interpreted.Kernel.SetCPU(lin.GetCpuShares(), lin.GetCpuQuota(), lin.GetCpuPeriod())
		p.Interpreted.Kernel.SetMemoryLimit(lin.GetMemoryLimitInBytes())
		return
	}
	r.Accounts.AccountCPU(p, 0)
	p.OOMAt = r.oomTime(p, r.Loop.UnixNano())
	r.arm(p)
}

// arm sets the timer for the process's end: one timer, for the first of all ends
// that it can come to. The timer is kept and reset, not made anew.
func (r *Runner) arm(p *records.Process) {
	at, _ := p.End()
	// Another limit may have taken the end away.
	if at == 0 {
		if p.Timer != nil {
			p.Timer.Stop()
		}
		return
	}
	if p.Timer == nil {
		p.Timer = r.Kernel.Powered.NewTimer("process", func() {
			// The process may have been ended otherwise meanwhile.
			if p.Container.Process == p {
				r.Ends(p)
			}
		})
	}
	p.Timer.Reset(time.Duration(at - r.Loop.UnixNano()))
}

// Ends is the process's end by itself, by its stop signal or by its limit. A curve with noise is
// searched piecewise: the time that was found may be one where it must be looked again.
func (r *Runner) Ends(p *records.Process) {
	at, e := p.End()
	if at == p.OOMAt && e.Reason == records.OomReason {
		// With noise the time is one to look again at.
		if at := r.oomTime(p, at); at != p.OOMAt {
			p.OOMAt = at
			r.arm(p)
			return
		}
	}
	if e.Reason == records.OomReason {
		r.Accounts.TellOOM(p.Container, accounts.ProcessName(p.Container.Argv()), r.Accounts.StatedPID(p.Container), r.Kernel.CgroupPath(p.Container))
	}
	// The termination message comes before the end is told, as kubelets read it then.
	r.lastWords(p)
	r.Exit(p.Container, e)
}

// Signal delivers a signal; one other than SIGKILL counts as the stop signal. A
// program that is on its way out already is not hurried by another. Draws are for the stated
// kind; an interpreted one decides by itself.
func (r *Runner) Signal(c *records.Container, sig int) {
	p := c.Process
	if p == nil {
		return
	}
	if sig == records.SigKILL {
		r.Exit(c, records.ExitBySignal(records.SigKILL))
		return
	}
	if p.Interpreted != nil {
		p.Interpreted.Kernel.Signal(sig)
		return
	}
	// Ignored: the grace period runs out and SIGKILL comes.
	if p.Behaviour.OnTerm.Ignore || p.TermAt != 0 {
		return
	}
	sub := c.Subject()
	after := sub.Draw(r.Loop, p.Behaviour.OnTerm.After, "on term")
	p.StopSignal = sig
	if after <= 0 {
		e := records.ExitStatus{Code: p.Behaviour.OnTerm.Exit}
		// As process 1 without a handler would not be killed, this is for programs that die of
		// it, by choice.
		if p.Behaviour.OnTerm.Unhandled {
			e = records.ExitBySignal(sig)
		}
		r.lastWords(p)
		r.Exit(c, e)
		return
	}
	p.ToldAt = r.Loop.UnixNano()
	p.TermAt = p.ToldAt + after
	r.arm(p)
}

// Exit ends a container's process, and is where every process ends. The order
// counts: the sums are right before anybody is told, the record and the event come
// before those who wait go on, and the processes that are left go last, so that what
// they still write is in the log. It is called with a container that is alive, and once for each
// life.
func (r *Runner) Exit(c *records.Container, e records.ExitStatus) {
	p := c.Process
	c.Process = nil
	if p != nil {
		if p.Timer != nil {
			p.Timer.Stop()
		}
		if p.Interpreted == nil {
			// Sums of stated programs are kept here; interpreted ones are charged by the kernel.
			r.Accounts.Account(p, -1)
		}
		p.Logs.Stop()
		// Probes that elided their asking must ask again.
		r.Net.AnswersChanged(c, p)
	}
	c.FinishedAt = r.Loop.UnixNano()
	if p != nil && p.Interpreted != nil && p.Interpreted.EndedAt != 0 && e.Reason != records.UnknownReason {
		// The process has ended by itself: whatever came after that does not count.
		c.FinishedAt, e = p.Interpreted.EndedAt, p.Interpreted.Ended
	}
	if e.Reason == "" {
		// The reasons are containerd's.
		e.Reason = "Completed"
		if e.Code != 0 {
			e.Reason = "Error"
		}
	}
	c.ExitCode, c.Reason, c.Message = e.Code, e.Reason, e.Message
	r.Records.SetContainerState(c, records.StateExited)
	r.Event(records.EventStopped, c.ID, c.Sandbox)
	// The trace of a failure says why, if the program did.
	if p != nil && p.Interpreted != nil && e.Code != 0 && e.Signal == 0 {
		e.Stderr = p.Interpreted.Stderr.LastLine()
	}
	r.recordProcess(c, "exit", e)
	if c.Exited != nil {
		// Those who stop it, or wait in an exec beside it.
		c.Exited.Fire()
	}
	if r.Output.Attached != nil {
		r.Output.DetachAll(c)
	}
	switch {
	case p != nil && p.Interpreted != nil:
		if p.Interpreted.Stated != nil {
			r.Net.Unserve(c)
		}
		p.Interpreted.End()
	// A stated program listens in the kernel only while there is one.
	case r.Kernel.Machine != nil:
		r.Net.Unserve(c)
	}
	r.Output.CloseLog(c)
	r.Layers.StopWrites(c)
}

// lastWords writes a stated program's termination message. It is written by the
// program, so not when SIGKILL ends it. The kubelet mounts a file there (terminationMessagePath)
// and names the path by an annotation.
func (r *Runner) lastWords(p *records.Process) {
	if p.Behaviour.TerminationMessage == "" || r.Files.FS == nil && r.Files.Host == nil {
		return
	}
	file := p.Container.Config.Annotations[AnnotationTerminationPath]
	for _, m := range p.Container.Config.Mounts {
		if m.ContainerPath == file && file != "" && !m.Readonly {
			r.Files.Write(m.HostPath, []byte(p.Behaviour.TerminationMessage))
		}
	}
}

// AnnotationTerminationPath is where kubelets note the path of the termination
// message in the container.
const AnnotationTerminationPath = "io.kubernetes.container.terminationMessagePath"

// recordProcess makes the trace record of a start or an end. Without a recorder, as in a server,
// there is no trace.
func (r *Runner) recordProcess(c *records.Container, verb string, e records.ExitStatus) {
	if r.Recorder == nil {
		return
	}
	sub := c.Subject()
	fields := append(r.fields[:0], trace.Str("attempt", strconv.FormatUint(uint64(sub.Attempt), 10)))
	if verb != "start" {
		fields = append(fields, trace.Int("code", int64(e.Code)), trace.Str("reason", e.Reason))
		if e.Signal != 0 {
			fields = append(fields, trace.Int("signal", int64(e.Signal)))
		}
		if e.Message != "" {
			fields = append(fields, trace.Str("message", e.Message))
		}
		if e.Stderr != "" {
			fields = append(fields, trace.Str("stderr", e.Stderr))
		}
	}
	r.Recorder.RecordObject(trace.KindProcess, sub.Object(), verb, fields...)
	// The next record uses the memory again.
	r.fields = fields[:0]
}

// KillAll kills every running container of the sandbox. It ends them at once, as the death of a
// pod's cgroup does; a grace period was the caller's to give.
func (r *Runner) KillAll(s *records.Sandbox) {
	for _, c := range s.Containers {
		if c.Alive() {
			r.Exit(c, records.ExitBySignal(records.SigKILL))
		}
	}
}

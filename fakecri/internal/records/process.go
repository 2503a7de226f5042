package records

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/usage"
)

// CloseStdin ends a container's input.
func (in *Interpreted) CloseStdin() {
	if in.Stdin != nil {
		_ = in.Stdin.Close()
		in.Stdin = nil
	}
}

// Interpreted is what a container has besides when its processes are
// interpreted.
type Interpreted struct {
	Container *Container
	Kernel    *kernel.Container
	View      *kernel.View
	Group     *loop.Group
	PIDs      *kernel.PIDNamespace
	Net       *kernel.NetNS
	// Cred, env and dir are the first process's; commands that are run in the
	// container have the same.
	Cred kernel.Cred
	Env  []string
	Dir  string

	Stdout, Stderr Output
	Stdin          kernel.File // the end that an attached client would write to
	TTY            *kernel.TTY // of a container with one that clients can attach to
	OOM            bool
	OOMCgroup      string // whose limit is passed, while the killer is at work; "": its own
	// Of a program that is stated: how it answers, and what ends it from within. Beside is what
	// is stated beside a command; nil: nothing is.
	Stated, Beside *program.Behaviour
	Exit           exitRequest
	// When somebody last asked for the processor time, and what it was.
	askedAt, askedCPU int64
	milli             int64
	// Ended is how the first process did, and endedAt when, in nanoseconds
	// since the epoch; 0 until then.
	Ended   ExitStatus
	EndedAt int64
}

// Output is a stream of a container's: what is written to it goes to its log and
// to who is attached.
type Output interface {
	kernel.File
	Flush()
	LastLine() string
}

// CloseAll closes a process's copies of files once it has its own.
func CloseAll(fds []kernel.File) {
	for _, f := range fds {
		_ = f.Close()
	}
}

// End takes a container's processes and namespaces away. Commands that are
// still run in it end by SIGKILL.
func (in *Interpreted) End() {
	if in.Kernel != nil {
		in.Kernel.KillAll()
	}
	in.Group.Kill()
	in.Stdout.Flush()
	in.Stderr.Flush()
	if in.Stdin != nil {
		_ = in.Stdin.Close()
		in.Stdin = nil
	}
}

// ExitOf turns the end of a container's first process into what containerd
// shows. If the OOM killer took any of its processes, that is the reason.
func (in *Interpreted) ExitOf(e kernel.Exit) ExitStatus {
	out := ExitStatus{Code: int32(e.Code), Signal: e.Signal}
	if in.OOM || e.OOM {
		out.Reason = OomReason
	}
	return out
}

// LogState is the progress of a stated program's log lines.
type LogState struct {
	Timer *loop.Timer
	Next  []int64 // per line of the behaviour: when it is due; 0 for no more
	Count []int
}

// Stop ends the lines; of nil it does nothing.
func (s *LogState) Stop() {
	if s != nil {
		s.Timer.Stop()
	}
}

// What containerd says of a process that went while it wasn't looking.
const (
	UnknownExitCode = 255
	UnknownReason   = "Unknown"
)

// ExitStatus is how a process ended.
type ExitStatus struct {
	Code            int32
	Signal          int // 0 when it exited by itself
	Reason, Message string
	Stderr          string // the last line of it, if that may say why
}

// ExitBySignal is the end by a signal, with the code that shells give it.
func ExitBySignal(n int) ExitStatus { return ExitStatus{Code: int32(128 + n), Signal: n} }

// OomReason is what containerd says of a container in which the OOM killer took
// a process, whichever.
const OomReason = "OOMKilled"

// ExitByOOM is the end by the OOM killer.
var ExitByOOM = ExitStatus{Code: 137, Signal: SigKILL, Reason: OomReason}

// Process is what runs in a container. A stated program is this and a timer.
type Process struct {
	Container *Container
	Behaviour *program.Behaviour
	StartedAt int64
	Timer     *loop.Timer // the next of the ends below
	// When it ends by itself, by the stop signal and by the OOM killer, in
	// nanoseconds since the epoch; 0 for never.
	ExitAt, TermAt, OOMAt int64
	// ToldAt is when the stop signal came to a program that heeds it; 0 for not yet.
	ToldAt      int64
	StopSignal  int
	Logs        *LogState
	Interpreted *Interpreted // of an interpreted one
	// Relied: somebody takes it that the answers of its ports stay as they are.
	Relied bool
}

// PortAt is Behaviour.PortAt of a program that may have been told to end: it doesn't begin to listen
// any more.
func (p *Process) PortAt(number int, t time.Duration) *program.Port {
	port := p.Behaviour.PortAt(number, t)
	if port != nil && p.TooLate(port) {
		return nil
	}
	return port
}

// TooLate reports whether a program was told to end before it was to listen on a port.
func (p *Process) TooLate(port *program.Port) bool {
	return p.ToldAt != 0 && int64(port.After) > p.ToldAt-p.StartedAt
}

// End returns when and how the process will end; 0 for not by itself.
func (p *Process) End() (at int64, e ExitStatus) {
	attempt := p.Container.Config.Metadata.Attempt
	if p.ExitAt != 0 {
		at = p.ExitAt
		switch {
		case p.Behaviour.OOMKilled:
			e = ExitByOOM
		case p.Behaviour.Signal != 0:
			e = ExitBySignal(p.Behaviour.Signal)
		default:
			e = ExitStatus{Code: p.Behaviour.ExitCodeOf(attempt)}
		}
		if p.Behaviour.ChildOOMKilled {
			e.Reason = OomReason
		}
	}
	// What is being stopped ends when and as its stop says, as an interpreted one does.
	if p.TermAt != 0 {
		at, e = p.TermAt, ExitStatus{Code: p.Behaviour.OnTerm.Exit}
		if p.Behaviour.OnTerm.Unhandled {
			e = ExitBySignal(p.StopSignal)
		}
	}
	if p.OOMAt != 0 && (at == 0 || p.OOMAt < at) {
		at, e = p.OOMAt, ExitByOOM
	}
	return at, e
}

// exitRequest is what ends a stated program from within.
type exitRequest struct {
	Asked loop.Event
	Code  int32
}

// StartCPU is what an interpreted program has used by the time it runs.
const StartCPU = 20 * time.Millisecond

// CoreNanos is the processor time that the container's processes have used.
func (in *Interpreted) CoreNanos() int64 { return int64(StartCPU) + in.Kernel.CPU() }

// MilliCPU is what the container uses of processors, in millicores: the mean
// since somebody last asked, of a second at least.
func (in *Interpreted) MilliCPU(now int64) int64 {
	if in.askedAt == 0 {
		in.askedAt = in.Container.Process.StartedAt
	}
	if d := now - in.askedAt; d >= int64(time.Second) {
		cpu := in.Kernel.CPU()
		in.milli = (cpu - in.askedCPU) / (d / 1000)
		in.askedAt, in.askedCPU = now, cpu
	}
	return in.milli
}

// User is a process as a user of a curve.
func (p *Process) User(l *loop.Loop, c *usage.Curve) usage.User {
	return usage.User{Curve: c, Start: time.Duration(p.StartedAt), Key: p.Container.NoiseKey(l)}
}

// UsageOf is what a curve says for a stated process; the key is drawn only if
// there may be noise.
func (p *Process) UsageOf(l *loop.Loop, c *usage.Curve, now int64) int64 {
	if v, ok := c.Constant(); ok {
		return v
	}
	return p.User(l, c).At(time.Duration(now))
}

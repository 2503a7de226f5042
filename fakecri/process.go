package fakecri

import (
	"context"
	"path"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/sim/loop"
	"github.com/drydock-sim/drydock/sim/trace"
)

const (
	sigKILL = 9
	sigTERM = 15

	// What containerd says of a process that went while it wasn't looking.
	unknownExitCode = 255
	unknownReason   = "Unknown"

	startErrorCode   = 128
	startErrorReason = "StartError"

	defaultMemory = 1 << 20
)

// exitStatus is how a process ended.
type exitStatus struct {
	code            int32
	signal          int // 0 when it exited by itself
	reason, message string
}

func exitBySignal(n int) exitStatus { return exitStatus{code: int32(128 + n), signal: n} }

// oomReason is what containerd says of a container in which the OOM killer took
// a process, whichever.
const oomReason = "OOMKilled"

var exitByOOM = exitStatus{code: 137, signal: sigKILL, reason: oomReason}

// process is what runs in a container. A stated program is this and a timer.
type process struct {
	c         *container
	b         *Behaviour
	startedAt int64
	timer     *loop.Timer // the next of the ends below
	// When it ends by itself, by the stop signal and by the OOM killer, in
	// nanoseconds since the epoch; 0 for never.
	exitAt, termAt, oomAt int64
	stopSignal            int
	logs                  *logState
	main                  *Process // of an interpreted one
}

// ProcessSpec is what an interpreter gets to know of a container.
type ProcessSpec struct {
	// Namespace and Pod name the pod, Attempt is the restart count.
	Namespace, Pod string
	Attempt        uint32
	// Argv is the command line: command and args, or the image's.
	Argv []string
	// Config is the request's; it must not be changed.
	Config *runtimeapi.ContainerConfig
}

// Main is the body of an interpreted process, a task of the container's own
// group. It returns the exit code.
type Main func(ctx context.Context, p *Process) int32

// Process is what an interpreted process has to do with the runtime.
type Process struct {
	// Signals has the signals that were sent to it; SIGKILL never comes there.
	Signals *loop.Queue[int]

	r     *Runtime
	p     *process
	group *loop.Group
	// Memory is what it uses, in bytes, and CPU in millicores, for statistics.
	Memory, CPU int64
}

// Log writes a line to the container's log; stream is "stdout" or "stderr".
func (p *Process) Log(stream, text string) { p.r.writeLog(p.p.c, stream, text) }

// Group is the container's group, for further tasks. It dies with the process.
func (p *Process) Group() *loop.Group { return p.group }

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

// resolve says what a container runs.
func (r *Runtime) resolve(c *container) (*Behaviour, Main) {
	for i := range r.opts.Programs {
		if p := &r.opts.Programs[i]; p.Match.matches(c) {
			return p.at(c.config.Metadata.Attempt), nil
		}
	}
	argv := c.argv()
	if r.opts.Interpret != nil {
		md := c.sandbox.config.Metadata
		spec := ProcessSpec{Namespace: md.Namespace, Pod: md.Name, Attempt: c.config.Metadata.Attempt, Argv: argv, Config: c.config}
		if m := r.opts.Interpret(spec); m != nil {
			return defaultBehaviour, m
		}
	}
	if r.opts.Warn != nil && isShellScript(argv) {
		r.warnScript(c, argv)
	}
	return defaultBehaviour, nil
}

// isShellScript recognises sh -c '...'.
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

func (r *Runtime) warnScript(c *container, argv []string) {
	image := c.config.Image.GetUserSpecifiedImage()
	if image == "" {
		image = c.config.Image.GetImage()
	}
	key := image + "\x00" + argv[2]
	if r.warned[key] {
		return
	}
	if r.warned == nil {
		r.warned = map[string]bool{}
	}
	r.warned[key] = true
	r.warn("container %s of pod %s/%s: the script %q of image %s is not run and no program is stated for it; it runs until it is stopped and exits 0 on SIGTERM",
		c.config.Metadata.Name, c.sandbox.config.Metadata.Namespace, c.sandbox.config.Metadata.Name, shorten(argv[2], 60), image)
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}

// start makes a container's process.
func (r *Runtime) start(c *container) error {
	b, main := r.resolve(c)
	now := r.l.UnixNano()
	if file := c.logPath(); file != "" && r.opts.LogFile != nil {
		r.opts.LogFile(file) // before the process, so also if there is none
	}
	if b.StartError != "" {
		c.finishedAt = now
		c.exitCode, c.reason, c.message = startErrorCode, startErrorReason, b.StartError
		r.recordProcess(c, "start-failed", exitStatus{code: startErrorCode, reason: startErrorReason, message: b.StartError})
		r.setContainerState(c, stateExited)
		return status.Error(codes.Unknown, b.StartError)
	}
	p := &process{c: c, b: b, startedAt: now}
	c.process = p
	c.startedAt = now
	r.setContainerState(c, stateRunning)
	r.recordProcess(c, "start", exitStatus{})
	sub := c.subject()
	if b.RunFor.Min > 0 || b.RunFor.Max > 0 {
		p.exitAt = now + max(r.between(b.RunFor, "run for", &sub), 1)
	}
	p.oomAt = p.oomTime(now)
	p.arm(r)
	r.startLogs(p)
	if main != nil {
		r.startMain(p, main)
	}
	return nil
}

func (r *Runtime) startMain(p *process, main Main) {
	c := p.c
	sub := c.subject()
	m := &Process{Signals: loop.NewQueue[int](0), r: r, p: p, Memory: defaultMemory}
	m.group = r.l.NewGroup(sub.object())
	p.main = m
	m.group.Go("main", func(ctx context.Context) {
		code := main(ctx, m)
		if c.process == p {
			r.exit(c, exitStatus{code: code})
		}
	})
}

// oomTime returns when the program's memory passes the container's limit, in
// nanoseconds since the epoch and not before now; 0 for never.
func (p *process) oomTime(now int64) int64 {
	limit := p.c.linuxResources().GetMemoryLimitInBytes()
	if limit <= 0 {
		return 0
	}
	t, ok := p.b.Memory.over(limit, time.Duration(now-p.startedAt))
	if !ok {
		return 0
	}
	return p.startedAt + int64(t)
}

// limitChanged acts on another memory limit.
func (p *process) limitChanged(r *Runtime) {
	p.oomAt = p.oomTime(r.l.UnixNano())
	p.arm(r)
}

// end returns when and how the process will end; 0 for not by itself.
func (p *process) end() (at int64, e exitStatus) {
	attempt := p.c.config.Metadata.Attempt
	if p.exitAt != 0 {
		at = p.exitAt
		switch {
		case p.b.OOMKilled:
			e = exitByOOM
		case p.b.Signal != 0:
			e = exitBySignal(p.b.Signal)
		default:
			e = exitStatus{code: p.b.exitCode(attempt)}
		}
		if p.b.ChildOOMKilled {
			e.reason = oomReason
		}
	}
	if p.termAt != 0 && (at == 0 || p.termAt < at) {
		at, e = p.termAt, exitStatus{code: p.b.OnTerm.Exit}
		if p.b.OnTerm.Unhandled {
			e = exitBySignal(p.stopSignal)
		}
	}
	if p.oomAt != 0 && (at == 0 || p.oomAt < at) {
		at, e = p.oomAt, exitByOOM
	}
	return at, e
}

// arm sets the timer for the process's end.
func (p *process) arm(r *Runtime) {
	at, _ := p.end()
	if at == 0 {
		if p.timer != nil {
			p.timer.Stop()
		}
		return
	}
	if p.timer == nil {
		p.timer = r.processes.NewTimer("process", func() {
			if p.c.process == p {
				_, e := p.end()
				r.exit(p.c, e)
			}
		})
	}
	p.timer.Reset(time.Duration(at - r.l.UnixNano()))
}

// signal delivers a signal; one other than SIGKILL counts as the stop signal.
func (r *Runtime) signal(c *container, sig int) {
	p := c.process
	if p == nil {
		return
	}
	if sig == sigKILL {
		r.exit(c, exitBySignal(sigKILL))
		return
	}
	if p.main != nil {
		p.main.Signals.TryPut(sig)
		return
	}
	if p.b.OnTerm.Ignore || p.termAt != 0 {
		return
	}
	sub := c.subject()
	after := r.between(p.b.OnTerm.After, "on term", &sub)
	p.stopSignal = sig
	if after <= 0 {
		e := exitStatus{code: p.b.OnTerm.Exit}
		if p.b.OnTerm.Unhandled {
			e = exitBySignal(sig)
		}
		r.exit(c, e)
		return
	}
	p.termAt = r.l.UnixNano() + after
	p.arm(r)
}

// exit ends a container's process.
func (r *Runtime) exit(c *container, e exitStatus) {
	if e.reason == "" {
		e.reason = "Completed"
		if e.code != 0 {
			e.reason = "Error"
		}
	}
	p := c.process
	c.process = nil
	if p != nil {
		if p.timer != nil {
			p.timer.Stop()
		}
		p.logs.stop()
	}
	c.finishedAt = r.l.UnixNano()
	c.exitCode, c.reason, c.message = e.code, e.reason, e.message
	r.setContainerState(c, stateExited)
	r.recordProcess(c, "exit", e)
	if c.exited != nil {
		c.exited.Fire()
	}
	if p != nil && p.main != nil {
		p.main.group.Kill()
	}
}

func (r *Runtime) recordProcess(c *container, verb string, e exitStatus) {
	if r.rec == nil {
		return
	}
	sub := c.subject()
	fields := append(make([]trace.Field, 0, 5), trace.Str("attempt", strconv.FormatUint(uint64(sub.attempt), 10)))
	if verb != "start" {
		fields = append(fields, trace.Int("code", int64(e.code)), trace.Str("reason", e.reason))
		if e.signal != 0 {
			fields = append(fields, trace.Int("signal", int64(e.signal)))
		}
		if e.message != "" {
			fields = append(fields, trace.Str("message", e.message))
		}
	}
	r.rec.Record(trace.KindProcess, sub.object(), verb, fields...)
}

// stopSignals are the Linux numbers of the signals that a request can name.
// Realtime signals are left out: they count as SIGTERM.
var stopSignals = map[runtimeapi.Signal]int{
	runtimeapi.Signal_SIGABRT: 6, runtimeapi.Signal_SIGALRM: 14, runtimeapi.Signal_SIGBUS: 7,
	runtimeapi.Signal_SIGHUP: 1, runtimeapi.Signal_SIGINT: 2, runtimeapi.Signal_SIGKILL: sigKILL,
	runtimeapi.Signal_SIGQUIT: 3, runtimeapi.Signal_SIGTERM: sigTERM, runtimeapi.Signal_SIGUSR1: 10,
	runtimeapi.Signal_SIGUSR2: 12, runtimeapi.Signal_SIGWINCH: 28, runtimeapi.Signal_SIGPWR: 30,
	runtimeapi.Signal_SIGCONT: 18, runtimeapi.Signal_SIGTSTP: 20,
}

func stopSignal(config *runtimeapi.ContainerConfig) int {
	if n, ok := stopSignals[config.StopSignal]; ok {
		return n
	}
	return sigTERM
}

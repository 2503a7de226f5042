package fakecri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// The signals that are told apart, by their numbers on Linux.
const (
	sigINT   = 2
	sigQUIT  = 3
	sigKILL  = 9
	sigTERM  = 15
	sigWINCH = 28
)

// What containerd says of a process that went while it wasn't looking.
const (
	unknownExitCode = 255
	unknownReason   = "Unknown"
)

// What containerd says of a container that could not be started.
const (
	startErrorCode   = 128
	startErrorReason = "StartError"
)

// exitStatus is how a process ended.
type exitStatus struct {
	code            int32
	signal          int // 0 when it exited by itself
	reason, message string
	stderr          string // the last line of it, if that may say why
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
	in                    *interpreted // of an interpreted one
	// relied: somebody takes it that the answers of its ports stay as they are.
	relied bool
}

// runner runs containers' programs.
type runner struct {
	l      *loop.Loop
	rec    *trace.Recorder
	fields []trace.Field // of the record being made: memory for the next
	opts   runOptions
	calls  *callDaemon
	recs   *recordStore
	images *imageStore
	files  *nodeFiles
	disks  *layerStore
	kern   *nodeKernel
	use    *accounts
	out    *outputs
	net    *podNet
	warner *warner
	event  func(kind runtimeapi.ContainerEventType, id string, s *sandbox)
}

// runOptions are those of Options.
type runOptions struct {
	Programs              []Program
	Behave                func(pod *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) *Behaviour
	Interpret, Attachable bool
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

func (r *warner) warnScript(c *container, argv []string) {
	r.warnOnce(c, argv[2], fmt.Sprintf("the script %q is not run and no program is stated for it; it runs until it is stopped and exits 0 on SIGTERM", shorten(argv[2], 60)))
}

// warnOnce warns of something about a container, once per image and key.
func (r *warner) warnOnce(c *container, key, text string) {
	if r.to == nil {
		return
	}
	image := c.config.Image.GetUserSpecifiedImage()
	if image == "" {
		image = c.config.Image.GetImage()
	}
	key = image + "\x00" + key
	if r.warned[key] {
		return
	}
	if r.warned == nil {
		r.warned = map[string]bool{}
	}
	r.warned[key] = true
	md := c.sandbox.metadata
	r.warn("container %s of pod %s/%s, image %s: %s", c.config.Metadata.Name, md.Namespace, md.Name, image, text)
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}

// start makes a container's process.
func (r *runner) start(c *container) error {
	b, interpret := r.resolve(c)
	now := r.l.UnixNano()
	if err := r.out.openLog(c); err != nil { // before the process, so also if there is none
		return r.failStart(c, "failed to create containerd task: failed to create container loggers: "+err.Error())
	}
	if b.StartError != "" {
		return r.failStart(c, b.StartError)
	}
	if !interpret {
		b = r.disks.withMemory(c, b)
	}
	p := &process{c: c, b: b, startedAt: now}
	var late *lateExecError
	var stated *Behaviour
	if r.opts.Interpret && !interpret && r.programOf(c) == nil {
		stated, interpret = b, true
	}
	if interpret {
		in, err := r.startInterpreted(c, stated, func(e kernel.Exit) { r.firstEnded(p, e) })
		if errors.As(err, &late) {
			in = late.in
		} else if err != nil {
			return r.failStart(c, err.Error())
		}
		p.in = in
	}
	c.process = p
	if p.in == nil {
		r.use.account(p, 1)
	}
	c.startedAt = now
	r.recs.setContainerState(c, stateRunning)
	r.event(eventStarted, c.id, c.sandbox)
	r.recordProcess(c, "start", exitStatus{})
	if late != nil {
		_, _ = late.in.stderr.Write(context.Background(), []byte(late.text+"\n"))
		r.exit(c, exitStatus{code: 1})
		return nil
	}
	if interpret {
		if stated != nil {
			r.disks.startWrites(p)
			r.net.serve(c)
		}
		return nil
	}
	sub := c.subject()
	if b.RunFor.Min > 0 || b.RunFor.Max > 0 {
		p.exitAt = now + max(sub.draw(r.l, b.RunFor, "run for"), 1)
	}
	p.oomAt = r.oomTime(p, now)
	r.arm(p)
	r.out.startLogs(p)
	r.disks.startWrites(p)
	r.net.serve(c)
	return nil
}

// failStart ends a container that could not be started.
func (r *runner) failStart(c *container, text string) error {
	c.finishedAt = r.l.UnixNano()
	c.exitCode, c.reason, c.message = startErrorCode, startErrorReason, text
	r.recordProcess(c, "start-failed", exitStatus{code: startErrorCode, reason: startErrorReason, message: text})
	r.recs.setContainerState(c, stateExited)
	r.out.closeLog(c)
	return status.Error(codes.Unknown, text)
}

// How long containerd takes to notice that a process has ended: to be told by
// the shim and to delete the task. Until then the container shows as running.
const (
	noticeMin = 30 * time.Millisecond
	noticeMax = 70 * time.Millisecond
)

// firstEnded is the end of an interpreted container's first process. A stop
// that waits for it has that time in its latency.
func (r *runner) firstEnded(p *process, e kernel.Exit) {
	c := p.c
	if c.process != p {
		return
	}
	p.in.ended, p.in.endedAt = p.in.exitOf(e), r.l.UnixNano()
	if c.exited != nil {
		r.exit(c, p.in.ended)
		return
	}
	sub := c.subject()
	p.timer = r.kern.powered.NewTimer("process", func() {
		if c.process == p {
			r.exit(c, p.in.ended)
		}
	})
	p.timer.Reset(r.l.Between(noticeMin, noticeMax, "notice", sub.pod, sub.key()))
}

// oomTime returns when the program's memory passes the container's limit, in
// nanoseconds since the epoch and not before now; 0 for never.
func (r *runner) oomTime(p *process, now int64) int64 {
	limit := p.c.linuxResources().GetMemoryLimitInBytes()
	if limit <= 0 {
		return 0
	}
	if p.b.Memory.Peak() <= limit {
		return 0
	}
	t, ok := p.b.Memory.Over(limit, time.Duration(now-p.startedAt), p.c.noiseKey(r.l))
	if !ok {
		return 0
	}
	return p.startedAt + int64(t)
}

// limitChanged acts on another memory limit.
func (r *runner) limitChanged(p *process) {
	if p.in != nil {
		lin := p.c.linuxResources()
		p.in.kc.SetCPU(lin.GetCpuShares(), lin.GetCpuQuota(), lin.GetCpuPeriod())
		p.in.kc.SetMemoryLimit(lin.GetMemoryLimitInBytes())
		return
	}
	r.use.accountCPU(p, 0)
	p.oomAt = r.oomTime(p, r.l.UnixNano())
	r.arm(p)
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
func (r *runner) arm(p *process) {
	at, _ := p.end()
	if at == 0 {
		if p.timer != nil {
			p.timer.Stop()
		}
		return
	}
	if p.timer == nil {
		p.timer = r.kern.powered.NewTimer("process", func() {
			if p.c.process == p {
				r.ends(p)
			}
		})
	}
	p.timer.Reset(time.Duration(at - r.l.UnixNano()))
}

// ends is the process's end by itself, by its stop signal or by its limit.
func (r *runner) ends(p *process) {
	at, e := p.end()
	if at == p.oomAt && e.reason == oomReason {
		// With noise the time is one to look again at.
		if at := r.oomTime(p, at); at != p.oomAt {
			p.oomAt = at
			r.arm(p)
			return
		}
	}
	if e.reason == oomReason {
		r.use.tellOOM(p.c, processName(p.c.argv()), r.use.statedPID(p.c), r.kern.cgroupPath(p.c))
	}
	r.lastWords(p)
	r.exit(p.c, e)
}

// signal delivers a signal; one other than SIGKILL counts as the stop signal.
func (r *runner) signal(c *container, sig int) {
	p := c.process
	if p == nil {
		return
	}
	if sig == sigKILL {
		r.exit(c, exitBySignal(sigKILL))
		return
	}
	if p.in != nil {
		p.in.kc.Signal(sig)
		return
	}
	if p.b.OnTerm.Ignore || p.termAt != 0 {
		return
	}
	sub := c.subject()
	after := sub.draw(r.l, p.b.OnTerm.After, "on term")
	p.stopSignal = sig
	if after <= 0 {
		e := exitStatus{code: p.b.OnTerm.Exit}
		if p.b.OnTerm.Unhandled {
			e = exitBySignal(sig)
		}
		r.lastWords(p)
		r.exit(c, e)
		return
	}
	p.termAt = r.l.UnixNano() + after
	r.arm(p)
}

// exit ends a container's process.
func (r *runner) exit(c *container, e exitStatus) {
	p := c.process
	c.process = nil
	if p != nil {
		if p.timer != nil {
			p.timer.Stop()
		}
		if p.in == nil {
			r.use.account(p, -1)
		}
		p.logs.stop()
		r.net.answersChanged(c, p)
	}
	c.finishedAt = r.l.UnixNano()
	if p != nil && p.in != nil && p.in.endedAt != 0 && e.reason != unknownReason {
		c.finishedAt, e = p.in.endedAt, p.in.ended // whatever came after that
	}
	if e.reason == "" {
		e.reason = "Completed"
		if e.code != 0 {
			e.reason = "Error"
		}
	}
	c.exitCode, c.reason, c.message = e.code, e.reason, e.message
	r.recs.setContainerState(c, stateExited)
	r.event(eventStopped, c.id, c.sandbox)
	if p != nil && p.in != nil && e.code != 0 && e.signal == 0 {
		e.stderr = p.in.stderr.lastLine()
	}
	r.recordProcess(c, "exit", e)
	if c.exited != nil {
		c.exited.Fire()
	}
	if r.out.attached != nil {
		r.out.detachAll(c)
	}
	switch {
	case p != nil && p.in != nil:
		if p.in.stated != nil {
			r.net.unserve(c)
		}
		p.in.end()
	case r.kern.machine != nil:
		r.net.unserve(c)
	}
	r.out.closeLog(c)
	r.disks.stopWrites(c)
}

// lastWords writes a stated program's termination message.
func (r *runner) lastWords(p *process) {
	if p.b.TerminationMessage == "" || r.files.fs == nil && r.files.host == nil {
		return
	}
	file := p.c.config.Annotations[annotationTerminationPath]
	for _, m := range p.c.config.Mounts {
		if m.ContainerPath == file && file != "" && !m.Readonly {
			r.files.writeHost(m.HostPath, []byte(p.b.TerminationMessage))
		}
	}
}

const annotationTerminationPath = "io.kubernetes.container.terminationMessagePath"

func (r *runner) recordProcess(c *container, verb string, e exitStatus) {
	if r.rec == nil {
		return
	}
	sub := c.subject()
	fields := append(r.fields[:0], trace.Str("attempt", strconv.FormatUint(uint64(sub.attempt), 10)))
	if verb != "start" {
		fields = append(fields, trace.Int("code", int64(e.code)), trace.Str("reason", e.reason))
		if e.signal != 0 {
			fields = append(fields, trace.Int("signal", int64(e.signal)))
		}
		if e.message != "" {
			fields = append(fields, trace.Str("message", e.message))
		}
		if e.stderr != "" {
			fields = append(fields, trace.Str("stderr", e.stderr))
		}
	}
	r.rec.RecordObject(trace.KindProcess, sub.object(), verb, fields...)
	r.fields = fields[:0]
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

// stopSignal is the request's, else the image's, else SIGTERM.
func (c *container) stopSignal() int {
	if n, ok := stopSignals[c.config.StopSignal]; ok {
		return n
	}
	return cmp.Or(c.image.source.StopSignal, sigTERM)
}

// signalNamed is the CRI's name of a signal number; SIGTERM if it has none.
func signalNamed(n int) runtimeapi.Signal {
	switch n {
	case sigTERM:
		return runtimeapi.Signal_SIGTERM
	case sigQUIT:
		return runtimeapi.Signal_SIGQUIT
	case sigWINCH:
		return runtimeapi.Signal_SIGWINCH
	}
	found := runtimeapi.Signal_SIGTERM
	for s, k := range stopSignals { //drydock:unordered numbers differ
		if k == n {
			found = s
		}
	}
	return found
}

package fakecri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// maxExecOutput is how much of each stream ExecSync returns; what is written
// beyond is dropped.
const maxExecOutput = 16 << 20

// execs runs commands beside containers' processes.
type execs struct {
	l      *loop.Loop
	calls  *callDaemon
	recs   *recordStore
	images *imageStore
	kern   *nodeKernel
	out    *outputs
	run    *runner
	net    *podNet
	warner *warner
}

// ExecSync runs a command in a container that runs and returns what it wrote.
// A command that exits other than 0 is an *ExitError; one that runs longer than timeout, if that is not 0, is
// killed, and the error has the code DeadlineExceeded. If the caller goes away
// the command is killed too. Processes that the command leaves behind and that
// hold its output keep the call waiting, as containerd's
// drain_exec_sync_io_timeout of 0 has it.
func (c *Client) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	sub := c.r.recs.containerSubject(id)
	out, err := change(ctx, &c.by, mExecSync, &sub, func(ctx context.Context) (execResult, error) {
		return c.r.exec.execSync(ctx, &sub, id, cmd, timeout)
	})
	if err != nil {
		return nil, nil, err
	}
	return out.stdout, out.stderr, out.err(cmd)
}

type execResult struct {
	stdout, stderr []byte
	code           int32
}

// err is what cri-client makes of an exit code.
func (o *execResult) err(cmd []string) error {
	if o.code == 0 {
		return nil
	}
	return &ExitError{Code: int(o.code), text: fmt.Sprintf("command '%s' exited with %d: %s", strings.Join(cmd, " "), o.code, o.stderr)}
}

// ExitError says that a command ended with another code than 0. It reads as
// cri-client's, and is an ExitError in the sense of k8s.io/utils/exec.
type ExitError struct {
	Code int
	text string
}

func (e *ExitError) Error() string { return e.text }

// String is Error.
func (e *ExitError) String() string { return e.text }

// Exited is true.
func (e *ExitError) Exited() bool { return true }

// ExitStatus returns the code.
func (e *ExitError) ExitStatus() int { return e.Code }

// QuickExecSync is Runtime.QuickExecSync.
func (r *execs) QuickExecSync(id string, cmd []string, timeout time.Duration) (stdout []byte, took time.Duration, ok bool, err error) {
	c := r.recs.containerFor(id)
	if r.calls.life == nil || r.calls.rec.TraceReads() || r.calls.faulted(mExecSync) || c == nil || c.state != stateRunning || c.process == nil || c.process.in != nil {
		return nil, 0, false, nil
	}
	sub := c.subject()
	sub.attempt += uint32(r.l.UnixNano()) // each has a latency of its own
	took = time.Duration(sub.draw(r.l, r.calls.latency(mExecSync), "ExecSync"))
	out, runs, err := r.statedExec(c, cmd)
	if err == nil && timeout > 0 && runs > timeout {
		return nil, took + timeout, true, execTimeout(timeout)
	}
	if err == nil {
		err = out.err(cmd)
	}
	return out.stdout, took + runs, true, err
}

// faulted tells whether an active fault names the method.
func (r *callDaemon) faulted(m method) bool {
	for _, f := range r.faults {
		if f.active && f.methods[m] {
			return true
		}
	}
	return false
}

func execTimeout(timeout time.Duration) error {
	return status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %s exceeded: context deadline exceeded", timeout)
}

func execError(code codes.Code, format string, args ...any) error {
	return status.Error(code, "failed to exec in container: "+fmt.Sprintf(format, args...))
}

func (r *execs) execSync(ctx context.Context, sub *subject, id string, cmd []string, timeout time.Duration) (execResult, error) {
	if _, err := r.execTarget(id); err != nil {
		return execResult{}, err
	}
	if len(cmd) == 0 {
		return execResult{}, status.Error(codes.InvalidArgument, "exec command is empty")
	}
	draw := *sub
	draw.attempt += uint32(r.l.UnixNano())
	if err := r.calls.pause(ctx, mExecSync, &draw); err != nil {
		return execResult{}, err
	}
	c, err := r.execTarget(id)
	if err != nil {
		return execResult{}, err
	}
	if c.process.in != nil {
		return r.execInterpreted(ctx, c.process.in, cmd, timeout)
	}
	out, runs, err := r.statedExec(c, cmd)
	if err != nil {
		return execResult{}, err
	}
	return out, r.passExec(ctx, c, runs, timeout, &out)
}

// execTarget returns the container to run a command in.
func (r *execs) execTarget(id string) (*container, error) {
	c := r.recs.containerFor(id)
	switch {
	case c == nil:
		return nil, execError(codes.NotFound, "failed to find container %q in store: not found", id)
	case c.state != stateRunning || c.process == nil:
		return nil, execError(codes.Unknown, "container is in %s state", c.state)
	}
	return c, nil
}

// passExec passes the time that a command takes in a stated program's
// container; it ends early by the timeout, or by SIGKILL with the container.
func (r *execs) passExec(ctx context.Context, c *container, runs, timeout time.Duration, out *execResult) error {
	if runs <= 0 {
		return nil
	}
	timed := timeout > 0 && runs > timeout
	if timed {
		runs = timeout
	}
	if c.exited == nil {
		c.exited = &loop.Event{}
	}
	tctx, cancel := loop.WithTimeout(ctx, runs)
	defer cancel()
	if c.exited.Wait(tctx) == nil {
		*out = execResult{code: 128 + sigKILL}
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if timed {
		return execTimeout(timeout)
	}
	return nil
}

// statedExec is what a command does in a container with a stated program: what
// the program says of it; nothing, if it says nothing.
func (r *execs) statedExec(c *container, cmd []string) (out execResult, takes time.Duration, err error) {
	b := c.process.b
	x, known := b.exec(cmd, time.Duration(r.l.UnixNano()-c.process.startedAt))
	if x != nil {
		sub := c.subject()
		takes = r.l.Between(x.Takes.Min, max(x.Takes.Min, x.Takes.Max), "exec", sub.pod, sub.key()+uint64(r.l.UnixNano()))
		return execResult{stdout: []byte(x.Output), code: x.Exit}, takes, nil
	}
	if src := c.image.source; src.Commands != nil && !src.states(cmd[0]) && !known {
		x := &kernel.ExecError{Path: cmd[0], Errno: syscall.ENOENT, NotInPath: !strings.Contains(cmd[0], "/")}
		return out, 0, r.execFailed(x)
	}
	if !known {
		line := strings.Join(cmd, " ")
		r.warner.warnOnce(c, "exec\x00"+line, fmt.Sprintf("%q is not run in the container, since what it runs is stated or not known; it exits 0", shorten(line, 60)))
	}
	return out, 0, nil
}

// execFailed is the error of a command that can't be run.
func (r *execs) execFailed(err error) error {
	return execError(codes.Unknown, "failed to start exec %q: OCI runtime exec failed: exec failed: unable to start container process: %s", r.recs.newID("exec"), err)
}

// execInterpreted runs a command as a process of the container.
func (r *execs) execInterpreted(ctx context.Context, in *interpreted, cmd []string, timeout time.Duration) (execResult, error) {
	var (
		ended loop.Event
		exit  kernel.Exit
	)
	open := &writers{n: 2}
	stdout, stderr := &capture{open: open}, &capture{open: open}
	null := r.kern.kernel().Null()
	p, err := in.kc.Start(kernel.Spec{
		Argv: cmd, Env: in.env, Dir: in.dir, Cred: in.cred, FDs: []kernel.File{null, stdout, stderr},
		Done: func(e kernel.Exit) {
			exit = e
			ended.Fire()
		},
	})
	_, _, _ = null.Close(), stdout.Close(), stderr.Close()
	if err != nil {
		return execResult{}, r.execFailed(err)
	}
	// Whoever goes away, or is cut off, takes the command along; a daemon that
	// dies leaves it running.
	wait, cancel := ctx, func() {}
	if timeout > 0 {
		wait, cancel = loop.WithTimeout(ctx, timeout)
	}
	defer cancel()
	if err := ended.Wait(wait); err != nil {
		_ = in.kc.First().Kill(p.PIDIn(in.kc.PIDs()), sigKILL)
		if ctx.Err() != nil {
			return execResult{}, ctx.Err()
		}
		if err := errors.Join(ended.Wait(ctx), open.drained.Wait(ctx)); err != nil {
			return execResult{}, ctx.Err()
		}
		return execResult{}, execTimeout(timeout)
	}
	// containerd reads on until nobody holds the command's output any more,
	// whatever the timeout says: what it left in the background, or what
	// outlived its SIGKILL, keeps the call waiting.
	if open.drained.Wait(ctx) != nil {
		return execResult{}, ctx.Err()
	}
	return execResult{stdout: stdout.data, stderr: stderr.data, code: int32(exit.Code)}, nil
}

// writers counts who holds an exec's output.
type writers struct {
	n       int
	drained loop.Event
}

// capture keeps what a command writes, up to maxExecOutput.
type capture struct {
	data []byte
	open *writers
}

func (s *capture) Read(context.Context, []byte) (int, error) { return 0, io.EOF }

func (s *capture) Write(_ context.Context, b []byte) (int, error) {
	s.data = append(s.data, b[:min(len(b), maxExecOutput-len(s.data))]...)
	return len(b), nil
}

// Close gives up one hold on the stream.
func (s *capture) Close() error {
	if s.open.n--; s.open.n == 0 {
		s.open.drained.Fire()
	}
	return nil
}

// Dup is one more hold on the stream.
func (s *capture) Dup() kernel.File {
	s.open.n++
	return s
}

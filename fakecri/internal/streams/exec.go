package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/output"
	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// maxExecOutput is how much of each stream ExecSync returns; what is written
// beyond is dropped. In bytes; it is the CRI's limit.
const maxExecOutput = 16 << 20

// Execs runs commands beside containers' processes. Its fields are parts of the same runtime.
type Execs struct {
	Loop    *loop.Loop
	Calls   *calls.Daemon
	Records *records.Store
	Kernel  *podkernel.Node
	Output  *output.Outputs
	Warner  *records.Warner
}

// ExecResult is what became of a command that ran. code is the exit code, 128 and the signal for
// a command that was killed.
type ExecResult struct {
	Stdout, Stderr []byte
	code           int32
}

// Err is what cri-client makes of an exit code. A CRI client turns a code other than 0 into an
// error, and so does this for clients in the process.
func (o *ExecResult) Err(cmd []string) error {
	if o.code == 0 {
		return nil
	}
	return &ExitError{Code: int(o.code), text: fmt.Sprintf("command '%s' exited with %d: %s", strings.Join(cmd, " "), o.code, o.Stderr)}
}

// ExitError says that a command ended with another code than 0. It reads as
// cri-client's, and is an ExitError in the sense of k8s.io/utils/exec. Probes look for that
// interface: a command that ran and failed is a failed probe, any other error is an unknown
// result.
type ExitError struct {
	Code int
	text string
}

// Error is cri-client's text.
func (e *ExitError) Error() string { return e.text }

// String is Error.
func (e *ExitError) String() string { return e.text }

// Exited is true.
func (e *ExitError) Exited() bool { return true }

// ExitStatus returns the code.
func (e *ExitError) ExitStatus() int { return e.Code }

// QuickExecSync is Runtime.QuickExecSync. ok is false if the call needs a task: with faults or
// latencies to trace, or in a container with processes. The caller waits took by itself.
func (r *Execs) QuickExecSync(id string, cmd []string, timeout time.Duration) (stdout []byte, took time.Duration, ok bool, err error) {
	c := r.Records.ContainerFor(id)
	if r.Calls.Life == nil || r.Calls.Recorder.TraceReads() || r.Calls.Faulted(calls.ExecSync) || c == nil || c.State != records.StateRunning || c.Process == nil || c.Process.Interpreted != nil {
		return nil, 0, false, nil
	}
	sub := c.Subject()
	// Commands in one container would all draw the same latency otherwise.
	// The time sets them apart. The time is cut to 32 bits: it only has to differ from call to
	// call.
	sub.Attempt += uint32(r.Loop.UnixNano())
	took = time.Duration(sub.Draw(r.Loop, r.Calls.Latency(calls.ExecSync), "ExecSync"))
	out, runs, err := r.statedExec(c, cmd)
	if err == nil && timeout > 0 && runs > timeout {
		return nil, took + timeout, true, execTimeout(timeout)
	}
	if err == nil {
		err = out.Err(cmd)
	}
	return out.Stdout, took + runs, true, err
}

// execTimeout is containerd's error of a command that was killed for its timeout;
// kubelets look for its code. A probe's timeout counts as a failure by its code
// (pkg/kubelet/cri/remote, KEP-1972).
func execTimeout(timeout time.Duration) error {
	return status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %s exceeded: context deadline exceeded", timeout)
}

// execError is an error of ExecSync with containerd's words before it.
func execError(code codes.Code, format string, args ...any) error {
	return status.Error(code, "failed to exec in container: "+fmt.Sprintf(format, args...))
}

// ExecSync is the call ExecSync once faults have acted. The container is looked for
// before the latency and again after it, since it may end in between. sub names the container for
// draws; the copy gets another attempt for each call.
func (r *Execs) ExecSync(ctx context.Context, sub *calls.Subject, id string, cmd []string, timeout time.Duration) (ExecResult, error) {
	if _, err := r.execTarget(id); err != nil {
		return ExecResult{}, err
	}
	if len(cmd) == 0 {
		return ExecResult{}, status.Error(codes.InvalidArgument, "exec command is empty")
	}
	// Commands in one container would all draw the same latency otherwise.
	draw := *sub
	draw.Attempt += uint32(r.Loop.UnixNano())
	if err := r.Calls.Pause(ctx, calls.ExecSync, &draw); err != nil {
		return ExecResult{}, err
	}
	c, err := r.execTarget(id)
	if err != nil {
		return ExecResult{}, err
	}
	if c.Process.Interpreted != nil {
		return r.execInterpreted(ctx, c.Process.Interpreted, cmd, timeout)
	}
	out, runs, err := r.statedExec(c, cmd)
	if err != nil {
		return ExecResult{}, err
	}
	return out, r.passExec(ctx, c, runs, timeout, &out)
}

// execTarget returns the container to run a command in. Codes are containerd's; the state is in
// the text.
func (r *Execs) execTarget(id string) (*records.Container, error) {
	c := r.Records.ContainerFor(id)
	switch {
	case c == nil:
		return nil, execError(codes.NotFound, "failed to find container %q in store: not found", id)
	case c.State != records.StateRunning || c.Process == nil:
		return nil, execError(codes.Unknown, "container is in %s state", c.State)
	}
	return c, nil
}

// passExec passes the time that a command takes in a stated program's
// container; it ends early by the timeout, or by SIGKILL with the container. What the command
// prints is known before; only the time passes here.
func (r *Execs) passExec(ctx context.Context, c *records.Container, runs, timeout time.Duration, out *ExecResult) error {
	if runs <= 0 {
		return nil
	}
	timed := timeout > 0 && runs > timeout
	if timed {
		runs = timeout
	}
	// Only somebody who waits needs the event; the container's end fires it.
	if c.Exited == nil {
		c.Exited = &loop.Event{}
	}
	tctx, cancel := loop.WithTimeout(ctx, runs)
	defer cancel()
	if c.Exited.Wait(tctx) == nil {
		// It is the code of a command that SIGKILL has ended.
		*out = ExecResult{code: 128 + records.SigKILL}
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
// the program says of it; nothing, if it says nothing. An image with stated commands has just
// those, so anything else is not found, as in reality.
func (r *Execs) statedExec(c *records.Container, cmd []string) (out ExecResult, takes time.Duration, err error) {
	b := c.Process.Behaviour
	x, known := b.ExecFor(cmd, time.Duration(r.Loop.UnixNano()-c.Process.StartedAt))
	if x != nil {
		sub := c.Subject()
		takes = r.Loop.Between(x.Takes.Min, max(x.Takes.Min, x.Takes.Max), "exec", sub.Pod, sub.Key()+uint64(r.Loop.UnixNano()))
		return ExecResult{Stdout: []byte(x.Output), code: x.Exit}, takes, nil
	}
	if src := c.Image.Source; src.Commands != nil && !src.States(cmd[0]) && !known {
		x := &kernel.ExecError{Path: cmd[0], Errno: linux.ENOENT, NotInPath: !strings.Contains(cmd[0], "/")}
		return out, 0, r.execFailed(x)
	}
	if !known {
		line := strings.Join(cmd, " ")
		// The warning is by command line: a probe would repeat it each second.
		r.Warner.WarnOnce(c, "exec\x00"+line, fmt.Sprintf("%q is not run in the container, since what it runs is stated or not known; it exits 0", records.Shorten(line, 60)))
	}
	return out, 0, nil
}

// execFailed is the error of a command that can't be run. The id is an exec's, drawn like those
// of containers.
func (r *Execs) execFailed(err error) error {
	return execError(codes.Unknown, "failed to start exec %q: OCI runtime exec failed: exec failed: unable to start container process: %s", r.Records.NewID("exec"), err)
}

// execInterpreted runs a command as a process of the container. It has the container's
// environment, directory and user.
func (r *Execs) execInterpreted(ctx context.Context, in *records.Interpreted, cmd []string, timeout time.Duration) (ExecResult, error) {
	var (
		ended loop.Event
		exit  kernel.Exit
	)
	// Two writers, and more for each process that inherits them.
	open := &writers{n: 2}
	stdout, stderr := &capture{open: open}, &capture{open: open}
	null := r.Kernel.Kernel().Null()
	p, err := in.Kernel.Start(kernel.Spec{
		Argv: cmd, Env: in.Env, Dir: in.Dir, Cred: in.Cred, FDs: []kernel.File{null, stdout, stderr},
		Done: func(e kernel.Exit) {
			exit = e
			ended.Fire()
		},
	})
	// The process has its own holds on them; the last that is given up drains them.
	_, _, _ = null.Close(), stdout.Close(), stderr.Close()
	if err != nil {
		r.warnMissing(in.Container, cmd[0], err)
		return ExecResult{}, r.execFailed(err)
	}
	// Whoever goes away, or is cut off, takes the command along; a daemon that
	// dies leaves it running.
	wait, cancel := ctx, func() {}
	if timeout > 0 {
		wait, cancel = loop.WithTimeout(ctx, timeout)
	}
	defer cancel()
	if err := ended.Wait(wait); err != nil {
		// As from outside the namespace the first process can send it.
		_ = in.Kernel.First().Kill(p.PIDIn(in.Kernel.PIDs()), records.SigKILL)
		if ctx.Err() != nil {
			return ExecResult{}, ctx.Err()
		}
		// The call ends only once the killed command has.
		if err := errors.Join(ended.Wait(ctx), open.drained.Wait(ctx)); err != nil {
			return ExecResult{}, ctx.Err()
		}
		return ExecResult{}, execTimeout(timeout)
	}
	// containerd reads on until nobody holds the command's output any more,
	// whatever the timeout says: what it left in the background, or what
	// outlived its SIGKILL, keeps the call waiting.
	if open.drained.Wait(ctx) != nil {
		return ExecResult{}, ctx.Err()
	}
	return ExecResult{Stdout: stdout.data, Stderr: stderr.data, code: int32(exit.Code)}, nil
}

// warnMissing warns of a command that the container's image lacks, unless a scenario
// states which it has: a probe or hook that runs it can't succeed.
func (r *Execs) warnMissing(c *records.Container, command string, err error) {
	var x *kernel.ExecError
	if errors.As(err, &x) && x.Errno == linux.ENOENT && c.Image.Source.Commands == nil {
		r.Warner.WarnOnce(c, "missing\x00"+command, fmt.Sprintf("the command %s is not in the image: a probe or hook that runs it can't succeed (commands under images can say what an image has, exec of a stated program what comes of it)", command))
	}
}

// writers counts who holds an exec's output. drained fires when the last has gone; a stream that
// is written to later loses it.
type writers struct {
	n       int
	drained loop.Event
}

// capture keeps what a command writes, up to maxExecOutput. It stands for the pipe that
// containerd reads: it never fills up.
type capture struct {
	data []byte
	open *writers
}

// Read finds nothing: it is the write end of a pipe.
func (s *capture) Read(context.Context, []byte) (int, error) { return 0, io.EOF }

// Write keeps what there is room for, and takes the rest too: a command is not held
// up by what nobody will see.
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

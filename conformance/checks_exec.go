//go:build linux

package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// execChecks are about ExecSync, which probes and hooks use. Times and statuses decide about
// restarts, so each form of failure has a check.
func execChecks() []*check {
	return []*check{
		{name: "cri/exec/output", level: Required, run: checkExecOutput,
			expect: "ExecSync returns what the command wrote on standard output and standard error, each for itself and unchanged."},
		{name: "cri/exec/exit-code", level: Required, run: checkExecExit,
			expect: "A command that exits with another code than 0 is no error of ExecSync: the code comes in exit_code."},
		{name: "cri/exec/timeout", level: Required, run: checkExecTimeout,
			expect: "A command that takes longer than the timeout makes ExecSync fail then, with DeadlineExceeded, and is ended in the container, which goes on."},
		{name: "cri/exec/no-timeout", level: Required, run: checkExecNoTimeout,
			expect: "A timeout of 0 is none."},
		{name: "cri/exec/missing-command", level: Required, run: checkExecMissing,
			expect: "A command that does not exist is an error or an exit code other than 0, and the container goes on."},
		{name: "cri/exec/not-running", level: Required, run: checkExecNotRunning,
			expect: "ExecSync fails in a container that was not started and in one that has ended."},
		{name: "cri/exec/as-the-container", level: Required, run: checkExecIdentity,
			expect: "A command runs as the container's user, in its working directory, with its environment and files."},
		{name: "cri/exec/at-once", level: Required, run: checkExecConcurrent,
			expect: "Several commands can run in a container at the same time."},
		{name: "cri/exec/large-output", level: Required, run: checkExecLarge,
			expect: "A megabyte of output comes back whole."},
	}
}

// checkExecOutput: both streams apart, and arguments as given: there is no shell
// in between.
func checkExecOutput(ctx context.Context, t *T) {
	c := t.running(ctx)
	r := t.exec(ctx, c.id, "chain", "echo", "to out", "--", "echo", "--stderr", "to err", "--", "echo", "ü \"quoted\"")
	if got, want := string(r.Stdout), "to out\nü \"quoted\"\n"; got != want {
		t.Errorf("stdout is %q, not %q", got, want)
	}
	if got, want := string(r.Stderr), "to err\n"; got != want {
		t.Errorf("stderr is %q, not %q", got, want)
	}
	if r := t.exec(ctx, c.id, "echo", "only out"); len(r.Stderr) > 0 || r.ExitCode != 0 {
		t.Errorf("stderr is %q and the exit code %d for a command that writes on stdout and exits 0", r.Stderr, r.ExitCode)
	}
}

// checkExecExit: an exit code is an answer and no error of the call; exec probes
// go by it.
func checkExecExit(ctx context.Context, t *T) {
	c := t.running(ctx)
	for _, code := range []int32{0, 1, 42, 255} {
		if r := t.exec(ctx, c.id, "exit", fmt.Sprint(code)); r.ExitCode != code {
			t.Errorf("the exit code of a command that exits %d is %d", code, r.ExitCode)
		}
	}
}

// checkExecTimeout: the timeout ends the call with DeadlineExceeded, which the
// prober counts as failed, and the command as well. Older containerd has the code in the text
// (KEP-1972 made probes heed timeouts).
func checkExecTimeout(ctx context.Context, t *T) {
	c := t.running(ctx)
	began := time.Now()
	_, err := t.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: c.id, Cmd: []string{actor.Program, "sleep", "1000s"}, Timeout: 1})
	took := time.Since(began)
	t.wantError(err, "ExecSync with a timeout of 1 s of a command that sleeps")
	if code := status.Code(err); err != nil && code != codes.DeadlineExceeded && !(code == codes.Unknown && strings.Contains(err.Error(), "DeadlineExceeded")) {
		t.Errorf("it failed with %s, want the code DeadlineExceeded", describe(err))
	}
	if took < 900*time.Millisecond || took > 15*time.Second {
		t.Errorf("ExecSync with a timeout of 1 s took %v", took)
	}
	// A command that stays would be a leak with each probe.
	t.eventually(ctx, 10*time.Second, func() string {
		if ps := t.says(ctx, c.id, "ps"); strings.Contains(ps, "1000s") {
			return "the command is still there: " + ps
		}
		return ""
	})
	if s := t.status(ctx, c.id); s.State != runs {
		t.Errorf("the container is %s", s.State)
	}
}

// checkExecNoTimeout: 0 is no timeout; lifecycle hooks are called so.
func checkExecNoTimeout(ctx context.Context, t *T) {
	c := t.running(ctx)
	r, err := t.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: c.id, Cmd: []string{actor.Program, "chain", "sleep", "2s", "--", "echo", "done"}})
	t.must(err, "ExecSync with a timeout of 0")
	if string(r.Stdout) != "done\n" || r.ExitCode != 0 {
		t.Errorf("it printed %q and exited %d", r.Stdout, r.ExitCode)
	}
}

// checkExecMissing: a command that is not there is an error or an exit code, and
// no harm to the container.
func checkExecMissing(ctx context.Context, t *T) {
	c := t.running(ctx)
	r, err := t.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: c.id, Cmd: []string{"/no-such-command"}, Timeout: 10})
	if err == nil && r.ExitCode == 0 {
		t.Errorf("ExecSync of a command that does not exist succeeded with exit code 0")
	}
	if s := t.status(ctx, c.id); s.State != runs {
		t.Errorf("the container is %s", s.State)
	}
	if out := t.says(ctx, c.id, "echo", "still here"); out != "still here" {
		t.Errorf("the next command printed %q", out)
	}
}

// checkExecNotRunning: before the start and after the end it is an error.
func checkExecNotRunning(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.create(ctx, p, nil, "run")
	_, err := t.execErr(ctx, c.id, "exit", "0")
	t.wantError(err, "ExecSync in a container that was not started")
	ended := t.start(ctx, p, nil, "exit", "0")
	t.exited(ctx, ended.id)
	_, err = t.execErr(ctx, ended.id, "exit", "0")
	t.wantError(err, "ExecSync in a container that has ended")
}

// checkExecIdentity: a command has the container's user, environment, directory
// and files. The code is not checked: runtimes differ, and kubelets treat all alike.
func checkExecIdentity(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), func(c *runtimeapi.ContainerConfig) {
		c.WorkingDir = "/tmp"
		c.Envs = []*runtimeapi.KeyValue{{Key: "WHO", Value: []byte("the container")}}
		c.Linux.SecurityContext.RunAsUser = &runtimeapi.Int64Value{Value: 1234}
		c.Linux.SecurityContext.RunAsGroup = &runtimeapi.Int64Value{Value: 2345}
	}, "run", "--write=/tmp/made=here")
	t.eventually(ctx, 10*time.Second, func() string {
		r := t.exec(ctx, c.id, "chain", "id", "--", "pwd", "--", "env", "WHO", "--", "cat", "/tmp/made")
		if got, want := string(r.Stdout), "uid=1234 gid=2345 groups=2345\n/tmp\nthe container\nhere"; got != want {
			return fmt.Sprintf("a command printed %q, not %q", got, want)
		}
		return ""
	})
}

// checkExecConcurrent: probes of one container run at once and must not wait for
// each other. Less than the sum of their times is enough to show it.
func checkExecConcurrent(ctx context.Context, t *T) {
	c := t.running(ctx)
	const n = 5
	var fns []func()
	var errs [n]error
	began := time.Now()
	for i := range n {
		fns = append(fns, func() {
			r, err := t.execErr(ctx, c.id, "chain", "sleep", "2s", "--", "echo", fmt.Sprint(i))
			switch {
			case err != nil:
				errs[i] = err
			case string(r.Stdout) != fmt.Sprintf("%d\n", i):
				errs[i] = fmt.Errorf("it printed %q", r.Stdout)
			}
		})
	}
	group(fns...)
	for i, err := range errs {
		if err != nil {
			t.Errorf("command %d of %d at once: %s", i+1, n, describe(err))
		}
	}
	if took := time.Since(began); took > 2*n*time.Second-500*time.Millisecond {
		t.Errorf("%d commands of 2 s each took %v, so they ran one after the other", n, took)
	}
}

// checkExecLarge: a megabyte comes back whole, beyond what one frame of gRPC's
// default holds.
func checkExecLarge(ctx context.Context, t *T) {
	c := t.running(ctx)
	// With 102 bytes a line the whole is just beyond a MiB.
	const lines, length = 10240, 102 // with the newline
	r := t.exec(ctx, c.id, "lines", fmt.Sprint(lines), "--length="+fmt.Sprint(length-1), "{n}")
	if n := strings.Count(string(r.Stdout), "\n"); n != lines || len(r.Stdout) < lines*length-length {
		t.Errorf("%d lines of %d bytes came back as %d lines, %d bytes", lines, length, n, len(r.Stdout))
	}
}

//go:build linux

package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// logChecks are about log files. The kubelet reads these files itself for kubectl
// logs and rotates them: the format is part of the interface. The format is kubelet's, in
// staging/src/k8s.io/cri-client/pkg/logs.
func logChecks() []*check {
	return []*check{
		{name: "cri/logs/format", level: Required, run: checkLogFormat,
			expect: "What a container writes is in the file at log_directory/log_path, a line each with its time, stream and tag, in order; the status' log_path is that file."},
		{name: "cri/logs/long-lines", level: Required, run: checkLogLong,
			expect: "A line of 40,000 bytes, and one without a newline at its end, come through whole: in partial lines (P) and a last one (F)."},
		{name: "cri/logs/apart", level: Required, run: checkLogApart,
			expect: "Each container of a pod, and each attempt, has a log of its own."},
		{name: "cri/logs/kept", level: Required, run: checkLogKept,
			expect: "The log is there when the container has ended and when it was removed: the file is the kubelet's."},
		{name: "cri/logs/reopen", level: Required, run: checkLogReopen,
			expect: "After the log was renamed ReopenContainerLog makes the file anew before it returns; new lines go there, and the renamed file grows no more."},
		{name: "cri/logs/reopen-ended", level: Required, run: checkLogReopenEnded,
			expect: "ReopenContainerLog of an ended container either succeeds and makes the file, or fails and does not; of an unknown one it fails."},
	}
}

// checkLogFormat: time, stream, tag and text of each line, in the order of
// writing.
func checkLogFormat(ctx context.Context, t *T) {
	before := time.Now()
	c := t.start(ctx, t.pod(ctx, nil), nil, "chain", "echo", "one", "--", "echo", "--stderr", "two", "--", "echo", "  three  ", "--", "echo", "")
	s := t.exited(ctx, c.id)
	if s.LogPath != c.log() {
		t.Errorf("log_path in the status is %q, not %q", s.LogPath, c.log())
	}
	want := []logLine{{stream: "stdout", text: "one"}, {stream: "stderr", text: "two"}, {stream: "stdout", text: "  three  "}, {stream: "stdout", text: ""}}
	var lines []logLine
	// The log may be complete a moment after the end.
	t.eventually(ctx, 5*time.Second, func() string {
		if lines = t.readLog(c.log()); len(lines) != len(want) {
			return fmt.Sprintf("the log has %d lines, not %d: %v", len(lines), len(want), lines)
		}
		return ""
	})
	seen := map[string]int{}
	for i, l := range lines {
		// The streams are two pipes: only within one is there an order.
		seen[l.stream]++
		if l.partial {
			t.Errorf("line %d is partial", i+1)
		}
		if d := l.at.Sub(before); d < -10*time.Minute || d > 10*time.Minute {
			t.Errorf("line %d is of %s", i+1, l.at)
		}
	}
	if got := written(lines, "stdout"); got != "one\n  three  \n\n" {
		t.Errorf("stdout in the log is %q", got)
	}
	if got := written(lines, "stderr"); got != "two\n" {
		t.Errorf("stderr in the log is %q", got)
	}
}

// checkLogLong: a long line is cut into partial ones that join to the same bytes. containerd cuts
// at 16 KiB; the number is the runtime's choice.
func checkLogLong(ctx context.Context, t *T) {
	const length = 40_000
	p := t.pod(ctx, nil)
	c := t.start(ctx, p, nil, "chain", "lines", "1", "--length="+fmt.Sprint(length), "x", "--", "args", "end")
	t.exited(ctx, c.id)
	t.eventually(ctx, 5*time.Second, func() string {
		lines := strings.Split(strings.TrimSuffix(written(t.readLog(c.log()), "stdout"), "\n"), "\n")
		if len(lines) != 2 || len(lines[0]) != length || lines[1] != `"end"` {
			sizes := lists.Map(lines, func(l string) int { return len(l) })
			return fmt.Sprintf("a line of %d bytes and one of 5 came back as lines of %v bytes", length, sizes)
		}
		return ""
	})
	if err := os.WriteFile(filepath.Join(p.config.LogDirectory, "unended"), []byte("no newline"), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
	_, out := t.ran(ctx, p, func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{HostPath: p.config.LogDirectory, ContainerPath: "/host", Readonly: true}}
	}, "cat", "/host/unended")
	if strings.TrimSuffix(out, "\n") != "no newline" {
		t.Errorf("a text without newline came back as %q", out)
	}
}

// checkLogApart: each container has its own file, also below directories that are
// not there yet. The kubelet makes the directories, the runtime the files.
func checkLogApart(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	for i, c := range []*container{t.start(ctx, p, nil, "echo", "0"), t.start(ctx, p, nil, "echo", "1"), t.start(ctx, p, func(c *runtimeapi.ContainerConfig) {
		dir := filepath.Join(p.config.LogDirectory, "deep")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatalf("%v", err)
		}
		c.LogPath = "deep/7.log"
	}, "echo", "2")} {
		t.exited(ctx, c.id)
		if got := t.stdout(ctx, c); got != fmt.Sprintf("%d\n", i) {
			t.Errorf("the log of container %d is %q", i, got)
		}
	}
}

// checkLogKept: logs outlive their container; the kubelet removes them. kubectl logs --previous
// reads it after the container is gone.
func checkLogKept(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), nil, "echo", "here")
	t.exited(ctx, c.id)
	want := t.stdout(ctx, c)
	t.removeContainer(ctx, c.id)
	if got := t.stdout(ctx, c); got != want || got != "here\n" {
		t.Errorf("the log of a removed container is %q, before it was %q", got, want)
	}
}

// checkLogReopen: after a rename the next lines go to a new file, and none is
// lost. This is the rotation of pkg/kubelet/logs: rename, then reopen.
func checkLogReopen(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), nil, "run", "--log=line {n}", "--log-every=100ms")
	t.eventually(ctx, 20*time.Second, func() string {
		if n := len(t.readLog(c.log())); n < 3 {
			return fmt.Sprintf("the log has %d lines", n)
		}
		return ""
	})
	old := c.log() + ".1"
	if err := os.Rename(c.log(), old); err != nil {
		t.Fatalf("%v", err)
	}
	_, err := t.rt.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: c.id})
	t.must(err, "ReopenContainerLog")
	if _, err := os.Stat(c.log()); err != nil {
		t.Fatalf("when ReopenContainerLog returned: %v", err)
	}
	size := func(file string) int64 {
		info, err := os.Stat(file)
		t.must(err, "the log")
		return info.Size()
	}
	t.sleep(ctx, 200*time.Millisecond)
	// After a pause, so that what was on its way has arrived.
	was := size(old)
	t.eventually(ctx, 20*time.Second, func() string {
		if n := len(t.readLog(c.log())); n < 3 {
			return fmt.Sprintf("the new log has %d lines", n)
		}
		return ""
	})
	if now := size(old); now != was {
		t.Errorf("the renamed log has grown from %d to %d bytes", was, now)
	}
	// No line is lost in between, nor there twice.
	all := written(append(t.readLog(old), t.readLog(c.log())...), "stdout")
	for i, l := range strings.Split(strings.TrimSuffix(all, "\n"), "\n") {
		if _, number, _ := strings.Cut(l, "line "); number != fmt.Sprint(i) && number != fmt.Sprint(i+1) {
			t.Fatalf("line %d of both logs is %q", i, l)
		}
	}
}

// checkLogReopenEnded: reopening a log of a container that has ended is an error,
// and makes no file. Either way is known: a kubelet that gets an error puts the old file back.
func checkLogReopenEnded(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), nil, "echo", "here")
	t.exited(ctx, c.id)
	t.stdout(ctx, c)
	if err := os.Rename(c.log(), c.log()+".1"); err != nil {
		t.Fatalf("%v", err)
	}
	_, err := t.rt.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: c.id})
	_, there := os.Stat(c.log())
	if err == nil && there != nil {
		t.Errorf("ReopenContainerLog succeeded and the log is not there")
	}
	if err != nil && there == nil {
		t.Errorf("ReopenContainerLog failed (%s), and has made the log nevertheless", describe(err))
	}
	_, err = t.rt.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: t.unknownID()})
	t.wantError(err, "ReopenContainerLog of an unknown container")
	if status.Code(err) == codes.Unimplemented {
		t.Errorf("the runtime does not have ReopenContainerLog")
	}
}

package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/paths"
)

const (
	logDir  = "/var/log/pods/ns_p_u/c"
	logFile = logDir + "/0.log"
)

type fakeRuntime struct {
	fs     *memfs.FS
	state  runtimeapi.ContainerState
	reopen error
	lists  int
	calls  []string
	down   bool
	tell   func()
}

func (f *fakeRuntime) Untroubled(...string) bool { return !f.down }
func (f *fakeRuntime) OnChange(fn func())        { f.tell = fn }

func (f *fakeRuntime) RunningLogs(at string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if f.state == runtimeapi.ContainerState_CONTAINER_RUNNING && paths.Related(logFile, at) {
			yield(logFile)
		}
	}
}

func (f *fakeRuntime) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	f.lists++
	if f.down {
		return nil, errors.New("down")
	}
	return []*runtimeapi.Container{{Id: "id", State: f.state}}, nil
}

func (f *fakeRuntime) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{LogPath: logFile}}, nil
}

func (f *fakeRuntime) ReopenContainerLog(context.Context, string) error {
	f.calls = append(f.calls, "reopen")
	if f.reopen != nil {
		return f.reopen
	}
	return f.fs.Append(logFile, nil, 0o640)
}

type rig struct {
	t *testing.T
	l *loop.Loop
	f *fakeRuntime
	m *Manager
}

func newRig(t *testing.T, change func(*Options)) *rig { return newRigWith(t, loop.Elide, change) }

func newRigWith(t *testing.T, elision loop.ElisionMode, change func(*Options)) *rig {
	l := loop.New(loop.Options{Name: "n", Elision: elision})
	t.Cleanup(l.Close)
	files := memfs.New(memfs.Options{Loop: l})
	if err := files.MkdirAll(logDir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := &fakeRuntime{fs: files, state: runtimeapi.ContainerState_CONTAINER_RUNNING}
	o := Options{Group: l.NewGroup("kubelet"), Runtime: f, FS: files, Dir: "/var/log/pods", MaxSize: 100, MaxFiles: 3, MaxWorkers: 1, Period: 10 * time.Second}
	if change != nil {
		change(&o)
	}
	r := &rig{t: t, l: l, f: f, m: New(o)}
	r.write(0)
	r.m.Start()
	return r
}

func (r *rig) run(until time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(loop.Epoch().Add(until)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) write(n int) { _ = r.f.fs.Append(logFile, bytes.Repeat([]byte("x"), n), 0o640) }

func (r *rig) files() string {
	entries, err := r.f.fs.ReadDir(logDir)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		info, _ := e.Info()
		text := e.Name()
		if !strings.HasSuffix(text, ".gz") {
			text += fmt.Sprint(":", info.Size())
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// TestElisionIsInvisible: what is left out would have said and done nothing.
func TestElisionIsInvisible(t *testing.T) {
	for name, mode := range map[string]loop.ElisionMode{"elided": loop.Elide, "checked": loop.CheckElision, "polled": loop.NoElide} {
		var said []string
		r := newRigWith(t, mode, func(o *Options) {
			l := o.Group.Loop()
			o.Log = func(format string, args ...any) {
				said = append(said, fmt.Sprintf("%v: ", l.Now().Sub(loop.Epoch()).Truncate(time.Second))+fmt.Sprintf(format, args...))
			}
		})
		down := func(down bool) {
			r.f.down = down
			if r.f.tell != nil {
				r.f.tell()
			}
		}
		r.run(95 * time.Second)
		down(true)
		r.run(115 * time.Second)
		down(false)
		r.run(125 * time.Second)
		if err := r.f.fs.Remove(logFile); err != nil {
			t.Fatal(err)
		}
		r.run(139 * time.Second)
		const failed = "Failed to rotate container logs: failed to list containers: down"
		if got, want := strings.Join(said, "\n"), "1m40s: "+failed+"\n1m50s: "+failed; got != want {
			t.Errorf("%s: said\n%s\nwant\n%s", name, got, want)
		}
		if got := strings.Join(r.f.calls, " "); got != "reopen" || r.files() != "0.log:0" {
			t.Errorf("%s: calls %q, files %s", name, got, r.files())
		}
	}
}

func TestRotation(t *testing.T) {
	r := newRig(t, nil)
	r.write(99)
	r.run(15 * time.Second)
	if got := r.files(); got != "0.log:99" || r.f.lists != 0 {
		t.Fatalf("%s, %d lists", got, r.f.lists)
	}
	r.write(1)
	r.run(19 * time.Second)
	if got := r.files(); got != "0.log:100" {
		t.Fatal(got)
	}
	r.run(21 * time.Second)
	if got, want := r.files(), "0.log:0 0.log.20260101-000020:100"; got != want || r.f.lists != 1 {
		t.Fatalf("%s, %d lists", got, r.f.lists)
	}
	r.run(301 * time.Second)
	if r.f.lists != 1 {
		t.Errorf("%d lists though nothing is written", r.f.lists)
	}
	r.write(200)
	r.run(311 * time.Second)
	if got, want := r.files(), "0.log:0 0.log.20260101-000020.gz 0.log.20260101-000510:200"; got != want {
		t.Fatal(got)
	}
	data, _ := r.f.fs.ReadFile(logFile + ".20260101-000020.gz")
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || len(text) != 100 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	r.write(200)
	r.run(321 * time.Second)
	if got, want := r.files(), "0.log:0 0.log.20260101-000510.gz 0.log.20260101-000520:200"; got != want {
		t.Fatal(got)
	}
}

func TestFailedReopenLeavesTheLog(t *testing.T) {
	r := newRig(t, nil)
	r.f.reopen = errors.New("no")
	r.write(150)
	r.run(25 * time.Second)
	if got := r.files(); got != "0.log:150" || len(r.f.calls) != 3 {
		t.Fatalf("%s, %v", got, r.f.calls)
	}
	r.f.reopen = nil
	r.run(31 * time.Second)
	if got, want := r.files(), "0.log:0 0.log.20260101-000030:150"; got != want {
		t.Fatal(got)
	}
}

func TestWhatIsNotRotated(t *testing.T) {
	for name, change := range map[string]func(*rig, *Options){
		"an exited container's log": func(r *rig, _ *Options) {
			if r != nil {
				r.f.state = runtimeapi.ContainerState_CONTAINER_EXITED
			}
		},
		"any log, when that is off": func(_ *rig, o *Options) {
			if o != nil {
				o.MaxSize = -1
			}
		},
	} {
		r := newRig(t, func(o *Options) { change(nil, o) })
		change(r, nil)
		r.write(1000)
		r.run(time.Minute)
		if got := r.files(); got != "0.log:1000" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLeftovers(t *testing.T) {
	r := newRig(t, nil)
	for _, name := range []string{".20250101-000000", ".20250101-000000.gz", ".20250102-000000.tmp", ".20250103-000000", ".20250103-000000.gz.tmp"} {
		_ = r.f.fs.WriteFile(logFile+name, []byte("x"), 0o640)
	}
	r.write(100)
	r.run(time.Second)
	if got, want := r.files(), "0.log:0 0.log.20250103-000000.gz 0.log.20260101-000000:100"; got != want {
		t.Error(got)
	}
}

// TestNothingIsLeftOut: with every pass run, the same logs are rotated at the
// same times.
func TestNothingIsLeftOut(t *testing.T) {
	var got [2]string
	for i, all := range []bool{false, true} {
		r := newRigWith(t, map[bool]loop.ElisionMode{true: loop.NoElide}[all], nil)
		for at := 3 * time.Second; at < 2*time.Minute; at += 7 * time.Second {
			r.run(at)
			r.write(40)
		}
		got[i] = r.files() + fmt.Sprint(r.f.calls)
	}
	if got[0] != got[1] {
		t.Errorf("%s\n%s", got[0], got[1])
	}
}

func TestTail(t *testing.T) {
	const stamp = "2026-01-01T00:00:00.123456789Z "
	log := stamp + "stdout F one\n" + stamp + "stderr F two\n" + stamp + "stdout P thr\n" + stamp + "stdout F:x ee\nrubbish\n" + stamp + "stdout F "
	for _, tc := range []struct {
		n, limit int
		want     string
	}{
		{80, 2048, "one\ntwo\nthree\n"}, {5, 2048, "one\ntwo\nthree\n"}, {4, 100, "two\nthree\n"}, {1, 100, ""}, {2, 100, "ee\n"}, {0, 100, ""}, {80, 4, "ree\n"},
	} {
		if got := string(Tail([]byte(log), tc.n, tc.limit)); got != tc.want {
			t.Errorf("%d, %d: %q", tc.n, tc.limit, got)
		}
	}
	if got := Tail(nil, 80, 10); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte("2026-01-01T00:00:00Z stdout P:x text"))
	f.Fuzz(func(t *testing.T, data []byte) {
		line, ok := ParseLine(data)
		if ok && len(line.Content) > len(data) {
			t.Errorf("%q from %q", line.Content, data)
		}
		if got := Tail(data, 3, 5); len(got) > 5 {
			t.Errorf("%q", got)
		}
	})
}

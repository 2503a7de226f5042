package fakecri

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/ground/usage"
)

// How runs end: each program runs, is told to stop after `stopAt` (if any),
// with a timeout of 30 s, and ends after `after` with the code.
func TestPrograms(t *testing.T) {
	sec := func(n int) Range { return Exactly(time.Duration(n) * time.Second) }
	for _, tc := range []struct {
		name    string
		b       Behaviour
		attempt uint32
		limit   int64
		stopAt  time.Duration
		after   time.Duration
		code    int32
		reason  string
	}{
		{name: "runs to its end", b: Behaviour{RunFor: sec(5)}, after: 5 * time.Second, reason: "Completed"},
		{name: "fails", b: Behaviour{RunFor: sec(5), ExitCode: 3}, after: 5 * time.Second, code: 3, reason: "Error"},
		{name: "first of codes", b: Behaviour{RunFor: sec(1), ExitCodes: []int32{7, 0}}, after: time.Second, code: 7, reason: "Error"},
		{name: "last of codes", b: Behaviour{RunFor: sec(1), ExitCodes: []int32{7, 0}}, attempt: 5, after: time.Second, reason: "Completed"},
		{name: "a signal", b: Behaviour{RunFor: sec(1), Signal: 11}, after: time.Second, code: 139, reason: "Error"},
		{name: "an OOM kill", b: Behaviour{RunFor: sec(1), OOMKilled: true}, after: time.Second, code: 137, reason: "OOMKilled"},
		{name: "an OOM kill of a child", b: Behaviour{RunFor: sec(1), ChildOOMKilled: true}, after: time.Second, reason: "OOMKilled"},
		{name: "an OOM kill of a child that matters", b: Behaviour{RunFor: sec(1), ExitCode: 2, ChildOOMKilled: true}, after: time.Second, code: 2, reason: "OOMKilled"},
		{name: "grows over its limit", b: Behaviour{Memory: usage.Ramp(0, 1000, 10*time.Second)}, limit: 499, after: 5 * time.Second, code: 137, reason: "OOMKilled"},
		{name: "stays under its limit", b: Behaviour{Memory: usage.Ramp(0, 1000, 10*time.Second)}, limit: 1000, stopAt: time.Minute, after: time.Minute, reason: "Completed"},
		{name: "stopped", b: Behaviour{}, stopAt: 2 * time.Second, after: 2 * time.Second, reason: "Completed"},
		{name: "stopped with a code", b: Behaviour{OnTerm: OnTerm{Exit: 5}}, stopAt: 2 * time.Second, after: 2 * time.Second, code: 5, reason: "Error"},
		{name: "stopped slowly", b: Behaviour{OnTerm: OnTerm{After: sec(4)}}, stopAt: time.Second, after: 5 * time.Second, reason: "Completed"},
		{name: "does not end by itself while stopping", b: Behaviour{RunFor: sec(3), ExitCode: 9, OnTerm: OnTerm{After: sec(4)}}, stopAt: time.Second, after: 5 * time.Second, reason: "Completed"},
		{name: "dies of the signal", b: Behaviour{OnTerm: OnTerm{Unhandled: true}}, stopAt: time.Second, after: time.Second, code: 143, reason: "Error"},
		{name: "deaf", b: Behaviour{OnTerm: OnTerm{Ignore: true}}, stopAt: time.Second, after: 31 * time.Second, code: 137, reason: "Error"},
		{name: "too slow", b: Behaviour{OnTerm: OnTerm{After: sec(40)}}, stopAt: time.Second, after: 31 * time.Second, code: 137, reason: "Error"},
		{name: "deaf but ends", b: Behaviour{RunFor: sec(10), OnTerm: OnTerm{Ignore: true}}, stopAt: time.Second, after: 10 * time.Second, reason: "Completed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Program{Behaviour: tc.b}
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			run(t, Options{Images: []Image{appImage}, Programs: []Program{p}}, func(e *env) {
				sb := e.sandbox("web", 0)
				cfg := containerConfig("web", "main", tc.attempt)
				cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: tc.limit}}
				id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				if tc.stopAt > 0 {
					e.sleep(time.Duration(e.status(id).StartedAt+int64(tc.stopAt)) - time.Duration(e.l.UnixNano()))
					e.ok(e.c.StopContainer(e.ctx, id, 30))
				} else {
					e.sleep(time.Minute)
				}
				e.exited(id, tc.code, tc.reason)
				ran := time.Duration(e.status(id).FinishedAt - e.status(id).StartedAt)
				e.within(ran, tc.after, tc.after+time.Millisecond)
			})
		})
	}
}

func TestStartError(t *testing.T) {
	msg := `exec: "/no/such": stat /no/such: no such file or directory`
	e := run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: Behaviour{StartError: msg}}}}, func(e *env) {
		id := e.create(e.sandbox("web", 0), "web", "main", 0)
		err := e.c.StartContainer(e.ctx, id)
		e.code(err, codes.Unknown)
		st := e.status(id)
		if st.State != records.StateExited || st.ExitCode != 128 || st.Reason != "StartError" || st.Message != msg || st.StartedAt != 0 || st.FinishedAt == 0 {
			t.Errorf("status %+v", st)
		}
	})
	if r := e.traced(trace.KindCRI, "StartContainer"); len(r) != 1 || field(r[0], "error") != "Unknown" || field(r[0], "message") != msg {
		t.Errorf("trace %+v", r)
	}
}

func TestMatchAndAttempts(t *testing.T) {
	code := func(n int32) Behaviour {
		return Behaviour{RunFor: Exactly(time.Second), ExitCode: n}
	}
	programs := []Program{
		{Match: Match{Pod: "web-*", Container: "side"}, Behaviour: code(1)},
		{Match: Match{Namespace: "kube-*"}, Behaviour: code(2)},
		{Match: Match{Image: "docker.io/library/other:*"}, Behaviour: code(3)},
		{Match: Match{Pod: "retry"}, Attempts: []Behaviour{code(4), {StartError: "no"}, code(5)}},
		{Match: Match{Pod: "web-1"}, Behaviour: code(6)},
	}
	for _, tc := range []struct {
		pod, container, image string
		attempt               uint32
		code                  int32
	}{
		{"web-1", "side", "app:1", 0, 1},
		{"web-1", "main", "app:1", 0, 6},
		{"web-2", "main", "other:2", 0, 3},
		{"retry", "main", "app:1", 0, 4},
		{"retry", "main", "app:1", 1, 128},
		{"retry", "main", "app:1", 2, 5},
		{"retry", "main", "app:1", 9, 5},
	} {
		run(t, Options{Images: []Image{appImage, {Name: "other:2", Present: true}}, Programs: programs}, func(e *env) {
			cfg := containerConfig(tc.pod, tc.container, tc.attempt)
			cfg.Image = &runtimeapi.ImageSpec{Image: e.rt.images.Find(tc.image).ID, UserSpecifiedImage: tc.image}
			id, err := e.c.CreateContainer(e.ctx, e.sandbox(tc.pod, 0), cfg, nil)
			e.ok(err)
			_ = e.c.StartContainer(e.ctx, id)
			e.sleep(2 * time.Second)
			if st := e.status(id); st.ExitCode != tc.code {
				t.Errorf("%+v: exit code %d", tc, st.ExitCode)
			}
		})
	}
}

func TestProgramValidate(t *testing.T) {
	for _, tc := range []struct {
		p    Program
		want string
	}{
		{Program{}, ""},
		{Program{Behaviour: Behaviour{ExitCode: 1}}, "exitCode: without runFor"},
		{Program{Behaviour: Behaviour{RunFor: Exactly(1), ExitCode: 256}}, "exitCode: 256"},
		{Program{Attempts: []Behaviour{{}, {Signal: 9}}}, "attempts[1].signal: without runFor"},
		{Program{Behaviour: Behaviour{Logs: []LogLine{{Stream: "out"}}}}, `logs[0].stream: "out"`},
		{Program{Behaviour: Behaviour{Ports: []Port{{Port: 1}, {Port: 65535}}}}, ""},
		{Program{Behaviour: Behaviour{Ports: []Port{{Port: 80}, {Port: 65536}}}}, "ports[1].port: 65536 is not within 1 to 65535"},
		{Program{Behaviour: Behaviour{Ports: []Port{{}}}}, "ports[0].port: 0 is not within"},
		{Program{Behaviour: Behaviour{Ports: []Port{{Port: 80, After: time.Second, Until: time.Second}}}}, "ports[0].until: 1s is not later than after, 1s"},
		{Program{Behaviour: Behaviour{Ports: []Port{{Port: 80, HTTP: []HTTPAnswer{{Status: 100}, {Status: 599}}}}}}, ""},
		{Program{Behaviour: Behaviour{Ports: []Port{{Port: 80, HTTP: []HTTPAnswer{{Status: 99}}}}}}, "ports[0].http[0].status: 99"},
		{Program{Behaviour: Behaviour{Ports: []Port{{Port: 80, HTTP: []HTTPAnswer{{Status: 600}}}}}}, "ports[0].http[0].status: 600"},
		{Program{Behaviour: Behaviour{Ports: []Port{{Port: 80, GRPC: []GRPCAnswer{{Status: "UP"}}}}}}, `ports[0].grpc[0].status: "UP" is none of SERVING`},
		{Program{Behaviour: Behaviour{Exec: []ExecRule{{Exit: 255}, {Exit: 256}}}}, "exec[1].exit: 256 is not within 0 to 255"},
	} {
		err := tc.p.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.p, err, tc.want)
		}
	}
}

func TestStats(t *testing.T) {
	p := []Program{
		{Match: Match{Container: "main"}, Behaviour: Behaviour{Memory: usage.Ramp(1000, 2000, 10*time.Second), CPU: usage.Constant(250)}},
		{Match: Match{Container: "side"}, Behaviour: Behaviour{Memory: usage.Constant(500), CPU: usage.Constant(50)}},
	}
	run(t, Options{Images: []Image{appImage}, Programs: p}, func(e *env) {
		sb := e.sandbox("web", 0)
		other := e.start(e.sandbox("db", 0), "db", "main", 0)
		id := e.start(sb, "web", "main", 0)
		e.start(sb, "web", "side", 0)
		e.create(sb, "web", "idle", 0)
		e.sleep(time.Duration(e.status(id).StartedAt+int64(4*time.Second)) - time.Duration(e.l.UnixNano()))
		st, err := e.c.ContainerStats(e.ctx, id)
		e.ok(err)
		if st.Attributes.Id != id || st.Memory.WorkingSetBytes.Value != 1400 || st.Cpu.UsageNanoCores.Value != 250_000_000 ||
			st.Cpu.UsageCoreNanoSeconds.Value != 1_000_000_000 || st.Cpu.Timestamp == 0 {
			t.Errorf("stats %+v", st)
		}
		ps, err := e.c.PodSandboxStats(e.ctx, sb)
		e.ok(err)
		if len(ps.Linux.Containers) != 2 || ps.Linux.Memory.WorkingSetBytes.Value != 1900 || ps.Linux.Cpu.UsageNanoCores.Value != 300_000_000 {
			t.Errorf("pod stats %+v", ps.Linux)
		}
		for _, tc := range []struct {
			f    *runtimeapi.ContainerStatsFilter
			want int
		}{
			{nil, 3}, {&runtimeapi.ContainerStatsFilter{Id: other}, 1}, {&runtimeapi.ContainerStatsFilter{PodSandboxId: sb}, 2},
			{&runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{"c": "main"}}, 2},
			{&runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{"c": "none"}}, 0},
		} {
			got, err := e.c.ListContainerStats(e.ctx, tc.f)
			e.ok(err)
			if len(got) != tc.want {
				t.Errorf("%v: %d stats, want %d", tc.f, len(got), tc.want)
			}
		}
		pods, err := e.c.ListPodSandboxStats(e.ctx, nil)
		e.ok(err)
		if len(pods) != 2 {
			t.Errorf("%d pods have stats", len(pods))
		}
		_, err = e.c.ContainerStats(e.ctx, "none")
		e.code(err, codes.NotFound)
	})
}

// logSink keeps what was written.
type logSink struct{ lines, opened []string }

func (s *logSink) WriteLog(path string, line []byte) {
	for _, l := range strings.SplitAfter(strings.TrimSuffix(string(line), "\n"), "\n") {
		s.lines = append(s.lines, path+" "+l)
	}
}
func (s *logSink) OpenLog(path string) { s.opened = append(s.opened, path) }

func TestLogFiles(t *testing.T) {
	for _, tc := range []struct {
		name string
		b    Behaviour
	}{
		{"runs", Behaviour{}},
		{"can't start", Behaviour{StartError: "no such file"}},
	} {
		var sink logSink
		o := Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: tc.b}}, Logs: &sink}
		run(t, o, func(e *env) {
			sb := e.sandbox("web", 0)
			for attempt := range uint32(2) {
				id, err := e.c.CreateContainer(e.ctx, sb, containerConfig("web", "main", attempt), nil)
				e.ok(err)
				if err := e.c.StartContainer(e.ctx, id); (err != nil) != (tc.b.StartError != "") {
					t.Errorf("%s: %v", tc.name, err)
				}
			}
		})
		if got, want := fmt.Sprint(sink.opened), "[/var/log/pods/web/main/0.log /var/log/pods/web/main/1.log]"; got != want {
			t.Errorf("%s: %s, want %s", tc.name, got, want)
		}
	}
}

func TestLogs(t *testing.T) {
	var sink logSink
	b := Behaviour{RunFor: Exactly(10 * time.Second), Logs: []LogLine{
		{Text: "hello"},
		{At: time.Second, Every: 3 * time.Second, Count: 2, Stream: "stderr", Text: "tick"},
		{At: 9 * time.Second, Every: time.Second, Text: "late\ntwo"},
	}}
	run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: b}}, Logs: &sink}, func(e *env) {
		id := e.start(e.sandbox("web", 0), "web", "main", 0)
		e.ok(e.c.ReopenContainerLog(e.ctx, id))
		e.sleep(time.Minute)
		e.code(e.c.ReopenContainerLog(e.ctx, id), codes.FailedPrecondition)
	})
	var got []string
	for _, l := range sink.lines {
		f := strings.SplitN(strings.TrimSuffix(l, "\n"), " ", 5)
		if _, err := time.Parse(time.RFC3339Nano, f[1]); err != nil || f[0] != "/var/log/pods/web/main/0.log" {
			t.Errorf("line %q: %v", l, err)
		}
		got = append(got, strings.Join(f[2:], " "))
	}
	want := []string{"stdout F hello", "stderr F tick", "stderr F tick", "stdout F late", "stdout F two"}
	if len(got) > len(want) { // the line at 10 s may just precede the exit
		got = got[:len(want)]
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if len(sink.opened) != 2 {
		t.Errorf("opened %q", sink.opened)
	}
}

func TestScriptWarning(t *testing.T) {
	var warnings []string
	run(t, Options{Images: []Image{appImage}, Warn: func(s string) { warnings = append(warnings, s) }}, func(e *env) {
		sb := e.sandbox("web", 0)
		for i, cmd := range [][]string{{"zsh", "-c", "exit 1"}, {"/opt/bin/bash", "-ec", "exit 1"}, {"zsh", "-c", "exit 2"}, {"server", "5"}, {"zsh"}} {
			cfg := containerConfig("web", "main", uint32(i))
			cfg.Command = cmd
			id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
			e.ok(err)
			e.ok(e.c.StartContainer(e.ctx, id))
			if e.status(id).State != records.StateRunning {
				t.Errorf("%q doesn't run", cmd)
			}
		}
	})
	if len(warnings) != 2 || !strings.Contains(warnings[0], `"exit 1"`) || !strings.Contains(warnings[0], "pod default/web") {
		t.Errorf("warnings %q", warnings)
	}
}

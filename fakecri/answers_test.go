package fakecri

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/process"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

func get(t testing.TB, address string) *http.Request {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: "GET", URL: u, Host: u.Host, Header: http.Header{}}
}

// What a stated program answers, by the time since its start.
func TestStatedPorts(t *testing.T) {
	b := Behaviour{Ports: []Port{
		{Port: 80, HTTP: []HTTPAnswer{{Path: "/healthz", Status: 503, Until: 5 * time.Second}, {Path: "/healthz", Body: "ok"}, {Path: "/v?/*", Status: 204}}},
		{Port: 81, After: 10 * time.Second, Until: 20 * time.Second, Latency: Exactly(300 * time.Millisecond)},
		{Port: 82, GRPC: []GRPCAnswer{{Service: "db", Status: "NOT_SERVING"}, {Service: "w*"}}},
	}}
	run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: b}}, NodeIP: "172.16.0.1"}, func(e *env) {
		sb := e.sandbox("web", 0)
		id := e.start(sb, "web", "main", 0)
		st, err := e.c.PodSandboxStatus(e.ctx, sb, false)
		e.ok(err)
		ip := st.Status.Network.Ip
		ask := func(at time.Duration, path string, want string) {
			e.Helper()
			e.sleep(time.Duration(e.status(id).StartedAt) + at - time.Duration(e.l.UnixNano()))
			code, _, body, took, _, ok, err := e.rt.net.QuickHTTP(id, get(t, "http://"+ip+path))
			got := fmt.Sprint(code, " ", string(body), " ", took, " ", err)
			if !ok || got != want {
				t.Errorf("%s at %s: %v %q, want %q", path, at, ok, got, want)
			}
			before := e.l.Now()
			code2, _, body2, err2 := e.rt.net.HTTP(e.ctx, id, get(t, "http://"+ip+path))
			if code2 != code || string(body2) != string(body) || fmt.Sprint(err2) != fmt.Sprint(err) || e.l.Since(before).Truncate(time.Millisecond) != took {
				t.Errorf("%s: HTTP says %d %q %v", path, code2, body2, err2)
			}
		}
		refused := func(port int) string {
			return fmt.Sprintf("0  0s dial tcp %s:%d: connect: connection refused", ip, port)
		}
		ask(time.Second, ":80/healthz", "503  0s <nil>")
		ask(time.Second, "/v1/x", "204  0s <nil>")
		ask(time.Second, "/", "404 404 page not found\n 0s <nil>")
		ask(time.Second, ":81/", refused(81))
		ask(6*time.Second, "/healthz?a=b", "200 ok 0s <nil>")
		ask(10*time.Second, ":81/any", "200  300ms <nil>")
		ask(20*time.Second, ":81/any", refused(81))
		ask(20*time.Second, ":83/", refused(83))
		if took, _, ok, err := e.rt.net.QuickDialTCP(id, ip, 80); took != 0 || !ok || err != nil {
			t.Errorf("dial: %s %v %v", took, ok, err)
		}
		if err := e.rt.net.DialTCP(e.ctx, id, "127.0.0.1", 80); err == nil || err.Error() != "dial tcp 127.0.0.1:80: connect: connection refused" {
			t.Errorf("the node's loopback: %v", err)
		}
		before := e.l.Now()
		if err := e.rt.net.DialTCP(e.ctx, id, "10.1.2.3", 80); err == nil || err.Error() != "dial tcp 10.1.2.3:80: connect: no route to host" || e.l.Since(before) < 3*time.Second {
			t.Errorf("nobody's address: %v", err)
		}
		for service, want := range map[string]string{"db": "NOT_SERVING", "web": "SERVING", "": "NotFound"} {
			got, err := e.rt.net.GRPCHealth(e.ctx, id, ip, 82, service)
			if err != nil {
				got = status.Code(err).String()
			}
			if got != want {
				t.Errorf("service %q: %s, want %s", service, got, want)
			}
		}
		if _, err := e.rt.net.GRPCHealth(e.ctx, id, ip, 80, ""); err == nil || !strings.HasPrefix(err.Error(), "dial ") {
			t.Errorf("gRPC to an HTTP server: %v", err)
		}
		if _, _, _, err := e.rt.net.HTTP(e.ctx, id, get(t, "http://"+ip+":82/")); err == nil || !strings.Contains(err.Error(), "malformed HTTP response") {
			t.Errorf("HTTP to a gRPC server: %v", err)
		}
	})
}

// What states no ports answers on all that its own container is asked on, and
// for others only on those that its manifest lists.
func TestDefaultPorts(t *testing.T) {
	run(t, Options{Images: []Image{appImage}, NodeIP: "172.16.0.1"}, func(e *env) {
		sb := e.sandbox("web", 0)
		a := e.start(sb, "web", "a", 0)
		cfg := containerConfig("web", "b", 0)
		cfg.Annotations = map[string]string{records.AnnotationPorts: `[{"name":"http","containerPort":8080,"protocol":"TCP"}]`}
		b, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
		e.ok(err)
		e.ok(e.c.StartContainer(e.ctx, b))
		st, _ := e.c.PodSandboxStatus(e.ctx, sb, false)
		ip := st.Status.Network.Ip
		e.ok(e.rt.net.DialTCP(e.ctx, a, ip, 1234))
		e.ok(e.c.StopContainer(e.ctx, a, 0))
		e.ok(e.rt.net.DialTCP(e.ctx, a, ip, 8080))
		if err := e.rt.net.DialTCP(e.ctx, a, ip, 1234); err == nil {
			t.Error("a stopped container answers")
		}
		if got, err := e.rt.net.GRPCHealth(e.ctx, b, ip, 9, "x"); got != "SERVING" || err != nil {
			t.Errorf("%s, %v", got, err)
		}
	})
}

func TestStatedExec(t *testing.T) {
	var warnings []string
	b := Behaviour{Exec: []ExecRule{
		{Command: "cat /tmp/healthy", After: 5 * time.Second, Exit: 1},
		{Command: "slow*", Takes: Exactly(3 * time.Second), Output: "done\n"},
	}}
	run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: b}}, Warn: func(s string) { warnings = append(warnings, s) }}, func(e *env) {
		id := e.start(e.sandbox("web", 0), "web", "main", 0)
		out, _, err := e.c.ExecSync(e.ctx, id, []string{"cat", "/tmp/healthy"}, 0)
		e.ok(err)
		if len(out) != 0 {
			t.Errorf("output %q", out)
		}
		for range 2 {
			_, _, err = e.c.ExecSync(e.ctx, id, []string{"other"}, 0)
			e.ok(err)
		}
		before := e.l.Now()
		out, _, err = e.c.ExecSync(e.ctx, id, []string{"slow", "work"}, 5*time.Second)
		e.ok(err)
		if took := e.l.Since(before); string(out) != "done\n" || took < 3*time.Second || took > 3100*time.Millisecond {
			t.Errorf("%q after %s", out, took)
		}
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"slow"}, time.Second)
		e.code(err, codes.DeadlineExceeded)
		if want := "failed to exec in container: timeout 1s exceeded: context deadline exceeded"; status.Convert(err).Message() != want {
			t.Errorf("%q, want %q", status.Convert(err).Message(), want)
		}
		if out, took, ok, err := e.rt.exec.QuickExecSync(id, []string{"slow"}, time.Second); !ok || status.Code(err) != codes.DeadlineExceeded || took < time.Second || len(out) != 0 {
			t.Errorf("quick: %v %s %q %v", ok, took, out, err)
		}
		if out, took, ok, err := e.rt.exec.QuickExecSync(id, []string{"slow"}, 5*time.Second); !ok || err != nil || took < 3*time.Second || took > 3100*time.Millisecond || string(out) != "done\n" {
			t.Errorf("quick, in time: %v %s %q %v", ok, took, out, err)
		}
		e.sleep(3 * time.Second)
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"cat", "/tmp/healthy"}, 0)
		x, ok := err.(interface{ ExitStatus() int })
		if !ok || x.ExitStatus() != 1 || err.Error() != "command 'cat /tmp/healthy' exited with 1: " {
			t.Errorf("%v", err)
		}
		e.l.Root().After(time.Second, func() { _ = e.rt.StopContainerOutside("default/web", "main") })
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"slow"}, 0)
		if x, ok := err.(interface{ ExitStatus() int }); !ok || x.ExitStatus() != 137 {
			t.Errorf("killed with its container: %v", err)
		}
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"slow"}, 0)
		if err == nil || status.Convert(err).Message() != "failed to exec in container: container is in CONTAINER_EXITED state" {
			t.Errorf("%v", err)
		}
		_, _, err = e.c.ExecSync(e.ctx, "none", []string{"slow"}, 0)
		e.code(err, codes.NotFound)
	})
	if len(warnings) != 1 || !strings.Contains(warnings[0], `"other"`) {
		t.Errorf("warnings %q", warnings)
	}
}

// The termination message is there when the program ends, not when it is
// killed.
func TestStatedTerminationMessage(t *testing.T) {
	for _, tc := range []struct {
		name string
		b    Behaviour
		stop int64
		want string
	}{
		{"by itself", Behaviour{RunFor: Exactly(time.Second), ExitCode: 3}, -1, "bye"},
		{"stopped", Behaviour{}, 10, "bye"},
		{"killed", Behaviour{}, 0, ""},
	} {
		tc.b.TerminationMessage = "bye"
		e := &env{}
		var files *memfs.FS
		o := Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: tc.b}}}
		run(t, o, func(inner *env) {
			e = inner
			files = memfs.New(memfs.Options{Loop: e.l})
			e.rt.files.FS = files
			e.ok(files.MkdirAll("/pods/web", 0o755))
			e.ok(files.WriteFile("/pods/web/log", nil, 0o666))
			cfg := containerConfig("web", "main", 0)
			cfg.Annotations = map[string]string{process.AnnotationTerminationPath: "/dev/termination-log"}
			cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: "/made"}, {ContainerPath: "/dev/termination-log", HostPath: "/pods/web/log"}}
			id, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
			e.ok(err)
			e.ok(e.c.StartContainer(e.ctx, id))
			if tc.stop >= 0 {
				e.ok(e.c.StopContainer(e.ctx, id, tc.stop))
			} else {
				e.sleep(2 * time.Second)
			}
			got, err := files.ReadFile("/pods/web/log")
			if string(got) != tc.want || err != nil {
				t.Errorf("%s: %q, %v", tc.name, got, err)
			}
			if fi, err := files.Stat("/made"); err != nil || !fi.IsDir() {
				t.Errorf("a missing mount source: %v", err)
			}
		})
	}
}

// TestAnswersThatHeldAreTold: who relies on an answer hears when its process or its
// network is gone.
func TestAnswersThatHeldAreTold(t *testing.T) {
	b := Behaviour{Ports: []Port{{Port: 80, HTTP: []HTTPAnswer{{Path: "/"}}}}}
	for name, end := range map[string]func(e *env, sb, id string) error{
		"process": func(e *env, _, id string) error { return e.c.StopContainer(e.ctx, id, 0) },
		"network": func(e *env, sb, _ string) error { return e.c.StopPodSandbox(e.ctx, sb) },
	} {
		run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: b}}}, func(e *env) {
			sb := e.sandbox("web", 0)
			id := e.start(sb, "web", "main", 0)
			st, err := e.c.PodSandboxStatus(e.ctx, sb, false)
			e.ok(err)
			if _, holds, ok, err := e.rt.QuickDialTCP(id, st.Status.Network.Ip, 80); !holds || !ok || err != nil {
				t.Fatalf("%s: the answer holds %v, %v, %v", name, holds, ok, err)
			}
			var told []string
			e.rt.OnAnswerChange(e.g, func(id string) { told = append(told, id) })
			e.ok(end(e, sb, id))
			if len(told) != 1 || told[0] != id {
				t.Errorf("%s: told of %q", name, told)
			}
		})
	}
}

// TestSpentFaultIsTold: when a fault has used up its count, listings are known again.
func TestSpentFaultIsTold(t *testing.T) {
	run(t, Options{}, func(e *env) {
		e.rt.AddFault(Fault{Method: "ListContainers", Count: 1, Error: &FaultError{}})
		told := 0
		e.c.OnChange(func() { told++ })
		if _, err := e.c.ListContainers(e.ctx, nil); err == nil || told != 1 {
			t.Errorf("%v, told %d times", err, told)
		}
	})
}

// TestStoppedBeforeListening: a program that was told to end doesn't begin to listen any more, and
// goes on where it did.
func TestStoppedBeforeListening(t *testing.T) {
	b := Behaviour{OnTerm: OnTerm{After: Exactly(20 * time.Second)}, Ports: []Port{{Port: 80}, {Port: 81, After: 5 * time.Second}}}
	run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: b}}}, func(e *env) {
		sb := e.sandbox("web", 0)
		id := e.start(sb, "web", "main", 0)
		st, err := e.c.PodSandboxStatus(e.ctx, sb, false)
		e.ok(err)
		e.sleep(2 * time.Second)
		ctx, cancel := loop.WithTimeout(e.ctx, time.Second)
		defer cancel()
		e.code(e.c.StopContainer(ctx, id, 30), codes.DeadlineExceeded)
		e.sleep(5 * time.Second)
		e.ok(e.rt.net.DialTCP(e.ctx, id, st.Status.Network.Ip, 80))
		if err := e.rt.net.DialTCP(e.ctx, id, st.Status.Network.Ip, 81); err == nil {
			t.Error("it has begun to listen")
		}
	})
}

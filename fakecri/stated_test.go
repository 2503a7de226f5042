package fakecri

import (
	"net/http"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// get asks a container's port as the node does.
func (e *env) get(id, url string) (int, string) {
	e.Helper()
	req, err := http.NewRequestWithContext(e.ctx, http.MethodGet, url, nil)
	e.ok(err)
	code, _, body, err := e.rt.net.HTTP(e.ctx, id, req)
	if err != nil {
		return 0, err.Error()
	}
	return code, string(body)
}

// Images whose servers are known, and images that nobody knows, run as
// processes beside which others can be run.
func TestStatedProcesses(t *testing.T) {
	for _, tc := range []struct {
		image    string
		args     []string
		readonly bool
		url      string // of its own address, without host
		body     string
		comm     string // what ps shows
		exit     int32  // on its stop signal
	}{
		{image: "nginx:1.14-2", url: ":80/", body: "Welcome to nginx!", comm: "nginx: master process nginx -g daemon off;"},
		{image: "nginx:1.14-2", readonly: true, url: ":80/", body: "Welcome to nginx!", comm: "nginx: master process nginx -g daemon off;"},
		{image: suite + "hostnet-nginx-amd64", url: ":12003/", body: "Welcome to nginx!", comm: "nginx: master process"},
		{image: "httpd:2.4", url: ":80/", body: "It works!", comm: "httpd-foreground"},
		{image: "agnhost:2.40", args: []string{"netexec", "--http-port=8090"}, url: ":8090/hostname", body: "web-0", comm: "/agnhost netexec"},
		{image: "agnhost:2.40", args: []string{"netexec"}, url: ":8080/echo?msg=a%20b", body: "a b", comm: "/agnhost netexec"},
		{image: "agnhost:2.40", args: []string{"serve-hostname"}, url: ":9376/", body: "web-0", comm: "/agnhost serve-hostname"},
		{image: "registry.k8s.io/pause:3.9", comm: "/pause"},
		{image: "redis:7", comm: "redis-server"},
		{image: "quay.io/some/thing:1", comm: "/entrypoint"},
		{image: "quay.io/some/thing:1", args: []string{"/usr/bin/thing", "--flag"}, comm: "/usr/bin/thing --flag"},
		{image: "quay.io/some/thing:1", args: []string{"thing", "--flag"}, comm: "thing --flag"},
	} {
		t.Run(tc.image+" "+strings.Join(tc.args, " "), func(t *testing.T) {
			run(t, socketOptions, func(e *env) {
				e.pull(tc.image)
				pod := podConfig("web", 0)
				pod.Hostname = "web-0"
				sb, err := e.c.RunPodSandbox(e.ctx, pod, "")
				e.ok(err)
				cfg := containerConfig("web", "main", 0)
				cfg.Image, cfg.Args = spec(tc.image), tc.args
				cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{ReadonlyRootfs: tc.readonly}}
				id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				e.sleep(time.Minute)
				if st := e.status(id); st.State != records.StateRunning {
					t.Fatalf("status %v", st)
				}
				if tc.url != "" {
					resp, err := e.c.PodSandboxStatus(e.ctx, sb, false)
					e.ok(err)
					if code, body := e.get(id, "http://"+resp.Status.Network.Ip+tc.url); code != 200 || !strings.Contains(body, tc.body) {
						t.Errorf("%s: %d %q", tc.url, code, body)
					}
				}
				if tc.comm != "/pause" { // an image of nothing else
					out, _, err := e.c.ExecSync(e.ctx, id, []string{"sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline"}, 0)
					e.ok(err)
					if !strings.HasPrefix(string(out), tc.comm) {
						t.Errorf("pid 1 is %q, want %q", out, tc.comm)
					}
				}
				if d := e.took(func() { e.ok(e.c.StopContainer(e.ctx, id, 60)) }); d > 10*time.Second {
					t.Errorf("the stop took %s", d)
				}
				e.exited(id, tc.exit, "Completed")
				if code, _ := e.get(id, "http://127.0.0.1"+tc.url); tc.url != "" && code != 0 {
					t.Error("it answers after its end")
				}
			})
		})
	}
}

func TestAgnhost(t *testing.T) {
	for _, interpret := range []bool{true, false} {
		run(t, Options{Interpret: interpret}, func(e *env) {
			e.pull("agnhost:2.40")
			sb := e.sandbox("web", 0)
			create := func(name string, args ...string) string {
				cfg := containerConfig("web", name, 0)
				cfg.Image, cfg.Args = spec("agnhost:2.40"), args
				id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				return id
			}
			resp, err := e.c.PodSandboxStatus(e.ctx, sb, false)
			e.ok(err)
			base := "http://" + resp.Status.Network.Ip
			health := create("health", "grpc-health-checking", "--http-port=8090")
			if got, err := e.rt.net.GRPCHealth(e.ctx, health, resp.Status.Network.Ip, 5000, ""); err != nil || got != "SERVING" {
				t.Errorf("health: %s, %v", got, err)
			}
			live := create("live", "liveness", "--port=8081")
			net := create("net", "netexec", "--http-port", "8082")
			for _, tc := range []struct {
				url  string
				code int
				body string
			}{
				{":8081/healthz", 200, "ok"},
				{":8082/healthz", 200, ""},
				{":8082/", 200, "NOW: "},
				{":8082/echo?msg=hello", 200, "hello"},
				{":8082/echo?msg=no&code=503", 503, "no"},
				{":8082/nothing", 404, ""},
				{":8083/", 0, "connection refused"},
			} {
				if code, body := e.get(net, base+tc.url); code != tc.code || !strings.Contains(body, tc.body) {
					t.Errorf("interpret %v: %s: %d %q, want %d %q", interpret, tc.url, code, body, tc.code, tc.body)
				}
			}
			e.sleep(11 * time.Second)
			if code, body := e.get(live, base+":8081/healthz"); code != 500 || !strings.HasPrefix(body, "error: ") {
				t.Errorf("liveness after 11s: %d %q", code, body)
			}
			if code, _ := e.get(net, base+":8082/exit?code=3"); code != 200 {
				t.Errorf("exit: %d", code)
			}
			e.sleep(time.Second)
			e.exited(net, 3, "Error")
		})
	}
}

// What a stated program writes and how it ends is as it is without processes.
func TestStatedOutput(t *testing.T) {
	for _, noNew := range []bool{true, false} {
		logs := &logLines{}
		opts := socketOptions
		opts.Logs = logs
		run(t, opts, func(e *env) {
			e.pull("nonewprivs:1.3")
			cfg := containerConfig("web", "main", 0)
			cfg.Image = spec("nonewprivs:1.3")
			cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NoNewPrivs: noNew}}
			id, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
			e.ok(err)
			e.ok(e.c.StartContainer(e.ctx, id))
			e.sleep(time.Second)
			e.exited(id, 0, "Completed")
			want := map[bool]string{true: "stdout F Effective uid: 1000\n", false: "stdout F Effective uid: 0\n"}[noNew]
			if !strings.HasSuffix(logs.text, want) {
				t.Errorf("log %q, want %q", logs.text, want)
			}
		})
	}
}

type logLines struct{ text string }

func (l *logLines) WriteLog(_ string, line []byte) { l.text += string(line) }
func (l *logLines) OpenLog(string)                 {}

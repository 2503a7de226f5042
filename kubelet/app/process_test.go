//go:build linux

package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	"github.com/drydock-sim/drydock/kubelet/real"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// asCommand, in the environment, makes the test binary the command, with a
// kubelet that does what the value says.
const asCommand = "DRYDOCK_TEST_KUBELET"

func TestMain(m *testing.M) {
	mode, ok := os.LookupEnv(asCommand)
	if !ok {
		if err := registerFormats(); err != nil {
			panic(err)
		}
		goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
		return
	}
	cmd := NewCommand(Deps{Run: func(ctx context.Context, o real.Options) error {
		data, err := json.Marshal(map[string]any{"nodeName": o.NodeName, "rootDir": o.RootDir, "nodeIPs": o.NodeIPs, "cloud": o.ExternalCloudProvider, "labels": o.NodeLabels,
			"staticPodPath": o.Config.StaticPodPath, "seccomp": o.Config.SeccompDefault, "cgroupRoot": o.Config.CgroupRoot})
		if err != nil {
			return err
		}
		fmt.Println(string(data))
		switch mode {
		case "fails":
			return errors.New("the runtime is gone")
		case "ends":
			return nil
		}
		if mode == "late" { // systemd hears that all is well before there is a loop to ask
			time.Sleep(time.Second / 2)
		}
		o.Started(&real.Handle{})
		fmt.Println("started")
		<-ctx.Done()
		if mode == "deaf" {
			fmt.Println("not now")
			select {}
		}
		return nil
	}})
	cmd.SetArgs(os.Args[1:])
	if err := cmd.Execute(); err != nil {
		LogFailure(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// common are arguments that let the command start on any machine.
var common = []string{"--fail-cgroupv1=false", "--fail-swap-on=false", "--healthz-port=0"}

// process is a started command.
type process struct {
	*exec.Cmd
	out    *bufio.Scanner
	stderr output
}

// output is what a process writes while it is looked at.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// freePort is a port that nobody has.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// start starts the command, at a port of its own unless it is told one: a kubelet may run on the
// machine.
func start(t *testing.T, mode string, env []string, args ...string) *process {
	t.Helper()
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--port=") }) {
		args = append([]string{"--port=" + freePort(t)}, args...)
	}
	p := &process{Cmd: exec.Command(os.Args[0], append(slices.Clone(common), args...)...)}
	p.Env = append(append(os.Environ(), asCommand+"="+mode), env...)
	p.Stderr = &p.stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Cmd.Wait() })
	return p
}

// until reads standard output up to a line.
func (p *process) until(t *testing.T, want string) {
	t.Helper()
	for p.out.Scan() {
		if p.out.Text() == want {
			return
		}
	}
	_ = p.Wait()
	t.Fatalf("no line %q; stderr:\n%s", want, &p.stderr)
}

// code waits for the end.
func (p *process) code(t *testing.T) int {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
	defer timer.Stop()
	for p.out.Scan() {
	}
	_ = p.Wait()
	return p.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func TestExitCodes(t *testing.T) {
	dir := write(t, map[string]string{"bad.yaml": head + "maxPods: -1\n", "web.yaml": head, "typo.yaml": head + "maxPod: 1\nenableServer: false\nauthentication: {webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n"})
	for _, tc := range []struct {
		args   string
		mode   string
		code   int
		stdout string
		stderr string // in the last line
	}{
		{"--help", "ends", 0, "The kubelet is the node agent", ""},
		{"-h", "ends", 0, "--container-runtime-endpoint string", ""},
		{"--version", "ends", 0, "Kubernetes v1.36.3\n", ""},
		{"--version=raw", "ends", 0, `GitVersion:"v1.36.3"`, ""},
		{"--version=false", "ends", 0, "nodeName", ""},
		{"", "ends", 0, "nodeName", ""},
		{"--foo", "ends", 1, "", `"command failed" err="failed to parse kubelet flag: unknown flag: --foo"`},
		{"bar", "ends", 1, "", `"command failed" err="unknown command bar"`},
		{"--runonce", "ends", 1, "", `err="failed to validate kubelet configuration, error: invalid configuration: runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"`},
		{"--config=" + dir + "/no.yaml", "ends", 1, "", "no such file or directory"},
		{"--config=" + dir + "/bad.yaml", "ends", 1, "", "maxPods (--max-pods) -1 must not be a negative number, path: " + dir + "/bad.yaml"},
		{"--config=" + dir + "/web.yaml", "ends", 1, "", "failed to run Kubelet: no client provided, cannot use webhook authentication"},
		{"--config=" + dir + "/typo.yaml", "ends", 0, "nodeName", `"Using lenient decoding as strict decoding failed" err="strict decoding error: unknown field \"maxPod\""`},
		{"--logging-format=xml", "ends", 1, "", `initialize logging: logging.format: Invalid value: \"xml\": Unsupported log format`},
		{"--node-labels=kubernetes.io/a=b", "ends", 1, "", `failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [kubernetes.io/a] --node-labels`},
		{"--exit-on-lock-contention", "ends", 1, "", "failed to run Kubelet: cannot exit on lock file contention: no lock file specified"},
		{"--lock-file=" + dir + "/no/lock", "ends", 1, "", "unable to acquire file lock on"},
		{"--hostname-override= ", "ends", 1, "", "failed to run Kubelet: empty hostname is invalid"},
		{"--kubeconfig=x", "ends", 1, "", "failed to run Kubelet: invalid kubeconfig: stat x: no such file or directory"},
		{"--node-ip=1.1.1.1,2.2.2.2", "ends", 1, "", `failed to run Kubelet: bad --node-ip \"1.1.1.1,2.2.2.2\": must contain either a single IP or a dual-stack pair of IPs`},
		{"--node-ip=1.1.1.1,::1,::2", "ends", 1, "", "must contain either a single IP or a dual-stack pair of IPs"},
		{"--node-ip=0.0.0.0,fd00::1", "ends", 1, "", "dual-stack node IP cannot include '0.0.0.0' or '::'"},
		{"--cloud-provider=aws", "ends", 1, "", `cloud provider \"aws\" was specified, but built-in cloud providers are disabled.`},
		{"--root-dir=", "ends", 1, "", "invalid root directory"},
		{"--eviction-hard=memory<1Gi", "ends", 1, "", "failed to run Kubelet: unsupported eviction signal memory"},
		{"--kube-reserved=gpu=1", "ends", 1, "", `failed to run Kubelet: --kube-reserved value failed to parse: cannot reserve \"gpu\" resource`},
		{"--sync-frequency=-1ns", "ends", 1, "", "failed to run Kubelet: invalid sync frequency -1"},
		{"--reserved-cpus=4095", "ends", 1, "", "failed to run Kubelet: reserved-cpus: 4095 is not a subset of online-cpus: "},
		{"--tls-min-version=x", "ends", 1, "", `failed to construct kubelet dependencies: unknown tls version \"x\"`},
		{"--cpu-manager-policy-options=full-pcpus-only=true", "ends", 1, "", "failed to run Kubelet: None policy: received unsupported options=map[full-pcpus-only:true]"},
		{"--feature-gates=CustomCPUCFSQuotaPeriod=true", "ends", 0, "nodeName", "setting GA feature gate. It will be removed in a future release. featureGate=CustomCPUCFSQuotaPeriod value=true"},
		{"", "fails", 1, "nodeName", "failed to run Kubelet: the runtime is gone"},
	} {
		t.Run(tc.args+" "+tc.mode, func(t *testing.T) {
			t.Parallel()
			args := slices.Clone(common)
			if tc.args != "" {
				args = append(args, tc.args)
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), asCommand+"="+tc.mode)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(stdout.String(), tc.stdout) || tc.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout %q", stdout.String())
			}
			errText := stderr.String()
			lines := strings.Split(strings.TrimSpace(errText), "\n")
			if tc.code != 0 {
				if last := lines[len(lines)-1]; !strings.HasPrefix(last, "E") || !strings.Contains(last, tc.stderr) {
					t.Errorf("the last line on stderr is %q, want %q", last, tc.stderr)
				}
			} else if !strings.Contains(errText, tc.stderr) {
				t.Errorf("stderr %q, want %q", errText, tc.stderr)
			}
			if strings.Contains(errText, "goroutine ") {
				t.Errorf("a stack:\n%s", errText)
			}
		})
	}
}

func TestWhatTheKubeletGets(t *testing.T) {
	p := start(t, "ends", nil, "--hostname-override=Node-A", "--root-dir=/r/../root/", "--node-ip=x, 010.0.0.1,fd00::1", "--cloud-provider=external", "--node-labels=a=b", "--pod-manifest-path=pods", "--seccomp-default")
	if !p.out.Scan() {
		t.Fatal("no line")
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"cgroupRoot":"/","cloud":true,"labels":{"a":"b"},"nodeIPs":["10.0.0.1","fd00::1"],"nodeName":"node-a","rootDir":"/root","seccomp":true,"staticPodPath":"%s/pods"}`, wd)
	if got := p.out.Text(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if code := p.code(t); code != 0 || !strings.Contains(p.stderr.String(), `"Could not parse some node IP(s), ignoring them" IPs=["x"]`) {
		t.Errorf("exit code %d, stderr %s", code, &p.stderr)
	}
}

func TestSignals(t *testing.T) {
	p := start(t, "runs", nil)
	p.until(t, "started")
	p.signal(t)
	if code := p.code(t); code != 0 {
		t.Errorf("one signal: exit code %d\n%s", code, &p.stderr)
	}
	p = start(t, "deaf", nil)
	p.until(t, "started")
	p.signal(t)
	p.until(t, "not now")
	p.signal(t)
	if code := p.code(t); code != 1 {
		t.Errorf("two signals: exit code %d\n%s", code, &p.stderr)
	}
}

func TestLockFile(t *testing.T) {
	lock, port := filepath.Join(t.TempDir(), "lock"), "--port="+freePort(t) // the same, one after the other
	first := start(t, "runs", nil, port, "--lock-file="+lock, "--exit-on-lock-contention")
	first.until(t, "started")
	info, err := os.Stat(lock)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("lock file %v, %v", info, err)
	}
	// The second one wants the lock, so the first one goes.
	second := start(t, "runs", nil, port, "--lock-file="+lock)
	if code := first.code(t); code != 0 {
		t.Errorf("exit code at contention %d\n%s", code, &first.stderr)
	}
	second.until(t, "started")
	// A third one waits, and a signal ends its waiting.
	third := start(t, "runs", nil, port, "--lock-file="+lock)
	waitFor(t, "the third one at the lock", func() bool { return strings.Contains(third.stderr.String(), "Acquiring file lock") })
	third.signal(t)
	if code := third.code(t); code != 0 {
		t.Errorf("exit code of the one that waits %d\n%s", code, &third.stderr)
	}
	second.signal(t)
	if code := second.code(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, &second.stderr)
	}
}

// notifySocket is what systemd listens on.
func notifySocket(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, path
}

func TestSystemd(t *testing.T) {
	conn, path := notifySocket(t)
	env := []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=2000000"}
	p := start(t, "late", env)
	got := map[string]bool{}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	for !got["READY=1"] || !got["WATCHDOG=1"] {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("%v; got %v; stderr %s", err, got, &p.stderr)
		}
		got[string(buf[:n])] = true
	}
	p.signal(t)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for usec, want := range map[string]string{
		"1000000": "failed to run Kubelet: create health checker: configure watchdog timeout too small: 1s",
		"x":       "failed to run Kubelet: create health checker: configure watchdog: ",
	} {
		p := start(t, "runs", []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=" + usec})
		if code := p.code(t); code != 1 || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("WATCHDOG_USEC=%s: exit code %d, %s", usec, code, &p.stderr)
		}
	}
}

func TestWatchdogIsQuietWhenIll(t *testing.T) {
	w := &watchdog{interval: time.Second}
	if w.check() != nil {
		t.Error("ill without checks")
	}
	w.setChecks([]server.Check{server.Ping(), {Name: "syncloop", Check: func() error { return errors.New("late") }}})
	if err := w.check(); err == nil || err.Error() != "checker syncloop failed: late" {
		t.Errorf("got %v", err)
	}
}

func TestHealthzPort(t *testing.T) {
	port := freePort(t)
	p := start(t, "runs", nil, "--healthz-port="+port)
	p.until(t, "started")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (code int, body string) {
		resp, err := client.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		data, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(data)
	}
	waitFor(t, "/healthz", func() bool { code, _ := get("/healthz"); return code == 200 })
	if code, body := get("/healthz?verbose"); code != 200 || body != "[+]ping ok\nhealthz check passed\n" {
		t.Errorf("verbose: %d %q", code, body)
	}
	// The kubelet of this test has no loop.
	if code, body := get("/healthz/syncloop"); code != 500 || !strings.HasPrefix(body, "internal server error: ") {
		t.Errorf("syncloop: %d %q", code, body)
	}
	p.signal(t)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestJSONLogs(t *testing.T) {
	p := start(t, "fails", nil, "--logging-format=json")
	if code := p.code(t); code != 1 {
		t.Errorf("exit code %d", code)
	}
	seen := map[string]map[string]any{}
	for line := range strings.Lines(p.stderr.String()) {
		if strings.HasPrefix(line, "Flag --") {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("no JSON: %q", line)
		}
		seen[m["msg"].(string)] = m
	}
	info, failed := seen["Standalone mode, no API client"], seen["command failed"]
	if info == nil || info["v"] != 0.0 || info["ts"].(float64) < 1e12 || !strings.HasPrefix(info["caller"].(string), "app/run.go:") {
		t.Errorf("information %v", info)
	}
	if _, v := failed["v"]; v || failed["err"] != "failed to run Kubelet: the runtime is gone" {
		t.Errorf("error %v", failed)
	}
}

func TestFetcher(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("A") != "1" || len(r.Header.Values("A")) != 2 {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, strings.Repeat("x", 100))
	}))
	defer srv.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	l := loop.NewReal(loop.Options{Name: "n"})
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	check := func(ctx context.Context, header map[string][]string, url string, ok func(*config.Response, error) bool) {
		if resp, err := newFetcher().Fetch(ctx, url, header, 50); !ok(resp, err) {
			t.Errorf("%s with %v: %+v, %v", url, header, resp, err)
		}
	}
	l.Root().Go("test", func(lctx context.Context) {
		defer cancel()
		check(lctx, map[string][]string{"A": {"1", "2"}}, srv.URL, func(r *config.Response, err error) bool {
			return err == nil && r.Code == 200 && r.Status == "200 OK" && len(r.Body) == 50
		})
		check(lctx, nil, srv.URL, func(r *config.Response, err error) bool { return err == nil && r.Status == "418 I'm a teapot" })
		check(lctx, nil, "http://127.0.0.1:1/", func(_ *config.Response, err error) bool { return err != nil })
		check(lctx, nil, ":", func(_ *config.Response, err error) bool { return err != nil })
	})
	if err := l.RunReal(ctx); err != nil {
		t.Error(err)
	}
}

package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// fakeHost has one pod, web of namespace default, with a container main.
type fakeHost struct{}

func webPod() *v1.Pod {
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
	}
}

func (fakeHost) Pods(context.Context) ([]*v1.Pod, error) { return []*v1.Pod{webPod()}, nil }

func (fakeHost) RunningPods(context.Context) ([]*v1.Pod, error) {
	return nil, errors.New("the runtime is down")
}

func (fakeHost) Pod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	if namespace == "default" && name == "web" {
		return webPod(), nil
	}
	return nil, nil
}

func (fakeHost) Summary(_ context.Context, only bool) (*statsapi.Summary, error) {
	if only {
		return nil, errors.New("nobody counts")
	}
	return &statsapi.Summary{Node: statsapi.NodeStats{NodeName: "n"}}, nil
}

func (fakeHost) Log(_ context.Context, _ *v1.Pod, _ string, previous bool) (Log, error) {
	if previous {
		return Log{}, errors.New(`previous terminated container "main" in pod "web" not found`)
	}
	return Log{Path: "/log", ContainerID: "c1"}, nil
}

func (fakeHost) Run(_ context.Context, _ Target, command []string) ([]byte, error) {
	if command[0] == "nothing" {
		return nil, nil
	}
	return []byte(strings.Join(command, "|")), nil
}

func (fakeHost) Exec(_ context.Context, t Target, req *runtimeapi.ExecRequest) (*url.URL, error) {
	if t.Container != "main" {
		return nil, errors.New(`container not found ("other")`)
	}
	return url.Parse("http://runtime/exec/" + strings.Join(req.Cmd, "+"))
}

func (fakeHost) Attach(context.Context, Target, *runtimeapi.AttachRequest) (*url.URL, error) {
	return url.Parse("http://runtime/attach")
}

func (fakeHost) PortForward(context.Context, Target, *runtimeapi.PortForwardRequest) (*url.URL, error) {
	return url.Parse("http://runtime/forward")
}

func (fakeHost) Checkpoint(context.Context, Target, int64) (string, error) { return "/c.tar", nil }

func (fakeHost) Metrics(_ context.Context, of MetricsPath) ([]*dto.MetricFamily, error) {
	f := gauge("seen", "Help.")
	one := 1.0
	f.Metric = []*dto.Metric{{Label: []*dto.LabelPair{label("of", string(of))}, Gauge: &dto.Gauge{Value: &one}}}
	return []*dto.MetricFamily{f}, nil
}

// echo tells what a log and a stream were asked for.
type echo struct{}

func (echo) ReadLog(_ context.Context, log Log, o *v1.PodLogOptions, stdout, stderr io.Writer) error {
	if o.TailLines != nil {
		_, _ = io.WriteString(stdout, "tailed ")
	}
	for name, w := range map[string]io.Writer{"out": stdout, "err": stderr} {
		if w != nil && (stdout == nil || stderr == nil) {
			_, _ = io.WriteString(w, name)
		}
	}
	if stdout != nil && stderr != nil {
		_, _ = io.WriteString(stdout, log.Path)
	}
	return nil
}

func (echo) ServeStream(w http.ResponseWriter, _ *http.Request, to *url.URL, s Stream) {
	_, _ = io.WriteString(w, string(s.Kind)+" to "+to.String())
}

// TestServer holds codes and bodies of answers, which are upstream's.
func TestServer(t *testing.T) {
	off := false
	ping := []Check{Ping()}
	full := New(Options{Host: fakeHost{}, Config: &kubeletconfig.KubeletConfiguration{Port: 10250}, Checks: ping, Logs: echo{}, Streams: echo{},
		SystemLogs: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })})
	readOnly := New(Options{Host: fakeHost{}, Checks: ping})
	noDebug := New(Options{Host: fakeHost{}, Config: &kubeletconfig.KubeletConfiguration{EnableDebuggingHandlers: &off}, Checks: ping})
	noLogs := New(Options{Host: fakeHost{}, Config: &kubeletconfig.KubeletConfiguration{EnableSystemLogHandler: &off}, Checks: ping})
	for _, tc := range []struct {
		h            http.Handler
		method, path string
		code         int
		body         string
	}{
		{full, "GET", "/pods", 200, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"web","namespace":"default","uid":"uid-1"},"spec":{"containers":[{"name":"main","resources":{}}]},"status":{}}]}` + "\n"},
		{full, "GET", "/runningpods/", 500, "the runtime is down"},
		{full, "GET", "/stats/summary?only_cpu_and_memory=true", 500, "Internal Error: nobody counts"},
		{full, "GET", "/stats/summary", 200, "{\n \"node\": {\n  \"nodeName\": \"n\",\n  \"startTime\": null\n },\n \"pods\": null\n}"},
		{full, "GET", "/stats/other", 404, "404: Page Not Found"},
		{full, "GET", "/nope", 404, "404 page not found\n"},
		{full, "GET", "/configz", 200, `*"port":10250`},
		{full, "GET", "/logs/a/b", 200, "/logs/a/b"},
		{full, "GET", "/metrics/slis", 200, `*kubernetes_healthcheck{name="ping",type="healthz"} 1`},
		{full, "GET", "/metrics/resource", 200, `*seen{of="/metrics/resource"} 1`},
		{full, "GET", "/containerLogs/default/web/main", 200, "/log"},
		{full, "GET", "/containerLogs/default/web/main?tail=3", 200, "tailed /log"},
		{full, "GET", "/containerLogs/default/web/main?tail=all&tailLines=1", 200, "/log"},
		{full, "GET", "/containerLogs/default/web/main?stream=Stdout", 200, "out"},
		{full, "GET", "/containerLogs/default/web/main?stream=Stderr", 200, "err"},
		{full, "GET", "/containerLogs/default/web/main?stream=Other", 422, `{"message": "Invalid request."}`},
		{full, "GET", "/containerLogs/default/web/main?stream=Stdout&tailLines=1", 422, `{"message": "Invalid request."}`},
		{full, "GET", "/containerLogs/default/web/main?limitBytes=0", 422, `{"message": "Invalid request."}`},
		{full, "GET", "/containerLogs/default/web/main?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, `{"message": "Invalid request."}`},
		{full, "GET", "/containerLogs/default/web/main?sinceTime=yesterday", 400, `{"message": "Unable to decode query."}`},
		{full, "GET", "/containerLogs/default/web/main?tailLines=x", 400, `{"message": "Unable to decode query."}`},
		{full, "GET", "/containerLogs/default/web/main?previous=true", 400, `previous terminated container "main" in pod "web" not found`},
		{full, "GET", "/containerLogs/default/web/other", 404, `container "other" not found in pod "web"`},
		{full, "GET", "/containerLogs/default/none/main", 404, `pod "none" does not exist`},
		{full, "GET", "/containerLogs/default/web", 404, "404: Page Not Found"},
		{full, "POST", "/exec/default/web/main?command=ls&command=-l&output=1", 200, "exec to http://runtime/exec/ls+-l"},
		{full, "POST", "/exec/default/web/main?command=ls", 400, "you must specify at least 1 of stdin, stdout, stderr"},
		{full, "GET", "/exec/default/web/uid-1/other?output=1", 500, `container not found ("other")`},
		{full, "POST", "/exec/default/none/main?output=1", 404, "pod does not exist"},
		{full, "PUT", "/exec/default/web/main", 405, "405: Method Not Allowed"},
		{full, "POST", "/attach/default/web/main?output=1", 200, "attach to http://runtime/attach"},
		{full, "POST", "/portForward/default/web", 200, "portforward to http://runtime/forward"},
		{full, "POST", "/portForward/default/web/uid-2", 404, "pod not found"},
		{full, "POST", "/run/default/web/main?cmd=echo%20hi", 200, "echo|hi"},
		{full, "POST", "/run/default/web/main?cmd=nothing", 200, ""},
		{full, "POST", "/run/default/none/main?cmd=ls", 404, "pod does not exist"},
		{full, "POST", "/checkpoint/default/web/main", 200, `{"items":["/c.tar"]}`},
		{full, "POST", "/checkpoint/default/web/other", 404, "container other does not exist"},
		{full, "POST", "/checkpoint/default/web/main?timeout=soon", 404, "cannot parse value of timeout parameter"},
		{readOnly, "GET", "/healthz", 200, "ok"},
		{readOnly, "GET", "/pods", 200, `*"name":"web"`},
		{readOnly, "GET", "/configz", 404, "404 page not found\n"},
		{readOnly, "POST", "/run/default/web/main", 405, "Debug endpoints are disabled.\n"},
		{noDebug, "GET", "/containerLogs/default/web/main", 405, "Debug endpoints are disabled.\n"},
		{noLogs, "GET", "/logs/", 405, "logs endpoint is disabled.\n"},
	} {
		w := httptest.NewRecorder()
		tc.h.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, nil))
		want, part := strings.CutPrefix(tc.body, "*")
		if w.Code != tc.code || w.Body.String() != want && (!part || !strings.Contains(w.Body.String(), want)) {
			t.Errorf("%s %s: %d %q, want %d %q", tc.method, tc.path, w.Code, w.Body, tc.code, tc.body)
		}
	}
}

// FuzzServer holds that no path or query makes the server panic.
func FuzzServer(f *testing.F) {
	s := New(Options{Host: fakeHost{}, Config: &kubeletconfig.KubeletConfiguration{}, Checks: []Check{Ping()}, Logs: echo{}, Streams: echo{}})
	for _, seed := range []string{"/pods", "/containerLogs/a/b/c?tailLines=9&follow=1", "/exec/../x//%2e?tty=1", "/run/%00/a/b/c?cmd=", "/stats/summary?;=", "/logs/%2e%2e/x", "/healthz?exclude=%"} {
		f.Add("GET", seed)
		f.Add("POST", seed)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.Parse(target)
		if err != nil || !strings.HasPrefix(u.Path, "/") {
			return
		}
		r, err := http.NewRequest(method, "http://kubelet/", nil)
		if err != nil {
			return
		}
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("%s %s: %d", method, target, w.Code)
		}
	})
}

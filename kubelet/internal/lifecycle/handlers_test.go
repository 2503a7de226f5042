package lifecycle

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	httpprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/http"
)

// hookWorld is what hooks reach.
type hookWorld struct {
	l        *loop.Loop
	ips      []string
	plain    bool // the server speaks HTTP only
	refuses  bool
	code     int
	execErr  error
	requests []string
	events   []string
}

func (w *hookWorld) RunInContainer(_ context.Context, _ string, _ []string, timeout time.Duration) ([]byte, error) {
	if timeout != 0 {
		return nil, errors.New("a hook has a timeout")
	}
	return []byte("out\n"), w.execErr
}

func (w *hookWorld) GetPodStatus(context.Context, *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	return &kubecontainer.PodStatus{Name: "p", IPs: w.ips}, nil
}

func (w *hookWorld) HTTP(_ context.Context, _ string, req *http.Request) (int, http.Header, []byte, error) {
	w.requests = append(w.requests, req.URL.String()+" "+req.Header.Get("User-Agent")+" "+req.Header.Get("Authorization"))
	switch {
	case w.refuses:
		return 0, nil, nil, errors.New("dial tcp " + req.URL.Host + ": connect: connection refused")
	case w.plain && req.URL.Scheme == "https":
		return 0, nil, nil, httpprobe.ErrPlainHTTP
	}
	return w.code, nil, nil, nil
}

func (w *hookWorld) Event(ref *v1.ObjectReference, eventtype, reason, message string) {
	w.events = append(w.events, ref.FieldPath+eventtype+" "+reason+" "+message)
}

func TestHandlers(t *testing.T) {
	get := func(scheme v1.URIScheme) *v1.LifecycleHandler {
		return &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/x", Port: intstr.FromInt32(9), Scheme: scheme, HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: "secret"}}}}
	}
	run := &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"a", "b c"}}}
	in := `for Container "c" in Pod "p_default(u)" failed - error: `
	for _, tc := range []struct {
		name     string
		w        hookWorld
		h        *v1.LifecycleHandler
		message  string
		requests []string
		events   []string
		cancel   bool
		took     time.Duration
	}{
		{name: "exec", h: run},
		{name: "exec fails", w: hookWorld{execErr: errors.New("command 'a b c' exited with 1: ")}, h: run,
			message: `Exec lifecycle hook ([a b c]) ` + in + `command 'a b c' exited with 1: , message: "out\n"`},
		{name: "http", w: hookWorld{ips: []string{"10.0.0.1"}, code: 500}, h: get("HTTP"), requests: []string{"http://10.0.0.1:9/x kube-lifecycle/1.36 secret"}},
		{name: "http refused", w: hookWorld{ips: []string{"10.0.0.1"}, refuses: true}, h: get("HTTP"), requests: []string{"http://10.0.0.1:9/x kube-lifecycle/1.36 secret"},
			message: `HTTP lifecycle hook (/x) ` + in + `Get "http://10.0.0.1:9/x": dial tcp 10.0.0.1:9: connect: connection refused`},
		{name: "http without an address", h: get("HTTP"), message: `HTTP lifecycle hook (/x) ` + in + `failed to find networking container: p`},
		{name: "https", w: hookWorld{ips: []string{"10.0.0.1"}, code: 200}, h: get("HTTPS"), requests: []string{"https://10.0.0.1:9/x kube-lifecycle/1.36 secret"}},
		{name: "https to a plain server", w: hookWorld{ips: []string{"10.0.0.1"}, plain: true, code: 200}, h: get("HTTPS"),
			requests: []string{"https://10.0.0.1:9/x kube-lifecycle/1.36 secret", "http://10.0.0.1:9/x kube-lifecycle/1.36 "},
			events:   []string{"Warning LifecycleHTTPFallback request to HTTPS lifecycle hook 10.0.0.1:9 got HTTP response, retry with HTTP succeeded"}},
		{name: "sleep", h: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 3}}, took: 3 * time.Second},
		{name: "sleep 0", h: &v1.LifecycleHandler{Sleep: &v1.SleepAction{}}},
		{name: "sleep, cancelled", h: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 3}}, cancel: true, took: time.Second,
			message: `Sleep lifecycle hook (3) ` + in + `container terminated before sleep hook finished`},
		{name: "none", h: &v1.LifecycleHandler{}, message: "Cannot run handler: invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:nil,Sleep:nil,}"},
	} {
		w := &tc.w
		w.l = loop.New(loop.Options{})
		r := HandlerRunner{Loop: w.l, Commands: w, HTTP: w, Pods: w, Recorder: w}
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u"}}
		var message string
		var err error
		var took time.Duration
		w.l.Root().Go("test", func(ctx context.Context) {
			ctx, cancel := loop.WithCancel(ctx)
			if tc.cancel {
				w.l.Root().After(time.Second, cancel)
			}
			start := w.l.Now()
			message, err = r.Run(ctx, "id", pod, &v1.Container{Name: "c"}, tc.h)
			took = w.l.Since(start).Round(time.Millisecond)
		})
		if err := w.l.RunUntil(loop.Epoch().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		w.l.Close()
		if message != tc.message || (err != nil) != (tc.message != "") || took != tc.took {
			t.Errorf("%s: %v, after %v, message\n%s\nwant\n%s", tc.name, err, took, message, tc.message)
		}
		if !slices.Equal(w.requests, tc.requests) || !slices.Equal(w.events, tc.events) {
			t.Errorf("%s: requests %q, events %q", tc.name, w.requests, w.events)
		}
	}
}

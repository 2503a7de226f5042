package up

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

// TestStreams runs commands in pods, attaches to one and forwards a port of one, with
// client-go, over SPDY and WebSockets.
func TestStreams(t *testing.T) {
	c := start(t, Options{Nodes: 1, Speed: 20})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(c.Config())
	pods := client.CoreV1().Pods("default")
	for name, spec := range map[string]v1.Container{
		"shell": {Name: "main", Image: "busybox", Stdin: true, Command: []string{"sh", "-c", `while read -r line; do echo "heard $line"; done; sleep 36000`}},
		"web":   {Name: "main", Image: "nginx"},
	} {
		if _, err := pods.Create(ctx, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{spec}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(list.Items) == 2, err
	})
	if err != nil {
		t.Fatal(err)
	}
	executors := map[string]func(o *v1.PodExecOptions) remotecommand.Executor{
		"SPDY": func(o *v1.PodExecOptions) remotecommand.Executor {
			u := client.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("shell").SubResource("exec").VersionedParams(o, scheme.ParameterCodec).URL()
			e, err := remotecommand.NewSPDYExecutor(c.Config(), "POST", u)
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		"WebSocket": func(o *v1.PodExecOptions) remotecommand.Executor {
			u := client.CoreV1().RESTClient().Get().Namespace("default").Resource("pods").Name("shell").SubResource("exec").VersionedParams(o, scheme.ParameterCodec).URL()
			e, err := remotecommand.NewWebSocketExecutor(c.Config(), "GET", u.String())
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
	}
	for name, executor := range executors {
		var out, errOut bytes.Buffer
		e := executor(&v1.PodExecOptions{Container: "main", Command: []string{"sh", "-c", "cat; echo oops >&2; exit 3"}, Stdin: true, Stdout: true, Stderr: true})
		err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("hello\n"), Stdout: &out, Stderr: &errOut})
		if code, ok := err.(utilexec.CodeExitError); !ok || code.Code != 3 || out.String() != "hello\n" || errOut.String() != "oops\n" {
			t.Errorf("%s: %q, %q, %v", name, &out, &errOut, err)
		}
		out.Reset()
		e = executor(&v1.PodExecOptions{Container: "main", Command: []string{"sh", "-c", "test -t 1 && echo a terminal"}, Stdout: true, TTY: true})
		if err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Tty: true}); err != nil || out.String() != "a terminal\r\n" {
			t.Errorf("%s, with a terminal: %q, %v", name, &out, err)
		}
		e = executor(&v1.PodExecOptions{Container: "main", Command: []string{"no-such-command"}, Stdout: true})
		if err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out}); err == nil {
			t.Errorf("%s: a command that is not there", name)
		}
	}

	attach, err := remotecommand.NewSPDYExecutor(c.Config(), "POST", client.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("shell").
		SubResource("attach").VersionedParams(&v1.PodAttachOptions{Stdin: true, Stdout: true}, scheme.ParameterCodec).URL())
	if err != nil {
		t.Fatal(err)
	}
	in, say := io.Pipe()
	heard, out := io.Pipe()
	attached, leave := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- attach.StreamWithContext(attached, remotecommand.StreamOptions{Stdin: in, Stdout: out})
	}()
	_, _ = io.WriteString(say, "me\n")
	b := make([]byte, 9)
	if _, err := io.ReadFull(heard, b); err != nil || string(b) != "heard me\n" {
		t.Errorf("attached: %q, %v", b, err)
	}
	leave()
	_ = say.Close()
	<-done

	transport, upgrader, err := spdy.RoundTripperFor(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	u := client.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("web").SubResource("portforward").URL()
	tunnel, err := portforward.NewSPDYOverWebsocketDialer(u, c.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, dialer := range map[string]httpstream.Dialer{"SPDY": spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u), "WebSocket": tunnel} {
		stop, ready := make(chan struct{}), make(chan struct{})
		f, err := portforward.New(dialer, []string{"0:80"}, stop, ready, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- f.ForwardPorts() }()
		select {
		case <-ready:
		case err := <-done:
			t.Fatalf("%s: %v", name, err)
		}
		ports, err := f.GetPorts()
		if err != nil {
			t.Fatal(err)
		}
		answer, err := get(ctx, ports[0].Local)
		if err != nil || !strings.Contains(answer, "200 OK") {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
		close(stop)
		<-done
	}
}

// get asks a port of this machine over HTTP.
func get(ctx context.Context, port uint16) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
	if err != nil {
		return "", err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.Status + " " + string(b), err
}

package up

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// TestLogs reads a pod's log with client-go: all of it, its end, with times, and as it
// grows until the container ends; and asks the kubelet by the node's proxy.
func TestLogs(t *testing.T) {
	c := start(t, Options{Nodes: 1, Speed: 20})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(c.Config())
	pods := client.CoreV1().Pods("default")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "talk"}, Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{
		Name: "main", Image: "busybox", Command: []string{"sh", "-c", "echo one; echo two >&2; sleep 20; echo three"},
	}}}}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.GetLogs("talk", &v1.PodLogOptions{Container: "other"}).DoRaw(ctx); !apierrors.IsBadRequest(err) {
		t.Errorf("of no container: %v", err)
	}
	phase := func(want v1.PodPhase) {
		t.Helper()
		err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			p, err := pods.Get(ctx, "talk", metav1.GetOptions{})
			return err == nil && p.Status.Phase == want, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	phase(v1.PodRunning)
	follow, err := pods.GetLogs("talk", &v1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(follow)
	for _, want := range []string{"one", "two", "three"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("followed: %q, want %q: %v", lines.Text(), want, lines.Err())
		}
	}
	if lines.Scan() {
		t.Errorf("after its end: %q", lines.Text())
	}
	_ = follow.Close()
	phase(v1.PodSucceeded)
	for _, tc := range []struct {
		o    v1.PodLogOptions
		want string
	}{
		{v1.PodLogOptions{}, "one\ntwo\nthree\n"},
		{v1.PodLogOptions{TailLines: ptr.To[int64](2)}, "two\nthree\n"},
		{v1.PodLogOptions{TailLines: ptr.To[int64](0)}, ""},
		{v1.PodLogOptions{LimitBytes: ptr.To[int64](5)}, "one\nt"},
		{v1.PodLogOptions{Stream: ptr.To(v1.LogStreamStderr)}, "two\n"},
		{v1.PodLogOptions{SinceTime: ptr.To(metav1.NewTime(time.Now().Add(24 * time.Hour)))}, ""},
	} {
		got, err := pods.GetLogs("talk", &tc.o).DoRaw(ctx)
		if err != nil || string(got) != tc.want {
			t.Errorf("%v: %q %v, want %q", tc.o, got, err, tc.want)
		}
	}
	if got, err := pods.GetLogs("talk", &v1.PodLogOptions{Timestamps: true, TailLines: ptr.To[int64](1)}).DoRaw(ctx); err != nil || !strings.HasSuffix(string(got), "Z three\n") {
		t.Errorf("with times: %q %v", got, err)
	}
	if _, err := pods.GetLogs("talk", &v1.PodLogOptions{Previous: true}).Stream(ctx); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `previous terminated container "main" in pod "talk" not found`) {
		t.Errorf("of the run before: %v", err)
	}
	node, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(node.Items) != 1 {
		t.Fatal(err)
	}
	proxy := func(path string) string {
		r, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + node.Items[0].Name + "/proxy" + path).Stream(ctx)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return ""
		}
		defer func() { _ = r.Close() }()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return string(b)
	}
	for path, want := range map[string]string{
		"/metrics": "\nkubelet_started_containers_total{container_type=\"container\"} 1\n", "/pods": `"name":"talk"`,
		"/stats/summary": `"nodeName"`, "/metrics/resource": "node_memory_working_set_bytes", "/healthz": "ok", "/configz": "kubeletconfig",
	} {
		if got := proxy(path); !strings.Contains(got, want) {
			t.Errorf("%s: %.300s, want %s", path, got, want)
		}
	}
}

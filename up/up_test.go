package up

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// start starts a cluster for a test.
func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestPodRuns makes a pod with client-go and sees it running by a watch, faster than
// life: pulling its image alone takes a second or more.
func TestPodRuns(t *testing.T) {
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := start(t, Options{Nodes: 3, Speed: 100, Start: begin})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pods := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().Pods("default")
	w, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "nginx"}}}}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for ev := range w.ResultChan() {
		pod, ok := ev.Object.(*v1.Pod)
		if !ok {
			t.Fatalf("event %v", ev)
		}
		if pod.Status.Phase != v1.PodRunning {
			continue
		}
		if pod.Spec.NodeName == "" || pod.Status.PodIP == "" {
			t.Errorf("it runs on node %q with the address %q", pod.Spec.NodeName, pod.Status.PodIP)
		}
		if took := pod.Status.StartTime.Sub(begin); took < 0 || took > time.Hour {
			t.Errorf("started at %v, of a cluster that began at %v", pod.Status.StartTime, begin)
		}
		return
	}
	t.Fatal("the watch ended and nothing ran")
}

package up

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// What clients get done over the loopback, with TLS and protobuf, client and server on the
// same cores:
//
//	go test ./up -run '^$' -bench Clients
//	go test ./up -run '^$' -bench Watchers -benchtime 1x

// benchClients starts an empty cluster and returns a client that isn't limited.
func benchClients(b *testing.B) kubernetes.Interface {
	b.Helper()
	c, err := Start(b.Context(), Options{NoControlPlane: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Stop(); err != nil {
			b.Error(err)
		}
	})
	config := c.Config()
	config.QPS = -1
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.CoreV1().ServiceAccounts("default").Create(b.Context(), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	return client
}

// benchPod is a pod of the usual size.
func benchPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web", "tier": "front"}},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "main", Image: "web:1", Env: []v1.EnvVar{{Name: "A", Value: "1"}},
			Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		}}},
	}
}

// each runs a request b.N times, eight at once, and says how many there were a second.
func each(b *testing.B, request func(ctx context.Context, n int64) error) {
	b.Helper()
	var n atomic.Int64
	b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := request(b.Context(), n.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

func BenchmarkClients(b *testing.B) {
	b.Run("get", func(b *testing.B) {
		pods := benchClients(b).CoreV1().Pods("default")
		if _, err := pods.Create(b.Context(), benchPod("web"), metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		each(b, func(ctx context.Context, _ int64) error {
			_, err := pods.Get(ctx, "web", metav1.GetOptions{})
			return err
		})
	})
	b.Run("create", func(b *testing.B) {
		pods := benchClients(b).CoreV1().Pods("default")
		each(b, func(ctx context.Context, n int64) error {
			_, err := pods.Create(ctx, benchPod(fmt.Sprintf("web-%d", n)), metav1.CreateOptions{})
			return err
		})
	})
}

// BenchmarkWatchers has a thousand clients watch ten thousand pods, of which some change
// and says how much memory all took at its most, clients included.
func BenchmarkWatchers(b *testing.B) {
	const pods, changed, watchers = 10_000, 500, 1_000
	for b.Loop() {
		client := benchClients(b).CoreV1().Pods("default")
		for n := range pods {
			if _, err := client.Create(b.Context(), benchPod(fmt.Sprintf("web-%d", n)), metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		list, err := client.List(b.Context(), metav1.ListOptions{Limit: 1})
		if err != nil {
			b.Fatal(err)
		}
		var events atomic.Int64
		done := make(chan error, watchers)
		for range watchers {
			w, err := client.Watch(b.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			if err != nil {
				b.Fatal(err)
			}
			go func() {
				defer w.Stop()
				for range changed {
					if _, ok := <-w.ResultChan(); !ok {
						done <- fmt.Errorf("a watch ended early")
						return
					}
					events.Add(1)
				}
				done <- nil
			}()
		}
		for n := range changed {
			patch := []byte(`{"metadata":{"labels":{"changed":"yes"}}}`)
			if _, err := client.Patch(b.Context(), fmt.Sprintf("web-%d", n), "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		early := 0
		for range watchers {
			if <-done != nil {
				early++
			}
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
		b.ReportMetric(float64(events.Load()), "events")
		b.ReportMetric(float64(early), "cut-off")
	}
}

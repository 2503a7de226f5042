package apiserver

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
)

func benchServer(b *testing.B) *Server {
	l := loop.New(loop.Options{Name: "api", Seed: 1})
	b.Cleanup(l.Close)
	return New(Options{Loop: l, Recorder: trace.NewRecorder(l, "", nil)})
}

func BenchmarkPatchPodStatus(b *testing.B) {
	srv := benchServer(b)
	pod, err := srv.Create(testPod("p", onNode("n")))
	if err != nil {
		b.Fatal(err)
	}
	p := pod.(*v1.Pod)
	b.ReportAllocs()
	for i := range b.N {
		st := p.Status
		now := asjson.Time(t0.Add(time.Duration(i) * time.Second))
		st.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: now}}
		st.ContainerStatuses = []v1.ContainerStatus{{Name: "main", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}}}}
		if p, err = srv.PatchPodStatus("default", "p", p.UID, &p.Status, &st); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdateLease(b *testing.B) {
	srv := benchServer(b)
	o, err := srv.Create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "kube-node-lease"}})
	if err != nil {
		b.Fatal(err)
	}
	l := o.(*coordinationv1.Lease)
	b.ReportAllocs()
	for i := range b.N {
		next := *l
		next.Spec.RenewTime = &metav1.MicroTime{Time: t0.Add(time.Duration(i) * time.Microsecond)}
		if l, err = srv.Store().UpdateLease(t0, &next); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreateFromTemplate(b *testing.B) {
	srv := benchServer(b)
	tmpl, err := srv.NewTemplate(testPod("p", onNode("n")))
	if err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := srv.CreateFromTemplate(tmpl, store.Stamp{Name: fmt.Sprintf("p-%d", i), NodeName: fmt.Sprintf("n%d", i%1000)}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "B/pod")
	runtime.KeepAlive(srv)
}

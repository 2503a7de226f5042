package sim_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// BenchmarkProbes is the probing of pods at rest: a node has 100 pods of stated
// programs, each with an HTTP readiness probe every second. An iteration is one
// probe; what the node does beside them is in it.
//
//	go test ./sim -run '^$' -bench Probes
func BenchmarkProbes(b *testing.B) {
	const pods = 100
	c := newBenchCluster(b, 1, 1)
	defer c.Close()
	mustRun(b, c, 10*time.Second)
	probe := &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}}
	t, err := c.API().NewTemplate(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "app:1", ReadinessProbe: probe}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for i := range pods {
		if _, err := c.API().CreateFromTemplate(t, apiserver.Stamp{Name: fmt.Sprintf("web-%d", i), NodeName: c.Nodes()[0].Name()}); err != nil {
			b.Fatal(err)
		}
	}
	until := 2 * time.Minute
	mustRun(b, c, until)
	before := c.Probes()
	if before < 60*pods {
		b.Fatalf("%d probes", before)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for c.Probes()-before < uint64(b.N) {
		until += time.Second
		mustRun(b, c, until)
	}
}

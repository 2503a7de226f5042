package report_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scale/report"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

func none(trace.Kind, string, []trace.Field) bool { return false }

// newCluster returns a cluster of nodes that have the image app:1, pull big:1 in 7 s and
// other:1 in 2 s, and its collector.
func newCluster(t testing.TB, seed uint64, nodes int) (*sim.Cluster, *report.Collector) {
	t.Helper()
	c, err := sim.New(sim.Options{Seed: seed, Keep: none})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	k := report.Attach(c, report.Options{Title: "Test", Facts: []report.Fact{{Name: "Seed", Value: fmt.Sprint(seed)}}})
	addNodes(t, c, nodes)
	return c, k
}

func addNodes(t testing.TB, c *sim.Cluster, nodes int) {
	t.Helper()
	for i := range nodes {
		_, err := c.AddNode(sim.NodeOptions{
			Name:     fmt.Sprintf("worker-%d", i),
			Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("16"), v1.ResourceMemory: resource.MustParse("64Gi")},
			Runtime: fakecri.Options{Images: []fakecri.Image{
				{Name: "app:1", Present: true},
				{Name: "big:1", Size: 1 << 30, Pull: fakecri.Range{Min: 7 * time.Second, Max: 7 * time.Second}},
				{Name: "other:1", Pull: fakecri.Range{Min: 2 * time.Second, Max: 2 * time.Second}},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// template returns a template.
func template(t testing.TB, c *sim.Cluster, name, image string, edit func(*v1.PodSpec)) *apiserver.Template {
	t.Helper()
	spec := v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: image, Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("128Mi")},
	}}}}
	if edit != nil {
		edit(&spec)
	}
	out, err := c.API().NewTemplate(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func create(t testing.TB, c *sim.Cluster, tmpl *apiserver.Template, name string, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.API().CreateFromTemplate(tmpl, apiserver.Stamp{Name: fmt.Sprintf("%s-%d", name, i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t testing.TB, c *sim.Cluster, until time.Duration) {
	t.Helper()
	if err := c.RunUntil(until); err != nil {
		t.Fatal(err)
	}
}

func writeDir(t testing.TB, r *report.Report, dir string) {
	t.Helper()
	if err := r.WriteDir(func(name string) (io.WriteCloser, error) { return os.Create(filepath.Join(dir, name)) }); err != nil {
		t.Fatal(err)
	}
}

// busyReport is of a cluster in which 200 plain pods start, 40 that pull an image and
// 40 with an init container, all at 30 s.
func busyReport(t testing.TB) *report.Report {
	t.Helper()
	c, k := newCluster(t, 1, 20)
	run(t, c, 30*time.Second)
	create(t, c, template(t, c, "web", "app:1", nil), "web", 200)
	create(t, c, template(t, c, "big", "big:1", nil), "big", 40)
	create(t, c, template(t, c, "init", "app:1", func(s *v1.PodSpec) {
		s.InitContainers = []v1.Container{{Name: "init", Image: "app:1", Command: []string{"sleep", "3"}}}
	}), "init", 40)
	run(t, c, 179*time.Second)
	return k.Report()
}

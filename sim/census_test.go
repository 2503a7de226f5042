package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// censusCluster has one node, a pod that is gone for long, one that is there,
// and one that has just left.
func censusCluster(t *testing.T) (*Cluster, *Node, string) {
	t.Helper()
	c, err := New(Options{Census: true, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	n, err := c.AddNode(NodeOptions{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	var uid string
	for i, name := range []string{"old", "here", "young"} {
		pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		pod.Spec = v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "main", Image: "app:1"}}}
		c.At(time.Duration(i)*time.Second+5*time.Second, func() {
			if _, err := c.API().Apply(pod); err != nil {
				t.Error(err)
			}
		})
	}
	remove := func(at time.Duration, name string) {
		c.At(at, func() {
			if name == "old" {
				uid = string(c.Store().Pod("default", name).UID)
			}
			if err := c.API().Delete(apiserver.KindPod, "default", name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	remove(time.Minute, "old")
	remove(9*time.Minute, "young")
	if err := c.RunUntil(10 * time.Minute); err != nil {
		t.Fatal(err)
	}
	return c, n, uid
}

func TestCensus(t *testing.T) {
	c, n, uid := censusCluster(t)
	census := c.Census()
	if len(census.Leaks) > 0 {
		t.Errorf("leaks: %v", census.Leaks)
	}
	// The last pod's sandbox waits for the garbage collection.
	if census.Pods != 1 || census.Leaving != 1 || census.Containers < 1 || census.Sandboxes < 1 || census.VolumeDirs != 1 || census.Workers != 1 || census.Statuses != 1 || census.Images < 1 || census.ImageRecords < 1 || census.Timers < 5 {
		t.Errorf("%+v", *census)
	}
	dir := "/var/lib/kubelet/pods/" + uid
	if err := n.fs.WriteFile("/var/lib/kubelet/image_manager/pulled/x", []byte(`{"imageRef": "sha256:none"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	g := n.l.NewGroup("leaky")
	for range perNode + perPod + 1 {
		g.After(time.Hour, func() {})
	}
	for range 10 {
		g.NewTimer("few", func() {}).Reset(time.Hour)
	}
	stuck := n.l.NewGroup("daemon")
	stuck.Go("stuck", func(ctx context.Context) { _ = n.l.Sleep(ctx, time.Hour) })
	if err := c.RunUntil(15 * time.Minute); err != nil {
		t.Fatal(err)
	}
	// The kubelet would remove them while it runs.
	for _, d := range []string{dir, "/var/log/pods/default_old_" + uid} {
		if err := n.fs.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, l := range c.Census().Leaks {
		got = append(got, l.String())
	}
	want := []string{
		"n: volume directory " + dir + " of pod default/old",
		"n: log directory /var/log/pods/default_old_" + uid + " of pod default/old",
		"n: image record sha256:none",
		fmt.Sprintf("n: timer (without a name) of group leaky, %d times", perNode+perPod+1),
		"n: task stuck of group daemon, waiting for time sleep since",
	}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Errorf("leak %d is not %s:\n%s", i, w, strings.Join(got, "\n"))
			break
		}
	}
	n.StopKubelet()
	if census := c.Census(); fmt.Sprint(census.Down, census.Leaks) != "[n] []" {
		t.Errorf("without a kubelet: %v %v", census.Down, census.Leaks)
	}
}

// TestCensusOfTheRuntime has the runtime keep what the API does not know.
func TestCensusOfTheRuntime(t *testing.T) {
	c, n, _ := censusCluster(t)
	for _, s := range n.rt.Sandboxes() {
		if s.Pod == "here" {
			c.gone.at[s.UID], c.gone.names[s.UID] = 0, "default/here"
		}
	}
	// As if the API had lost it.
	census := &censusTaker{c: c, out: &Census{}, known: map[string]*v1.Pod{}, gone: map[string]bool{}, onNode: map[string]int{}}
	for uid := range c.gone.at {
		census.gone[uid] = true
	}
	census.node(n)
	kinds := map[string]int{}
	for _, l := range census.out.Leaks {
		kinds[l.What]++
	}
	for _, k := range []string{"sandbox", "container", "volume directory", "log directory", "kubelet"} {
		if kinds[k] == 0 {
			t.Errorf("no %s among %v", k, census.out.Leaks)
		}
	}
}

// TestCensusStaysOnItsNode: what a node's walk looks at is no more in a larger
// cluster, or a census would cost the square of its nodes.
func TestCensusStaysOnItsNode(t *testing.T) {
	visits := func(nodes int) int {
		c, err := New(Options{Census: true, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		first, err := c.AddNode(NodeOptions{Name: "n-0"})
		for i := 1; i < nodes && err == nil; i++ {
			_, err = c.AddNode(NodeOptions{Name: fmt.Sprintf("n-%d", i)})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := c.RunUntil(time.Minute); err != nil {
			t.Fatal(err)
		}
		return len(walkLeaks(first.kubelet, nil).seen) + len(walkLeaks(first.rt, nil).seen)
	}
	if alone, among := visits(1), visits(20); among > alone+20 {
		t.Errorf("the walk of a node looked at %d values, and at %d when it was one of 20", alone, among)
	}
}

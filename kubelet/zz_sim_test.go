package kubelet_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/trace"
)

func TestZZ(t *testing.T) {
	c, err := sim.New(sim.Options{KubeletLogs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n, err := c.AddNode(sim.NodeOptions{Name: "node-0"})
	if err != nil {
		t.Fatal(err)
	}
	c.Records(func(r *trace.Record) {
		if r.Kind == trace.KindLog && os.Getenv("LOGS") == "" {
			return
		}
		fmt.Printf("%9.3f %-7s %-7s %-40s %s %v\n", float64(r.At-c.Start().UnixNano())/1e9, r.Node, r.Kind, r.Object, r.Verb, r.Fields)
	})
	c.At(3*time.Second, func() {
		pod := &v1.Pod{}
		pod.Name, pod.Namespace = "web", "default"
		pod.Spec.Containers = []v1.Container{{Name: "main", Image: "nginx:1"}}
		if _, err := c.Store().Create(c.API().Loop().Now(), pod); err != nil {
			fmt.Println("create", err)
		}
		_ = apiserver.KindPod
	})
	n.At(10*time.Second, func() {
		if err := n.WriteStaticPod("st.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: st}\nspec:\n  containers:\n  - {name: a, image: 'busybox:1'}\n")); err != nil {
			fmt.Println(err)
		}
	})
	n.At(20*time.Second, func() { n.RestartKubelet(3 * time.Second) })
	n.At(30*time.Second, func() { n.Runtime().StopContainerOutside("default/web", "main") })
	n.At(40*time.Second, func() { n.RemoveStaticPod("st.yaml") })
	c.At(60*time.Second, func() {
		c.Store().Delete(c.API().Loop().Now(), apiserver.KindPod, "default", "web", metav1.DeleteOptions{})
	})
	if err := c.RunUntil(100 * time.Second); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%+v\n", n.Kubelet().Stats())
}

func TestZZScale(t *testing.T) {
	if os.Getenv("SCALE") == "" {
		t.Skip()
	}
	nodes := 200
	c, err := sim.New(sim.Options{NoBinder: true, Keep: func(trace.Kind, string, []trace.Field) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := time.Now()
	for i := range nodes {
		if _, err := c.AddNode(sim.NodeOptions{Name: fmt.Sprintf("node-%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	c.At(2*time.Second, func() {
		for i := range nodes {
			for j := range 30 {
				pod := &v1.Pod{}
				pod.Name, pod.Namespace = fmt.Sprintf("p-%d-%d", i, j), "default"
				pod.Spec.NodeName = fmt.Sprintf("node-%d", i)
				pod.Spec.Containers = []v1.Container{{Name: "main", Image: "nginx:1"}}
				if _, err := c.Store().Create(c.API().Loop().Now(), pod); err != nil {
					fmt.Println("create", err)
				}
			}
		}
	})
	if err := c.RunUntil(60 * time.Second); err != nil {
		t.Fatal(err)
	}
	fmt.Println("start-up", time.Since(start), c.PodsByPhase())
	start = time.Now()
	span := 3000 * time.Second
	if err := c.RunUntil(60*time.Second + span); err != nil {
		t.Fatal(err)
	}
	d := time.Since(start)
	fmt.Printf("steady %v  %.0f node-seconds/s\n", d, float64(nodes)*span.Seconds()/d.Seconds())
	fmt.Printf("%+v\n", c.Nodes()[0].Kubelet().Stats())
}

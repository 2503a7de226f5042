package sim_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim"
)

// A cluster from Go, without a scenario file: two nodes, a pod, and a power cut
// that the control plane finds out about when heartbeats stay away.
func Example() {
	c, err := sim.New(sim.Options{Seed: 7})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for _, name := range []string{"left", "right"} {
		if _, err := c.AddNode(sim.NodeOptions{Name: name}); err != nil {
			fmt.Println(err)
			return
		}
	}
	c.At(time.Second, func() {
		_, err := c.API().Create(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: v1.PodSpec{
				NodeName:   "left",
				Containers: []v1.Container{{Name: "app", Image: "web:1"}},
			},
		})
		if err != nil {
			fmt.Println(err)
		}
	})
	left := c.Node("left")
	left.At(time.Minute, func() { left.PowerCut(time.Hour) })

	for _, at := range []time.Duration{30 * time.Second, 2 * time.Minute} {
		if err := c.RunUntil(at); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("after", c.Now())
		fmt.Println("  web is", c.API().Pod("default", "web").Status.Phase)
		for _, n := range c.API().Nodes() {
			if n.Name != "left" {
				continue
			}
			for _, cond := range n.Status.Conditions {
				if cond.Type == v1.NodeReady {
					fmt.Println("  left: Ready is", cond.Status)
				}
			}
		}
	}
	// Output:
	// after 30s
	//   web is Running
	//   left: Ready is True
	// after 2m0s
	//   web is Running
	//   left: Ready is Unknown
}

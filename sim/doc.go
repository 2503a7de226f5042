// Package sim puts a cluster together: nodes, each a loop with a machine, a
// file system, a container runtime (fakecri) and a kubelet, around one API
// (sim/apiserver) and its controllers (sim/controlplane), all driven in virtual
// time by a loop.Engine.
//
//	c, err := sim.New(sim.Options{Seed: 7})
//	n, err := c.AddNode(sim.NodeOptions{Name: "worker"})
//	c.At(time.Second, func() { _, err = c.API().Create(pod) })
//	err = c.RunUntil(time.Minute)
//	defer c.Close()
//
// Times are durations since the start of the run. What acts on the API runs on
// the API's loop (Cluster.At), what acts on a node on the node's (Node.At);
// between runs both may be called directly.
package sim

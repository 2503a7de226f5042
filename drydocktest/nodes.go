package drydocktest

import (
	"encoding/json"
	"time"
)

// Node is a node of the cluster, for what may happen to it.
type Node struct {
	c    *Cluster
	name string
}

// Node returns the node of a name.
func (c *Cluster) Node(name string) Node { return Node{c, name} }

// PowerCut cuts the machine's power for a time, 0 being to the end: all its processes die
// at once. When the power is back it boots.
func (n Node) PowerCut(d time.Duration) {
	n.c.t.Helper()
	n.act("powerCut", "for", d)
}

// Partition cuts the node off from the API for a time, 0 being to the end.
func (n Node) Partition(d time.Duration) {
	n.c.t.Helper()
	n.fault(map[string]any{"node": n.name, "partition": span(d)})
}

// span is a mapping with how long something takes.
func span(d time.Duration) map[string]any {
	if d == 0 {
		return map[string]any{}
	}
	return map[string]any{"for": d.String()}
}

// act does something to the node.
func (n Node) act(what, field string, d time.Duration) {
	n.c.t.Helper()
	args := map[string]any{"node": n.name}
	if d != 0 {
		args[field] = d.String()
	}
	n.c.mustAct(map[string]any{what: args})
}

func (n Node) fault(f map[string]any) {
	n.c.t.Helper()
	n.c.mustAct(map[string]any{"fault": f})
}

// mustAct does what a scenario's timeline can do, and fails the test if it can't be done.
func (c *Cluster) mustAct(action map[string]any) {
	c.t.Helper()
	data, err := json.Marshal(action)
	if err == nil {
		err = c.act(string(data))
	}
	if err != nil {
		c.t.Fatalf("drydocktest: %v", err)
	}
}

// Drain empties the node as kubectl drain does, with --force, --ignore-daemonsets and
// --delete-emptydir-data. It returns when that has begun.
func (n Node) Drain() {
	n.c.t.Helper()
	n.c.mustAct(map[string]any{"drain": map[string]any{"node": n.name, "force": true, "ignoreDaemonSets": true, "deleteEmptyDirData": true}})
}

// Cordon has no new pods come to the node, Uncordon again.
func (n Node) Cordon() { n.c.t.Helper(); n.act("cordon", "", 0) }

// Uncordon ends Cordon.
func (n Node) Uncordon() { n.c.t.Helper(); n.act("uncordon", "", 0) }

// Reboot boots the node anew.
func (n Node) Reboot() { n.c.t.Helper(); n.act("reboot", "", 0) }

// RestartKubelet ends the kubelet and starts it again.
func (n Node) RestartKubelet() { n.c.t.Helper(); n.act("restartKubelet", "", 0) }

// Pressure has the machine itself use so much of something from now on: of memory, cpu,
// pids, nodefs, nodefsInodes, imagefs or imagefsInodes, such as ("memory", "7Gi").
func (n Node) Pressure(what, used string) {
	n.c.t.Helper()
	n.c.mustAct(map[string]any{"usage": map[string]any{"node": n.name, what: used}})
}

// Do does what the timeline of a scenario can do (docs/scenarios.md), such as
//
//	c.Do(`{scale: {kind: Deployment, name: web, replicas: 5}}`)
func (c *Cluster) Do(action string) {
	c.t.Helper()
	if err := c.act(action); err != nil {
		c.t.Fatalf("drydocktest: %v", err)
	}
}

package expect

import "strings"

// Function tells of a function that expressions can call. The parts of drydock docs that are
// called "expressions" list them.
type Function struct {
	// Signature is its name, arguments and result: "pods(string) list(v1.Pod)".
	Signature string
	// Doc says what it returns.
	Doc string
}

// Functions lists the functions that expressions have beside CEL's own and
// those of Kubernetes' libraries.
func Functions() []Function {
	var out []Function
	for _, f := range stateFuncs() {
		if f.kind != "" {
			continue // told in one line per kind
		}
		var args []string
		for _, a := range f.args {
			args = append(args, strings.ReplaceAll(a.String(), "google.protobuf.Timestamp", "timestamp"))
		}
		result := strings.ReplaceAll(f.result.String(), "google.protobuf.Duration", "duration")
		out = append(out, Function{f.name + "(" + strings.Join(args, ", ") + ") " + result, f.doc})
	}
	for _, k := range objectKinds() {
		out = append(out, k.function())
	}
	return append(out,
		Function{"restarts(v1.Pod) int", "how often containers of the pod restarted"},
		Function{"ready(v1.Pod) bool", "the pod's condition Ready is True"},
		Function{"ready(v1.Node) bool", "the node's condition Ready is True"},
		Function{"ready(a Deployment, ReplicaSet, StatefulSet or DaemonSet) bool", "its controller has seen its spec, and it has as many ready replicas as it wants, all of the newest template"},
		Function{"condition(v1.Pod, string) v1.PodCondition", "the pod's condition of that type, or an empty one"},
		Function{"condition(v1.Node, string) v1.NodeCondition", "the node's condition of that type, or an empty one"},
		Function{"condition(any of a kind that has conditions, string)", "the condition of that type of a Deployment, a Job and so on, or an empty one"},
		Function{"containerStatus(v1.Pod, string) v1.ContainerStatus", "the status of the pod's container, init container or ephemeral container of that name, or an empty one"},
		Function{"exists(any) bool", "false of what is absent: an object that is not there, a field or key that is not set"},
	)
}

// TypeFields lists the fields of one of the types that only expressions have:
// CRICall, Transition, ContainerTransition, NodeTransition, NodeUsage,
// FilesystemUsage, Cgroup, ContainerResources, HTTPAnswer, PodResources.
func (c *Compiler) TypeFields(name string) []string {
	if i := c.ts.byName["drydock."+name]; i != nil {
		return i.names
	}
	return nil
}

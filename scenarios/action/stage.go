package action

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet/noeffect"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

// Stage is what an action acts upon: the cluster, and the run that it is part of.
type Stage interface {
	Cluster() *sim.Cluster
	// Host is the machine outside that is the only node of a run in real time;
	// nil in a simulation.
	Host() *sim.Host
	// Nodes are the names of the scenario's nodes.
	Nodes() []string
	// Seed is the run's.
	Seed() uint64
	// Later has something done at a time, between runs of the engine as all of a
	// timeline. Its error ends the run.
	Later(at time.Duration, do func() error)
	// Fail notes the error of something that the action began and that is not
	// over when Do returns. It fails the scenario. who is whom it is about; ""
	// means the action.
	Fail(who string, err error)
	// Warn notes something once for the whole run.
	Warn(text string)
	// Missed warns that something which the action names was not there.
	Missed(what string)
	// AtEnd has something done once the run has come to its end, if it has one.
	AtEnd(do func())
}

// note records what the timeline does to something: a line of the timeline.
func note(s Stage, object, verb string, fields ...trace.Field) {
	s.Cluster().Recorder().Record(trace.KindAction, object, verb, fields...)
}

// objectName names an API object as records do: "pod default/web".
func objectName(kind, namespace, name string) string {
	if namespace == "" {
		return strings.ToLower(kind) + " " + name
	}
	return strings.ToLower(kind) + " " + namespace + "/" + name
}

// onNodes does something on each of the nodes that are meant.
func onNodes(s Stage, verb string, nodes value.Nodes, do func(*sim.Node) error) error {
	for _, name := range nodes.Select(s.Nodes()) {
		note(s, "node "+name, verb)
		if err := do(s.Cluster().Node(name)); err != nil {
			return err
		}
	}
	return nil
}

// onNodesOver is onNodes with the nodes one after another, spread over a time.
func onNodesOver(s Stage, verb string, nodes value.Nodes, over time.Duration, do func(*sim.Node) error) error {
	if over == 0 {
		return onNodes(s, verb, nodes, do)
	}
	names, now := nodes.Select(s.Nodes()), s.Cluster().Now()
	for i, name := range names {
		s.Later(now+over*time.Duration(i)/time.Duration(len(names)), func() error {
			note(s, "node "+name, verb)
			return do(s.Cluster().Node(name))
		})
	}
	return nil
}

// during records a fault that has begun, and ends it after its time; 0 means
// never. node is a node, a component, or "" for the API itself.
func during(s Stage, what, node string, d time.Duration, end func()) {
	object := "api"
	switch {
	case s.Cluster().Node(node) != nil:
		object = "node " + node
	case node != "":
		object = "component " + node
	}
	record := func(verb string) { s.Cluster().Recorder().Record(trace.KindFault, object, what+verb) }
	record(" begins")
	if d == 0 {
		return
	}
	s.Later(s.Cluster().Now()+d, func() error {
		end()
		record(" ends")
		return nil
	})
}

// namesOf returns the name, or for a pattern those of all that match it: a warning says that
// there are none.
func namesOf[O interface{ GetName() string }](s Stage, kind, namespace, name string, all func() ([]O, error)) ([]string, error) {
	if !strings.ContainsAny(name, "*?") {
		return []string{name}, nil
	}
	list, err := all()
	var names []string
	for _, o := range list {
		if value.Matches(name, o.GetName()) {
			names = append(names, o.GetName())
		}
	}
	if err == nil && len(names) == 0 {
		what := fmt.Sprintf("no %s matches %q", kind, name)
		if namespace != "" {
			what = fmt.Sprintf("no %s in the namespace %s matches %q", kind, namespace, name)
		}
		s.Missed(what)
	}
	return names, err
}

// warnUnsupported warns of what a pod asks for and the kubelet does not act on.
func warnUnsupported(s Stage, pod *v1.Pod) {
	for _, what := range noeffect.Unsupported(pod) {
		s.Warn(fmt.Sprintf("pod %s/%s: %s", pod.Namespace, pod.Name, what))
	}
}

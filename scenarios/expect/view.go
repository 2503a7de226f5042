package expect

import (
	"fmt"
	"reflect"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// view is the cluster at one time, as a value that the functions of
// expressions get. It is one value for a run; now moves on, and the state behind it changes.
type view struct {
	ts    *typeSystem
	state State
	hist  *history
	now   time.Duration
	list  listConversions
	// empty is what stands for what is not there.
	emptyPod, emptyNode, emptyLease ref.Val
}

// listConversions are how the elements of each list are seen from CEL, worked
// out once. Types are looked up once, not for each list.
type listConversions struct {
	pods, nodes, events, leases, cri, trans, ctrans, ntrans, cgroups, podResources *conversion
	objects                                                                        map[Kind]*conversion
}

// newView returns a view of a run's state; it lives as long as the run, and its
// time moves on.
func newView(ts *typeSystem, state State, hist *history) *view {
	s := &view{ts: ts, state: state, hist: hist}
	s.list = listConversions{
		pods: ts.pointerTo(reflect.TypeFor[v1.Pod]()), nodes: ts.pointerTo(reflect.TypeFor[v1.Node]()),
		events: ts.pointerTo(reflect.TypeFor[v1.Event]()), leases: ts.pointerTo(reflect.TypeFor[coordinationv1.Lease]()),
		cri: ts.pointerTo(reflect.TypeFor[CRICall]()), trans: ts.pointerTo(reflect.TypeFor[Transition]()),
		ctrans: ts.pointerTo(reflect.TypeFor[ContainerTransition]()), ntrans: ts.pointerTo(reflect.TypeFor[NodeTransition]()),
		cgroups: ts.pointerTo(reflect.TypeFor[Cgroup]()), podResources: ts.pointerTo(reflect.TypeFor[PodResources]()), objects: map[Kind]*conversion{},
	}
	for _, k := range objectKinds() {
		s.list.objects[k.kind] = ts.pointerTo(k.goType)
	}
	s.emptyPod = ts.NativeToValue(ts.byType[reflect.TypeFor[v1.Pod]()].zero)
	s.emptyNode = ts.NativeToValue(ts.byType[reflect.TypeFor[v1.Node]()].zero)
	s.emptyLease = ts.NativeToValue(ts.byType[reflect.TypeFor[coordinationv1.Lease]()].zero)
	return s
}

// pointerTo converts elements of a slice of pointers to a known struct.
func (s *typeSystem) pointerTo(t reflect.Type) *conversion {
	i := s.byType[t]
	return &conversion{i.typ, func(v reflect.Value) any {
		if v.IsNil() {
			return i.zero
		}
		return v.Interface()
	}}
}

// slice shows a Go slice to CEL without copying it.
func (s *view) slice(c *conversion, v any) ref.Val { return &listVal{s.ts, c, reflect.ValueOf(v)} }

// text is the value of a text; the checker has seen that it is one.
func text(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

// pods is pods(), all pods in the state's order.
func (s *view) pods(_ []ref.Val) ref.Val { return s.slice(s.list.pods, s.state.Pods()) }

// podsIn is pods("namespace").
func (s *view) podsIn(args []ref.Val) ref.Val {
	ns := text(args[0])
	out := lists.Filter(s.state.Pods(), func(p *v1.Pod) bool { return p.Namespace == ns })
	return s.slice(s.list.pods, out)
}

// findPod returns the pod of "namespace/name", or nil.
func (s *view) findPod(v ref.Val) *v1.Pod {
	k := podKey(text(v))
	return s.state.Pod(k.ns, k.name)
}

// pod is pod("namespace/name"); an absent one reads as an empty one.
func (s *view) pod(args []ref.Val) ref.Val {
	if p := s.findPod(args[0]); p != nil {
		return s.ts.NativeToValue(p)
	}
	return s.emptyPod
}

// restarts is restarts("namespace/name"), the sum over the containers.
func (s *view) restarts(args []ref.Val) ref.Val {
	if p := s.findPod(args[0]); p != nil {
		return types.Int(podRestarts(p))
	}
	return types.IntZero
}

// nodes is nodes().
func (s *view) nodes(_ []ref.Val) ref.Val { return s.slice(s.list.nodes, s.state.Nodes()) }

// node is node("name").
func (s *view) node(args []ref.Val) ref.Val {
	if n := s.state.Node(text(args[0])); n != nil {
		return s.ts.NativeToValue(n)
	}
	return s.emptyNode
}

// events is events().
func (s *view) events(_ []ref.Val) ref.Val { return s.slice(s.list.events, s.state.Events()) }

// eventsAbout is events("namespace/name") or events("node").
func (s *view) eventsAbout(args []ref.Val) ref.Val {
	name := text(args[0])
	out := lists.Filter(s.state.Events(), func(e *v1.Event) bool { return isAbout(e, name) })
	return s.slice(s.list.events, out)
}

// isAbout reports whether an event is about "namespace/name", or about the node,
// or the pod in the namespace default, of that name.
func isAbout(e *v1.Event, name string) bool {
	o := &e.InvolvedObject
	if o.Kind == "Node" {
		return o.Name == name
	}
	k := podKey(name)
	return o.Name == k.name && o.Namespace == k.ns
}

// leases is leases().
func (s *view) leases(_ []ref.Val) ref.Val { return s.slice(s.list.leases, s.state.Leases()) }

// lease is lease("node"), which the kubelet renews.
func (s *view) lease(args []ref.Val) ref.Val {
	name := text(args[0])
	if l := s.state.Object(KindLease, v1.NamespaceNodeLease, name); l != nil {
		return s.ts.NativeToValue(l)
	}
	return s.emptyLease
}

// criCalls and time are the functions of those names.
func (s *view) criCalls(_ []ref.Val) ref.Val { return s.slice(s.list.cri, s.state.CRICalls()) }
func (s *view) time(_ []ref.Val) ref.Val     { return types.Duration{Duration: s.now} }

// since is the time from the scenario's start to a timestamp; none for one that
// is not set.
func (s *view) since(args []ref.Val) ref.Val {
	t, ok := args[0].(types.Timestamp)
	if !ok || t.IsZero() {
		return types.Duration{}
	}
	return types.Duration{Duration: t.Sub(s.state.Start())}
}

// phases are a pod's phases in their order, each as often as it was entered.
func (s *view) phases(args []ref.Val) ref.Val {
	var out []string
	for _, t := range s.hist.pods[podKey(text(args[0]))].transitions() {
		// A pod that is gone still has its last phase, which it doesn't enter
		// again.
		if !t.Gone && t.Phase != "" && (len(out) == 0 || out[len(out)-1] != t.Phase) {
			out = append(out, t.Phase)
		}
	}
	return types.NewStringList(s.ts, out)
}

// transitions are all that was seen of a pod.
func (s *view) transitions(args []ref.Val) ref.Val {
	return s.slice(s.list.trans, s.hist.pods[podKey(text(args[0]))].transitions())
}

// containerTransitions are all that was seen of a container.
func (s *view) containerTransitions(args []ref.Val) ref.Val {
	return s.slice(s.list.ctrans, s.hist.pods[podKey(text(args[0]))].container(text(args[1])))
}

// nodeTransitions are the changes of a node's conditions.
func (s *view) nodeTransitions(args []ref.Val) ref.Val {
	return s.slice(s.list.ntrans, s.hist.nodes[text(args[0])])
}

// reflectIsZero reports whether all fields are empty.
func reflectIsZero(ptr any) bool { return reflect.ValueOf(ptr).Elem().IsZero() }

// What follows makes a view a value that can be passed on, and nothing else.

// ConvertToNative and what follows make the view a value, which no expression
// can see.
func (s *view) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("no conversion from the state to %v", t)
}
func (s *view) ConvertToType(ref.Type) ref.Val { return types.NewErr("the state has no other type") }
func (s *view) Equal(other ref.Val) ref.Val    { return types.Bool(other == ref.Val(s)) }
func (s *view) Type() ref.Type                 { return stateType }
func (s *view) Value() any                     { return s }

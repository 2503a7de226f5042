package expect

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/cel/library"
)

var (
	podType       = types.NewObjectType("v1.Pod")
	nodeType      = types.NewObjectType("v1.Node")
	eventType     = types.NewObjectType("v1.Event")
	leaseType     = types.NewObjectType("coordination.v1.Lease")
	podCondType   = types.NewObjectType("v1.PodCondition")
	nodeCondType  = types.NewObjectType("v1.NodeCondition")
	cStatusType   = types.NewObjectType("v1.ContainerStatus")
	criCallType   = types.NewObjectType("drydock.CRICall")
	transType     = types.NewObjectType("drydock.Transition")
	cTransType    = types.NewObjectType("drydock.ContainerTransition")
	nodeTransType = types.NewObjectType("drydock.NodeTransition")
	nodeUsageType = types.NewObjectType("drydock.NodeUsage")
	cgroupType    = types.NewObjectType("drydock.Cgroup")
	answerType    = types.NewObjectType("drydock.HTTPAnswer")
	podResType    = types.NewObjectType("drydock.PodResources")
	resourcesType = types.NewObjectType("drydock.ContainerResources")
	// stateType is the type of the hidden first argument of functions that
	// read the cluster.
	stateType = types.NewOpaqueType("drydock.state")
)

// stateVar is the name of the hidden variable; no expression can spell it.
const stateVar = "@state"

// reads says what of the cluster a function reads. They are bits, so an expression's are added
// up.
type reads uint16

const (
	readsPods reads = 1 << iota
	readsNodes
	readsEvents
	readsLeases
	readsCRI
	readsTime
	readsPodHistory
	readsNodeHistory
	readsUsage
	readsCgroups
	readsResources
	readsKubelet
	readsPodResources
	readsObjects // of the function's kind
	readsNamed   // only the object that its first argument names
)

// stateFunc is a function of expressions that reads the cluster. Each is two functions to CEL:
// one that people write, one that also gets the state.
type stateFunc struct {
	name   string
	args   []*types.Type
	result *types.Type
	reads  reads
	kind   Kind // with readsObjects
	doc    string
	impl   func(s *view, args []ref.Val) ref.Val
}

// id is the one overload of the hidden function. Overloads differ by their arguments' types.
func (f *stateFunc) id() string {
	var b strings.Builder
	b.WriteString("state_" + f.name)
	for _, a := range f.args {
		b.WriteString("_" + strings.ReplaceAll(a.String(), ".", "_"))
	}
	return b.String()
}

// stateFuncs are the functions that read the cluster, with what each reads: that
// decides which changes have an expression evaluated again. functions.go documents the same list.
func stateFuncs() []*stateFunc {
	str, list := types.StringType, types.NewListType
	return append([]*stateFunc{
		{"pods", nil, list(podType), readsPods, "", "all pods", (*view).pods},
		{"pods", []*types.Type{str}, list(podType), readsPods, "", "the pods of a namespace", (*view).podsIn},
		{"pod", []*types.Type{str}, podType, readsPods | readsNamed, "", "the pod \"namespace/name\", or an empty one", (*view).pod},
		{"nodes", nil, list(nodeType), readsNodes, "", "all nodes", (*view).nodes},
		{"node", []*types.Type{str}, nodeType, readsNodes | readsNamed, "", "the node of that name, or an empty one", (*view).node},
		{"events", nil, list(eventType), readsEvents, "", "all events", (*view).events},
		{"events", []*types.Type{str}, list(eventType), readsEvents | readsNamed, "", "the events about \"namespace/name\" of a pod, or about a node's name", (*view).eventsAbout},
		{"leases", nil, list(leaseType), readsLeases, "", "all leases", (*view).leases},
		{"lease", []*types.Type{str}, leaseType, readsLeases | readsNamed, "", "the lease of the node of that name, or an empty one", (*view).lease},
		{"criCalls", nil, list(criCallType), readsCRI, "", "all calls of the container runtime that are over; with at only", (*view).criCalls},
		{"usage", []*types.Type{str}, nodeUsageType, readsUsage, "", "what the machine of the node of that name uses; with at only", (*view).nodeUsage},
		{"cgroups", []*types.Type{str}, list(cgroupType), readsCgroups, "", "the cgroups of the node of that name, but for those of containers; with at only", (*view).cgroups},
		{"containerResources", []*types.Type{str, str}, resourcesType, readsResources, "", "what the runtime was told to give the pod's container of that name, or an empty one; with at only", (*view).containerResources},
		{"podResources", []*types.Type{str}, list(podResType), readsPodResources, "", "what the containers of the node's pods have for themselves, as its kubelet tells it by the pod resources API; with at only", (*view).podResources},
		{"logs", []*types.Type{str, str}, str, readsKubelet, "", "what the container of that name of the pod \"namespace/name\" wrote, in its last run; with at only", (*view).logs},
		{"http", []*types.Type{str, str}, answerType, readsKubelet, "", "the answer of the node's kubelet to the timeline's last get of that path, or an empty one; with at only", (*view).http},
		{"metric", []*types.Type{str, str}, types.DoubleType, readsKubelet, "", "the metric of that name of the node's kubelet: the sum of its samples, of a histogram how many values; with at only", (*view).metric},
		{"metric", []*types.Type{str, str, types.NewMapType(str, str)}, types.DoubleType, readsKubelet, "", "the same of the samples that have these labels; with at only", (*view).metricOf},
		{"time", nil, types.DurationType, readsTime, "", "the virtual time since the start of the run", (*view).time},
		{"since", []*types.Type{types.TimestampType}, types.DurationType, 0, "", "a timestamp as a span since the start of the run", (*view).since},
		{"phases", []*types.Type{str}, list(str), readsPodHistory | readsNamed, "", "the phases that the pod \"namespace/name\" went through", (*view).phases},
		{"transitions", []*types.Type{str}, list(transType), readsPodHistory | readsNamed, "", "the changes of the pod's status, with their times", (*view).transitions},
		{"containerTransitions", []*types.Type{str, str}, list(cTransType), readsPodHistory | readsNamed, "", "the changes of a container's state, with their times", (*view).containerTransitions},
		{"nodeTransitions", []*types.Type{str}, list(nodeTransType), readsNodeHistory | readsNamed, "", "the changes of the node's conditions, with their times", (*view).nodeTransitions},
		{"restarts", []*types.Type{str}, types.IntType, readsPods | readsNamed, "", "how often containers of the pod \"namespace/name\" restarted", (*view).restarts},
	}, objectFuncs()...)
}

// newEnv makes the environment that expressions are compiled in. Functions of objects alone need
// no state, and are bound here.
func newEnv(ts *typeSystem, funcs []*stateFunc) (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.CustomTypeProvider(ts),
		cel.CustomTypeAdapter(ts),
		// Without the calls of macros, expressions could not be printed as they
		// were written.
		cel.EnableMacroCallTracking(),
		cel.CrossTypeNumericComparisons(true),
		// Most of what follows is in Kubernetes' base environment, too
		// (k8s.io/apiserver/pkg/cel/environment).
		cel.HomogeneousAggregateLiterals(),
		ext.Strings(ext.StringsVersion(2)),
		ext.Sets(),
		ext.Math(),
		library.Lists(),
		library.Regex(),
		library.Quantity(),
		library.URLs(),
	}
	for _, f := range funcs {
		// The visible function is only declared: the compiler replaces calls
		// of it by calls of the hidden one, which also gets the state.
		hidden := append([]*types.Type{stateType}, f.args...)
		impl := f.impl
		opts = append(opts,
			cel.Function(f.name, cel.Overload(f.id()+"_visible", f.args, f.result)),
			cel.Function("@"+f.name, cel.Overload(f.id(), hidden, f.result, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				s, ok := args[0].(*view)
				if !ok {
					return types.NewErr("no state")
				}
				return impl(s, args[1:])
			}))))
	}
	str := types.StringType
	opts = append(opts,
		cel.Function("condition", append(conditionFuncs(ts),
			cel.Overload("condition_pod", []*types.Type{podType, str}, podCondType, cel.BinaryBinding(podCondition(ts))),
			cel.Overload("condition_node", []*types.Type{nodeType, str}, nodeCondType, cel.BinaryBinding(nodeCondition(ts))))...),
		cel.Function("ready", append(readyFuncs(),
			cel.Overload("ready_pod", []*types.Type{podType}, types.BoolType, cel.UnaryBinding(func(v ref.Val) ref.Val { return types.Bool(PodReady(v.Value().(*v1.Pod))) })),
			cel.Overload("ready_node", []*types.Type{nodeType}, types.BoolType, cel.UnaryBinding(nodeReady)))...),
		cel.Function("restarts", cel.Overload("restarts_pod", []*types.Type{podType}, types.IntType, cel.UnaryBinding(func(v ref.Val) ref.Val { return types.Int(podRestarts(v.Value().(*v1.Pod))) }))),
		cel.Function("containerStatus", cel.Overload("container_status_pod", []*types.Type{podType, str}, cStatusType, cel.BinaryBinding(containerStatus(ts)))),
		cel.Function("exists", cel.Overload("exists_dyn", []*types.Type{types.DynType}, types.BoolType, cel.UnaryBinding(exists))),
	)
	return cel.NewEnv(opts...)
}

// podCondition returns a pod's condition of a type; an empty one where there is
// none. An empty condition has no status, so comparisons with it are false.
func podCondition(ts *typeSystem) func(a, b ref.Val) ref.Val {
	// One for all calls, because values are never written to.
	none := ts.NativeToValue(&v1.PodCondition{})
	return func(a, b ref.Val) ref.Val {
		p, want := a.Value().(*v1.Pod), string(b.(types.String))
		for i := range p.Status.Conditions {
			if string(p.Status.Conditions[i].Type) == want {
				return ts.NativeToValue(&p.Status.Conditions[i])
			}
		}
		return none
	}
}

// nodeCondition returns a node's condition of a type.
func nodeCondition(ts *typeSystem) func(a, b ref.Val) ref.Val {
	none := ts.NativeToValue(&v1.NodeCondition{})
	return func(a, b ref.Val) ref.Val {
		n, want := a.Value().(*v1.Node), string(b.(types.String))
		for i := range n.Status.Conditions {
			if string(n.Status.Conditions[i].Type) == want {
				return ts.NativeToValue(&n.Status.Conditions[i])
			}
		}
		return none
	}
}

// containerStatus returns the status of a pod's container, of whatever kind that
// is. Names are unique over all three lists, as the API has it.
func containerStatus(ts *typeSystem) func(a, b ref.Val) ref.Val {
	none := ts.NativeToValue(&v1.ContainerStatus{})
	return func(a, b ref.Val) ref.Val {
		p, want := a.Value().(*v1.Pod), string(b.(types.String))
		for _, l := range statusLists(p) {
			for i := range l {
				if l[i].Name == want {
					return ts.NativeToValue(&l[i])
				}
			}
		}
		return none
	}
}

// statusLists are a pod's container statuses: ordinary, init, ephemeral.
func statusLists(p *v1.Pod) [3][]v1.ContainerStatus {
	return [3][]v1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses}
}

// podRestarts is the sum over all containers.
func podRestarts(p *v1.Pod) int {
	n := 0
	for _, l := range statusLists(p) {
		for i := range l {
			n += int(l[i].RestartCount)
		}
	}
	return n
}

// exists is false of what is absent: an empty object, text, list or map, and a
// time that is not set. Fields never come here: exists(p.x) is has(p.x). An object that stands
// for an absent one is told by its empty name.
func exists(v ref.Val) ref.Val {
	switch x := v.(type) {
	case *objVal:
		return types.Bool(!isZeroObject(x))
	case types.String:
		return types.Bool(x != "")
	case types.Timestamp:
		return types.Bool(!x.IsZero())
	case *listVal:
		return types.Bool(x.v.Len() > 0)
	case *mapVal:
		return types.Bool(x.v.Len() > 0)
	case types.Null:
		return types.False
	}
	return types.True
}

// isZeroObject reports whether an object is the empty one that stands for an
// absent one.
func isZeroObject(o *objVal) bool {
	// An object of the API has a name, so there is no need to look at all fields.
	if x, ok := o.ptr.(metav1.Object); ok {
		return x.GetName() == ""
	}
	return reflectIsZero(o.ptr)
}

// podKey splits "namespace/name"; a name alone is in the namespace default. The form is that of
// client-go's cache keys.
func podKey(s string) objKey {
	if ns, name, ok := strings.Cut(s, "/"); ok {
		return objKey{ns, name}
	}
	return objKey{"default", s}
}

// objKey names an object of one kind.
type objKey struct{ ns, name string }

// String is "namespace/name", or the name of what has no namespace.
func (k objKey) String() string {
	if k.ns == "" {
		return k.name
	}
	return k.ns + "/" + k.name
}

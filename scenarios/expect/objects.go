package expect

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of objects that controllers look after; [State.Objects] lists them.
const (
	KindDeployment              Kind = "deployment"              // *appsv1.Deployment
	KindReplicaSet              Kind = "replicaSet"              // *appsv1.ReplicaSet
	KindStatefulSet             Kind = "statefulSet"             // *appsv1.StatefulSet
	KindDaemonSet               Kind = "daemonSet"               // *appsv1.DaemonSet
	KindControllerRevision      Kind = "controllerRevision"      // *appsv1.ControllerRevision
	KindJob                     Kind = "job"                     // *batchv1.Job
	KindCronJob                 Kind = "cronJob"                 // *batchv1.CronJob
	KindPodDisruptionBudget     Kind = "podDisruptionBudget"     // *policyv1.PodDisruptionBudget
	KindHorizontalPodAutoscaler Kind = "horizontalPodAutoscaler" // *autoscalingv2.HorizontalPodAutoscaler
	KindEndpointSlice           Kind = "endpointSlice"           // *discoveryv1.EndpointSlice
	KindService                 Kind = "service"                 // *v1.Service
	KindNamespace               Kind = "namespace"               // *v1.Namespace
	KindPersistentVolumeClaim   Kind = "persistentVolumeClaim"   // *v1.PersistentVolumeClaim
	KindPersistentVolume        Kind = "persistentVolume"        // *v1.PersistentVolume
	KindResourceClaim           Kind = "resourceClaim"           // *resourcev1.ResourceClaim
	KindResourceSlice           Kind = "resourceSlice"           // *resourcev1.ResourceSlice
	KindVolumeAttachment        Kind = "volumeAttachment"        // *storagev1.VolumeAttachment
	KindCSINode                 Kind = "csiNode"                 // *storagev1.CSINode
	// KindCertificateSigningRequest is of *certificatesv1.CertificateSigningRequest.
	KindCertificateSigningRequest Kind = "certificateSigningRequest"
	// KindPodCertificateRequest is of *certificatesv1beta1.PodCertificateRequest.
	KindPodCertificateRequest Kind = "podCertificateRequest"
)

// objectKind is a kind whose objects expressions reach by a pair of functions:
// all of them, those of a namespace, one by name. A new kind is a row of objectKinds, and what
// State.Objects returns for it.
type objectKind struct {
	kind     Kind
	one, all string // the functions' names
	words    string // in documentation, plural
	goType   reflect.Type
	cluster  bool // its objects are in no namespace
}

// Kinds are the kinds that State.Objects lists; pods, nodes, events and leases have methods of
// their own.
func Kinds() []Kind {
	var out []Kind
	for _, k := range objectKinds() {
		out = append(out, k.kind)
	}
	return out
}

// typ is the kind's type in expressions.
func (k *objectKind) typ() *types.Type { return types.NewObjectType(typeName(k.goType)) }

// objectKinds are the kinds that are read through State.Objects: with a function
// for all of them and one for one. The list is made at each call, which only happens while
// compiling and beginning.
func objectKinds() []objectKind {
	return []objectKind{
		{KindDeployment, "deployment", "deployments", "Deployments", reflect.TypeFor[appsv1.Deployment](), false},
		{KindReplicaSet, "replicaSet", "replicaSets", "ReplicaSets", reflect.TypeFor[appsv1.ReplicaSet](), false},
		{KindStatefulSet, "statefulSet", "statefulSets", "StatefulSets", reflect.TypeFor[appsv1.StatefulSet](), false},
		{KindDaemonSet, "daemonSet", "daemonSets", "DaemonSets", reflect.TypeFor[appsv1.DaemonSet](), false},
		{KindControllerRevision, "controllerRevision", "controllerRevisions", "ControllerRevisions", reflect.TypeFor[appsv1.ControllerRevision](), false},
		{KindJob, "job", "jobs", "Jobs", reflect.TypeFor[batchv1.Job](), false},
		{KindCronJob, "cronJob", "cronJobs", "CronJobs", reflect.TypeFor[batchv1.CronJob](), false},
		{KindPodDisruptionBudget, "pdb", "pdbs", "PodDisruptionBudgets", reflect.TypeFor[policyv1.PodDisruptionBudget](), false},
		{KindHorizontalPodAutoscaler, "hpa", "hpas", "HorizontalPodAutoscalers", reflect.TypeFor[autoscalingv2.HorizontalPodAutoscaler](), false},
		{KindEndpointSlice, "endpointSlice", "endpointSlices", "EndpointSlices", reflect.TypeFor[discoveryv1.EndpointSlice](), false},
		{KindService, "service", "services", "Services", reflect.TypeFor[v1.Service](), false},
		{KindNamespace, "ns", "namespaces", "Namespaces", reflect.TypeFor[v1.Namespace](), true},
		{KindPersistentVolumeClaim, "persistentVolumeClaim", "persistentVolumeClaims", "PersistentVolumeClaims", reflect.TypeFor[v1.PersistentVolumeClaim](), false},
		{KindPersistentVolume, "persistentVolume", "persistentVolumes", "PersistentVolumes", reflect.TypeFor[v1.PersistentVolume](), true},
		{KindResourceClaim, "resourceClaim", "resourceClaims", "ResourceClaims", reflect.TypeFor[resourcev1.ResourceClaim](), false},
		{KindResourceSlice, "resourceSlice", "resourceSlices", "ResourceSlices", reflect.TypeFor[resourcev1.ResourceSlice](), true},
		{KindVolumeAttachment, "volumeAttachment", "volumeAttachments", "VolumeAttachments", reflect.TypeFor[storagev1.VolumeAttachment](), true},
		{KindCSINode, "csiNode", "csiNodes", "CSINodes", reflect.TypeFor[storagev1.CSINode](), true},
		{KindCertificateSigningRequest, "certificateSigningRequest", "certificateSigningRequests", "CertificateSigningRequests", reflect.TypeFor[certificatesv1.CertificateSigningRequest](), true},
		{KindPodCertificateRequest, "podCertificateRequest", "podCertificateRequests", "PodCertificateRequests", reflect.TypeFor[certificatesv1beta1.PodCertificateRequest](), false},
	}
}

// objectFuncs are the functions of those kinds.
func objectFuncs() []*stateFunc {
	str, list := types.StringType, types.NewListType
	var out []*stateFunc
	for _, k := range objectKinds() {
		out = append(out,
			&stateFunc{name: k.all, result: list(k.typ()), reads: readsObjects, kind: k.kind, impl: func(s *view, _ []ref.Val) ref.Val { return s.objects(k.kind, "") }},
			&stateFunc{name: k.one, args: []*types.Type{str}, result: k.typ(), reads: readsObjects | readsNamed, kind: k.kind,
				impl: func(s *view, args []ref.Val) ref.Val { return s.object(&k, text(args[0])) }})
		if !k.cluster {
			out = append(out, &stateFunc{name: k.all, args: []*types.Type{str}, result: list(k.typ()), reads: readsObjects, kind: k.kind,
				impl: func(s *view, args []ref.Val) ref.Val { return s.objects(k.kind, text(args[0])) }})
		}
	}
	return out
}

// function tells of the kind's functions.
func (k *objectKind) function() Function {
	// Every kind's plural is its name and an s.
	one := k.words[:len(k.words)-1]
	if k.cluster {
		return Function{fmt.Sprintf("%s(), %s(string)", k.all, k.one), fmt.Sprintf("all %s (%s); the one of that name, or an empty one", k.words, k.typ())}
	}
	return Function{
		fmt.Sprintf("%s(), %s(string), %s(string)", k.all, k.all, k.one),
		fmt.Sprintf("all %s (%s); those of a namespace; the %s \"namespace/name\", or an empty one", k.words, k.typ(), one),
	}
}

// key is the key of the object that a name in an expression means.
func (k *objectKind) key(name string) objKey {
	if k.cluster {
		return objKey{name: name}
	}
	return podKey(name)
}

// kindByFunc returns the kind whose objects the function lists.
func kindByFunc(name string) (Kind, bool) {
	for _, k := range objectKinds() {
		if k.all == name {
			return k.kind, true
		}
	}
	return "", false
}

// namedKey is the key that a name means as a kind's.
func namedKey(kind Kind, name string) objKey {
	for _, k := range objectKinds() {
		if k.kind == kind {
			return k.key(name)
		}
	}
	return podKey(name)
}

// objects lists a kind's objects, of one namespace unless that is "". A namespace's list is a
// copy, the whole is shared.
func (s *view) objects(kind Kind, namespace string) ref.Val {
	all := s.state.Objects(kind)
	c := s.list.objects[kind]
	if namespace == "" {
		return s.slice(c, all)
	}
	v := reflect.ValueOf(all)
	out := reflect.MakeSlice(v.Type(), 0, 0)
	for i := range v.Len() {
		if v.Index(i).Interface().(metav1.Object).GetNamespace() == namespace {
			out = reflect.Append(out, v.Index(i))
		}
	}
	return &listVal{s.ts, c, out}
}

// object is one object, or an empty one.
func (s *view) object(k *objectKind, name string) ref.Val {
	at := k.key(name)
	if o := s.state.Object(k.kind, at.ns, at.name); o != nil {
		return s.ts.NativeToValue(o)
	}
	return s.ts.NativeToValue(s.ts.byType[k.goType].zero)
}

// Wants reports whether a change of an object of that kind can matter, so that
// Changed must be told of it. A run then need not subscribe to kinds that nothing reads.
func (e *Engine) Wants(k Kind) bool {
	switch k {
	case KindPod, KindNode, KindEvent:
		return true
	}
	if e.slots[k] != nil {
		return true
	}
	for _, r := range e.runs {
		if d := &r.deps; k == KindLease && d.all&readsLeases != 0 || slices.Contains(d.kinds, k) || slices.ContainsFunc(d.objects, func(o ObjectRef) bool { return o.Kind == k }) {
			return true
		}
	}
	return false
}

// conditionFuncs are the overloads of condition() for the kinds that have
// conditions. Reflection finds Status.Conditions, so kinds need no code of their own.
func conditionFuncs(ts *typeSystem) []cel.FunctionOpt {
	str := types.StringType
	var out []cel.FunctionOpt
	for _, k := range objectKinds() {
		status, ok := k.goType.FieldByName("Status")
		// A kind without conditions gets no overload, so that the compiler
		// refuses it.
		if !ok {
			continue
		}
		list, ok := status.Type.FieldByName("Conditions")
		if !ok {
			continue
		}
		elem := list.Type.Elem()
		info := ts.byType[elem]
		none := ts.NativeToValue(info.zero)
		find := func(a, b ref.Val) ref.Val {
			want := text(b)
			conditions := reflect.ValueOf(a.Value()).Elem().FieldByIndex(status.Index).FieldByIndex(list.Index)
			for i := range conditions.Len() {
				if c := conditions.Index(i); c.FieldByName("Type").String() == want {
					return ts.NativeToValue(c.Addr().Interface())
				}
			}
			return none
		}
		out = append(out, cel.Overload("condition_"+string(k.kind), []*types.Type{k.typ(), str}, info.typ, cel.BinaryBinding(find)))
	}
	return out
}

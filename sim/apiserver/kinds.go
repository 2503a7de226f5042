package apiserver

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an API object of one of the kinds that the package stores.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind names a kind of object as manifests do.
type Kind string

// The kinds that the API stores.
const (
	KindPod           Kind = "Pod"
	KindNode          Kind = "Node"
	KindLease         Kind = "Lease"
	KindEvent         Kind = "Event"
	KindConfigMap     Kind = "ConfigMap"
	KindSecret        Kind = "Secret"
	KindNamespace     Kind = "Namespace"
	KindService       Kind = "Service"
	KindPriorityClass Kind = "PriorityClass"
	KindRuntimeClass  Kind = "RuntimeClass"

	KindDeployment              Kind = "Deployment"
	KindReplicaSet              Kind = "ReplicaSet"
	KindStatefulSet             Kind = "StatefulSet"
	KindDaemonSet               Kind = "DaemonSet"
	KindControllerRevision      Kind = "ControllerRevision"
	KindJob                     Kind = "Job"
	KindCronJob                 Kind = "CronJob"
	KindPodDisruptionBudget     Kind = "PodDisruptionBudget"
	KindHorizontalPodAutoscaler Kind = "HorizontalPodAutoscaler"
	KindEndpointSlice           Kind = "EndpointSlice"
)

// kindInfo is what the API knows of a kind.
type kindInfo struct {
	kind       Kind
	resource   string // plural, lower case
	object     string // how trace records name it
	group      string
	version    string
	namespaced bool
	newObject  func() Object
}

// kindTable is read-only. What others need comes first, what is asked for most
// often last.
var kindTable = [...]kindInfo{
	{KindNamespace, "namespaces", "namespace", "", "v1", false, func() Object { return &v1.Namespace{} }},
	{KindPriorityClass, "priorityclasses", "priorityclass", "scheduling.k8s.io", "v1", false, func() Object { return &schedulingv1.PriorityClass{} }},
	{KindRuntimeClass, "runtimeclasses", "runtimeclass", "node.k8s.io", "v1", false, func() Object { return &nodev1.RuntimeClass{} }},
	{KindNode, "nodes", "node", "", "v1", false, func() Object { return &v1.Node{} }},
	{KindConfigMap, "configmaps", "configmap", "", "v1", true, func() Object { return &v1.ConfigMap{} }},
	{KindSecret, "secrets", "secret", "", "v1", true, func() Object { return &v1.Secret{} }},
	{KindService, "services", "service", "", "v1", true, func() Object { return &v1.Service{} }},
	{KindPodDisruptionBudget, "poddisruptionbudgets", "poddisruptionbudget", "policy", "v1", true, func() Object { return &policyv1.PodDisruptionBudget{} }},
	{KindControllerRevision, "controllerrevisions", "controllerrevision", "apps", "v1", true, func() Object { return &appsv1.ControllerRevision{} }},
	{KindDaemonSet, "daemonsets", "daemonset", "apps", "v1", true, func() Object { return &appsv1.DaemonSet{} }},
	{KindStatefulSet, "statefulsets", "statefulset", "apps", "v1", true, func() Object { return &appsv1.StatefulSet{} }},
	{KindDeployment, "deployments", "deployment", "apps", "v1", true, func() Object { return &appsv1.Deployment{} }},
	{KindReplicaSet, "replicasets", "replicaset", "apps", "v1", true, func() Object { return &appsv1.ReplicaSet{} }},
	{KindCronJob, "cronjobs", "cronjob", "batch", "v1", true, func() Object { return &batchv1.CronJob{} }},
	{KindJob, "jobs", "job", "batch", "v1", true, func() Object { return &batchv1.Job{} }},
	{KindHorizontalPodAutoscaler, "horizontalpodautoscalers", "horizontalpodautoscaler", "autoscaling", "v2", true, func() Object { return &autoscalingv2.HorizontalPodAutoscaler{} }},
	{KindEndpointSlice, "endpointslices", "endpointslice", "discovery.k8s.io", "v1", true, func() Object { return &discoveryv1.EndpointSlice{} }},
	{KindLease, "leases", "lease", "coordination.k8s.io", "v1", true, func() Object { return &coordinationv1.Lease{} }},
	{KindPod, "pods", "pod", "", "v1", true, func() Object { return &v1.Pod{} }},
	{KindEvent, "events", "event", "", "v1", true, func() Object { return &v1.Event{} }},
}

// infos returns the kinds in a fixed order.
func infos() []kindInfo { return kindTable[:] }

// Kinds returns all kinds, what others need first.
func Kinds() []Kind {
	out := make([]Kind, len(kindTable))
	for i := range kindTable {
		out[i] = kindTable[i].kind
	}
	return out
}

// Namespaced tells whether objects of the kind live in a namespace.
func (k Kind) Namespaced() bool {
	switch k {
	case KindNode, KindNamespace, KindPriorityClass, KindRuntimeClass:
		return false
	}
	return true
}

// Resource returns the kind's plural, as requests name it: "pods".
func (k Kind) Resource() string {
	if i := k.index(); i >= 0 {
		return kindTable[i].resource
	}
	return k.info().resource
}

// APIVersion returns the group and version in which the kind is served:
// "v1", "apps/v1".
func (k Kind) APIVersion() string {
	in := k.info()
	return in.gk().WithVersion(in.version).GroupVersion().String()
}

// KindOf returns the kind of obj; false when the API stores no such thing.
func KindOf(obj runtime.Object) (Kind, bool) {
	switch obj.(type) {
	case *v1.Pod:
		return KindPod, true
	case *v1.Node:
		return KindNode, true
	case *coordinationv1.Lease:
		return KindLease, true
	case *v1.Event:
		return KindEvent, true
	case *v1.ConfigMap:
		return KindConfigMap, true
	case *v1.Secret:
		return KindSecret, true
	case *v1.Namespace:
		return KindNamespace, true
	case *v1.Service:
		return KindService, true
	case *schedulingv1.PriorityClass:
		return KindPriorityClass, true
	case *nodev1.RuntimeClass:
		return KindRuntimeClass, true
	case *appsv1.Deployment:
		return KindDeployment, true
	case *appsv1.ReplicaSet:
		return KindReplicaSet, true
	case *appsv1.StatefulSet:
		return KindStatefulSet, true
	case *appsv1.DaemonSet:
		return KindDaemonSet, true
	case *appsv1.ControllerRevision:
		return KindControllerRevision, true
	case *batchv1.Job:
		return KindJob, true
	case *batchv1.CronJob:
		return KindCronJob, true
	case *policyv1.PodDisruptionBudget:
		return KindPodDisruptionBudget, true
	case *autoscalingv2.HorizontalPodAutoscaler:
		return KindHorizontalPodAutoscaler, true
	case *discoveryv1.EndpointSlice:
		return KindEndpointSlice, true
	}
	return "", false
}

// index returns the kind's place in kindTable; -1 if it is none of them.
func (k Kind) index() int {
	i := len(kindTable) - 1
	for i >= 0 && kindTable[i].kind != k {
		i--
	}
	return i
}

// info returns what is known of the kind.
func (k Kind) info() kindInfo {
	if i := k.index(); i >= 0 {
		return kindTable[i]
	}
	return kindInfo{kind: k, resource: strings.ToLower(string(k)) + "s", object: strings.ToLower(string(k))}
}

func (in kindInfo) gr() schema.GroupResource {
	return schema.GroupResource{Group: in.group, Resource: in.resource}
}

func (in kindInfo) gk() schema.GroupKind {
	return schema.GroupKind{Group: in.group, Kind: string(in.kind)}
}

// shallow returns a copy of the object's struct; everything below is shared.
func shallow(obj Object) Object {
	switch o := obj.(type) {
	case *v1.Pod:
		c := *o
		return &c
	case *v1.Node:
		c := *o
		return &c
	case *coordinationv1.Lease:
		c := *o
		return &c
	case *v1.Event:
		c := *o
		return &c
	case *v1.ConfigMap:
		c := *o
		return &c
	case *v1.Secret:
		c := *o
		return &c
	case *v1.Namespace:
		c := *o
		return &c
	case *v1.Service:
		c := *o
		return &c
	case *schedulingv1.PriorityClass:
		c := *o
		return &c
	case *nodev1.RuntimeClass:
		c := *o
		return &c
	case *appsv1.Deployment:
		c := *o
		return &c
	case *appsv1.ReplicaSet:
		c := *o
		return &c
	case *appsv1.StatefulSet:
		c := *o
		return &c
	case *appsv1.DaemonSet:
		c := *o
		return &c
	case *appsv1.ControllerRevision:
		c := *o
		return &c
	case *batchv1.Job:
		c := *o
		return &c
	case *batchv1.CronJob:
		c := *o
		return &c
	case *policyv1.PodDisruptionBudget:
		c := *o
		return &c
	case *autoscalingv2.HorizontalPodAutoscaler:
		c := *o
		return &c
	case *discoveryv1.EndpointSlice:
		c := *o
		return &c
	}
	return obj.DeepCopyObject().(Object)
}

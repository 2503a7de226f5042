// Package admission is what admits new pods, nodes and events, beyond what their
// own fields say: it reads other objects. It mirrors kube-apiserver's admission
// plugins of v1.36, those that are on by default and have an effect here, in
// upstream's order:
//
// - NamespaceLifecycle, for everything that is in a namespace
// - ServiceAccount (the name only), DefaultTolerationSeconds, Priority and RuntimeClass, for pods
// - TaintNodesByCondition for nodes, in clusters where somebody takes the taint away
// - EventRateLimit (eventratelimit.go), where there are limits
//
// Defaulting comes before admission and validation after it, so a plugin sees
// complete objects and may leave mistakes to validation. Plugins that call out
// (webhooks, policies) would stand here too.
package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"

	v1 "k8s.io/api/core/v1"

	schedulingv1 "k8s.io/api/scheduling/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	resourcehelper "k8s.io/component-helpers/resource"
)

const (
	// defaultTolerationSeconds is how long a pod tolerates a node that is not
	// ready or unreachable, unless it says otherwise.
	defaultTolerationSeconds = int64(300)

	defaultServiceAccount = "default"
)

// Cluster is what plugins read of what is stored. Each read costs a look-up at
// most: pods are admitted by the thousand.
type Cluster interface {
	Namespace(name string) *v1.Namespace
	Node(name string) *v1.Node
	PriorityClass(name string) *schedulingv1.PriorityClass
	PriorityClasses() []*schedulingv1.PriorityClass
	RuntimeClass(name string) *nodev1.RuntimeClass
}

// Plugins are the admission plugins of a cluster.
type Plugins struct {
	cluster       Cluster
	taintNewNodes bool // see TaintNewNodes
}

// NewPlugins returns the plugins that are on by default.
func NewPlugins(cluster Cluster) *Plugins { return &Plugins{cluster: cluster} }

// pods is what errors about pods name.
var pods = schema.GroupResource{Resource: "pods"}

// Pod runs the admission plugins of a pod's creation: ServiceAccount
// (the name only), DefaultTolerationSeconds, Priority and RuntimeClass.
func (p *Plugins) Pod(pod *v1.Pod) error {
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; !mirror {
		pod.Spec.ServiceAccountName = cmp.Or(pod.Spec.ServiceAccountName, defaultServiceAccount)
		pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	}
	addDefaultTolerations(&pod.Spec)
	if err := p.admitPriority(pod); err != nil {
		return err
	}
	return p.admitRuntimeClass(pod)
}

// addDefaultTolerations is the plugin DefaultTolerationSeconds
// (plugin/pkg/admission/defaulttolerationseconds).
func addDefaultTolerations(spec *v1.PodSpec) {
	var notReady, unreachable bool
	for _, t := range spec.Tolerations {
		if t.Effect != v1.TaintEffectNoExecute && t.Effect != "" {
			continue
		}
		notReady = notReady || t.Key == v1.TaintNodeNotReady || t.Key == ""
		unreachable = unreachable || t.Key == v1.TaintNodeUnreachable || t.Key == ""
	}
	add := func(key string) {
		spec.Tolerations = append(spec.Tolerations, v1.Toleration{
			Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: new(defaultTolerationSeconds)})
	}
	if !notReady {
		add(v1.TaintNodeNotReady)
	}
	if !unreachable {
		add(v1.TaintNodeUnreachable)
	}
}

// Name is what errors of admission call a new object. Upstream generates
// names after it, so an object without one goes by its generateName
// (apiserver pkg/admission/errors.go).
func Name(obj kind.Object) string {
	if g := obj.GetGenerateName(); g != "" && strings.HasPrefix(obj.GetName(), g) {
		return g
	}
	return obj.GetName()
}

// admitPriority is the plugin Priority (plugin/pkg/admission/priority).
func (p *Plugins) admitPriority(pod *v1.Pod) error {
	var priority int32
	policy := v1.PreemptLowerPriority
	var class *schedulingv1.PriorityClass
	if name := pod.Spec.PriorityClassName; name == "" {
		class = p.defaultPriorityClass()
	} else {
		pc := p.cluster.PriorityClass(name)
		if pc == nil {
			return forbidden(pod, fmt.Sprintf("no PriorityClass with name %v was found", name))
		}
		class = pc
	}
	if class != nil {
		pod.Spec.PriorityClassName = class.Name
		priority = class.Value
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
	}
	if own := pod.Spec.Priority; own != nil && *own != priority {
		return forbidden(pod, fmt.Sprintf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *own, priority))
	}
	if own := pod.Spec.PreemptionPolicy; own != nil && *own != policy {
		return forbidden(pod, fmt.Sprintf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *own, policy))
	}
	pod.Spec.Priority = &priority
	pod.Spec.PreemptionPolicy = &policy
	return nil
}

// defaultPriorityClass is the global default of the least value, or nil.
func (p *Plugins) defaultPriorityClass() *schedulingv1.PriorityClass {
	var least *schedulingv1.PriorityClass
	for _, pc := range p.cluster.PriorityClasses() {
		if pc.GlobalDefault && (least == nil || pc.Value < least.Value) {
			least = pc
		}
	}
	return least
}

// Resize refuses a resize that the pod's node could never hold
// (upstream: an admission plugin since v1.36, kubernetes/kubernetes pull 136043).
func (p *Plugins) Resize(pod *v1.Pod) error {
	node := p.cluster.Node(pod.Spec.NodeName)
	if node == nil {
		return nil
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		want, have := requests[name], node.Status.Allocatable[name]
		if !have.IsZero() && want.Cmp(have) > 0 {
			return apierrors.NewForbidden(pods, pod.Name, fmt.Errorf("the resize asks for %s %s, more than node %s can allocate (%s)", want.String(), name, node.Name, have.String()))
		}
	}
	return nil
}

// admitRuntimeClass is the RuntimeClass admission plugin: a pod's class must
// exist, and gives the pod its overhead and where it may run.
func (p *Plugins) admitRuntimeClass(pod *v1.Pod) error {
	if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == "" {
		if len(pod.Spec.Overhead) > 0 {
			return forbidden(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
		}
		return nil
	}
	name := *pod.Spec.RuntimeClassName
	rc := p.cluster.RuntimeClass(name)
	if rc == nil {
		return forbidden(pod, fmt.Sprintf("pod rejected: RuntimeClass %q not found", name))
	}
	if rc.Overhead == nil {
		if len(pod.Spec.Overhead) > 0 {
			return forbidden(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
		}
	} else {
		if len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(pod.Spec.Overhead, rc.Overhead.PodFixed) {
			return forbidden(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
		}
		pod.Spec.Overhead = rc.Overhead.PodFixed.DeepCopy()
	}
	if rc.Scheduling == nil {
		return nil
	}
	return schedule(pod, rc)
}

// schedule adds the class's node selector and tolerations to the pod's.
func schedule(pod *v1.Pod, rc *nodev1.RuntimeClass) error {
	selector := make(map[string]string, len(pod.Spec.NodeSelector)+len(rc.Scheduling.NodeSelector))
	maps.Copy(selector, pod.Spec.NodeSelector)
	for _, k := range slices.Sorted(maps.Keys(rc.Scheduling.NodeSelector)) { //drydock:unordered sorted at once
		v := rc.Scheduling.NodeSelector[k]
		if own, ok := selector[k]; ok && own != v {
			return forbidden(pod, fmt.Sprintf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", k, v, k, own))
		}
		selector[k] = v
	}
	if len(selector) > 0 {
		pod.Spec.NodeSelector = selector
	}
	// Clipped, so that the append copies: the list may be a template's.
	own := pod.Spec.Tolerations
	pod.Spec.Tolerations = append(own[:len(own):len(own)], rc.Scheduling.Tolerations...)
	return nil
}

// forbidden is the error of a plugin that refuses a pod.
func forbidden(pod *v1.Pod, text string) error {
	return apierrors.NewForbidden(pods, Name(pod), fmt.Errorf("%s", text))
}

// TaintNewNodes has new nodes get the taint node.kubernetes.io/not-ready:NoSchedule
// from now on: the admission plugin TaintNodesByCondition
// (plugin/pkg/admission/nodetaint). It is for clusters with a node lifecycle
// controller, which takes the taint away when the node is ready.
func (p *Plugins) TaintNewNodes() { p.taintNewNodes = true }

// Node gives a new node its taint.
func (p *Plugins) Node(n *v1.Node) {
	if !p.taintNewNodes {
		return
	}
	for _, t := range n.Spec.Taints {
		if t.Key == v1.TaintNodeNotReady && t.Effect == v1.TaintEffectNoSchedule {
			return
		}
	}
	n.Spec.Taints = append(slices.Clip(n.Spec.Taints), v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
}

// Namespace reports whether a namespace is there and not about to end
// (the plugin NamespaceLifecycle). It is asked of evictions and bindings too, which
// are created. Errors: NotFound; Forbidden with the cause NamespaceTerminating.
func (p *Plugins) Namespace(in *kind.Info, namespace, name string) error {
	ns := p.cluster.Namespace(namespace)
	if ns == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	}
	// The cause tells controllers to give up rather than to try again.
	if ns.Status.Phase == v1.NamespaceTerminating {
		err := apierrors.NewForbidden(in.GroupResource(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: v1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace"})
		return err
	}
	return nil
}

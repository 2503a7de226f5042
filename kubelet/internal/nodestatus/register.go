package nodestatus

import (
	"context"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// attachDetachAnnotation says that the control plane attaches volumes.
const attachDetachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"

// Annotations returns those of a new node: all that says that the control plane
// attaches volumes (enableControllerAttachDetach).
func Annotations(controllerAttachDetach bool) map[string]string {
	if !controllerAttachDetach {
		return nil
	}
	return map[string]string{attachDetachAnnotation: "true"}
}

// InitialNode builds the node as it is registered, with all of its status; so
// it emits the events of new conditions (upstream Kubelet.initialNode).
func (m *Manager) InitialNode(ctx context.Context) *v1.Node {
	os, arch := m.platform()
	node := &v1.Node{}
	node.Name = m.opts.NodeName
	node.Labels = map[string]string{
		v1.LabelHostname:   strings.ToLower(m.opts.Hostname),
		v1.LabelOSStable:   os,
		v1.LabelArchStable: arch,
		labelBetaOS:        os,
		labelBetaArch:      arch,
	}
	maps.Copy(node.Labels, m.opts.Labels)
	node.Annotations = m.opts.Annotations
	node.Spec.Taints = m.opts.RegisterTaints
	node.Spec.ProviderID = m.opts.ProviderID
	m.set(ctx, node)
	return node
}

const (
	labelBetaOS   = "beta.kubernetes.io/os"
	labelBetaArch = "beta.kubernetes.io/arch"
)

// register tries until the node is registered.
func (m *Manager) register(ctx context.Context) {
	for wait := firstBackoff; ; wait = min(2*wait, maxBackoff) {
		if m.opts.Loop.Sleep(ctx, wait) != nil {
			return
		}
		if m.tryRegister(ctx, m.InitialNode(ctx)) {
			m.registered = true
			return
		}
	}
}

// tryRegister mirrors upstream's tryRegisterWithAPIServer. A node that exists is
// taken over, whoever made it.
func (m *Manager) tryRegister(ctx context.Context, node *v1.Node) bool {
	_, err := request(ctx, m, func(ctx context.Context) (*v1.Node, error) {
		return m.opts.Client.CreateNode(ctx, node)
	})
	if err == nil {
		return true
	}
	// Creating nodes may be forbidden to a kubelet whose node exists already.
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
		m.log("unable to register node with API server: %v", err)
		return false
	}
	existing, err := request(ctx, m, func(ctx context.Context) (*v1.Node, error) {
		return m.opts.Client.GetNode(ctx, m.opts.NodeName)
	})
	if err != nil || existing == nil {
		m.log("unable to register node with API server, error getting existing node: %v", err)
		return false
	}
	next, changed := reconcileExisting(node, existing)
	if !changed {
		return true
	}
	_, err = request(ctx, m, func(ctx context.Context) (*v1.Node, error) {
		return m.opts.Client.PatchNode(ctx, m.opts.NodeName, existing, next)
	})
	if err != nil {
		m.log("unable to reconcile node with API server: %v", err)
		return false
	}
	return true
}

// defaultLabels are the labels that an existing node gets from the kubelet.
var defaultLabels = [...]string{
	v1.LabelHostname,
	v1.LabelTopologyZone, v1.LabelTopologyRegion,
	v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceTypeStable, v1.LabelInstanceType,
	v1.LabelOSStable, v1.LabelArchStable, v1.LabelWindowsBuild,
	labelBetaOS, labelBetaArch,
}

// reconcileExisting returns the existing node with what a registration puts
// right in it, and whether that changes anything.
func reconcileExisting(initial, existing *v1.Node) (*v1.Node, bool) {
	next := *existing
	changed := reconcileAnnotation(initial, &next)
	for _, label := range defaultLabels {
		value, ok := initial.Labels[label]
		if !ok {
			continue
		}
		if have, ok := next.Labels[label]; ok == (value != "") && have == value {
			continue
		}
		changed = true
		setLabel(&next, label, value)
		if value == "" {
			delete(next.Labels, label)
		}
	}
	if reconcileResources(initial, &next) {
		changed = true
	}
	return &next, changed
}

// reconcileAnnotation mirrors upstream's reconcileCMADAnnotationWithExistingNode.
// The existing node is shared, so its map is copied.
func reconcileAnnotation(initial, next *v1.Node) bool {
	want, wanted := initial.Annotations[attachDetachAnnotation]
	have, had := next.Annotations[attachDetachAnnotation]
	if wanted == had && want == have {
		return false
	}
	annotations := make(map[string]string, len(next.Annotations)+1)
	maps.Copy(annotations, next.Annotations)
	if wanted {
		annotations[attachDetachAnnotation] = want
	} else {
		delete(annotations, attachDetachAnnotation)
	}
	next.Annotations = annotations
	return true
}

// reconcileResources fills missing resources, empties extended ones (a kubelet
// without the devices' checkpoint knows of none), and corrects huge pages.
func reconcileResources(initial, next *v1.Node) bool {
	if next.Status.Capacity == nil || next.Status.Allocatable == nil {
		if next.Status.Capacity == nil {
			next.Status.Capacity = initial.Status.Capacity
		}
		if next.Status.Allocatable == nil {
			next.Status.Allocatable = initial.Status.Allocatable
		}
		return true
	}
	capacity, c1 := reconcileList(initial.Status.Capacity, next.Status.Capacity)
	allocatable, c2 := reconcileList(initial.Status.Allocatable, next.Status.Allocatable)
	next.Status.Capacity, next.Status.Allocatable = capacity, allocatable
	return c1 || c2
}

// reconcileList mirrors upstream's reconcileHugePageResource and
// reconcileExtendedResource; it returns the list itself if nothing changes.
func reconcileList(initial, list v1.ResourceList) (v1.ResourceList, bool) {
	out, changed := maps.Clone(list), false
	for k, v := range list { //drydock:unordered edits each entry by itself
		switch {
		case isHugePages(k):
			if _, ok := initial[k]; !ok {
				delete(out, k)
				changed = true
			}
		case isExtended(k) && !v.IsZero():
			out[k] = *resource.NewQuantity(0, resource.DecimalSI)
			changed = true
		}
	}
	for k, v := range initial { //drydock:unordered edits each entry by itself
		if have, ok := out[k]; isHugePages(k) && (!ok || have.Cmp(v) != 0) {
			out[k] = v
			changed = true
		}
	}
	if !changed {
		return list, false
	}
	return out, true
}

// isHugePages reports whether a resource is a size of huge pages, which only the
// machine decides.
func isHugePages(k v1.ResourceName) bool {
	return strings.HasPrefix(string(k), v1.ResourceHugePagesPrefix)
}

// isExtended reports whether a resource is named by somebody else's domain.
func isExtended(k v1.ResourceName) bool {
	s := string(k)
	return strings.Contains(s, "/") && !strings.Contains(s, "kubernetes.io/") && !strings.HasPrefix(s, "requests.")
}

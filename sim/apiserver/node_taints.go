package apiserver

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// TaintNewNodes has new nodes get the taint node.kubernetes.io/not-ready:NoSchedule
// from now on: the admission plugin TaintNodesByCondition
// (plugin/pkg/admission/nodetaint). It is for clusters with a node lifecycle
// controller, which takes the taint away when the node is ready.
func (s *Store) TaintNewNodes() { s.taintNewNodes = true }

// TaintNewNodes is Store.TaintNewNodes.
func (s *Server) TaintNewNodes() { s.store.TaintNewNodes() }

// admitNode gives a new node its taint.
func (s *Store) admitNode(n *v1.Node) {
	if !s.taintNewNodes {
		return
	}
	for _, t := range n.Spec.Taints {
		if t.Key == v1.TaintNodeNotReady && t.Effect == v1.TaintEffectNoSchedule {
			return
		}
	}
	n.Spec.Taints = append(slices.Clip(n.Spec.Taints), v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
}

// PatchNodeTaints replaces a node's taints. They must be valid, and are shared.
// Errors: NotFound; Conflict when the node has another resource version.
func (s *Store) PatchNodeTaints(now time.Time, name, resourceVersion string, taints []v1.Taint) (*v1.Node, error) {
	in := s.info(KindNode)
	old, ok := s.nodes.Get("", name)
	if !ok {
		return nil, apierrors.NewNotFound(in.GroupResource(), name)
	}
	if resourceVersion != "" && resourceVersion != old.ResourceVersion {
		return nil, errModified(in, name)
	}
	c := *old
	c.Spec.Taints = taints
	s.commit(watch.Modified, KindNode, old, &c, "patch", "")
	return &c, nil
}

// PatchNodeTaints is Store.PatchNodeTaints.
func (s *Server) PatchNodeTaints(name, resourceVersion string, taints []v1.Taint) (*v1.Node, error) {
	return s.store.PatchNodeTaints(s.now(), name, resourceVersion, taints)
}

package admission

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// TaintNewNodes has new nodes get the taint node.kubernetes.io/not-ready:NoSchedule
// from now on: the admission plugin TaintNodesByCondition
// (plugin/pkg/admission/nodetaint). It is for clusters with a node lifecycle
// controller, which takes the taint away when the node is ready.
func (p *Plugins) TaintNewNodes() { p.taintNewNodes = true }

// taintNode gives a new node its taint.
func (p *Plugins) taintNode(r *Request) error {
	if !p.taintNewNodes {
		return nil
	}
	n := r.Object.(*v1.Node)
	for _, t := range n.Spec.Taints {
		if t.Key == v1.TaintNodeNotReady && t.Effect == v1.TaintEffectNoSchedule {
			return nil
		}
	}
	n.Spec.Taints = append(slices.Clip(n.Spec.Taints), v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
	return nil
}

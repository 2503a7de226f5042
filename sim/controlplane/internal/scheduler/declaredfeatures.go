package scheduler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
)

// requiredFeatures returns the features that a pod needs of its node (NodeDeclaredFeatures.PreFilter).
func requiredFeatures(p *v1.Pod) nodedeclaredfeatures.FeatureSet {
	// The only error is that there is no version.
	set, _ := nodedeclaredfeatures.DefaultFramework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &p.Spec}, version.MajorMinor(1, 36))
	return set
}

// filterFeatures is NodeDeclaredFeatures.Filter.
func (cy *cycle) filterFeatures(n *nodeInfo) verdict {
	if cy.c.features.IsEmpty() || !cy.c.profile.runs(nodeDeclaredFeatures) || declares(n.node, cy.c.features) {
		return 0
	}
	return whyFeatures | unresolvable
}

// declares reports whether a node has features.
func declares(node *v1.Node, features nodedeclaredfeatures.FeatureSet) bool {
	m, err := nodedeclaredfeatures.DefaultFramework.MatchNode(features, node)
	return err == nil && m.IsMatch
}

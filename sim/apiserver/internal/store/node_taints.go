package store

import (
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// PatchNodeTaints replaces a node's taints. They must be valid, and are shared.
// Errors: NotFound; Conflict when the node has another resource version.
func (s *Store) PatchNodeTaints(now time.Time, name, resourceVersion string, taints []v1.Taint) (*v1.Node, error) {
	in := s.info(kinds.Node)
	old := s.Node(name)
	if old == nil {
		return nil, apierrors.NewNotFound(in.GroupResource(), name)
	}
	if resourceVersion != "" && resourceVersion != old.ResourceVersion {
		return nil, errModified(in, name)
	}
	c := *old
	c.Spec.Taints = taints
	s.commit(watch.Modified, kinds.Node, old, &c, "patch", "")
	return &c, nil
}

package action

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Scale sets how many replicas a workload has.
//
// In the timeline: sets how many replicas a workload has, as kubectl scale does.
type Scale struct {
	// The workload's kind. Deployment unless said.
	Kind string `json:"kind,omitempty" enum:"Deployment,ReplicaSet,StatefulSet"`
	// The workload's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The workload's name.
	Name string `json:"name" required:""`
	// How many replicas it shall have.
	Replicas *int32 `json:"replicas" required:""`
}

// Check fills in the kind and the namespace.
func (a *Scale) Check(at Place) {
	a.Kind = cmp.Or(a.Kind, string(apiserver.KindDeployment))
	a.Namespace = value.Namespace(at.Place, a.Kind, a.Namespace)
	if n := a.Replicas; n != nil && (*n < 0 || *n > value.MaxPods) {
		at.Field("replicas").Errorf("%d is not within 0 and %d", *n, value.MaxPods)
	}
}

// Do patches the replicas; kubectl's scale subresource comes to the same.
func (a *Scale) Do(s Stage) error {
	note(s, objectName(a.Kind, a.Namespace, a.Name), "scale", trace.Int("replicas", int64(*a.Replicas)))
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, *a.Replicas)
	_, err := s.Cluster().API().Patch(apiserver.Kind(a.Kind), a.Namespace, a.Name, types.MergePatchType, []byte(patch), "")
	return err
}

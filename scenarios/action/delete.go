package action

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Delete deletes an object from the API.
//
// In the timeline: deletes an object from the API.
type Delete struct {
	// The object's kind. Pod unless said.
	Kind value.Kind `json:"kind,omitempty"`
	// The object's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The object's name, or a pattern with * and ?.
	Name string `json:"name" required:""`
	// How many seconds a pod has to end; 0 removes it at once. The pod's own grace period unless said.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// What becomes of the objects that it owns: kubectl's --cascade. They are deleted after it (background), before it (foreground), or left without an owner (orphan). background unless said.
	Cascade string `json:"cascade,omitempty" enum:"background,foreground,orphan"`
}

// Check fills in the kind and the namespace. How it cascades is not filled in: a
// timeline shows it if it is said.
func (a *Delete) Check(at Place) {
	a.Kind = cmp.Or(a.Kind, value.Kind(apiserver.KindPod))
	a.Namespace = value.Namespace(at.Place, string(a.Kind), a.Namespace)
	checkGrace(at.Place, a.GracePeriodSeconds)
}

// Do deletes the objects one after another, and ends at the first error.
func (a *Delete) Do(s Stage) error {
	api := s.Cluster().API()
	names, err := namesOf(s, string(a.Kind), a.Namespace, a.Name, func() ([]apiserver.Object, error) { return api.List(apiserver.Kind(a.Kind), a.Namespace) })
	if err != nil {
		return err
	}
	cascade := map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
	}[cmp.Or(a.Cascade, "background")]
	for _, name := range names {
		var fields []trace.Field
		if a.GracePeriodSeconds != nil {
			fields = append(fields, trace.Int("grace", *a.GracePeriodSeconds))
		}
		if a.Cascade != "" {
			fields = append(fields, trace.Str("cascade", a.Cascade))
		}
		note(s, objectName(string(a.Kind), a.Namespace, name), "delete", fields...)
		if err := api.Delete(apiserver.Kind(a.Kind), a.Namespace, name, metav1.DeleteOptions{GracePeriodSeconds: a.GracePeriodSeconds, PropagationPolicy: &cascade}); err != nil {
			return err
		}
	}
	return nil
}

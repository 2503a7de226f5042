package action

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Evict asks the API to evict a pod, which a PodDisruptionBudget may refuse.
//
// In the timeline: asks the API to evict a pod, which a PodDisruptionBudget may
// refuse.
type Evict struct {
	// The pod's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The pod's name, or a pattern with * and ?.
	Name string `json:"name" required:""`
	// How many seconds a pod has to end. The pod's own grace period unless said.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// The API is to refuse it with 429 TooManyRequests; otherwise that is an error.
	Refused bool `json:"refused,omitempty"`
}

// Check fills in the namespace.
func (a *Evict) Check(at Place) {
	a.Namespace = value.Namespace(at.Place, "Pod", a.Namespace)
	checkGrace(at.Place, a.GracePeriodSeconds)
}

// checkGrace checks the grace period of what is at a place.
func checkGrace(at decode.Place, seconds *int64) {
	if seconds != nil {
		value.NotNegative(at.Field("gracePeriodSeconds"), *seconds)
	}
}

// Do asks for the eviction of each pod that is meant, and ends at the first that
// does not go as it should.
func (a *Evict) Do(s Stage) error {
	names, err := namesOf(s, "Pod", a.Namespace, a.Name, func() ([]*v1.Pod, error) { return s.Cluster().Store().PodsInNamespace(a.Namespace), nil })
	if err != nil {
		return err
	}
	for _, name := range names {
		note(s, objectName("Pod", a.Namespace, name), "evict")
		err := evict(s, a.Namespace, name, a.GracePeriodSeconds)
		switch {
		case a.Refused && err == nil:
			return fmt.Errorf("the eviction of pod %s/%s was not refused", a.Namespace, name)
		case err != nil && !(a.Refused && refusedByBudget(err)):
			return withBudget(err)
		}
	}
	return nil
}

// evict asks the API to evict a pod.
func evict(s Stage, namespace, name string, grace *int64) error {
	return s.Cluster().API().Evict(namespace, name, metav1.DeleteOptions{GracePeriodSeconds: grace})
}

// refusedByBudget reports whether an eviction may be asked for again.
func refusedByBudget(err error) bool { return apierrors.IsTooManyRequests(err) }

// withBudget adds to the error of an eviction which budget refused it, and why.
func withBudget(err error) error {
	cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !ok {
		return err
	}
	return fmt.Errorf("%w %s", err, cause.Message)
}

package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateSleeps checks that no sleep action is longer than the pod's grace period,
// which would cut it off (validateSleepAction). Negative ones are refused with the
// hook itself. A grace period may be changed on deletion; then the sleep is cut off.
func validateSleeps(s *v1.PodSpec, path *field.Path) (errs field.ErrorList) {
	if s.TerminationGracePeriodSeconds == nil {
		return nil
	}
	grace := *s.TerminationGracePeriodSeconds
	hook := func(h *v1.LifecycleHandler, path *field.Path) {
		if h != nil && h.Sleep != nil && h.Sleep.Seconds > grace {
			errs = append(errs, field.Invalid(path.Child("sleep"), h.Sleep.Seconds,
				fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace)))
		}
	}
	list := func(list []v1.Container, path *field.Path) {
		for i := range list {
			if l := list[i].Lifecycle; l != nil {
				p := path.Index(i).Child("lifecycle")
				hook(l.PostStart, p.Child("postStart"))
				hook(l.PreStop, p.Child("preStop"))
			}
		}
	}
	list(s.InitContainers, path.Child("initContainers"))
	list(s.Containers, path.Child("containers"))
	return errs
}

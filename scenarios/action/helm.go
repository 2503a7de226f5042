package action

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/scenarios/value"
)

// The annotations of Helm's hooks, which helm template prints among all other objects.
const (
	helmHook   = "helm.sh/hook"
	helmWeight = "helm.sh/hook-weight"
)

// When an object of a chart is applied, as helm install does: hooks of the installation
// before or after all others.
const (
	helmBefore = iota - 1
	helmPlain
	helmAfter
	helmNever
)

// helmPhase is when an object is applied, and the hooks that it is of.
func helmPhase(o value.Object) (phase, weight int, hooks string) {
	m, ok := o.Object.(metav1.Object)
	if !ok || m.GetAnnotations()[helmHook] == "" {
		return helmPlain, 0, ""
	}
	a := m.GetAnnotations()
	phase = helmNever
	for h := range strings.SplitSeq(a[helmHook], ",") {
		switch strings.TrimSpace(h) {
		case "pre-install", "crd-install":
			phase = min(phase, helmBefore)
		case "post-install":
			phase = min(phase, helmAfter)
		}
	}
	weight, _ = strconv.Atoi(a[helmWeight]) // as Helm: what is no number is 0
	return phase, weight, a[helmHook]
}

// helmOrder are the objects that helm install would create, in its order: hooks before
// the installation by weight, all else, hooks after it. Hooks of tests, upgrades,
// rollbacks and deletions are left out, with a word. Nobody waits for a hook to end
// before the next objects.
func helmOrder(at Place, objects []value.Object) []value.Object {
	if !slices.ContainsFunc(objects, func(o value.Object) bool { _, _, hooks := helmPhase(o); return hooks != "" }) {
		return objects
	}
	var left []string
	out := slices.DeleteFunc(slices.Clone(objects), func(o value.Object) bool {
		phase, _, hooks := helmPhase(o)
		if phase != helmNever {
			return false
		}
		if m, ok := o.Object.(metav1.Object); ok {
			left = append(left, fmt.Sprintf("%s %s (%s)", o.GetObjectKind().GroupVersionKind().Kind, m.GetName(), hooks))
		}
		return true
	})
	slices.SortStableFunc(out, func(a, b value.Object) int {
		ap, aw, _ := helmPhase(a)
		bp, bw, _ := helmPhase(b)
		if ap != bp {
			return ap - bp
		}
		return aw - bw
	})
	if len(left) > 0 {
		at.Found(value.Notice("hooks of Helm that an installation doesn't run are not applied: " + strings.Join(left, ", ")))
	}
	return out
}

package merge

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
)

// TestMergedConditionsAreShared: 150,000 pods have their conditions once, not
// once in the API and once in the kubelet. (What merges to what is
// TestMergeAgreesWithStrategicPatch's.)
func TestMergedConditionsAreShared(t *testing.T) {
	at := asjson.Time(time.Date(2026, 1, 1, 0, 0, 0, 500, time.UTC))
	list := func(types ...v1.PodConditionType) []v1.PodCondition {
		var out []v1.PodCondition
		for _, typ := range types {
			out = append(out, v1.PodCondition{Type: typ, Status: v1.ConditionTrue, LastTransitionTime: at})
		}
		return out
	}
	for _, c := range []struct {
		name            string
		cur, base, want []v1.PodCondition
		shared          bool
	}{
		{"first", nil, nil, list("a", "b"), true},
		{"one more", list("a"), list("a"), list("a", "b"), true},
		{"one less", list("a", "b"), list("a", "b"), list("b"), true},
		{"the server's own stays", list("x"), nil, list("a"), false},
		{"what another has removed stays away", nil, list("a"), list("a", "b"), false},
	} {
		cur, base, next := v1.PodStatus{Conditions: c.cur}, v1.PodStatus{Conditions: c.base}, v1.PodStatus{Conditions: c.want}
		got, changed := PodStatus(&cur, &base, &next)
		if shared := &got.Conditions[0] == &c.want[0]; !changed || shared != c.shared {
			t.Errorf("%s: changed %v, shared %v", c.name, changed, shared)
		}
		if len(got.Conditions) != cap(got.Conditions) && c.shared {
			t.Errorf("%s: an append would write into the caller's memory", c.name)
		}
	}
	next := v1.PodStatus{Conditions: list("a")}
	next.Conditions[0].LastTransitionTime.Time = at.Add(time.Millisecond)
	if got, _ := PodStatus(&v1.PodStatus{}, &v1.PodStatus{}, &next); got.Conditions[0].LastTransitionTime != at {
		t.Errorf("stored a time that is not on the wire: %v", got.Conditions[0].LastTransitionTime)
	}
}

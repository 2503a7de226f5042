package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Once the API's object says exactly what is cached, the cached status is the
// one in that object.
func TestStatusSharedWithTheAPI(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*v1.PodStatus) // of the API's, by somebody else
		shared bool
	}{
		{"the same", func(*v1.PodStatus) {}, true},
		{"another phase", func(s *v1.PodStatus) { s.Phase = v1.PodPending }, false},
		{"another transition time", func(s *v1.PodStatus) {
			s.Conditions = append([]v1.PodCondition(nil), s.Conditions...)
			s.Conditions[0].LastTransitionTime = metav1.Time{Time: t0.Add(time.Hour)}
		}, false},
		{"somebody's condition", func(s *v1.PodStatus) {
			s.Conditions = append(s.Conditions[:len(s.Conditions):len(s.Conditions)], v1.PodCondition{Type: "x/y", Status: "True"})
		}, false},
		{"a claim", func(s *v1.PodStatus) { s.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "c"}} }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, w, _ := newManager(t)
			p := w.add(testPod(v1.RestartPolicyAlways, "a"))
			set(m, p, "a running")
			w.run(t, time.Second)
			sent, _ := m.GetPodStatus(p.UID)
			var told [2]*v1.PodStatus
			m.Shared = func(_ types.UID, old, status *v1.PodStatus) { told = [2]*v1.PodStatus{old, status} }
			next := *w.api["p"]
			tc.change(&next.Status)
			w.api["p"] = &next
			generation := m.Generation()
			w.echo(m, "p")
			got, _ := m.GetPodStatus(p.UID)
			want, tell := sent, [2]*v1.PodStatus{}
			if tc.shared {
				want, tell = &next.Status, [2]*v1.PodStatus{sent, &next.Status}
			}
			if got != want || told != tell {
				t.Errorf("cached: the API's %t, the sent one %t; told %v", got == &next.Status, got == sent, told != [2]*v1.PodStatus{})
			}
			if m.Generation() != generation {
				t.Error("that is no change")
			}
		})
	}
}

// Where nobody else has written anything, what is sent is the cached status
// itself.
func TestMergeOfOwnAlone(t *testing.T) {
	ready := []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	for _, tc := range []struct {
		name     string
		api, own v1.PodStatus
		same     bool
	}{
		{"own alone", v1.PodStatus{Phase: v1.PodPending}, v1.PodStatus{Phase: v1.PodRunning, Conditions: ready}, true},
		{"ends", v1.PodStatus{Phase: v1.PodRunning}, v1.PodStatus{Phase: v1.PodFailed, Conditions: ready}, false},
		{"somebody's condition", v1.PodStatus{Conditions: []v1.PodCondition{{Type: "x/y"}}}, v1.PodStatus{Phase: v1.PodRunning, Conditions: ready}, false},
		{"a claim", v1.PodStatus{ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "c"}}}, v1.PodStatus{Phase: v1.PodRunning, Conditions: ready}, false},
		{"a claim that is gone", v1.PodStatus{}, v1.PodStatus{Phase: v1.PodRunning, ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "c"}}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := merge(&tc.api, &tc.own, false, metav1.Time{Time: t0}); (got == &tc.own) != tc.same {
				t.Errorf("own: %t", got == &tc.own)
			}
		})
	}
}

// Transition times are set in a list that is the manager's, never in one that
// the API's object or the cached status has.
func TestTransitionTimesOfSharedLists(t *testing.T) {
	m, w, _ := newManager(t)
	p := testPod(v1.RestartPolicyAlways, "a")
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	w.add(p)
	m.SetPodStatus(p, v1.PodStatus{Phase: v1.PodPending, Conditions: p.Status.Conditions})
	if !p.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Error("the API's object was written to")
	}
	cached, _ := m.GetPodStatus(p.UID)
	began := cached.Conditions[0].LastTransitionTime
	w.run(t, time.Minute)
	m.TerminatePod(p)
	if ended, _ := m.GetPodStatus(p.UID); ended == cached || !cached.Conditions[0].LastTransitionTime.Equal(&began) || sameList(cached.Conditions, ended.Conditions) {
		t.Error("the cached status was written to")
	}
}

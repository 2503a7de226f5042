package status

import (
	"fmt"
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
			generation := m.Version().Count()
			w.echo(m, "p")
			got, _ := m.GetPodStatus(p.UID)
			want, tell := sent, [2]*v1.PodStatus{}
			if tc.shared {
				want, tell = &next.Status, [2]*v1.PodStatus{sent, &next.Status}
			}
			if got != want || told != tell {
				t.Errorf("cached: the API's %t, the sent one %t; told %v", got == &next.Status, got == sent, told != [2]*v1.PodStatus{})
			}
			if m.Version().Count() != generation {
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

// A status is sent in the pod that it was made in, if it is sent as it is: then
// the API's object has the cached one from the beginning. What is sent again, or
// merged, is not the API's to take.
func TestStatusIsSentInItsPod(t *testing.T) {
	m, w, _ := newManager(t)
	p := w.add(testPod(v1.RestartPolicyAlways, "a"))
	set(m, p, "a running")
	w.run(t, time.Second)
	first, _ := m.GetPodStatus(p.UID)
	if len(w.rooms) != 1 || w.rooms[0] != w.api["p"] || first != &w.api["p"].Status {
		t.Fatalf("%d patches, the cached status is the API's: %t", len(w.rooms), first == &w.api["p"].Status)
	}
	m.Shared = func(types.UID, *v1.PodStatus, *v1.PodStatus) { t.Error("that is no other object") }
	w.echo(m, "p")
	m.Shared = nil

	other := *w.api["p"] // somebody else writes what is the kubelet's
	other.Status.Phase = v1.PodPending
	w.api["p"] = &other
	w.echo(m, "p")
	w.run(t, 20*time.Second)
	if len(w.rooms) != 2 || w.rooms[1] != nil && w.rooms[1].Name == "" {
		t.Errorf("sent again %v", w.rooms[1:])
	}
	if now, _ := m.GetPodStatus(p.UID); now != first || first.Phase != v1.PodRunning {
		t.Error("the cached status is another")
	}

	other = *w.api["p"]
	other.Status.Conditions = append(other.Status.Conditions[:len(other.Status.Conditions):len(other.Status.Conditions)], v1.PodCondition{Type: "x/y", Status: "True"})
	w.api["p"] = &other
	w.echo(m, "p")
	set(m, p, "a exited 1")
	w.run(t, time.Second)
	if len(w.rooms) != 3 || w.rooms[2] != nil {
		t.Errorf("merged, %d patches", len(w.rooms))
	}
}

// The memory of a batch is used again by the next, and holds on to no pod between
// the two; that of a large one goes.
func TestBatchesLeaveNothing(t *testing.T) {
	m, w, _ := newManager(t)
	for n := range 3 * keptUpdates {
		p := testPod(v1.RestartPolicyAlways, "a")
		p.Name, p.UID = fmt.Sprint("p", n), types.UID(fmt.Sprint("u", n))
		set(m, w.add(p), "a running")
		w.run(t, time.Second)
		for i, u := range m.updates[:cap(m.updates)] {
			if u != (update{}) || m.sending {
				t.Fatalf("after pod %d: update %d is of %v", n, i, u.e.name)
			}
		}
	}
	for n := range 3 * keptUpdates {
		uid := types.UID(fmt.Sprint("u", n))
		p, _ := w.GetPodByUID(uid)
		set(m, p, "a exited 1")
	}
	w.run(t, 2*syncPeriod) // the next batch finds that all were sent
	if cap(m.updates) > keptUpdates || cap(m.unsent) > keptUpdates {
		t.Errorf("memory for %d updates and %d unsent is kept", cap(m.updates), cap(m.unsent))
	}
}

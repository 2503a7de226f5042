package status

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// lossy is a world whose answers to patches get lost; it may refuse rooms, and
// then stores copies.
type lossy struct {
	*world
	lose   int // the next answers
	copies bool
	taken  int
}

func (w *lossy) PatchPodStatus(ctx context.Context, ns, name string, uid types.UID, base, s *v1.PodStatus, room *v1.Pod) (*v1.Pod, error) {
	if w.copies {
		s, room = s.DeepCopy(), nil
	} else if room != nil && room.Name == "" {
		w.taken++
	}
	p, err := w.world.PatchPodStatus(ctx, ns, name, uid, base, s, room)
	if err == nil && w.lose > 0 {
		w.lose--
		return nil, errors.New("no answer")
	}
	return p, err
}

// TestRoomIsInvisible sends random statuses to an API that takes rooms and to one
// that does not, while answers get lost, others write, and pods are
// made anew: the same requests are made and the same is stored.
func TestRoomIsInvisible(t *testing.T) {
	taken := 0
	for seed := range uint64(30) {
		with, n := randomStatuses(t, seed, false)
		without, _ := randomStatuses(t, seed, true)
		taken += n
		if !slices.Equal(with, without) {
			for i := range with {
				if i >= len(without) || with[i] != without[i] {
					t.Fatalf("seed %d step %d: %s\nwithout rooms %s", seed, i, with[i], without[min(i, len(without)-1)])
				}
			}
			t.Fatalf("seed %d: %d steps, %d without rooms", seed, len(with), len(without))
		}
	}
	if taken < 300 {
		t.Errorf("%d rooms were taken", taken)
	}
}

func randomStatuses(t *testing.T, seed uint64, copies bool) (trail []string, taken int) {
	r := rand.New(rand.NewPCG(seed, 3))
	l := loop.New(loop.Options{Name: "node"})
	defer l.Close()
	w := &lossy{copies: copies, world: &world{l: l, api: map[string]*v1.Pod{}, pods: map[types.UID]*v1.Pod{}, mirrors: map[types.UID]*v1.Pod{},
		mayRun: true, latency: 10 * time.Millisecond, fail: map[string]error{}}}
	m := New(Options{Loop: l, Client: w, PodManager: w, DeletionSafety: w})
	m.Start(l.NewGroup("kubelet"))
	var pods []*v1.Pod
	for i := range 3 {
		p := testPod(v1.RestartPolicyAlways, "a")
		p.Name, p.UID = fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i))
		pods = append(pods, w.add(p))
	}
	states := []string{"a running", "a exited 1", "a exited 0"}
	made := map[*v1.PodStatus]*v1.PodStatus{}
	for step := range 150 {
		p := pods[r.IntN(len(pods))]
		switch r.IntN(8) {
		case 0, 1, 2:
			set(m, p, states[r.IntN(len(states))])
		case 3:
			w.lose = 1 + r.IntN(2)
		case 4: // somebody else writes
			if cur := w.api[p.Name]; cur != nil {
				next := *cur
				if next.Status.Phase = v1.PodPending; r.IntN(2) == 0 {
					next.Status.Phase = cur.Status.Phase
					next.Status.Conditions = append(slices.Clip(next.Status.Conditions), v1.PodCondition{Type: v1.PodConditionType(fmt.Sprint("x/", step)), Status: "True"})
				}
				w.api[p.Name] = &next
			}
		case 5:
			w.echo(m, p.Name)
		case 6: // deleted and made anew by somebody
			if cur := w.api[p.Name]; cur != nil && r.IntN(4) == 0 {
				next := *cur
				next.UID, next.Status = types.UID(fmt.Sprint("v", step)), v1.PodStatus{}
				w.api[p.Name] = &next
			} else if cur != nil && r.IntN(4) > 0 {
				next := *cur
				next.UID = p.UID
				w.api[p.Name] = &next
			}
		}
		if st, ok := m.GetPodStatus(p.UID); ok && made[st] == nil {
			made[st] = st.DeepCopy()
		}
		w.run(t, time.Duration(r.IntN(4000))*time.Millisecond)
		stored, own := w.api[p.Name], &v1.PodStatus{}
		if st, ok := m.GetPodStatus(p.UID); ok {
			own = st
		}
		trail = append(trail, fmt.Sprintf("%s: %s %v own %v", w.take(), stored.UID, stored.Status.String(), own.String()))
	}
	for st, was := range made {
		if !equality.Semantic.DeepEqual(st, was) {
			t.Errorf("seed %d: written to: %+v\nwas %+v", seed, st, was)
		}
	}
	return trail, w.taken
}

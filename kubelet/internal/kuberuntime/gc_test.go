package kuberuntime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// removals notes what a collector would remove, and removes nothing.
type removals struct {
	*fakecri.Client
	tried []string
}

func (r *removals) RemoveContainer(_ context.Context, id string) error {
	r.tried = append(r.tried, "container "+id[:8])
	return nil
}

func (r *removals) StopPodSandbox(context.Context, string) error { return nil }

func (r *removals) RemovePodSandbox(_ context.Context, id string) error {
	r.tried = append(r.tried, "sandbox "+id[:8])
	return nil
}

// oneGone are the states of pods of which the first is gone.
type oneGone struct{}

func (oneGone) ShouldPodContentBeRemoved(uid types.UID) bool { return uid == "uid-0" }
func (oneGone) ShouldPodRuntimeBeRemoved(uid types.UID) bool { return uid == "uid-1" }
func (oneGone) IsPodTerminationRequested(types.UID) bool     { return false }

// A manager that is told of changes collects what one collects that lists
// everything at the same time, also while listings take their time and overlap, and fail.
func TestCollectsByChanges(t *testing.T) {
	containers, sandboxes := 0, 0
	for seed := range uint64(10) {
		for _, latency := range []time.Duration{0, 300 * time.Millisecond} {
			c, s := compareCollections(t, seed, latency, seed%2 == 1)
			containers, sandboxes = containers+c, sandboxes+s
		}
	}
	if containers < 1000 || sandboxes < 100 {
		t.Errorf("%d containers, %d sandboxes", containers, sandboxes)
	}
}

// troubles has listings fail, the runtime's daemon go, and the power be cut.
func troubles(l *loop.Loop, g *loop.Group, rt *fakecri.Runtime) {
	for i := range uint64(30) {
		g.After(l.Between(0, 60*time.Second, "trouble", "", i), func() {
			method := []string{"List*", "ListContainers", "ListPodSandbox"}[i%3]
			rt.AddFault(fakecri.Fault{Method: method, Error: &fakecri.FaultError{}, For: l.Between(0, time.Second, "lasts", "", i)})
		})
	}
	for i := range uint64(6) {
		g.After(l.Between(0, 60*time.Second, "down", "", i), func() {
			if rt.StopDaemon(); i == 0 {
				rt.PowerCut()
			}
			g.After(l.Between(0, time.Second, "up", "", i), rt.StartDaemon)
		})
	}
}

func compareCollections(t *testing.T, seed uint64, latency time.Duration, trouble bool) (containers, sandboxes int) {
	l := loop.New(loop.Options{Name: "n", Seed: seed})
	defer l.Close()
	rt := fakecri.New(fakecri.Options{
		Loop: l, Images: []fakecri.Image{{Name: "app:1", Present: true}},
		Latency:  map[string]fakecri.Range{"ListPodSandbox": fakecri.Exactly(latency), "ListContainers": fakecri.Exactly(latency)},
		Programs: []fakecri.Program{{Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: time.Second, Max: 5 * time.Second}}}},
	})
	rt.StartDaemon()
	g := l.NewGroup("kubelet")
	manager := func(changes bool) (*kuberuntime.Manager, *removals) {
		c := rt.Client(g)
		r := &removals{Client: c}
		o := kuberuntime.Options{Loop: l, Group: g, RuntimeService: r, ImageService: c, PodStates: oneGone{}}
		if changes {
			o.Changes = c
		}
		m, err := kuberuntime.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return m, r
	}
	told, toldTried := manager(true)
	full, fullTried := manager(false)
	g.Go("acts", func(ctx context.Context) {
		c := rt.Client(g)
		for i := range uint64(900) {
			_ = act(ctx, l, c, i)
			_ = l.Sleep(ctx, l.Between(0, 130*time.Millisecond, "nap", "", i))
		}
	})
	if trouble {
		troubles(l, g, rt)
	}
	passes, failed := 0, 0
	for i := range 60 {
		g.After(time.Duration(i)*time.Second, func() {
			policy := kuberuntime.GCPolicy{MaxPerPodContainer: i%3 - 1, MaxContainers: i%4 - 1, MinAge: time.Duration(i%2) * time.Second}
			toldTried.tried, fullTried.tried = nil, nil
			ended, errs := 0, []string(nil)
			pass := func(ctx context.Context, m *kuberuntime.Manager) {
				err := m.GarbageCollect(ctx, policy, i%5 > 0, i%2 == 0)
				if err != nil {
					failed++
				}
				errs = append(errs, fmt.Sprint(err))
				if ended++; ended < 2 {
					return
				}
				got, want := strings.Join(toldTried.tried, ", "), strings.Join(fullTried.tried, ", ")
				if passes++; got != want || errs[0] != errs[1] {
					t.Errorf("seed %d, latency %v, pass %d collects\n%s\nnot\n%s\nerrors: %q", seed, latency, i, got, want, errs)
				}
				containers += strings.Count(want, "container ")
				sandboxes += strings.Count(want, "sandbox ")
			}
			g.Go("told", func(ctx context.Context) { pass(ctx, told) })
			g.Go("full", func(ctx context.Context) { pass(ctx, full) })
			for uid := range 4 { // others bring the pictures up to date meanwhile
				g.Go("lists", func(ctx context.Context) {
					_ = l.Sleep(ctx, time.Duration(uid)*latency/3)
					_, _ = told.GetPod(ctx, types.UID(fmt.Sprint("uid-", uid)))
				})
			}
		})
	}
	if err := l.RunUntil(loop.Epoch().Add(65 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if passes != 60 || failed > 0 != trouble {
		t.Errorf("%d passes, %d calls failed", passes, failed)
	}
	return containers, sandboxes
}

package kuberuntime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// A manager that is told of changes shows what one shows that lists everything at
// the same time, also while listings take their time and overlap.
func TestListingsOfChanges(t *testing.T) {
	for seed := range uint64(20) {
		for _, latency := range []time.Duration{0, 300 * time.Millisecond} {
			compareListings(t, seed, latency)
		}
	}
}

func compareListings(t *testing.T, seed uint64, latency time.Duration) {
	l := loop.New(loop.Options{Name: "n", Seed: seed})
	defer l.Close()
	rt := fakecri.New(fakecri.Options{
		Loop: l, Images: []fakecri.Image{{Name: "app:1", Present: true}},
		Latency:  map[string]fakecri.Range{"ListPodSandbox": fakecri.Exactly(latency), "ListContainers": fakecri.Exactly(latency)},
		Programs: []fakecri.Program{{Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: time.Second, Max: 5 * time.Second}}}},
	})
	rt.StartDaemon()
	g := l.NewGroup("kubelet")
	manager := func(changes bool) *kuberuntime.Manager {
		c := rt.Client(g)
		o := kuberuntime.Options{Loop: l, Group: g, RuntimeService: c, ImageService: c}
		if changes {
			o.Changes = c
		}
		m, err := kuberuntime.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	told, full := manager(true), manager(false)
	changes := 0
	g.Go("acts", func(ctx context.Context) {
		c := rt.Client(g)
		for i := range uint64(150) {
			if act(ctx, l, c, i) == nil {
				changes++
			}
			_ = l.Sleep(ctx, l.Between(0, 400*time.Millisecond, "nap", "", i))
		}
	})
	lists := 0
	for i := range 400 {
		g.After(time.Duration(i)*100*time.Millisecond, func() {
			uid := types.UID("")
			if i%3 == 1 {
				uid = types.UID(fmt.Sprint("uid-", i/3%4))
			}
			var got, want []byte
			done := func() {
				if got == nil || want == nil {
					return
				}
				if lists++; string(got) != string(want) {
					t.Errorf("seed %d, latency %v, listing %d of %q:\n%s\nis listed as\n%s", seed, latency, i, uid, want, got)
				}
			}
			g.Go("told", func(ctx context.Context) { got = shown(ctx, told, uid); done() })
			g.Go("full", func(ctx context.Context) { want = shown(ctx, full, uid); done() })
		})
	}
	if err := l.RunUntil(loop.Epoch().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if lists != 400 || changes < 40 {
		t.Errorf("%d lists, %d changes", lists, changes)
	}
}

// act changes something, or fails.
func act(ctx context.Context, l *loop.Loop, c *fakecri.Client, i uint64) error {
	pod := l.Uint64("pod", "", i) % 4
	md := &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("p", pod), Namespace: "default", Uid: fmt.Sprint("uid-", pod), Attempt: uint32(l.Uint64("attempt", "", i) % 2)}
	labels := map[string]string{
		"io.kubernetes.pod.uid": md.Uid, "io.kubernetes.pod.name": md.Name, "io.kubernetes.pod.namespace": md.Namespace, "io.kubernetes.container.name": "app",
	}
	sandboxes, err := c.Prompt().ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": md.Uid}})
	if err != nil {
		return err
	}
	config := &runtimeapi.PodSandboxConfig{Metadata: md, Labels: labels, Linux: &runtimeapi.LinuxPodSandboxConfig{}}
	what := l.Uint64("act", "", i) % 6
	if what == 0 || len(sandboxes) == 0 {
		_, err := c.RunPodSandbox(ctx, config, "")
		return err
	}
	id := sandboxes[l.Uint64("sandbox", "", i)%uint64(len(sandboxes))].Id
	switch what {
	case 1:
		return c.StopPodSandbox(ctx, id)
	case 2:
		return c.RemovePodSandbox(ctx, id)
	}
	ctr, err := c.CreateContainer(ctx, id, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "app", Attempt: uint32(i)}, Image: &runtimeapi.ImageSpec{Image: "app:1"}, Labels: labels,
	}, config)
	if err != nil {
		return err
	}
	return c.StartContainer(ctx, ctr)
}

// shown is what a manager lists, as text.
func shown(ctx context.Context, m *kuberuntime.Manager, uid types.UID) []byte {
	var pods []*kubecontainer.Pod
	if uid == "" {
		list, err := m.ListPods(ctx, true)
		if err != nil {
			return []byte(err.Error())
		}
		pods = list
	} else if pod, err := m.GetPod(ctx, uid); err != nil {
		return []byte(err.Error())
	} else if pod != nil {
		pods = append(pods, pod)
	}
	b, _ := json.Marshal(pods)
	if len(pods) == 0 {
		b = []byte("nothing")
	}
	return b
}

// Whoever has a listing sees no later one in it.
func TestListingsAreNotWrittenTo(t *testing.T) {
	l := loop.New(loop.Options{Name: "n"})
	defer l.Close()
	rt := fakecri.New(fakecri.Options{Loop: l, Images: []fakecri.Image{{Name: "app:1", Present: true}}})
	rt.StartDaemon()
	g := l.NewGroup("kubelet")
	c := rt.Client(g)
	m, err := kuberuntime.New(kuberuntime.Options{Loop: l, Group: g, RuntimeService: c, ImageService: c, Changes: c})
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	g.Go("lists", func(ctx context.Context) {
		var lists [][]*kubecontainer.Pod
		var texts []string
		for i := range uint64(80) {
			_ = act(ctx, l, c, i)
			var list []*kubecontainer.Pod
			if i%8 < 6 { // pods that were handed out one by one, and no list of them
				pod, err := m.GetPod(ctx, types.UID(fmt.Sprint("uid-", l.Uint64("pod", "", i)%4)))
				if err != nil {
					t.Error(err)
				}
				list = append(list, pod)
			} else if list, err = m.ListPods(ctx, true); err != nil {
				t.Error(err)
			}
			b, _ := json.Marshal(list)
			if n := len(lists); n > 0 && len(list) > 0 && len(lists[n-1]) == len(list) {
				for k := range list {
					if list[k] == lists[n-1][k] {
						same++
					}
				}
			}
			lists, texts = append(lists, list), append(texts, string(b))
		}
		for i, list := range lists {
			if b, _ := json.Marshal(list); string(b) != texts[i] {
				t.Errorf("listing %d was %s, and is now %s", i, texts[i], b)
			}
		}
	})
	if err := l.RunUntil(loop.Epoch().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if same < 10 {
		t.Errorf("%d pictures were kept", same)
	}
}

// Of more changes than are kept only a listing of everything is left, in which
// pods that are gone are missing.
func TestListingOfEverythingForgets(t *testing.T) {
	const pods = 100
	l := loop.New(loop.Options{Name: "n"})
	defer l.Close()
	rt := fakecri.New(fakecri.Options{Loop: l, PodCIDR: "10.0.0.0/16"})
	rt.StartDaemon()
	g := l.NewGroup("kubelet")
	c := rt.Client(g)
	m, err := kuberuntime.New(kuberuntime.Options{Loop: l, Group: g, RuntimeService: c, ImageService: c, Changes: c})
	if err != nil {
		t.Fatal(err)
	}
	g.Go("lists", func(ctx context.Context) {
		var ids []string
		for i := range pods {
			uid := fmt.Sprint("uid-", i)
			id, err := c.RunPodSandbox(ctx, &runtimeapi.PodSandboxConfig{
				Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: uid},
				Labels:   map[string]string{"io.kubernetes.pod.uid": uid}, Linux: &runtimeapi.LinuxPodSandboxConfig{},
			}, "")
			if err != nil {
				t.Error(err)
			}
			ids = append(ids, id)
		}
		for _, left := range []int{pods, 5} {
			for _, id := range ids[left:] {
				if err := c.RemovePodSandbox(ctx, id); err != nil {
					t.Error(err)
				}
			}
			if list, err := m.ListPods(ctx, true); err != nil || len(list) != left {
				t.Errorf("%d pods are listed, not %d: %v", len(list), left, err)
			}
		}
	})
	if err := l.RunUntil(loop.Epoch().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

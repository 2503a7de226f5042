package fakecri

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
)

// mirror is what a caller knows who lists changes only.
type mirror struct {
	c                     *Client
	sandboxes, containers map[string][]string // by pod
}

func newMirror(c *Client) *mirror {
	return &mirror{c: c.Prompt(), sandboxes: map[string][]string{}, containers: map[string][]string{}}
}

// list lists one pod, or all if uid is "", and compares what is known by then with
// the listings in full.
func (m *mirror) list(uid string) error {
	if !m.c.Answers("ListPodSandbox") || !m.c.Answers("ListContainers") {
		return nil
	}
	ctx := context.Background()
	pods, sandboxes, all, err := m.c.ListPodSandboxChanges(ctx, uid)
	if err != nil {
		return err
	}
	if all {
		clear(m.sandboxes)
	}
	for i, p := range pods {
		delete(m.sandboxes, p.Uid)
		for _, s := range sandboxes[i] {
			m.sandboxes[p.Uid] = append(m.sandboxes[p.Uid], s.Id+s.State.String())
		}
	}
	pods, containers, all, err := m.c.ListContainersChanges(ctx, uid)
	if err != nil {
		return err
	}
	if all {
		clear(m.containers)
	}
	for i, p := range pods {
		delete(m.containers, p.Uid)
		for _, c := range containers[i] {
			m.containers[p.Uid] = append(m.containers[p.Uid], c.Id+c.State.String())
		}
	}
	return m.compare(uid)
}

func (m *mirror) compare(uid string) error {
	sandboxes, containers := map[string][]string{}, map[string][]string{}
	for _, s := range m.c.r.recs.ListSandboxes(nil) {
		sandboxes[s.Metadata.Uid] = append(sandboxes[s.Metadata.Uid], s.Id+s.State.String())
	}
	for _, c := range m.c.r.recs.ListContainers(nil) {
		pod := c.Labels[records.LabelPodUID]
		containers[pod] = append(containers[pod], c.Id+c.State.String())
	}
	if uid != "" {
		if !slices.Equal(m.sandboxes[uid], sandboxes[uid]) || !slices.Equal(m.containers[uid], containers[uid]) {
			return fmt.Errorf("pod %s: %v %v, listed are %v %v", uid, m.sandboxes[uid], m.containers[uid], sandboxes[uid], containers[uid])
		}
		return nil
	}
	if !reflect.DeepEqual(m.sandboxes, sandboxes) || !reflect.DeepEqual(m.containers, containers) {
		return fmt.Errorf("%v %v, listed are %v %v", m.sandboxes, m.containers, sandboxes, containers)
	}
	return nil
}

// What has not changed is not told again, and a caller hears of each change
// however many others list.
func TestListChanges(t *testing.T) {
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		lists := func(pod string) (told []string) {
			pods, _, _, err := e.c.ListPodSandboxChanges(e.ctx, pod)
			e.ok(err)
			for _, p := range pods {
				told = append(told, p.Name+" sandboxes")
			}
			pods, _, _, err = e.c.ListContainersChanges(e.ctx, pod)
			e.ok(err)
			for _, p := range pods {
				told = append(told, p.Name+" containers")
			}
			return told
		}
		want := func(got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				e.Fatalf("told of %q, want %q", got, want)
			}
		}
		other := e.rt.Client(e.l.Root())
		a := e.sandbox("a", 0)
		c := e.start(a, "a", "app", 0)
		e.sandbox("b", 0)
		want(lists(""), "a sandboxes", "b sandboxes", "a containers")
		want(lists(""))
		_, _, all, err := other.ListContainersChanges(e.ctx, "")
		e.ok(err)
		if !all {
			e.Fatalf("a caller's first listing is not of everything")
		}
		e.ok(e.c.StopContainer(e.ctx, c, 0))
		want(lists("uid-b"))
		want(lists("uid-a"), "a containers")
		want(lists(""))
		if pods, _, _, err := other.ListContainersChanges(e.ctx, ""); err != nil || len(pods) != 1 {
			e.Fatalf("%v %v", pods, err)
		}
		e.ok(e.c.StopPodSandbox(e.ctx, a))
		e.ok(e.c.RemovePodSandbox(e.ctx, a))
		want(lists(""), "a sandboxes", "a containers") // gone, both
		if !e.c.ListsChanges() {
			e.Fatalf("everything is labelled")
		}
		_, err = e.c.RunPodSandbox(e.ctx, &runtimeapi.PodSandboxConfig{Metadata: podConfig("x", 0).Metadata, Labels: map[string]string{records.LabelPodUID: "y"}}, "")
		e.ok(err)
		if e.c.ListsChanges() {
			e.Fatalf("a sandbox is labelled with another pod's UID")
		}
	})
}

// More changes than are kept end in a listing of everything.
func TestListManyChanges(t *testing.T) {
	l := loop.New(loop.Options{Name: "node"})
	defer l.Close()
	rt := New(Options{Loop: l, PodCIDR: "10.0.0.0/16"})
	rt.StartDaemon()
	g := l.NewGroup("caller")
	g.Go("caller", func(ctx context.Context) {
		c := rt.Client(g)
		m := newMirror(c)
		for n := range 2 {
			for i := range records.MaxChangedPods + n {
				if _, err := c.RunPodSandbox(ctx, podConfig(fmt.Sprint(n, "-", i), 0), ""); err != nil {
					t.Error(err)
				}
			}
			if err := m.list(""); err != nil {
				t.Error(err)
			}
		}
	})
	l.RunUntil(loop.Epoch().Add(time.Hour))
}

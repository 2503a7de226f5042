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
	"github.com/drydock-sim/drydock/ground/lists"
)

// TestListingsOfAPodAreByCreation: of two sandboxes of a pod that are made at the same time the one
// that is there first is listed first, whoever looks.
func TestListingsOfAPodAreByCreation(t *testing.T) {
	run(t, Options{Images: []Image{appImage}, Latency: map[string]Range{"RunPodSandbox": {Min: time.Millisecond, Max: time.Second}}}, func(e *env) {
		pods := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		for _, pod := range pods {
			for attempt := range uint32(2) {
				e.g.Go("run", func(ctx context.Context) {
					_, err := e.c.RunPodSandbox(ctx, podConfig(pod, attempt), "")
					e.ok(err)
				})
			}
		}
		e.sleep(10 * time.Second)
		all, err := e.c.ListPodSandbox(e.ctx, nil)
		e.ok(err)
		second := 0
		for _, pod := range pods {
			var want []string
			for _, s := range all {
				if s.Metadata.Name == pod {
					want = append(want, s.Id)
					if len(want) == 1 {
						second += int(s.Metadata.Attempt)
					}
				}
			}
			got, err := e.c.ListPodSandbox(e.ctx, &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{records.LabelPodUID: "uid-" + pod}})
			e.ok(err)
			if ids := lists.Map(got, func(s *runtimeapi.PodSandbox) string { return s.Id }); len(want) != 2 || !slices.Equal(ids, want) {
				t.Errorf("%s: %q, in the whole listing %q", pod, ids, want)
			}
		}
		if second == 0 || second == len(pods) {
			t.Errorf("of %d pods the second call was done first %d times", len(pods), second)
		}
	})
}

func TestFilters(t *testing.T) {
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		ids := map[string]string{} // by letter
		names := map[string]string{}
		add := func(letter, id string) { ids[letter], names[id] = id, letter }
		add("A", e.sandbox("a", 0))
		add("B", e.sandbox("b", 0))
		add("C", e.sandbox("a", 1))
		add("1", e.create(ids["A"], "a", "x", 0))
		add("2", e.start(ids["B"], "b", "x", 0))
		add("3", e.start(ids["A"], "a", "y", 0))
		add("4", e.start(ids["C"], "a", "x", 1))
		e.ok(e.c.StopContainer(e.ctx, ids["3"], 0))
		e.ok(e.c.StopPodSandbox(e.ctx, ids["C"]))
		ready := &runtimeapi.PodSandboxStateValue{State: records.SandboxReady}
		notReady := &runtimeapi.PodSandboxStateValue{State: records.SandboxNotReady}
		l := func(kv ...string) map[string]string {
			out := map[string]string{}
			for i := 0; i < len(kv); i += 2 {
				out[kv[i]] = kv[i+1]
			}
			return out
		}
		for _, tc := range []struct {
			f    *runtimeapi.PodSandboxFilter
			want string
		}{
			{nil, "ABC"},
			{&runtimeapi.PodSandboxFilter{}, "ABC"},
			{&runtimeapi.PodSandboxFilter{Id: ids["B"]}, "B"},
			{&runtimeapi.PodSandboxFilter{Id: ids["B"], State: notReady}, ""},
			{&runtimeapi.PodSandboxFilter{Id: "none"}, ""},
			{&runtimeapi.PodSandboxFilter{Id: ids["1"]}, ""},
			{&runtimeapi.PodSandboxFilter{State: ready}, "AB"},
			{&runtimeapi.PodSandboxFilter{State: notReady}, "C"},
			{&runtimeapi.PodSandboxFilter{LabelSelector: l(records.LabelPodUID, "uid-a")}, "AC"},
			{&runtimeapi.PodSandboxFilter{LabelSelector: l(records.LabelPodUID, "uid-a"), State: ready}, "A"},
			{&runtimeapi.PodSandboxFilter{LabelSelector: l(records.LabelPodUID, "uid-a", "app", "b")}, ""},
			{&runtimeapi.PodSandboxFilter{LabelSelector: l(records.LabelPodUID, "uid-z")}, ""},
			{&runtimeapi.PodSandboxFilter{LabelSelector: l("app", "b")}, "B"},
			{&runtimeapi.PodSandboxFilter{LabelSelector: l("app", "")}, ""},
			{&runtimeapi.PodSandboxFilter{LabelSelector: l("none", "")}, ""},
		} {
			got, err := e.c.ListPodSandbox(e.ctx, tc.f)
			e.ok(err)
			text := ""
			for _, s := range got {
				text += names[s.Id]
			}
			if text != tc.want {
				t.Errorf("sandboxes %v: %q, want %q", tc.f, text, tc.want)
			}
		}
		state := func(s runtimeapi.ContainerState) *runtimeapi.ContainerStateValue {
			return &runtimeapi.ContainerStateValue{State: s}
		}
		for _, tc := range []struct {
			f    *runtimeapi.ContainerFilter
			want string
		}{
			{nil, "1234"},
			{&runtimeapi.ContainerFilter{}, "1234"},
			{&runtimeapi.ContainerFilter{Id: ids["3"]}, "3"},
			{&runtimeapi.ContainerFilter{Id: ids["3"], PodSandboxId: ids["B"]}, ""},
			{&runtimeapi.ContainerFilter{Id: "none"}, ""},
			{&runtimeapi.ContainerFilter{State: state(records.StateCreated)}, "1"},
			{&runtimeapi.ContainerFilter{State: state(records.StateRunning)}, "2"},
			{&runtimeapi.ContainerFilter{State: state(records.StateExited)}, "34"},
			{&runtimeapi.ContainerFilter{State: state(records.StateUnknown)}, ""},
			{&runtimeapi.ContainerFilter{PodSandboxId: ids["A"]}, "13"},
			{&runtimeapi.ContainerFilter{PodSandboxId: ids["A"], State: state(records.StateExited)}, "3"},
			{&runtimeapi.ContainerFilter{PodSandboxId: "none"}, ""},
			{&runtimeapi.ContainerFilter{LabelSelector: l(records.LabelPodUID, "uid-a")}, "134"},
			{&runtimeapi.ContainerFilter{LabelSelector: l(records.LabelPodUID, "uid-a", "c", "x")}, "14"},
			{&runtimeapi.ContainerFilter{LabelSelector: l("c", "x")}, "124"},
			{&runtimeapi.ContainerFilter{LabelSelector: l(records.LabelPodUID, "uid-z")}, ""},
		} {
			got, err := e.c.ListContainers(e.ctx, tc.f)
			e.ok(err)
			text := ""
			for _, c := range got {
				text += names[c.Id]
			}
			if text != tc.want {
				t.Errorf("containers %v: %q, want %q", tc.f, text, tc.want)
			}
		}
	})
}

// The index by pod uid must not hide what carries another pod's uid label.
func TestFilterWithForeignLabel(t *testing.T) {
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		cfg := podConfig("a", 0)
		cfg.Labels = map[string]string{records.LabelPodUID: "uid-b"}
		sb, err := e.c.RunPodSandbox(e.ctx, cfg, "")
		e.ok(err)
		e.create(sb, "c", "main", 0)
		byUID := func(uid string) string {
			sel := map[string]string{records.LabelPodUID: uid}
			ss, err := e.c.ListPodSandbox(e.ctx, &runtimeapi.PodSandboxFilter{LabelSelector: sel})
			e.ok(err)
			cs, err := e.c.ListContainers(e.ctx, &runtimeapi.ContainerFilter{LabelSelector: sel})
			e.ok(err)
			return fmt.Sprint(len(ss), len(cs))
		}
		if got := byUID("uid-a") + "," + byUID("uid-b") + "," + byUID("uid-c"); got != "0 0,1 0,0 1" {
			t.Errorf("got %s", got)
		}
		e.ok(e.c.RemovePodSandbox(e.ctx, sb))
		if e.rt.recs.Mislabelled != 0 {
			t.Errorf("mislabelled %d", e.rt.recs.Mislabelled)
		}
	})
}

func TestGenerationAndLists(t *testing.T) {
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		sb := e.sandbox("a", 0)
		id := e.start(sb, "a", "main", 0)
		gen := e.c.Generation()
		list := func() ([]*runtimeapi.PodSandbox, []*runtimeapi.Container) {
			ss, err := e.c.ListPodSandbox(e.ctx, nil)
			e.ok(err)
			cs, err := e.c.ListContainers(e.ctx, &runtimeapi.ContainerFilter{})
			e.ok(err)
			return ss, cs
		}
		s1, c1 := list()
		s2, c2 := list()
		if !reflect.DeepEqual(s1, s2) || !reflect.DeepEqual(c1, c2) || e.c.Generation() != gen {
			t.Error("nothing changed, but the lists or the generation did")
		}
		entry := c1[0]
		e.ok(e.c.StopContainer(e.ctx, id, 0))
		if e.c.Generation() <= gen {
			t.Error("the generation did not grow with an exit")
		}
		_, c3 := list()
		if entry.State != records.StateRunning || c3[0].State != records.StateExited || c1[0] != entry {
			t.Error("an entry that was handed out changed")
		}
		gen = e.c.Generation()
		for name, fn := range map[string]func(){
			"stop":   func() { e.ok(e.c.StopPodSandbox(e.ctx, sb)) },
			"create": func() { e.create(e.sandbox("b", 0), "b", "main", 0) },
			"remove": func() { e.ok(e.c.RemoveContainer(e.ctx, id)) },
			"daemon": func() { e.rt.StopDaemon(); e.rt.StartDaemon() },
		} {
			fn()
			if e.c.Generation() <= gen {
				t.Errorf("%s: the generation did not grow", name)
			}
			gen = e.c.Generation()
		}
		remove := e.rt.calls.AddFault(Fault{Method: "ListContainers", Error: &FaultError{}})
		if a, b := e.c.Generation(), e.c.Generation(); a == b {
			t.Error("a faulted listing must not be skipped")
		}
		remove()
		if a, b := e.c.Generation(), e.c.Generation(); a != b {
			t.Error("the generation grows without a fault")
		}
	})
}

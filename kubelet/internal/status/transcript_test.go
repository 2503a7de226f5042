package status

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/transcript"
)

// TestTranscripts runs the stories of testdata, of a status manager, its API
// (10 ms away) and its pod manager. Pods have the UID uid-NAME. The commands:
//
//	kubelet                                  a new world
//	pod NAME [policy=Never] [of=(a,i:b)]     i: init container; static: known to the kubelet only
//	status NAME [a=running] [a=(exited,1)] [terminal]
//	echo NAME                                the pod manager sees the API's pod
//	api NAME replaced|removed|deleted|spoilt somebody else changes the API's pod
//	mirror NAME UID                          the API has a mirror pod of a static one
//	fail VERB conflict|unreachable, heal
//	ready NAME CONTAINER yes|no, started ...
//	ended                                    no container may run any more
//	terminate NAME
//	forget                                   no pod exists any more
//	cached UID
//	run 10s
//
// A run shows the requests in it, with the time since the start, and the status
// that the API has of a pod if that has changed.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T) func(c *transcript.Command) string {
		var s *story
		return func(c *transcript.Command) string {
			if c.Name == "kubelet" {
				s = &story{t: t, shown: map[string]string{}}
				s.m, s.w, s.l = newManager(t)
				return ""
			}
			return s.do(c)
		}
	})
}

type story struct {
	t     *testing.T
	m     *Manager
	w     *world
	l     *loop.Loop
	shown map[string]string // of the API's pods
}

func (s *story) do(c *transcript.Command) string {
	switch c.Name {
	case "pod":
		p := testPod(v1.RestartPolicy(c.Text("policy", "Always")), strings.Split(c.Text("of", "a"), ",")...)
		p.Name, p.UID = c.Word(0), types.UID("uid-"+c.Word(0))
		if s.w.pods[p.UID] = p; c.Has("static") {
			p.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		} else {
			s.w.api[p.Name] = p
		}
	case "status":
		s.status(c)
	case "echo":
		s.w.echo(s.m, c.Word(0))
	case "api":
		s.api(c.Word(0), c.Word(1))
	case "mirror":
		p := s.pod(c)
		mirror := *p
		mirror.UID, mirror.Status = types.UID(c.Word(1)), v1.PodStatus{Phase: v1.PodPending}
		mirror.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
		s.w.api[p.Name], s.w.mirrors[p.UID] = &mirror, &mirror
		s.m.PodChanged(mirror.UID)
	case "fail":
		s.w.fail[c.Word(0)] = map[string]error{
			"conflict": apierrors.NewConflict(podResource, "p", errors.New("changed")), "unreachable": errors.New("no route"),
		}[c.Word(1)]
	case "heal":
		clear(s.w.fail)
	case "ready", "started":
		id := kubecontainer.ContainerID{Type: "containerd", ID: "id-" + c.Word(1) + "-running"}
		set := s.m.SetContainerReadiness
		if c.Name == "started" {
			set = s.m.SetContainerStartup
		}
		set(s.pod(c).UID, id, c.Word(2) == "yes")
	case "ended":
		s.w.mayRun = false
	case "terminate":
		s.m.TerminatePod(s.pod(c))
	case "forget":
		s.m.RemoveOrphanedStatuses(func(types.UID) bool { return false })
	case "cached":
		if have, ok := s.m.GetPodStatus(types.UID(c.Word(0))); ok {
			return "cached: " + text(have) + "\n"
		}
		return "not cached\n"
	case "run":
		s.w.run(s.t, c.For())
		return s.told()
	default:
		c.Fatalf("no such command")
	}
	return ""
}

// pod is the pod manager's.
func (s *story) pod(c *transcript.Command) *v1.Pod { return s.w.pods[types.UID("uid-"+c.Word(0))] }

func (s *story) status(c *transcript.Command) {
	p := s.pod(c)
	var entries []string
	old, _ := s.m.GetPodStatus(p.UID)
	mods := []func(*Input){func(in *Input) { in.Old = old }}
	c.Each(1, func(key string, vals []string) {
		if key == "terminal" {
			mods = append(mods, terminal)
		} else {
			entries = append(entries, key+" "+strings.Join(vals, " "))
		}
	})
	s.m.SetPodStatus(p, generate(p, runtimeOf(true, entries...), mods...))
}

func (s *story) api(name, what string) {
	next := *s.w.api[name]
	switch what {
	case "removed":
		delete(s.w.api, name)
		return
	case "replaced":
		next.UID = "other"
	case "deleted":
		next.DeletionTimestamp = &metav1.Time{Time: t0}
	case "spoilt":
		next.Status.Conditions, next.Status.Phase = nil, v1.PodPending
	}
	s.w.api[name] = &next
	s.shown[name] = text(&next.Status)
}

func (s *story) told() string {
	var out strings.Builder
	for _, line := range s.w.timed {
		fmt.Fprintln(&out, line)
	}
	s.w.timed = nil
	for _, name := range slices.Sorted(maps.Keys(s.shown)) {
		if s.w.api[name] == nil {
			delete(s.shown, name)
			fmt.Fprintf(&out, "the API has no %s\n", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.w.api)) {
		if now := text(&s.w.api[name].Status); now != s.shown[name] {
			s.shown[name] = now
			fmt.Fprintf(&out, "%s: %s\n", name, now)
		}
	}
	return out.String()
}

// text is a status in a line.
func text(s *v1.PodStatus) string {
	out := string(s.Phase)
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			out += "; " + describe(&list[i])
			if list[i].Started != nil && *list[i].Started {
				out += " started"
			}
		}
	}
	if c := FindCondition(s.Conditions, v1.PodReady); c != nil {
		out += "; Ready=" + conditionText(s, v1.PodReady)
	}
	return out
}

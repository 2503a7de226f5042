package sim_test

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// lifeWatch follows a run and holds each change to what may never be.
type lifeWatch struct {
	r          *lifeRun
	uids       map[string]bool // of every pod there was
	ended      map[string]int64
	containers map[string]fakecri.ContainerInfo // as last seen
	inits      map[string]*v1.Pod               // by UID
}

func (w *lifeWatch) init(r *lifeRun) {
	*w = lifeWatch{r: r, uids: map[string]bool{}, ended: map[string]int64{}, containers: map[string]fakecri.ContainerInfo{}, inits: map[string]*v1.Pod{}}
	r.c.API().OnChange(w.changed)
}

// changed judges a write to the API.
func (w *lifeWatch) changed(c apiserver.Change) {
	now, ok := c.New.(*v1.Pod)
	if !ok {
		return
	}
	w.uids[string(now.UID)] = true
	w.inits[string(now.UID)] = now
	if now.Status.ObservedGeneration > now.Generation {
		w.r.fail("pod %s: observedGeneration %d, generation %d", now.Name, now.Status.ObservedGeneration, now.Generation)
	}
	if terminal(now) {
		if w.ended[string(now.UID)] == 0 {
			w.ended[string(now.UID)] = w.r.c.API().Loop().UnixNano()
		}
	}
	if c.Type != watch.Modified {
		return
	}
	old := c.Old.(*v1.Pod)
	// A deadline that passes while a pod is being terminated makes its last
	// status Failed, whatever it was; upstream looks at it in each status generation.
	if terminal(old) && old.Status.Phase != now.Status.Phase && now.Status.Reason != "DeadlineExceeded" {
		w.r.fail("pod %s was %s and is %s", now.Name, old.Status.Phase, now.Status.Phase)
	}
	// A mirror pod shows for a moment the static pod that comes after its own.
	if mirror := now.Annotations[v1.MirrorPodAnnotationKey]; w.r.cuts[now.Spec.NodeName] || mirror != "" {
		return
	}
	for _, lists := range [][2][]v1.ContainerStatus{{old.Status.InitContainerStatuses, now.Status.InitContainerStatuses}, {old.Status.ContainerStatuses, now.Status.ContainerStatuses}} {
		for _, was := range lists[0] {
			for _, is := range lists[1] {
				if is.Name == was.Name && is.RestartCount < was.RestartCount {
					w.r.fail("pod %s: restartCount of %s goes from %d to %d", now.Name, is.Name, was.RestartCount, is.RestartCount)
				}
			}
		}
	}
}

// look takes note of what the runtimes have.
func (w *lifeWatch) look() {
	for _, n := range w.r.c.Nodes() {
		for _, s := range n.Runtime().Sandboxes() {
			w.uids[s.UID] = true
		}
		all := n.Runtime().Containers()
		alive := map[[2]string]string{}
		for _, c := range all {
			if c.Alive {
				key := [2]string{c.UID, c.Name}
				if alive[key] != "" {
					w.r.fail("%s: pod %s has two containers %s that run", n.Name(), c.Pod, c.Name)
				}
				alive[key] = c.ID
			}
			if old, ok := w.containers[c.ID]; !ok || old.StartedAt == 0 && c.StartedAt != 0 {
				w.started(c, all)
			}
			w.containers[c.ID] = c
		}
	}
}

// started judges a container that was not seen running before.
func (w *lifeWatch) started(c fakecri.ContainerInfo, all []fakecri.ContainerInfo) {
	if c.StartedAt == 0 {
		return
	}
	if at := w.ended[c.UID]; at != 0 && c.StartedAt > at {
		w.r.fail("container %s of pod %s was started %.3f s after the pod had ended", c.Name, c.Pod, float64(c.StartedAt-at)/1e9)
	}
	for id, o := range w.containers {
		if id != c.ID && o.UID == c.UID && o.Name == c.Name && o.StartedAt < c.StartedAt && o.FinishedAt > c.StartedAt {
			w.r.fail("container %s of pod %s was started while its forerunner ran", c.Name, c.Pod)
		}
	}
	pod := w.inits[c.UID]
	if pod == nil || slices.ContainsFunc(all, func(o fakecri.ContainerInfo) bool { return misleads(pod, c, o) }) {
		return
	}
	// Whatever comes after an init container in the manifest starts after that
	// has succeeded in the same sandbox, unless it is no more to be seen.
	for i := range pod.Spec.InitContainers {
		init := &pod.Spec.InitContainers[i]
		if init.Name == c.Name || slices.ContainsFunc(pod.Spec.EphemeralContainers, func(e v1.EphemeralContainer) bool { return e.Name == c.Name }) {
			break
		}
		if init.RestartPolicy != nil && *init.RestartPolicy == v1.ContainerRestartPolicyAlways {
			continue
		}
		seen, done := false, false
		for _, o := range slices.Concat(all, slices.Collect(maps.Values(w.containers))) {
			if o.SandboxID == c.SandboxID && o.Name == init.Name {
				seen = true
				done = done || o.FinishedAt != 0 && o.FinishedAt <= c.StartedAt && o.ExitCode == 0
			}
		}
		if seen && !done {
			w.r.fail("container %s of pod %s was started before its init container %s had succeeded", c.Name, c.Pod, init.Name)
		}
	}
}

// misleads reports whether a container o of an earlier sandbox makes upstream,
// which can't tell the sandboxes apart, take c's pod for further than it is: one
// that was created and never started, or one of an init container that could
// not be removed.
func misleads(pod *v1.Pod, c, o fakecri.ContainerInfo) bool {
	if o.UID != c.UID || o.SandboxID == c.SandboxID || o.CreatedAt == 0 {
		return false
	}
	return o.StartedAt == 0 && o.FinishedAt == 0 ||
		slices.ContainsFunc(pod.Spec.InitContainers, func(i v1.Container) bool { return i.Name == o.Name })
}

//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// container is one of the runtime's.
type container struct {
	// pod is without the node's suffix, as the manifests call it.
	pod, name, id string
	attempt       uint32
	state         runtimeapi.ContainerState
	sandbox       string
	exit          int32
}

// world is what the runtime has of the soak's pods. It is a fresh look each time:
// nothing is concluded from an older one. exit is asked for of ended containers alone: a status
// costs a call each.
type world struct {
	containers []container
	// sandboxes are the IDs of those that are ready, by pod.
	sandboxes map[string][]string
}

// nodeSuffix is what the kubelet adds to the names of static pods.
const nodeSuffix = "-soak"

// look lists the runtime's pods. Pods of others are left out. Others' pods may run on the same
// runtime; the node's name keeps them apart.
func look(ctx context.Context, rt internalapi.RuntimeService) (*world, error) {
	w := &world{sandboxes: map[string][]string{}}
	boxes, err := rt.ListPodSandbox(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	for _, b := range boxes {
		if name, ok := strings.CutSuffix(b.GetMetadata().GetName(), nodeSuffix); ok && b.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			w.sandboxes[name] = append(w.sandboxes[name], b.Id)
		}
	}
	list, err := rt.ListContainers(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	// A pod's name is in the labels that the kubelet gives its containers.
	for _, c := range list {
		pod, ok := strings.CutSuffix(c.Labels["io.kubernetes.pod.name"], nodeSuffix)
		if !ok {
			continue
		}
		k := container{pod: pod, name: c.GetMetadata().GetName(), id: c.Id, attempt: c.GetMetadata().GetAttempt(), state: c.State, sandbox: c.PodSandboxId}
		if c.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			if s, err := rt.ContainerStatus(ctx, c.Id, false); err == nil { // it may be removed meanwhile
				k.exit = s.GetStatus().GetExitCode()
			}
		}
		w.containers = append(w.containers, k)
	}
	return w, nil
}

// newest is a container's run with the highest attempt. Older attempts stay
// listed until they are collected. The attempt is the kubelet's own count, in the container's
// metadata.
func (w *world) newest(pod, name string) (container, bool) {
	var out container
	found := false
	for _, c := range w.containers {
		if c.pod == pod && c.name == name && (!found || c.attempt > out.attempt) {
			out, found = c, true
		}
	}
	return out, found
}

// unsettled says what is not yet as it should be. Each text names a container,
// since it is all that is printed when time is up. An empty result is what settle waits for.
func (w *world) unsettled(list []soakPod) (wrong []string) {
	for _, p := range list {
		switch p.kind {
		case runs:
			for _, name := range p.containers {
				c, ok := w.newest(p.name, name)
				if !ok || c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
					wrong = append(wrong, fmt.Sprintf("container %s of pod %s does not run (%s, exit code %d)", name, p.name, c.state, c.exit))
				}
			}
		// That it was restarted once is enough to begin with; result wants more.
		case restarts:
			if c, ok := w.newest(p.name, "main"); !ok || c.attempt < 1 {
				wrong = append(wrong, fmt.Sprintf("pod %s was not restarted yet", p.name))
			}
		case completes:
			c, ok := w.newest(p.name, "main")
			if !ok || c.state != runtimeapi.ContainerState_CONTAINER_EXITED || c.attempt != p.last || c.exit != 0 {
				wrong = append(wrong, fmt.Sprintf("pod %s has not completed (attempt %d, %s, exit code %d)", p.name, c.attempt, c.state, c.exit))
			}
		}
	}
	return wrong
}

// running are the containers that are to run all the time. Those of pods that
// restart or complete come and go, and are counted instead. A container that is missing has an
// empty ID, which differences passes over.
func (w *world) running(list []soakPod) map[string]container {
	out := map[string]container{}
	for _, p := range list {
		if p.kind != runs {
			continue
		}
		for _, name := range p.containers {
			c, _ := w.newest(p.name, name)
			out[p.name+"/"+name] = c
		}
	}
	return out
}

// differences says what is not as it was, of what should be. A container has to
// be the same one, in the same sandbox: one that was replaced by an equal one was
// restarted. known is what was found when all was well.
func (w *world) differences(list []soakPod, known map[string]container) (out []string) {
	for _, p := range list {
		// A new kubelet that does not know a sandbox makes another beside it.
		if n := len(w.sandboxes[p.name]); n > 1 {
			out = append(out, fmt.Sprintf("pod %s has %d sandboxes", p.name, n))
		}
		switch p.kind {
		case runs:
			for _, name := range p.containers {
				was := known[p.name+"/"+name]
				if was.id == "" {
					continue // told before
				}
				if c, _ := w.newest(p.name, name); c.id != was.id || c.state != runtimeapi.ContainerState_CONTAINER_RUNNING || c.sandbox != was.sandbox {
					out = append(out, fmt.Sprintf("container %s of pod %s was %s (attempt %d), is %s (attempt %d, %s, exit code %d)",
						name, p.name, short(was.id), was.attempt, short(c.id), c.attempt, c.state, c.exit))
				}
			}
		// A kubelet that lost count would make an attempt again. Attempts are unique within a
		// pod: the kubelet counts on from what the runtime still lists.
		case restarts:
			seen := map[uint32]string{}
			for _, c := range w.containers {
				if c.pod != p.name || c.name != "main" {
					continue
				}
				if other, twice := seen[c.attempt]; twice {
					out = append(out, fmt.Sprintf("pod %s has attempt %d twice: %s and %s", p.name, c.attempt, short(c.id), short(other)))
				}
				seen[c.attempt] = c.id
			}
		case completes:
			if c, ok := w.newest(p.name, "main"); ok && (c.attempt != p.last || c.state != runtimeapi.ContainerState_CONTAINER_EXITED) {
				out = append(out, fmt.Sprintf("pod %s had completed, and is at attempt %d, %s", p.name, c.attempt, c.state))
			}
		}
	}
	return out
}

// attempts are the highest attempts of the containers called main, by pod. Every pod's counted
// container is called main.
func (w *world) attempts() map[string]uint32 {
	out := map[string]uint32{}
	for _, c := range w.containers {
		if c.name == "main" {
			out[c.pod] = max(out[c.pod], c.attempt)
		}
	}
	return out
}

// alive names what runs. Sorted, since it is printed.
func (w *world) alive() (out []string) {
	for _, c := range w.containers {
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			out = append(out, "container "+c.name+" of pod "+c.pod)
		}
	}
	for pod := range w.sandboxes {
		out = append(out, "sandbox of pod "+pod)
	}
	slices.Sort(out)
	return out
}

// short is an ID as people read it.
func short(id string) string {
	if id == "" {
		return "none"
	}
	return id[:min(len(id), 12)]
}

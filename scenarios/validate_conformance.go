package scenarios

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// ActorImage is the base name of the images whose containers a runtime outside
// can run in place of the simulated one's.
const ActorImage = "drydock-actor"

// conformance refuses a mark on a scenario that only a simulated runtime could
// run: the first reason of each part is named.
func (v *validator) conformance() {
	sp := &v.s.Spec
	c := sp.Conformance
	if c == nil {
		return
	}
	for i, n := range c.Needs {
		if !has(ConformanceNeeds(), n) {
			v.errorf(fmt.Sprintf("spec.conformance.needs[%d]", i), "%q is none of %s%s", short(n), strings.Join(ConformanceNeeds(), ", "), suggest.Suffix(n, ConformanceNeeds()))
		}
	}
	const outside = "a scenario for conformance runs against a runtime outside: "
	if len(v.names) > 1 || len(sp.Nodes) > 1 {
		v.errorf("spec.nodes", outside+"it has one node")
	}
	if len(sp.Programs) > 0 {
		v.errorf("spec.programs", outside+"what its containers do cannot be stated; use the commands of %s", ActorImage)
	}
	if len(sp.API.Faults) > 0 {
		v.errorf("spec.api.faults", outside+"there are no faults")
	}
	for i := range sp.Nodes {
		if r := &sp.Nodes[i].Runtime; r.Latency != nil || r.OnlyListedImages || r.Name != "" || r.Version != "" || r.CgroupDriver != "" {
			v.errorf(fmt.Sprintf("spec.nodes[%d].runtime", i), outside+"it is not described")
		}
	}
	for i := range sp.Nodes {
		g := &sp.Nodes[i]
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"usage", g.Usage != nil}, {"filesystems", g.Filesystems != nil}, {"swap", g.Swap != nil},
			{"pidMax", g.PIDMax != nil}, {"threadsMax", g.ThreadsMax != nil}, {"inhibitDelay", g.InhibitDelay != 0},
		} {
			if f.set {
				v.errorf(fmt.Sprintf("spec.nodes[%d].%s", i, f.name), outside+"the machine is as it is")
			}
		}
	}
	for i := range sp.Timeline {
		at := fmt.Sprintf("spec.timeline[%d]", i)
		if name := sp.Timeline[i].simulatedOnly(); name != "" {
			v.errorf(at+"."+name, outside+"there is no %s", name)
		}
	}
	for _, w := range v.d.l.written {
		if pod, ok := w.obj.(*v1.Pod); ok {
			v.actorsOnly(pod)
		}
	}
}

// simulatedOnly returns the name of an action that a machine outside does not
// know.
func (a *Action) simulatedOnly() string {
	switch {
	case a.Fault != nil:
		return "fault"
	case a.PowerCut != nil:
		return "powerCut"
	case a.Reboot != nil:
		return "reboot"
	case a.Shutdown != nil, a.CancelShutdown != nil, a.Boot != nil:
		field, _ := a.shutdownNodes()
		return field
	case a.Usage != nil:
		return "usage"
	case a.StopRuntime != nil:
		return "stopRuntime"
	case a.StartRuntime != nil:
		return "startRuntime"
	case a.KillSandbox != nil:
		return "killSandbox"
	}
	return ""
}

// actorsOnly wants a pod to use drydock-actor images.
func (v *validator) actorsOnly(pod *v1.Pod) {
	check := func(c, image string) {
		ref, err := reference.ParseAnyReference(image)
		if err != nil {
			return // told elsewhere, or meant
		}
		if named, ok := ref.(reference.Named); ok && baseName(reference.Path(named)) == ActorImage {
			return
		}
		v.errorf("spec.conformance", "pod %s: container %s: a scenario for conformance uses images of %s, not %q", pod.Name, c, ActorImage, short(image))
	}
	for i := range pod.Spec.InitContainers {
		check(pod.Spec.InitContainers[i].Name, pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Spec.Containers {
		check(pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Image)
	}
}

func baseName(p string) string { return p[strings.LastIndex(p, "/")+1:] }

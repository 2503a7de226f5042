package document

import (
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Conformance marks a scenario as one that `drydock conformance` runs, in real time, against a container runtime outside. Such a scenario has one node, containers of drydock-actor images, and nothing that is done to the runtime.
type Conformance struct {
	// Whether a runtime must pass it to be of use to a kubelet. required unless said.
	Level string `json:"level,omitempty" enum:"required,optional"`
	// Why it is optional, or what it takes, for the report.
	Reason string `json:"reason,omitempty"`
	// What the run must have besides a runtime; where that is missing the scenario is skipped: `podNetwork`, the pods' addresses can be reached from where the run is; `mounts`, the run may mount a tmpfs on the runtime's machine; `root`, the run may do as it likes with the files that containers make.
	Needs []string `json:"needs,omitempty"`
	// It may run beside others. Its pods then use no port of the host that another one's do.
	Parallel bool `json:"parallel,omitempty"`
}

// ConformanceNeeds are what a scenario may need besides a runtime.
func ConformanceNeeds() []string { return []string{"podNetwork", "mounts", "root"} }

// ActorImage is the base name of the images whose containers a runtime outside
// can run in place of the simulated one's.
const ActorImage = "drydock-actor"

// Check wants needs that there are.
func (c *Conformance) Check(at decode.Place) {
	for i, n := range c.Needs {
		if known := ConformanceNeeds(); !slices.Contains(known, n) {
			at.Field("needs").Index(i).Errorf("%q is none of %s%s", decode.Short(n), strings.Join(known, ", "), suggest.Suffix(n, known))
		}
	}
}

// checkConformance refuses a mark on a scenario that only a simulated runtime
// could run: the first reason of each part is named. at is the spec's place.
func (s *Scenario) checkConformance(at decode.Place, scope *value.Scope, objects []placedObject) {
	sp := &s.Spec
	if sp.Conformance == nil {
		return
	}
	const outside = "a scenario for conformance runs against a runtime outside: "
	if len(scope.Nodes) > 1 || len(sp.Nodes) > 1 {
		at.Field("nodes").Errorf(outside + "it has one node")
	}
	if len(sp.Programs) > 0 {
		at.Field("programs").Errorf(outside+"what its containers do cannot be stated; use the commands of %s", ActorImage)
	}
	if len(sp.API.Faults) > 0 {
		at.Field("api").Field("faults").Errorf(outside + "there are no faults")
	}
	for i := range sp.Nodes {
		g, at := &sp.Nodes[i], at.Field("nodes").Index(i)
		if r := &g.Runtime; r.Latency != nil || r.OnlyListedImages || r.Name != "" || r.Version != "" || r.CgroupDriver != "" {
			at.Field("runtime").Errorf(outside + "it is not described")
		}
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"usage", g.Usage != nil}, {"filesystems", g.Filesystems != nil}, {"swap", g.Swap != nil},
			{"pidMax", g.PIDMax != nil}, {"threadsMax", g.ThreadsMax != nil}, {"inhibitDelay", g.InhibitDelay != 0},
		} {
			if f.set {
				at.Field(f.name).Errorf(outside + "the machine is as it is")
			}
		}
	}
	for i := range sp.Timeline {
		a := &sp.Timeline[i]
		if _, ok := a.Does.(action.OnlySimulated); ok {
			at.Field("timeline").Index(i).Field(a.Kind()).Errorf(outside+"there is no %s", a.Kind())
		}
	}
	for _, o := range objects {
		if pod, ok := o.Object.(*v1.Pod); ok {
			actorsOnly(at.Field("conformance"), pod)
		}
	}
}

// actorsOnly wants a pod to use drydock-actor images.
func actorsOnly(at decode.Place, pod *v1.Pod) {
	check := func(c, image string) {
		ref, err := reference.ParseAnyReference(image)
		if err != nil {
			return // told elsewhere, or meant
		}
		if named, ok := ref.(reference.Named); ok && path.Base(reference.Path(named)) == ActorImage {
			return
		}
		at.Errorf("pod %s: container %s: a scenario for conformance uses images of %s, not %q", pod.Name, c, ActorImage, decode.Short(image))
	}
	for i := range pod.Spec.InitContainers {
		check(pod.Spec.InitContainers[i].Name, pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Spec.Containers {
		check(pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Image)
	}
}

package document

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// APIVersion and Kind are what a scenario document begins with.
const (
	APIVersion = "drydock.dev/v1alpha1"
	Kind       = "Scenario"
)

// Scenario is a simulated cluster, what happens to it, and what is expected.
type Scenario struct {
	// Always drydock.dev/v1alpha1.
	APIVersion string `json:"apiVersion" required:"" enum:"drydock.dev/v1alpha1"`
	// Always Scenario.
	Kind string `json:"kind" required:"" enum:"Scenario"`
	// What the scenario is called and how it is selected.
	Metadata Metadata `json:"metadata" required:""`
	// The cluster, the timeline and the expectations.
	Spec Spec `json:"spec" required:""`

	// Pos is where the document begins.
	Pos decode.Position `json:"-"`
	// Notices are what loading found that is no mistake and that a user should know:
	// what of manifests is left out, or has no effect.
	Notices []string `json:"-"`

	doc decode.Place // as written, with overrides
}

// Metadata is what the scenario is called and how it is selected.
type Metadata struct {
	// The scenario's name: lower case letters, digits and dashes.
	Name string `json:"name" required:""`
	// Labels to select scenarios by.
	Labels map[string]string `json:"labels,omitempty"`
	// Notes for tools.
	Annotations map[string]string `json:"annotations,omitempty"`
	// What the scenario shows, in a sentence or two.
	Description string `json:"description,omitempty"`
}

// Spec is the cluster, the timeline and the expectations.
type Spec struct {
	// The seed of everything that is drawn: latencies within their ranges, jitter, the order of what is simultaneous. 0 unless said; --seed overrides it.
	Seed uint64 `json:"seed,omitempty"`
	// How long the scenario lasts, in virtual time. 10m unless said.
	Duration time.Duration `json:"duration,omitempty"`
	// The nodes, in groups of equal ones.
	Nodes []NodeGroup `json:"nodes" required:""`
	// What is behind the nodes' drivers of CSI.
	Storage []VolumeStorage `json:"storage,omitempty"`
	// Servers of NFS, for volumes of that kind.
	NFS []NFSServer `json:"nfs,omitempty"`
	// How a kubelet that exits by itself comes back: `{after: 10s}` or `never`. `{after: 10s}` unless said.
	KubeletRestart *KubeletRestart `json:"kubeletRestart,omitempty"`
	// How the Kubernetes API behaves.
	API API `json:"api,omitempty"`
	// The control plane: a scheduler and all of kube-controller-manager's controllers unless said.
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// What is known of container images; any other image can be pulled too, in 1s to 3s. Images that are known by the last part of their name (busybox, nginx, postgres, ...; docs/images.md lists them) behave as those images do.
	Images []Image `json:"images,omitempty"`
	// What containers do; the first program that matches a container counts. A container without one whose command is a shell script or another command of busybox runs that command; any other exits 0 after 1s if its pod does not restart it (and if it is an ordinary init container), else it runs until it is stopped, exits 0 on SIGTERM, serves the ports that it declares, answers on every port that a probe asks it on; and every command that is run in it exits 0.
	Programs []Program `json:"programs,omitempty"`
	// What happens, and when. Actions at the same time happen in the order of the list.
	Timeline []Action `json:"timeline,omitempty"`
	// What must be true, and when.
	Expect []Expectation `json:"expect,omitempty"`
	// Marks the scenario as one that `drydock conformance` runs against a container runtime outside.
	Conformance *Conformance `json:"conformance,omitempty"`
}

// NodeNames returns the names of all nodes, group by group.
func (s *Scenario) NodeNames() []string {
	var out []string
	for i := range s.Spec.Nodes {
		out = append(out, s.Spec.Nodes[i].NodeNames()...)
	}
	return out
}

// SelectNodes returns the nodes that a selection selects, in the order of the
// scenario's nodes, each once. An empty selection selects none.
func (s *Scenario) SelectNodes(sel value.Nodes) []string { return sel.Select(s.NodeNames()) }

// Written is the document as it is written, with overrides, for who compares.
func (s *Scenario) Written() *yaml.Node { return s.doc.Node() }

// PodCount is how many pods the scenario's timeline creates itself, and static
// pods.
func (s *Scenario) PodCount() int {
	names, n := len(s.NodeNames()), 0
	for i := range s.Spec.Timeline {
		if c, ok := s.Spec.Timeline[i].Does.(action.Creator); ok {
			n += c.Pods(names)
		}
	}
	for i := range s.Spec.Nodes {
		n += len(s.Spec.Nodes[i].StaticPods) * len(s.Spec.Nodes[i].NodeNames())
	}
	return n
}

// Check checks what no image knows alone.
func (s *Spec) Check(at decode.Place) {
	checkImages(at.Field("images"), s.Images)
	s.checkStorage(at.Field("storage"))
	s.checkNFS(at.Field("nfs"))
	if c := s.ControlPlane; c != nil && len(c.PodSigners) > 0 && !s.API.Gates().PodCertificateRequest {
		at.Field("controlPlane").Field("podSigners").Errorf("needs the API's feature gate PodCertificateRequest (spec.api.featureGates)")
	}
}

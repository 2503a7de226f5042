package scale

import (
	"bytes"
	_ "embed" // the schema
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// WorkloadKind is what a workload's document begins with, beside
// scenarios.APIVersion. The schema generator and the decoder both go by it.
const WorkloadKind = "Workload"

// Workload is what pods a cluster gets, in classes with stated distributions. It
// is a document like a scenario, and is decoded and checked by the same code;
// field comments are what the schema says.
type Workload struct {
	// Always drydock.dev/v1alpha1.
	APIVersion string `json:"apiVersion" required:""`
	// Always Workload.
	Kind     string             `json:"kind" required:""`
	Metadata scenarios.Metadata `json:"metadata,omitempty"`
	Spec     WorkloadSpec       `json:"spec" required:""`
}

// WorkloadSpec is a workload's nodes, images and classes of pods.
type WorkloadSpec struct {
	// What the nodes are, by weight. Unless said, all have 16 CPUs and 64Gi.
	Nodes []NodeShape `json:"nodes,omitempty"`
	// What is known of images, as in scenarios. Any other is on the nodes from the start.
	Images []scenarios.Image `json:"images,omitempty"`
	// The pods.
	Classes []Class `json:"classes" required:""`
}

// NodeShape is what some of the nodes are.
type NodeShape struct {
	// The nodes are called name-0, name-1 and so on.
	Name string `json:"name" required:""`
	// Its part of the nodes. 1 unless said.
	Weight   *float64          `json:"weight,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Taints   []v1.Taint        `json:"taints,omitempty"`
	Capacity v1.ResourceList   `json:"capacity,omitempty"`
	// Devices that the nodes' device plugins offer, as in scenarios.
	Devices []scenarios.Devices `json:"devices,omitempty"`
}

// Class is a kind of pods. Its pods are called name-0, name-1 and so on.
type Class struct {
	// The class's name, and the value of its pods' label drydock.dev/class.
	Name string `json:"name" required:""`
	// The namespace, which is created if it is not there. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// Its part of the pods that are there first (nodes times pods per node). 0 unless said.
	Share float64 `json:"share,omitempty"`
	// How many pods are there first; instead of share. Of a DaemonSet: how many objects.
	Count int `json:"count,omitempty"`
	// How many pods, or with a controller objects, arrive each second after start-up, on average, independently of each other. None unless said.
	ArrivalRate float64 `json:"arrivalRate,omitempty"`
	// Who makes the pods. Unless said, nobody: they are created one by one, and one that is evicted is not replaced.
	Controller string `json:"controller,omitempty" enum:"Deployment,ReplicaSet,StatefulSet,Job,DaemonSet"`
	// With a controller other than DaemonSet, how many pods one object has (a Job: completions and parallelism). 10 unless said.
	Replicas *Distribution[float64] `json:"replicas,omitempty"`
	// The pod; one container of image app:1 unless said.
	Pod *PodTemplate `json:"pod,omitempty"`
	// What the first container requests, which replaces what the pod says. Rounded to two digits, so that pods share specs.
	Requests Amounts `json:"requests,omitempty"`
	// The first container's limits are its requests. No unless said.
	Guaranteed bool `json:"guaranteed,omitempty"`
	// What the first container uses, as a part of its requests. 1Mi of memory and no CPU unless said.
	Usage UsageShares `json:"usage,omitempty"`
	// How long a pod lives from its creation, or its container runs (see end). For ever unless said.
	Lifetime *Distribution[time.Duration] `json:"lifetime,omitempty"`
	// What happens then: delete (somebody deletes the pod; one that was there first is replaced) or exit (the container exits). delete unless said.
	End string `json:"end,omitempty" enum:"delete,exit"`
	// The part of containers that exit with code 1 rather than 0; with end: exit.
	Failing float64 `json:"failing,omitempty"`
}

// PodTemplate is a pod without a name.
type PodTemplate struct {
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata,omitempty"`
	Spec v1.PodSpec `json:"spec" required:""`
}

// Amounts are distributions of resources.
type Amounts struct {
	CPU    *Distribution[resource.Quantity] `json:"cpu,omitempty"`
	Memory *Distribution[resource.Quantity] `json:"memory,omitempty"`
}

// UsageShares are distributions of usage as parts of requests.
type UsageShares struct {
	CPU    *Distribution[float64] `json:"cpu,omitempty"`
	Memory *Distribution[float64] `json:"memory,omitempty"`
}

// The ways in which a class's pods end.
const (
	endDelete = "delete"
	endExit   = "exit"
)

// LabelClass is the label of generated pods that names their class.
const LabelClass = "drydock.dev/class"

// ParseWorkload reads a workload's document. Errors are scenarios.LoadErrors: all
// that is wrong, with positions. All mistakes are told, each with its line. Checks that need all
// values are made only for a document that was decoded without a mistake.
func ParseWorkload(file string, data []byte) (*Workload, error) {
	w := &Workload{}
	doc, err := scenarios.DecodeDocument(file, data, scenarios.APIVersion, WorkloadKind, w)
	if err != nil {
		return nil, err
	}
	if doc.Err() == nil {
		w.check(doc.Errorf)
	}
	return w, doc.Err()
}

// check finds what no type can say: names, shares that add up to nothing, things
// that exclude each other. What a pod may be is not repeated here: the API's own validation is
// asked about the pod that would be created.
func (w *Workload) check(bad func(field, format string, args ...any)) {
	names := map[string]bool{}
	for i := range w.Spec.Nodes {
		n, at := &w.Spec.Nodes[i], fmt.Sprintf("spec.nodes[%d]", i)
		for _, msg := range validation.IsDNS1123Label(n.Name) {
			bad(at+".name", "%q: %s", n.Name, msg)
		}
		if names[n.Name] {
			bad(at+".name", "there are two shapes %q", n.Name)
		}
		names[n.Name] = true
		if n.Weight != nil && *n.Weight <= 0 {
			bad(at+".weight", "must be more than 0")
		}
		for k := range n.Devices {
			d, at := &n.Devices[k], fmt.Sprintf("%s.devices[%d]", at, k)
			d.Problems(func(field, text string) { bad(at+"."+field, "%s", text) })
			if len(d.NUMA)+len(d.Fail) > 0 {
				bad(at, "numa and fail are for scenarios")
			}
			if slices.ContainsFunc(n.Devices[:k], func(o scenarios.Devices) bool { return o.Resource == d.Resource }) {
				bad(at+".resource", "%s is there twice", d.Resource)
			}
		}
	}
	for i, im := range scenarios.RuntimeImages(w.Spec.Images) {
		if err := im.Validate(); err != nil {
			bad(fmt.Sprintf("spec.images[%d]", i), "%v", err)
		}
	}
	if len(w.Spec.Classes) == 0 {
		bad("spec.classes", "there must be one at least")
	}
	names = map[string]bool{}
	for i := range w.Spec.Classes {
		c, at := &w.Spec.Classes[i], fmt.Sprintf("spec.classes[%d]", i)
		if names[c.Namespace+"/"+c.Name] {
			bad(at+".name", "there are two classes %q in one namespace", c.Name)
		}
		names[c.Namespace+"/"+c.Name] = true
		c.check(at, bad)
	}
}

// check finds what is wrong with a class. at is where it stands in the document.
func (c *Class) check(at string, bad func(field, format string, args ...any)) {
	for _, msg := range validation.IsDNS1123Label(c.Name) {
		bad(at+".name", "%q: %s", c.Name, msg)
	}
	if c.Namespace != "" {
		for _, msg := range validation.IsDNS1123Label(c.Namespace) {
			bad(at+".namespace", "%q: %s", c.Namespace, msg)
		}
	}
	for _, x := range []struct {
		field string
		v     float64
	}{{"share", c.Share}, {"count", float64(c.Count)}, {"arrivalRate", c.ArrivalRate}, {"failing", c.Failing}} {
		if x.v < 0 {
			bad(at+"."+x.field, "is negative")
		}
	}
	switch {
	case c.Share > 0 && c.Count > 0:
		bad(at+".count", "excludes share")
	case c.Share == 0 && c.Count == 0 && c.ArrivalRate == 0:
		bad(at, "has no pods: it needs one of share, count, arrivalRate")
	case c.Failing > 1:
		bad(at+".failing", "is a part of all, at most 1")
	case c.Lifetime == nil && (c.End != "" || c.Failing > 0):
		bad(at, "end and failing need a lifetime")
	case c.Failing > 0 && c.End != endExit:
		bad(at+".failing", "needs end: exit")
	}
	checkOne(c.Requests.CPU, at+".requests.cpu", bad)
	checkOne(c.Requests.Memory, at+".requests.memory", bad)
	checkOne(c.Usage.CPU, at+".usage.cpu", bad)
	checkOne(c.Usage.Memory, at+".usage.memory", bad)
	checkOne(c.Lifetime, at+".lifetime", bad)
	checkOne(c.Replicas, at+".replicas", bad)
	c.checkController(at, bad)
	if c.Usage.CPU != nil && c.Requests.CPU == nil {
		bad(at+".usage.cpu", "is a part of requests.cpu, which is not said")
	}
	if c.Usage.Memory != nil && c.Requests.Memory == nil {
		bad(at+".usage.memory", "is a part of requests.memory, which is not said")
	}
	// Amounts of 0 leave the class's own requests, which are what validation should see; a name
	// is needed to be valid.
	pod := c.pod(amounts{})
	pod.Name = "x"
	if c.Controller != "" { // what no controller's template can be shows here
		obj := c.object(0, 1, pod)
		for _, e := range scenarios.FieldErrors(apiserver.NewKinds().Validate(obj)) {
			// The object's path to the pod template is what the user wrote below pod.
			bad(at+"."+strings.Replace(e.Field, "spec.template.", "pod.", 1), "%s", e.ErrorBody())
		}
		return
	}
	for _, e := range scenarios.FieldErrors(apiserver.NewKinds().Validate(pod)) {
		bad(at+".pod."+e.Field, "%s", e.ErrorBody())
	}
}

// checkOne checks a distribution that may be absent.
func checkOne[T Unit](d *Distribution[T], at string, bad func(field, format string, args ...any)) {
	if d != nil {
		d.check(at, bad)
	}
}

// namespace is where the class's pods are.
func (c *Class) namespace() string {
	if c.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return c.Namespace
}

// amounts are what one pod requests, rounded: millicores and bytes; 0: what the
// class's pod says. Rounding makes templates few: pods that request the same
// share a spec. It is comparable: the key of templates.
type amounts struct{ cpu, memory int64 }

// amounts draws what the n-th pod requests. At least one millicore and one MiB: a request of 0
// would make the pod BestEffort, and another kind of pod.
func (c *Class) amounts(seed, n uint64) amounts {
	a := amounts{}
	if d := c.Requests.CPU; d != nil {
		a.cpu = max(int64(rounded(d.quantile(draw(seed, "scale/cpu", c.Name, n))*1000)), 1)
	}
	if d := c.Requests.Memory; d != nil {
		// Memory in whole MiB prints and shares well.
		const unit = 1 << 20
		a.memory = max(int64(rounded(d.quantile(draw(seed, "scale/memory", c.Name, n))/unit)), 1) * unit
	}
	return a
}

// pod is the class's pod with these requests, without a name. Pods of one class
// and amounts share it. It is called for a template, not for each pod.
func (c *Class) pod(a amounts) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: c.Name + "-", Namespace: c.namespace(), Labels: map[string]string{LabelClass: c.Name}}}
	if c.Pod != nil {
		pod.Spec = *c.Pod.Spec.DeepCopy()
		pod.Annotations = c.Pod.Metadata.Annotations
		for k, v := range c.Pod.Metadata.Labels { //drydock:unordered copies a map
			pod.Labels[k] = v
		}
		// The user's labels come first, so that this one is not overwritten: behave and watch
		// rely on it.
		pod.Labels[LabelClass] = c.Name
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []v1.Container{{Name: "app", Image: defaultImage}}
	}
	if c.End == endExit && pod.Spec.RestartPolicy == "" {
		// A pod that is to end must not be restarted; a Job's template, too, wants Never or
		// OnFailure.
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
	}
	r := &pod.Spec.Containers[0].Resources
	// Requests replace those of the pod's first container, others stay.
	set := func(name v1.ResourceName, q *resource.Quantity) {
		if r.Requests == nil {
			r.Requests = v1.ResourceList{}
		}
		r.Requests[name] = *q
		if c.Guaranteed {
			if r.Limits == nil {
				r.Limits = v1.ResourceList{}
			}
			r.Limits[name] = *q
		}
	}
	if a.cpu > 0 {
		set(v1.ResourceCPU, resource.NewMilliQuantity(a.cpu, resource.DecimalSI))
	}
	if a.memory > 0 {
		set(v1.ResourceMemory, resource.NewQuantity(a.memory, resource.BinarySI))
	}
	return pod
}

// defaultImage is what pods run that say nothing else.
const defaultImage = "app:1"

// DefaultWorkload is one of idle web servers that request 100m and 128Mi. A share
// of them has a readiness and a liveness probe with upstream's defaults. It is
// what most clusters do most of the time, and so what a simulator must do
// cheaply.
func DefaultWorkload(probes float64) *Workload {
	w := &Workload{Metadata: scenarios.Metadata{Name: "default"}}
	one := func(q string) *Distribution[resource.Quantity] {
		return &Distribution[resource.Quantity]{Value: new(resource.MustParse(q))}
	}
	class := func(name string, share float64) *Class {
		w.Spec.Classes = append(w.Spec.Classes, Class{Name: name, Share: share, Requests: Amounts{CPU: one("100m"), Memory: one("128Mi")}})
		return &w.Spec.Classes[len(w.Spec.Classes)-1]
	}
	if probes < 1 {
		class("web", 1-probes)
	}
	if probes > 0 {
		probe := &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
		class("probed", probes).Pod = &PodTemplate{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: defaultImage, ReadinessProbe: probe, LivenessProbe: probe}}}}
	}
	return w
}

//go:embed workload.schema.json
var workloadSchema []byte

// WorkloadSchema returns the JSON Schema (draft 2020-12) of the workload document. It is
// generated from the document's types, as scenarios.Schema is.
func WorkloadSchema() []byte { return bytes.Clone(workloadSchema) }

// IsWorkload reports whether a text is a workload, also one with mistakes.
func IsWorkload(data []byte) bool { return workloadHead.Match(data) }

// workloadHead is the line of a workload's head that says what it is.
var workloadHead = regexp.MustCompile(`(?m)^["']?kind["']?:[ \t]+["']?Workload["']?[ \t]*(#.*)?$`)

package scenarios

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/distribution/reference"
	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// What is meant where a scenario says nothing.
const (
	defaultDuration       = 10 * time.Minute
	defaultKubeletRestart = 10 * time.Second
	defaultRebootDown     = 30 * time.Second

	// maxNodeCount and maxPods are what a large machine's memory holds.
	maxNodeCount = 100_000
	maxPods      = 500_000
)

// validator checks what decoding cannot see, and fills in defaults.
type validator struct {
	d     *decoder
	doc   *yaml.Node
	s     *Scenario
	data  []byte
	names []string // of the nodes; empty if they are not known
	// before is how many errors there were before this document's.
	before int
	// bad are the fields that could not be decoded; what follows from that is
	// not worth telling.
	bad []string
}

// errorf reports an error about a field; its position is that of the field, or
// of what is nearest above it.
func (v *validator) errorf(path, format string, args ...any) {
	if v.isBad(path) {
		return
	}
	v.d.l.errs = append(v.d.l.errs, &LoadError{Pos: v.d.pos(find(v.doc, path)), Path: path, Message: oneLine(fmt.Sprintf(format, args...))})
}

// isBad says whether the field, something in it or what it is in could not be
// decoded.
func (v *validator) isBad(path string) bool {
	for _, b := range v.bad {
		long, short := path, b
		if len(long) < len(short) {
			long, short = short, long
		}
		if rest, ok := strings.CutPrefix(long, short); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func (v *validator) validate() {
	s := v.s
	for _, e := range v.d.l.errs[v.before:] {
		v.bad = append(v.bad, e.Path)
	}
	if n := s.Metadata.Name; n != "" {
		if msgs := validation.IsDNS1123Subdomain(n); len(msgs) > 0 {
			v.errorf("metadata.name", "%q is no name: %s", short(n), msgs[0])
		}
	}
	if s.Spec.Duration == 0 {
		if valueAt(v.doc, "spec.duration") != nil {
			v.errorf("spec.duration", "must be more than 0s")
		}
		s.Spec.Duration = defaultDuration
	}
	if v.isBad("spec.duration") {
		s.Spec.Duration = maxDuration
	}
	v.kubeletRestart()
	v.nodes()
	v.api()
	v.controlPlane()
	for i := range s.Spec.Images {
		v.image(i)
	}
	for i := range s.Spec.Programs {
		v.program(fmt.Sprintf("spec.programs[%d]", i), &s.Spec.Programs[i])
	}
	for i := range s.Spec.Timeline {
		v.action(fmt.Sprintf("spec.timeline[%d]", i), &s.Spec.Timeline[i])
	}
	for i := range s.Spec.Expect {
		v.expectation(fmt.Sprintf("spec.expect[%d]", i), &s.Spec.Expect[i])
	}
	if n := s.podCount(); n > maxPods {
		v.errorf("spec.timeline", "creates %d objects and pods, more than %d", n, maxPods)
	}
	v.conformance()
	v.objects()
}

func (v *validator) kubeletRestart() {
	sp := &v.s.Spec
	if sp.KubeletRestart == nil {
		sp.KubeletRestart = &KubeletRestart{After: defaultKubeletRestart}
	}
}

func (v *validator) nodes() {
	sp := &v.s.Spec
	if len(sp.Nodes) == 0 && lookup(lookup(v.doc, "spec"), "nodes") != nil {
		v.errorf("spec.nodes", "there must be at least one node")
	}
	seen := map[string]string{}
	total := 0
	for i := range sp.Nodes {
		g, at := &sp.Nodes[i], fmt.Sprintf("spec.nodes[%d]", i)
		if g.Name != "" {
			if msgs := validation.IsDNS1123Subdomain(g.Name); len(msgs) > 0 {
				v.errorf(at+".name", "%q is no node name: %s", short(g.Name), msgs[0])
			}
		}
		if g.Count != nil && (*g.Count < 1 || *g.Count > maxNodeCount) {
			v.errorf(at+".count", "%d is not within 1 and %d", *g.Count, maxNodeCount)
			one := 1
			g.Count = &one
		}
		total++
		if g.Count != nil {
			total += *g.Count - 1
		}
		if total > maxNodeCount {
			v.errorf(at+".count", "makes %d nodes with the groups before, more than %d", total, maxNodeCount)
			one := 1
			total, g.Count = 0, &one
		}
		for _, name := range g.NodeNames() {
			if other := seen[name]; other != "" {
				v.errorf(at+".name", "there is a node %q in %s too", name, other)
				break
			}
			seen[name] = at
			v.names = append(v.names, name)
		}
		v.nodeGroup(at, g)
	}
	for i := range sp.Nodes {
		if at := fmt.Sprintf("spec.nodes[%d]", i); v.isBad(at+".name") || v.isBad(at+".count") {
			v.names = nil
		}
	}
}

func (v *validator) nodeGroup(at string, g *NodeGroup) {
	for _, k := range sortedKeys(g.Labels) {
		if msgs := validation.IsQualifiedName(k); len(msgs) > 0 {
			v.errorf(fmt.Sprintf("%s.labels[%q]", at, k), "%q is no label's name: %s", short(k), msgs[0])
		}
		if msgs := validation.IsValidLabelValue(g.Labels[k]); len(msgs) > 0 {
			v.errorf(fmt.Sprintf("%s.labels[%q]", at, k), "%q is no label's value: %s", short(g.Labels[k]), msgs[0])
		}
	}
	for i := range g.Taints {
		t := &g.Taints[i]
		if t.Key == "" {
			v.errorf(fmt.Sprintf("%s.taints[%d].key", at, i), "must be set")
		}
		switch t.Effect {
		case v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute:
		default:
			effects := []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}
			v.errorf(fmt.Sprintf("%s.taints[%d].effect", at, i), "%q is none of %s%s", t.Effect, strings.Join(effects, ", "), suggest.Suffix(string(t.Effect), effects))
		}
	}
	v.topology(at, g)
	v.capacity(at, g)
	v.filesystems(at+".filesystems", g)
	v.machine(at, g)
	if g.Usage != nil {
		v.machineUsage(at+".usage", g.Usage, g.Filesystems != nil && g.Filesystems.Imagefs != nil)
	}
	if g.Kubelet != nil {
		v.kubelet(at+".kubelet", g.Kubelet)
	}
	for _, m := range sortedKeys(g.Runtime.Latency) {
		if !has(criMethods(), m) {
			v.errorf(fmt.Sprintf("%s.runtime.latency[%q]", at, m), "there is no CRI method %q%s", short(m), suggest.Suffix(m, criMethods()))
		}
	}
	for i := range g.StaticPods {
		f := &g.StaticPods[i]
		v.staticPod(fmt.Sprintf("%s.staticPods[%q]", at, f.File), f.File, &f.Manifest)
	}
}

func (v *validator) capacity(at string, g *NodeGroup) {
	if g.Capacity == nil {
		g.Capacity = v1.ResourceList{}
	}
	var names []string
	for name := range g.Capacity { //drydock:unordered sorted below
		names = append(names, string(name))
	}
	sort.Strings(names)
	known := []string{"cpu", "memory", "pods", "ephemeral-storage"}
	for _, name := range names {
		q := g.Capacity[v1.ResourceName(name)]
		if q.Sign() < 0 {
			v.errorf(fmt.Sprintf("%s.capacity[%q]", at, name), "%s is negative", q.String())
		}
		if !has(known, name) && !strings.HasPrefix(name, "hugepages-") && !strings.Contains(name, "/") {
			v.errorf(fmt.Sprintf("%s.capacity[%q]", at, name), "there is no resource %q%s", short(name), suggest.Suffix(name, known))
		}
	}
	pods := int64(110)
	if g.Kubelet != nil && g.Kubelet.MaxPods > 0 {
		pods = int64(g.Kubelet.MaxPods)
	}
	for _, d := range []struct {
		name v1.ResourceName
		q    resource.Quantity
	}{
		{v1.ResourceCPU, resource.MustParse("4")},
		{v1.ResourceMemory, resource.MustParse("16Gi")},
		{v1.ResourceEphemeralStorage, resource.MustParse("100Gi")},
		{v1.ResourcePods, *resource.NewQuantity(pods, resource.DecimalSI)},
	} {
		if _, ok := g.Capacity[d.name]; !ok {
			_ = d.q.String() // remembers its text while nobody else sees it
			g.Capacity[d.name] = d.q
		}
	}
}

func (v *validator) kubelet(at string, c *kubeletconfig.KubeletConfiguration) {
	if want := "kubelet.config.k8s.io/v1beta1"; c.APIVersion != "" && c.APIVersion != want {
		v.errorf(at+".apiVersion", "must be %s, not %q", want, short(c.APIVersion))
	}
	if want := "KubeletConfiguration"; c.Kind != "" && c.Kind != want {
		v.errorf(at+".kind", "must be %s, not %q", want, short(c.Kind))
	}
	if v.d.l.opts.ValidateKubelet == nil {
		return
	}
	for _, e := range v.d.l.opts.ValidateKubelet(c.DeepCopy()) {
		near := ""
		if signal, ok := strings.CutPrefix(e.Detail, "unsupported eviction signal "); ok {
			near = suggest.Suffix(signal, evictionSignals())
		}
		v.errorf(joinPath(at, e.Field), "%s%s", e.ErrorBody(), near)
	}
}

func evictionSignals() []string {
	return []string{
		"memory.available", "allocatableMemory.available", "pid.available", "nodefs.available", "nodefs.inodesFree",
		"imagefs.available", "imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree",
	}
}

// joinPath puts a field path behind a prefix, either of which may be empty.
func joinPath(prefix, path string) string {
	switch {
	case path == "" || path == "<nil>":
		return prefix
	case prefix == "" || path[0] == '[':
		return prefix + path
	}
	return prefix + "." + path
}

func (v *validator) staticPod(at, file string, m *Manifest) {
	if file == "" || strings.ContainsAny(file, "/\x00") || file == "." || file == ".." {
		v.errorf(at, "%q is no file name", short(file))
	}
	if len(m.Objects) > 1 {
		v.errorf(at, "a static pod's manifest has one pod, not %d objects", len(m.Objects))
	}
	for _, o := range m.Objects {
		if _, ok := o.Object.(*v1.Pod); !ok {
			v.errorf(at, "a static pod's manifest must be a Pod")
		}
	}
}

func (v *validator) api() {
	a := &v.s.Spec.API
	if a.Latency != nil && a.Latency.Min < time.Millisecond {
		v.errorf("spec.api.latency", "%v is less than 1ms", a.Latency.Min)
	}
	v.eventRateLimit("spec.api.eventRateLimit", a.EventRateLimit)
	for i := range a.Faults {
		v.apiFault(fmt.Sprintf("spec.api.faults[%d]", i), &a.Faults[i])
	}
}

func (v *validator) apiFault(at string, f *APIFault) {
	if f.Error == nil && f.Latency == 0 && !f.Refuse {
		v.errorf(at, "has no effect: needs error, latency or refuse")
	}
	if f.Error != nil && (f.Error.Code < 400 || f.Error.Code > 599) {
		v.errorf(at+".error", "the code %d is not within 400 and 599", f.Error.Code)
	}
	if f.Probability < 0 || f.Probability > 1 {
		v.errorf(at+".probability", "%v is not within 0 and 1", f.Probability)
	}
	if r := f.Resource; r != "" {
		known := []string{"pods", "pods/status", "nodes", "nodes/status", "leases", "events", "configmaps", "secrets", "namespaces", "services", "priorityclasses", "pods/binding", "pods/eviction"}
		if !has(known, r) {
			v.errorf(at+".resource", "there is no resource %q%s", short(r), suggest.Suffix(r, known))
		}
	}
}

func (v *validator) image(i int) {
	im, at := &v.s.Spec.Images[i], fmt.Sprintf("spec.images[%d]", i)
	for j := range i {
		if v.s.Spec.Images[j].Name == im.Name {
			v.errorf(at+".name", "the image %q is spec.images[%d] too", short(im.Name), j)
		}
	}
	switch {
	case im.Name == "":
	case strings.ContainsAny(im.Name, "*?"):
		if im.Present || len(im.Aliases) > 0 {
			v.errorf(at+".name", "%q stands for many images, which have no aliases and are not present", short(im.Name))
		}
	default:
		v.reference(at+".name", im.Name)
	}
	for k, name := range im.Aliases {
		v.reference(fmt.Sprintf("%s.aliases[%d]", at, k), name)
	}
	v.positive(at+".size", im.Size, bytesUnit(), 0)
	v.positive(at+".unpacked", im.Unpacked, bytesUnit(), 1)
	v.positive(at+".inodes", im.Inodes, countUnit(), 1)
	if f := im.Pull.Fails; f != nil && f.Times < 0 {
		v.errorf(at+".pull.fails.times", "%d is negative", f.Times)
	}
	v.imageConfig(at, im)
}

// reference refuses what is no image's name.
func (v *validator) reference(at, name string) {
	if _, err := reference.ParseNormalizedNamed(name); err != nil {
		v.errorf(at, "%q is no image: %v", short(name), err)
	}
}

// objects asks what the API would refuse.
func (v *validator) objects() {
	check := v.d.l.opts.ValidateObject
	if check == nil {
		return
	}
	for _, w := range v.d.l.written {
		d := &decoder{l: v.d.l, file: w.file}
		for _, e := range check(w.obj.DeepCopyObject()) {
			fieldPath := e.Field
			if fieldPath == "<nil>" {
				fieldPath = ""
			}
			pos := d.pos(find(w.node, fieldPath))
			v.d.l.errs = append(v.d.l.errs, &LoadError{Pos: pos, Path: joinPath(w.path.String(), fieldPath), Message: oneLine(e.ErrorBody())})
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m { //drydock:unordered sorted below
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func has(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// criMethods are the CRI methods that latencies and faults may name.
func criMethods() []string {
	return []string{
		"Version", "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "ListPodSandbox",
		"CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ListContainers", "ContainerStatus",
		"UpdateContainerResources", "UpdatePodSandboxResources", "ReopenContainerLog", "ExecSync",
		"Exec", "Attach", "PortForward",
		"ContainerStats", "ListContainerStats", "PodSandboxStats", "ListPodSandboxStats", "UpdateRuntimeConfig", "Status", "RuntimeConfig",
		"ListImages", "ImageStatus", "PullImage", "RemoveImage", "ImageFsInfo",
		"ListMetricDescriptors", "ListPodSandboxMetrics", "GetContainerEvents",
	}
}

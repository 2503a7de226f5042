package scheduler

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// What a container that requests nothing counts for in the scores of use
// (pkg/scheduler/util/pod_resources.go).
const (
	defaultMilliCPU = 100
	defaultMemory   = 200 << 20
)

// maxClasses bounds how many classes are remembered, maxEntries what they
// remember of nodes together.
const (
	maxClasses = 8192
	maxEntries = 2 << 20
)

// classKey says what pods of one class share. All of it is shared and never
// written to, so the same address is the same value; a class holds on to it.
type classKey struct {
	profile          *profile
	containers, init *v1.Container
	affinity         *v1.Affinity
	tolerations      *v1.Toleration
	spread           *v1.TopologySpreadConstraint
	resources        *v1.ResourceRequirements
	selector         uintptr
	overhead         uintptr
	numTolerations   int
	// ownUsers: of a pod in its host's network, whether its users are its own.
	ownUsers  bool
	namespace string
	labels    *labelSet // where the labels matter
}

// class is what pods that share a spec have in common. The first block is what
// the spec says; the second, terms by which pods and nodes are counted; the
// third, what was worked out, good for the versions that it names.
type class struct {
	// pod: holds on to what the key points to.
	pod     *v1.Pod
	profile *profile
	request request
	// own is what NodeResourcesFit scores a node with for the pod itself: pod-level
	// requests are left out, as upstream's scorer is made without their gate. On
	// its node the pod counts with request.
	own      amounts
	ownExt   []extended // where the profile scores others than CPU and memory
	affinity nodeaffinity.RequiredNodeAffinity
	// ignored: indexes into request.ext of what keeps the pod off no node.
	ignored uint64
	// mapped: indexes into request.ext of what device classes stand behind.
	mapped uint64
	// selective: affinity says something.
	selective bool
	// named: only nodes of these names can pass, sorted (metadata.name in
	// matchFields); conflict: none can.
	named     []string
	onlyNamed bool
	preferred *nodeaffinity.PreferredSchedulingTerms
	ports     []hostPort
	// images are those of all containers and image volumes; containers is how
	// many there are, the init containers with them.
	images     []string
	containers int
	// prefer are the tolerations of PreferNoSchedule taints.
	prefer []v1.Toleration
	// features are those that its node must declare.
	features nodedeclaredfeatures.FeatureSet

	hard, soft []constraint // pod topology spread
	// spreadOf: what the profile's default constraints were made of.
	spreadOf spreadOrigin
	required []*term  // pod affinity
	anti     []*tally // by required anti-affinity
	// preferring: preferred pod affinity, or anti-affinity with a weight below 0.
	preferring []weighted
	// together counts the pods that match all of required, by the key of each.
	together []*tally
	// selfAll: the pod matches all of required itself.
	selfAll bool
	// carries: what pods of the class say of others.
	carries []*carrier

	// entries: by nodeInfo.slot; nil when not remembered.
	entries    []entry
	inclusions []inclusion
	uses       int
	failed     failure
	hint       hintMemo
}

// request is what a pod asks a node for.
type request struct {
	amounts
	ext []extended
	// scoreCPU and scoreMemory are the same with defaults for containers that
	// ask for nothing.
	scoreCPU, scoreMemory int64
}

// nothing reports whether a pod would fit into a full node.
func (r *request) nothing() bool { return r.amounts == amounts{} && len(r.ext) == 0 }

// requestOf returns a pod's request (pkg/scheduler/framework/types.go,
// PodInfo.CalculateResource).
func requestOf(pod *v1.Pod) request {
	opts := resourcehelper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	reqs := resourcehelper.PodRequests(pod, opts)
	r := request{amounts: amountsOf(reqs), ext: extendedOf(reqs)}
	full := withDefaults(pod, opts, reqs)
	r.scoreCPU, r.scoreMemory = full.cpu, full.memory
	return r
}

// withDefaults is a pod's request with defaults for containers that ask for
// nothing; with pod-level requests only for what reqs, the request without
// defaults, has nothing of.
func withDefaults(pod *v1.Pod, opts resourcehelper.PodResourcesOptions, reqs v1.ResourceList) amounts {
	return amountsOf(listWithDefaults(pod, opts, reqs))
}

func listWithDefaults(pod *v1.Pod, opts resourcehelper.PodResourcesOptions, reqs v1.ResourceList) v1.ResourceList {
	opts.NonMissingContainerRequests = v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(defaultMilliCPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(defaultMemory, resource.BinarySI),
	}
	if resourcehelper.IsPodLevelRequestsSet(pod) {
		maps.DeleteFunc(opts.NonMissingContainerRequests, func(name v1.ResourceName, _ resource.Quantity) bool {
			_, has := reqs[name]
			return has
		})
	}
	return resourcehelper.PodRequests(pod, opts)
}

// classTable keeps the classes of pods seen so far.
type classTable struct {
	profiles profiles
	table    *nodeTable
	labels   *labelIndex
	store    *apiserver.Store
	mapping  classMapping

	byKey map[classKey]*class
	// cached: those that remember nodes, the longest first.
	cached []*class

	services map[string]int // how many each namespace has
	// selectorGen: counts changes of services and controllers that select pods.
	selectorGen uint64
}

// newClassTable returns an empty table. It reads services and controllers from
// the store.
func newClassTable(ps profiles, table *nodeTable, index *labelIndex, store *apiserver.Store, mapping classMapping) classTable {
	return classTable{profiles: ps, table: table, labels: index, store: store, mapping: mapping, byKey: map[classKey]*class{}, services: map[string]int{}, selectorGen: 1}
}

// of returns what pods that share p's spec have in common. Pods of one template
// point to the same containers, so a class is found by addresses and without
// reading the spec. Labels are part of the key only where a term asks whether the
// pod matches itself.
func (cs *classTable) of(p *v1.Pod, ls *labelSet) *class {
	k := classKey{
		profile: cs.profiles.of(p), containers: &p.Spec.Containers[0], affinity: p.Spec.Affinity, resources: p.Spec.Resources,
		selector: reflect.ValueOf(p.Spec.NodeSelector).Pointer(), overhead: reflect.ValueOf(p.Spec.Overhead).Pointer(),
		numTolerations: len(p.Spec.Tolerations), namespace: p.Namespace,
	}
	k.ownUsers = p.Spec.HostNetwork && p.Spec.HostUsers != nil && !*p.Spec.HostUsers
	if len(p.Spec.InitContainers) > 0 {
		k.init = &p.Spec.InitContainers[0]
	}
	if len(p.Spec.Tolerations) > 0 {
		k.tolerations = &p.Spec.Tolerations[0]
	}
	if len(p.Spec.TopologySpreadConstraints) > 0 {
		k.spread = &p.Spec.TopologySpreadConstraints[0]
	}
	// A pod may match its own terms, so its labels decide.
	if k.spread != nil || len(k.profile.spread) > 0 || k.affinity != nil && (k.affinity.PodAffinity != nil || k.affinity.PodAntiAffinity != nil) {
		k.labels = ls
	}
	c := cs.byKey[k]
	if c == nil {
		// All at once: finding those in use would cost more than making them
		// again.
		if len(cs.byKey) >= maxClasses {
			cs.forget()
		}
		c = cs.build(k.profile, p, ls)
		cs.byKey[k] = c
	}
	return c
}

// forget empties the memory of classes. What queued pods hold on to is
// looked up again.
func (cs *classTable) forget() {
	clear(cs.byKey)
	cs.cached = cs.cached[:0]
}

// build reads a spec. Ports of sidecars count, those of other init containers
// don't: they are over when the containers start.
func (cs *classTable) build(by *profile, p *v1.Pod, ls *labelSet) *class {
	own := listWithDefaults(p, resourcehelper.PodResourcesOptions{SkipPodLevelResources: true}, nil)
	c := &class{
		pod: p, profile: by, request: requestOf(p), affinity: nodeaffinity.GetRequiredNodeAffinity(p),
		own:        amountsOf(own),
		selective:  len(p.Spec.NodeSelector) > 0,
		containers: len(p.Spec.InitContainers) + len(p.Spec.Containers),
		prefer:     preferTolerations(p.Spec.Tolerations),
		features:   requiredFeatures(p),
	}
	if !by.fit.plain {
		c.ownExt = extendedOf(own)
	}
	for i, e := range c.request.ext {
		if by.ignores(e.name) {
			c.ignored |= 1 << min(i, maxExtended-1)
		}
		if cs.mapping[e.name] != nil {
			c.mapped |= 1 << min(i, maxExtended-1)
		}
	}
	for i := range p.Spec.InitContainers {
		ct := &p.Spec.InitContainers[i]
		c.images = append(c.images, normalizedImage(ct.Image))
		if ct.RestartPolicy != nil && *ct.RestartPolicy == v1.ContainerRestartPolicyAlways {
			c.ports = append(c.ports, hostPorts(ct.Ports)...)
		}
	}
	for i := range p.Spec.Containers {
		c.images = append(c.images, normalizedImage(p.Spec.Containers[i].Image))
		c.ports = append(c.ports, hostPorts(p.Spec.Containers[i].Ports)...)
	}
	for i := range p.Spec.Volumes {
		if im := p.Spec.Volumes[i].Image; im != nil {
			c.images = append(c.images, normalizedImage(im.Reference))
		}
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		if req := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; req != nil {
			c.selective = true
			c.named, c.onlyNamed = namesOf(req.NodeSelectorTerms)
		}
		if pref := a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(pref) > 0 {
			// Terms were validated at admission.
			c.preferred, _ = nodeaffinity.NewPreferredSchedulingTerms(pref)
		}
	}
	cs.setSpread(c, p, ls)
	cs.setAffinity(c, p, ls)
	return c
}

// namesOf returns the names of the only nodes that can match, when each term
// names some (nodeaffinity/node_affinity.go, PreFilter).
func namesOf(terms []v1.NodeSelectorTerm) ([]string, bool) {
	var all []string
	for _, t := range terms {
		var names []string
		found := false
		for _, r := range t.MatchFields {
			if r.Key != metav1.ObjectNameField || r.Operator != v1.NodeSelectorOpIn {
				continue
			}
			if !found {
				names, found = slices.Clone(r.Values), true
				continue
			}
			names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(r.Values, n) })
		}
		if !found {
			return nil, false
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all), len(terms) > 0
}

// normalizedImage appends the tag that an image without one has
// (imagelocality/image_locality.go).
func normalizedImage(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		return name + ":latest"
	}
	return name
}

type hostPort struct {
	protocol v1.Protocol
	ip       string
	port     int32
}

func hostPorts(list []v1.ContainerPort) []hostPort {
	var out []hostPort
	for _, p := range list {
		if p.HostPort <= 0 {
			continue
		}
		h := hostPort{p.Protocol, p.HostIP, p.HostPort}
		h.ip = cmp.Or(h.ip, "0.0.0.0")
		h.protocol = cmp.Or(h.protocol, v1.ProtocolTCP)
		out = append(out, h)
	}
	return out
}

func (h hostPort) conflicts(o hostPort) bool {
	return h.port == o.port && h.protocol == o.protocol && (h.ip == o.ip || h.ip == "0.0.0.0" || o.ip == "0.0.0.0")
}

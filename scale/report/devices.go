package report

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Devices tells how a node group's devices of one resource were used: of device plugins, or
// another extended resource. A group are the nodes whose names differ in their number only.
type Devices struct {
	Group, Resource string
	// Nodes and Total count the nodes that have some at the end, and what they have.
	Nodes int
	Total int64
	// Used and UsedMean count those that bound pods have asked for, at the end, and on average
	// over the time in which there were any.
	Used     int64
	UsedMean float64
	// Split counts the free ones on nodes of which others are used: none of these nodes can
	// take a pod that wants a node's all.
	Split     int64
	SplitMean float64
	// Stranded counts the free ones that CPU and memory left on their nodes don't suffice for,
	// at what pods with such devices asked for on average by device; at the end.
	Stranded int64
	// Largest is how many are free on one node at the end.
	Largest int64
	// Waiting counts the pods that ask for the resource and are bound nowhere at the end,
	// WaitingFor how many they ask for. They are all groups'.
	Waiting    int
	WaitingFor int64
}

// deviceNode is what is kept of a node that has extended resources.
type deviceNode struct {
	// cpu in millicores, memory in bytes: allocatable, less what pods ask for.
	cpu, memory int64
	has         []deviceAmount
}

// deviceAmount is what a node has of a resource.
type deviceAmount struct {
	pool        *devicePool
	total, used int64
}

// devicePool sums up a resource over a group. Sums over time are in units times ns.
type devicePool struct {
	group, resource                string
	total, used, split             int64
	totalTime, usedTime, splitTime float64
	at                             time.Duration
	// cpu, memory and devices of all pods that were bound with such devices.
	cpu, memory, devices float64
}

// deviceUse is what is kept of devices; nil: no node has any.
type deviceUse struct {
	nodes map[string]*deviceNode
	pools []*devicePool // in the order in which they came
}

// groupOf is a node's name without its number.
func groupOf(node string) string {
	i := strings.LastIndexByte(node, '-')
	if i < 0 || i+1 == len(node) || strings.Trim(node[i+1:], "0123456789") != "" {
		return node
	}
	return node[:i]
}

// extended reports whether a resource is of a kind that devices are.
func extended(name v1.ResourceName) bool {
	domain, _, ok := strings.Cut(string(name), "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// deviceNode takes what a node says that it can give out. Nearly all changes of nodes change
// nothing of it.
func (k *Collector) deviceNode(old, n *v1.Node, gone bool, now time.Duration) {
	is := n.Status.Allocatable
	if gone {
		is = nil
	}
	if old != nil && !gone && sameDevices(old.Status.Allocatable, is) {
		return
	}
	if k.devices == nil {
		if !slices.ContainsFunc(names(is), extended) {
			return
		}
		k.devices = &deviceUse{nodes: map[string]*deviceNode{}}
	}
	d := k.devices
	if x := d.nodes[n.Name]; x != nil {
		for i := range x.has {
			x.has[i].count(-1, now)
		}
		delete(d.nodes, n.Name)
	}
	x := &deviceNode{cpu: is.Cpu().MilliValue(), memory: is.Memory().Value()}
	for _, name := range names(is) {
		if extended(name) {
			q := is[name]
			x.has = append(x.has, deviceAmount{pool: d.pool(groupOf(n.Name), string(name)), total: q.Value()})
		}
	}
	if len(x.has) == 0 {
		return
	}
	d.nodes[n.Name] = x
	for _, p := range k.c.Store().PodsOnNode(n.Name) {
		if holds(p) {
			x.add(p, 1)
		}
	}
	for i := range x.has {
		x.has[i].count(1, now)
	}
}

// names are a list's resources, in order.
func names(list v1.ResourceList) []v1.ResourceName {
	out := make([]v1.ResourceName, 0, len(list))
	for n := range list { //drydock:unordered sorted below
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func sameDevices(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for n, q := range b { //drydock:unordered each by itself
		if was, ok := a[n]; !ok || was.Cmp(q) != 0 {
			return false
		}
	}
	return true
}

func (d *deviceUse) pool(group, resource string) *devicePool {
	for _, p := range d.pools {
		if p.group == group && p.resource == resource {
			return p
		}
	}
	p := &devicePool{group: group, resource: resource}
	d.pools = append(d.pools, p)
	return p
}

// until brings the sums over time up to now.
func (p *devicePool) until(now time.Duration) {
	dt := float64(now - p.at)
	p.at = now
	p.totalTime += dt * float64(p.total)
	p.usedTime += dt * float64(p.used)
	p.splitTime += dt * float64(p.split)
}

// count adds a node's amounts to its group's, or takes them away.
func (a *deviceAmount) count(sign int64, now time.Duration) {
	a.pool.until(now)
	a.pool.total += sign * a.total
	a.pool.used += sign * a.used
	a.pool.split += sign * a.splitNow()
}

// splitNow are the free ones on a node of which others are used.
func (a *deviceAmount) splitNow() int64 {
	if a.used == 0 {
		return 0
	}
	return max(a.total-a.used, 0)
}

// holds reports whether a pod has what it asks for.
func holds(p *v1.Pod) bool { return p != nil && p.Spec.NodeName != "" && phaseOf(p) < Succeeded }

// devicePod takes a change of a pod. It is called for each change of each pod, and looks at most
// of them no closer.
func (k *Collector) devicePod(old, p *v1.Pod, gone bool, now time.Duration) {
	if k.devices == nil {
		return
	}
	was, is := holds(old), holds(p) && !gone
	if was == is {
		return
	}
	x := k.devices.nodes[p.Spec.NodeName]
	if x == nil {
		return
	}
	for i := range x.has {
		x.has[i].count(-1, now)
	}
	if is {
		x.add(p, 1)
	} else {
		x.add(p, -1)
	}
	for i := range x.has {
		x.has[i].count(1, now)
	}
}

// add has a pod take what it asks for, or give it back.
func (x *deviceNode) add(p *v1.Pod, sign int64) {
	r := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	x.cpu -= sign * r.Cpu().MilliValue()
	x.memory -= sign * r.Memory().Value()
	for i := range x.has {
		a := &x.has[i]
		q, ok := r[v1.ResourceName(a.pool.resource)]
		if !ok || q.IsZero() {
			continue
		}
		a.used += sign * q.Value()
		if sign > 0 {
			a.pool.devices += float64(q.Value())
			a.pool.cpu += float64(r.Cpu().MilliValue())
			a.pool.memory += float64(r.Memory().Value())
		}
	}
}

// devicesAt is what is told of devices at the end, by group and resource in the order of their
// names.
func (k *Collector) devicesAt(now time.Duration) []Devices {
	if k.devices == nil {
		return nil
	}
	out := make([]Devices, len(k.devices.pools))
	for i, p := range k.devices.pools {
		p.until(now)
		d := Devices{Group: p.group, Resource: p.resource, Total: p.total, Used: p.used, Split: p.split}
		if p.totalTime > 0 {
			mean := float64(p.total) / p.totalTime
			d.UsedMean, d.SplitMean = p.usedTime*mean, p.splitTime*mean
		}
		for _, x := range k.devices.nodes { //drydock:unordered sums and a maximum
			for j := range x.has {
				if a := &x.has[j]; a.pool == p && a.total > 0 {
					d.Nodes++
					free := max(a.total-a.used, 0)
					d.Largest = max(d.Largest, free)
					d.Stranded += free - p.served(x, free)
				}
			}
		}
		d.Waiting, d.WaitingFor = k.waitingFor(v1.ResourceName(p.resource))
		out[i] = d
	}
	slices.SortFunc(out, func(a, b Devices) int {
		return slices.Compare([]string{a.Group, a.Resource}, []string{b.Group, b.Resource})
	})
	return out
}

// served is how many of a node's free devices its free CPU and memory suffice for.
func (p *devicePool) served(x *deviceNode, free int64) int64 {
	if p.devices == 0 {
		return free
	}
	for _, r := range [...]struct{ left, each float64 }{{float64(x.cpu), p.cpu / p.devices}, {float64(x.memory), p.memory / p.devices}} {
		if r.each > 0 {
			free = min(free, int64(max(r.left, 0)/r.each))
		}
	}
	return free
}

// waitingFor counts pods that ask for a resource and are bound nowhere, and what they ask for.
func (k *Collector) waitingFor(name v1.ResourceName) (pods int, amount int64) {
	for _, p := range k.c.Store().Pods() {
		if phaseOf(p) != Unscheduled {
			continue
		}
		if q, ok := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})[name]; ok && !q.IsZero() {
			pods++
			amount += q.Value()
		}
	}
	return pods, amount
}

func (r *Report) devicesTable() table {
	return table{
		File: fileDevices, Title: "Devices",
		Columns: []column{
			{"group", "nodes whose names differ in their number only"}, {"resource", "extended resource"}, {"nodes", "that have some at the end"}, {"total", "what they have"},
			{"used_mean", "of the total, asked for by bound pods, on average over the time in which there were any"}, {"used", "the same at the end"},
			{"split_mean", "free on nodes of which others are used, on average"}, {"split", "the same at the end"},
			{"stranded", "free at the end, but CPU or memory of the node don't suffice for what pods asked for by device on average"},
			{"largest_free", "free on one node at the end"}, {"waiting_pods", "pods that ask for the resource and are bound nowhere at the end"}, {"waiting_for", "what they ask for"},
		},
		rows: func(yield func([]string) bool) {
			for i := range r.Devices {
				d := &r.Devices[i]
				if !yield([]string{
					d.Group, d.Resource, number(d.Nodes), number(d.Total), tenth(d.UsedMean), number(d.Used), tenth(d.SplitMean), number(d.Split),
					number(d.Stranded), number(d.Largest), number(d.Waiting), number(d.WaitingFor),
				}) {
					return
				}
			}
		},
	}
}

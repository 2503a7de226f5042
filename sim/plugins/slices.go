package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	drahealth "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
)

// API is the cluster's, as a node's drivers see it. Calls wait in the task of who makes
// them. Objects are shared and never written to.
type API interface {
	GetNode(ctx context.Context, name string) (*v1.Node, error)
	GetResourceClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error)
	// WatchResourceSlices tells of the slices that are for a node until g dies: of all
	// at first and after a break, and then of each change.
	WatchResourceSlices(g *loop.Group, nodeName string, listed func([]*resourcev1.ResourceSlice), event func(watch.EventType, *resourcev1.ResourceSlice))
	CreateResourceSlice(ctx context.Context, slice *resourcev1.ResourceSlice) (*resourcev1.ResourceSlice, error)
	UpdateResourceSlice(ctx context.Context, slice *resourcev1.ResourceSlice) (*resourcev1.ResourceSlice, error)
	DeleteResourceSlice(ctx context.Context, name string) error
}

// Pool is what a DRA driver offers on a node: one pool of the node's name.
type Pool struct {
	Devices []resourcev1.Device
	// Counters are what devices that are parts of others share.
	Counters []resourcev1.CounterSet
	// Unhealthy is what the driver does about a device that is not healthy.
	Unhealthy Reaction
	// unhealthy are devices that are not healthy, and what is said about them. It outlasts
	// the driver's process.
	unhealthy map[string]string
}

// Reaction is what a driver does about a device that is not healthy.
type Reaction string

// The reactions: a taint of the effect NoSchedule or NoExecute, taking the device out of what is
// offered, and nothing but telling the kubelet.
const (
	TaintNoSchedule Reaction = "NoSchedule"
	TaintNoExecute  Reaction = "NoExecute"
	Withdraw        Reaction = "withdraw"
	OnlyTell        Reaction = "tell"
)

const (
	// syncDelay is for how long a driver waits after somebody else has changed its slices
	// (resourceslice.DefaultSyncDelay).
	syncDelay = 30 * time.Second
	// firstRetry and maxRetry are the pauses after a sync that failed.
	firstRetry = time.Second
	maxRetry   = 5 * time.Minute
	// healthHolds is for how long a word about a device's health holds, in seconds: this
	// driver tells of changes at once and need not repeat itself.
	healthHolds = 10 * 365 * 24 * 60 * 60
)

// taintKey is that of the taints of devices that are not healthy.
const taintKey = "unhealthy"

// publisher keeps a driver's ResourceSlices as the driver wants them
// (k8s.io/dynamic-resource-allocation/resourceslice), and knows its devices.
type publisher struct {
	d       *draDriver
	api     API
	begun   bool
	listed  bool
	owner   types.UID // the node's
	slices  map[string]*resourcev1.ResourceSlice
	timer   *loop.Timer
	syncing bool
	again   bool // something has changed during a sync
	retry   time.Duration
}

func newPublisher(d *draDriver) *publisher {
	if d.h.api == nil && d.h.client != nil {
		d.h.api = d.h.client()
	}
	p := &publisher{d: d, api: d.h.api, slices: map[string]*resourcev1.ResourceSlice{}}
	p.timer = d.g.NewTimer("publish "+d.o.Name, p.sync)
	return p
}

// begin has the slices published, unless that has begun already.
func (p *publisher) begin() {
	if p.begun || p.api == nil {
		return
	}
	p.begun = true
	mine := func(s *resourcev1.ResourceSlice) bool { return s.Spec.Driver == p.d.o.Name }
	p.api.WatchResourceSlices(p.d.g, p.d.h.node, func(list []*resourcev1.ResourceSlice) {
		clear(p.slices)
		for _, s := range list {
			if mine(s) {
				p.slices[s.Name] = s
			}
		}
		p.listed = true
		p.sync()
	}, func(t watch.EventType, s *resourcev1.ResourceSlice) {
		if !mine(s) {
			return
		}
		if t == watch.Deleted {
			delete(p.slices, s.Name)
		} else {
			p.slices[s.Name] = s
		}
		if !p.upToDate() {
			p.timer.Reset(syncDelay)
		}
	})
}

// sync begins a sync, or has the one that runs repeated.
func (p *publisher) sync() {
	switch {
	case !p.listed:
		return
	case p.syncing:
		p.again = true
		return
	}
	p.syncing = true
	p.timer.Stop()
	p.d.g.Go("publish "+p.d.o.Name, func(ctx context.Context) {
		err := p.publish(ctx)
		p.syncing = false
		switch {
		case err != nil:
			p.retry = min(max(2*p.retry, firstRetry), maxRetry)
			p.timer.Reset(p.retry)
		case p.again:
			p.again = false
			p.sync()
		default:
			p.retry = 0
		}
	})
}

// existing are the slices there are, in the order of their names, which begin with their
// indexes; and their generation.
func (p *publisher) existing() (list []*resourcev1.ResourceSlice, generation int64) {
	for _, s := range p.slices { //drydock:unordered sorted below
		list = append(list, s)
		generation = max(generation, s.Spec.Pool.Generation)
	}
	slices.SortFunc(list, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return list, generation
}

// upToDate reports whether the slices are as the driver wants them.
func (p *publisher) upToDate() bool {
	have, generation := p.existing()
	want := p.wanted()
	if len(have) != len(want) {
		return false
	}
	for i := range want {
		if have[i].Spec.Pool.Generation != generation || !same(have[i], &want[i], len(want)) {
			return false
		}
	}
	return true
}

// same compares what a slice says. When a taint was added is the API's to say.
func same(s *resourcev1.ResourceSlice, want *resourcev1.ResourceSliceSpec, count int) bool {
	if s.Spec.Pool.ResourceSliceCount != int64(count) || !equality.Semantic.DeepEqual(s.Spec.SharedCounters, want.SharedCounters) || len(s.Spec.Devices) != len(want.Devices) {
		return false
	}
	for i := range want.Devices {
		d := s.Spec.Devices[i].DeepCopy()
		for j := range d.Taints {
			d.Taints[j].TimeAdded = nil
		}
		if !equality.Semantic.DeepEqual(d, &want.Devices[i]) {
			return false
		}
	}
	return true
}

// publish brings the slices in line (syncPool): all get a new generation, unless one update
// is enough.
func (p *publisher) publish(ctx context.Context) error {
	if p.owner == "" {
		node, err := p.api.GetNode(ctx, p.d.h.node)
		if err != nil {
			return fmt.Errorf("get node %s: %w", p.d.h.node, err)
		}
		p.owner = node.UID
	}
	have, generation := p.existing()
	want := p.wanted()
	var changed []int
	for i := range want {
		if i < len(have) && !same(have[i], &want[i], len(want)) {
			changed = append(changed, i)
		}
	}
	bumped := len(have) != len(want) || len(changed) > 1
	if bumped {
		generation++
	}
	for _, s := range have[min(len(want), len(have)):] {
		if err := p.api.DeleteResourceSlice(ctx, s.Name); err != nil {
			return fmt.Errorf("delete ResourceSlice %s: %w", s.Name, err)
		}
		delete(p.slices, s.Name)
	}
	for i := range want {
		if i < len(have) && !bumped && !slices.Contains(changed, i) {
			continue
		}
		s := &resourcev1.ResourceSlice{}
		if i < len(have) {
			s = have[i].DeepCopy()
			keepTimes(want[i].Devices, s.Spec.Devices)
		} else {
			s.GenerateName = fmt.Sprintf("%05x-%s-%s-", i, p.d.o.Name, p.d.h.node)
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: p.d.h.node, UID: p.owner, Controller: ptr.To(true)}}
		}
		s.Spec = want[i]
		s.Spec.Driver, s.Spec.NodeName = p.d.o.Name, &p.d.h.node
		s.Spec.Pool = resourcev1.ResourcePool{Name: p.d.h.node, Generation: generation, ResourceSliceCount: int64(len(want))}
		write := p.api.UpdateResourceSlice
		if i >= len(have) {
			write = p.api.CreateResourceSlice
		}
		is, err := write(ctx, s)
		if err != nil {
			return fmt.Errorf("write ResourceSlice %s: %w", s.Name+s.GenerateName, err)
		}
		p.slices[is.Name] = is
	}
	return nil
}

// keepTimes keeps since when devices have the taints that they had already.
func keepTimes(next, old []resourcev1.Device) {
	for i := range next {
		k := slices.IndexFunc(old, func(d resourcev1.Device) bool { return d.Name == next[i].Name })
		for j := range next[i].Taints {
			if k < 0 {
				break
			}
			t := &next[i].Taints[j]
			for _, o := range old[k].Taints {
				if o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect {
					t.TimeAdded = o.TimeAdded
				}
			}
		}
	}
}

// wanted are the slices' specs, without pool and node.
func (p *publisher) wanted() []resourcev1.ResourceSliceSpec {
	pool := p.d.o.Pool
	var list []resourcev1.Device
	most := resourcev1.ResourceSliceMaxDevices
	for i := range pool.Devices {
		d := pool.Devices[i].DeepCopy()
		text, bad := p.d.o.Pool.unhealthy[d.Name]
		switch effect := pool.Unhealthy; {
		case bad && effect == Withdraw:
			continue
		case bad && effect != OnlyTell:
			d.Taints = append(d.Taints, resourcev1.DeviceTaint{Key: p.d.o.Name + "/" + taintKey, Value: taintValue(text), Effect: resourcev1.DeviceTaintEffect(effect)})
		}
		if len(d.Taints)+len(d.ConsumesCounters) > 0 {
			most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
		list = append(list, *d)
	}
	var out []resourcev1.ResourceSliceSpec
	if len(pool.Counters) > 0 {
		out = append(out, resourcev1.ResourceSliceSpec{SharedCounters: pool.Counters})
	}
	for part := range slices.Chunk(list, most) {
		out = append(out, resourcev1.ResourceSliceSpec{Devices: part})
	}
	if len(out) == 0 { // it has nothing, and says so
		out = append(out, resourcev1.ResourceSliceSpec{})
	}
	return out
}

// taintValue is what can stand in a taint of a text.
func taintValue(text string) string {
	keep := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	text = strings.Map(keep, text)
	return strings.Trim(text[:min(len(text), 63)], "-")
}

// health is what the driver says of its pool's devices.
func (p *publisher) health() []*drahealth.DeviceHealth {
	var out []*drahealth.DeviceHealth
	for i := range p.d.o.Pool.Devices {
		name := p.d.o.Pool.Devices[i].Name
		h := &drahealth.DeviceHealth{
			Device: &drahealth.DeviceIdentifier{PoolName: p.d.h.node, DeviceName: name},
			Health: drahealth.HealthStatus_HEALTHY, HealthCheckTimeoutSeconds: healthHolds,
		}
		if text, bad := p.d.o.Pool.unhealthy[name]; bad {
			h.Health, h.Message = drahealth.HealthStatus_UNHEALTHY, text
		}
		out = append(out, h)
	}
	return out
}

// PoolDevices are those that a DRA driver offers. They are shared and never written to.
func (h *Host) PoolDevices(name string) ([]resourcev1.Device, error) {
	d, ok := h.running(name).(*draDriver)
	if !ok || d.publisher == nil {
		return nil, fmt.Errorf("there is no DRA driver %s with devices", name)
	}
	return d.o.Pool.Devices, nil
}

// SetPoolHealth has devices of a DRA driver become unhealthy, for which text says why, or
// healthy again. It reports whether that changes anything.
func (h *Host) SetPoolHealth(name string, devices []string, healthy bool, text string) (bool, error) {
	if _, err := h.PoolDevices(name); err != nil {
		return false, err
	}
	d := h.running(name).(*draDriver)
	pool := d.o.Pool
	if pool.unhealthy == nil {
		pool.unhealthy = map[string]string{}
	}
	changed := false
	for _, dev := range devices {
		was, bad := pool.unhealthy[dev]
		switch {
		case healthy && bad:
			delete(pool.unhealthy, dev)
			changed = true
		case !healthy && (!bad || was != text):
			pool.unhealthy[dev] = text
			changed = true
		}
	}
	if changed {
		d.tellHealth()
		d.publisher.sync()
	}
	return changed, nil
}

// prepare reads a claim and returns the devices that it was allocated of this driver's, as
// the helper of real drivers does.
func (p *publisher) prepare(ctx context.Context, c *drapb.Claim) ([]*drapb.Device, error) {
	if p.api == nil {
		return nil, errors.New("there is no API")
	}
	claim, err := p.api.GetResourceClaim(ctx, c.Namespace, c.Name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("retrieve claim %s/%s: %w", c.Namespace, c.Name, err)
	case claim.Status.Allocation == nil:
		return nil, fmt.Errorf("claim %s/%s not allocated", c.Namespace, c.Name)
	case string(claim.UID) != c.Uid:
		return nil, fmt.Errorf("claim %s/%s got replaced", c.Namespace, c.Name)
	}
	var out []*drapb.Device
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		if r.Driver != p.d.o.Name {
			continue
		}
		out = append(out, &drapb.Device{
			RequestNames: []string{resourceclaim.BaseRequestRef(r.Request)}, PoolName: r.Pool, DeviceName: r.Device,
			CdiDeviceIds: []string{CDIName(r.Driver, r.Device)}, ShareId: (*string)(r.ShareID),
		})
	}
	return out, nil
}

// CDIName is the CDI device that a DRA driver makes of one of its devices.
func CDIName(driver, device string) string { return driver + "/device=" + device }

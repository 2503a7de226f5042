// Package cm is the container manager's part of the kubelet: what of the
// node's resources pods may use. It mirrors upstream's pkg/kubelet/cm.
package cm

import (
	"fmt"
	"math"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/internal/eviction/api"
)

// Reservations are what of a node is not for pods.
type Reservations struct {
	System, Kube v1.ResourceList
	// IgnoreEviction is --experimental-allocatable-ignore-eviction: hard
	// eviction thresholds hold nothing back.
	IgnoreEviction bool
	// memory and nodefs are the hard eviction thresholds that hold room back; nil:
	// there is none.
	memory, nodefs *api.ThresholdValue
}

// NewReservations reads systemReserved, kubeReserved, reservedSystemCPUs and
// evictionHard of a configuration.
func NewReservations(cfg *kubeletconfig.KubeletConfiguration) (*Reservations, error) {
	r := &Reservations{}
	var err error
	if r.System, err = ParseReserved("systemReserved", cfg.SystemReserved); err != nil {
		return nil, err
	}
	if r.Kube, err = ParseReserved("kubeReserved", cfg.KubeReserved); err != nil {
		return nil, err
	}
	if cfg.ReservedSystemCPUs != "" {
		cpus, err := ParseCPUs(cfg.ReservedSystemCPUs)
		if err != nil {
			return nil, fmt.Errorf("reservedSystemCPUs: %w", err)
		}
		delete(r.Kube, v1.ResourceCPU)
		if r.System == nil {
			r.System = v1.ResourceList{}
		}
		r.System[v1.ResourceCPU] = *resource.NewQuantity(int64(cpus.Size()), resource.DecimalSI)
	}
	if r.memory, err = holdsBack("memory.available", cfg.EvictionHard); err != nil {
		return nil, err
	}
	if r.nodefs, err = holdsBack("nodefs.available", cfg.EvictionHard); err != nil {
		return nil, err
	}
	return r, nil
}

func holdsBack(signal string, hard map[string]string) (*api.ThresholdValue, error) {
	text := hard[signal]
	if text == "" {
		return nil, nil
	}
	v, on, err := api.ParseThreshold(signal, text)
	if err != nil {
		return nil, fmt.Errorf("evictionHard: %w", err)
	}
	if !on {
		return nil, nil
	}
	return &v, nil
}

// ParseReserved reads a reservation; field names it in errors.
func ParseReserved(field string, m map[string]string) (v1.ResourceList, error) {
	if len(m) == 0 {
		return nil, nil
	}
	keys := make([]string, 0, len(m))
	for k := range m { //drydock:unordered sorted below
		keys = append(keys, k)
	}
	sort.Strings(keys)
	out := make(v1.ResourceList, len(m))
	for _, k := range keys {
		switch v1.ResourceName(k) {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, "pid":
		default:
			return nil, fmt.Errorf("%s: cannot reserve %q resource", field, k)
		}
		q, err := resource.ParseQuantity(m[k])
		if err != nil {
			return nil, fmt.Errorf("%s: failed to parse quantity %q for %q resource: %w", field, m[k], k, err)
		}
		if q.Sign() < 0 {
			return nil, fmt.Errorf("%s: resource quantity for %q cannot be negative: %v", field, k, m[k])
		}
		out[v1.ResourceName(k)] = q
	}
	return out, nil
}

// HardEviction returns what hard eviction thresholds hold back of a capacity.
func (r *Reservations) HardEviction(capacity v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	if r.IgnoreEviction {
		return out
	}
	for _, t := range [...]struct {
		value *api.ThresholdValue
		name  v1.ResourceName
	}{{r.memory, v1.ResourceMemory}, {r.nodefs, v1.ResourceEphemeralStorage}} {
		if t.value == nil {
			continue
		}
		q := capacity[t.name]
		if held := t.value.Of(q.Value()); held.Sign() > 0 {
			out[t.name] = *resource.NewQuantity(held.Value(), resource.BinarySI)
		}
	}
	return out
}

// Allocatable returns what pods may use of a capacity, for the node's status:
// less the reservations and the hard eviction thresholds, memory also less all
// huge pages, never below 0 (pkg/kubelet/nodestatus/setters.go).
func (r *Reservations) Allocatable(capacity v1.ResourceList) v1.ResourceList {
	eviction := r.HardEviction(capacity)
	out := make(v1.ResourceList, len(capacity))
	for name, c := range capacity { //drydock:unordered fills a map
		q := c.DeepCopy()
		for _, l := range [...]v1.ResourceList{r.System, r.Kube, eviction} {
			if v, ok := l[name]; ok {
				q.Sub(v)
			}
		}
		if q.Sign() < 0 {
			q.Set(0)
		}
		out[name] = q
	}
	mem, ok := out[v1.ResourceMemory]
	if !ok {
		return out
	}
	for name, c := range capacity { //drydock:unordered subtraction
		if strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			if mem.Sub(c); mem.Sign() < 0 {
				mem.Set(0)
			}
		}
	}
	out[v1.ResourceMemory] = mem
	return out
}

// Enforceable returns what pods may use of a capacity by their cgroup: less the
// reservations, never below 0.
func (r *Reservations) Enforceable(capacity v1.ResourceList) v1.ResourceList {
	out := make(v1.ResourceList, len(capacity))
	for name, c := range capacity { //drydock:unordered fills a map
		q := c.DeepCopy()
		for _, l := range [...]v1.ResourceList{r.System, r.Kube} {
			if v, ok := l[name]; ok {
				q.Sub(v)
			}
		}
		if q.Sign() < 0 {
			q.Set(0)
		}
		out[name] = q
	}
	return out
}

// Total is what of a capacity is not for pods: the reservations and what hard
// eviction thresholds hold back; what is 0 is left out.
func (r *Reservations) Total(capacity v1.ResourceList) v1.ResourceList {
	out, eviction := v1.ResourceList{}, r.HardEviction(capacity)
	for name := range capacity { //drydock:unordered fills a map
		var sum resource.Quantity
		for _, l := range [...]v1.ResourceList{r.System, r.Kube, eviction} {
			if v, ok := l[name]; ok {
				sum.Add(v)
			}
		}
		if !sum.IsZero() {
			out[name] = sum
		}
	}
	return out
}

// Check returns an error if more is reserved than there is, which makes the
// kubelet exit.
func (r *Reservations) Check(capacity v1.ResourceList) error {
	eviction := r.HardEviction(capacity)
	var faults []string
	for _, name := range [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		c, ok := capacity[name]
		if !ok {
			continue
		}
		var sum resource.Quantity
		for _, l := range [...]v1.ResourceList{r.System, r.Kube, eviction} {
			if v, ok := l[name]; ok {
				sum.Add(v)
			}
		}
		if c.Cmp(sum) < 0 {
			faults = append(faults, fmt.Sprintf("Resource %q has a reservation of %v but capacity of %v. Expected capacity >= reservation.", name, &sum, &c))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("invalid Node Allocatable configuration. %s", strings.Join(faults, " "))
}

// PodCapacity returns how many pods a node takes: maxPods, or podsPerCore per
// core if that is less.
func PodCapacity(cores int64, cfg *kubeletconfig.KubeletConfiguration) int64 {
	n := int64(cfg.MaxPods)
	if cfg.PodsPerCore > 0 && cores < math.MaxInt32 {
		n = min(n, int64(cfg.PodsPerCore)*cores)
	}
	return n
}

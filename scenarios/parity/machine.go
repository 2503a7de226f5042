package parity

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/usage"
)

// What the recorded machine used itself, beside what a case says.
const (
	// uncounted is what was more available by the kubelet's statistics than a
	// case says, which has it of /proc/meminfo: that counts some page cache and
	// slab as in use. It is what both evictions for want of memory imply.
	uncounted = 170 << 20
	// settling is what kubelet, runtime and kernel took from the kubelet's start
	// on: the threshold of node-memory-eviction, which was missed by 1 MiB, was not
	// met 4 s after the last pod's start, and was 10 s later.
	settling     = 12 << 20
	settlingOver = 40 * time.Second
	// statsDelay was chance, of 10 to 20 s: in node-memory-eviction a pod whose
	// first container was made 14.7 s before the eviction was counted, and one 14.1 s
	// before, which used more, was not.
	statsDelay = 14500 * time.Millisecond
	// listing is what each of a relist's two calls took where soft thresholds are
	// about: in node-soft-eviction, 75 s after the kubelet's start, a relist fell
	// between a container's end and the last look at its pod, which is chance.
	listing = 1300 * time.Microsecond
)

// low tells whether the machine was to be low on something.
func (m *Machine) low() bool { return *m != Machine{} }

// drifts tells whether relists are to take time.
func (m *Machine) drifts(c *kubeletconfig.KubeletConfiguration) bool {
	return m.low() && c != nil && len(c.EvictionSoft) > 0
}

// use has the machine use so much that what the case says is available.
func (m *Machine) use(o *sim.NodeOptions) error {
	used := func(field, available string, name v1.ResourceName) (int64, error) {
		q, err := resource.ParseQuantity(available)
		if err != nil {
			return 0, fmt.Errorf("machine: %s: %q is no quantity", field, available)
		}
		capacity := o.Capacity[name]
		return max(capacity.Value()-q.Value(), 0), nil
	}
	if m.low() {
		o.StatsDelay = statsDelay
	}
	if m.drifts(o.Kubelet) {
		o.Runtime.Latency = map[string]fakecri.Range{"ListPodSandbox": {Min: listing, Max: listing}, "ListContainers": {Min: listing, Max: listing}}
	}
	if m.MemoryAvailable != "" {
		n, err := used("memory.availableBeforePods", m.MemoryAvailable, v1.ResourceMemory)
		if err != nil {
			return err
		}
		n = max(n-uncounted, 0)
		o.Usage.Memory = usage.Ramp(n, n+settling, settlingOver)
	}
	if m.NodefsAvailable != "" {
		n, err := used("nodefs.availableBeforePods", m.NodefsAvailable, v1.ResourceEphemeralStorage)
		if err != nil {
			return err
		}
		o.Usage.Disk = usage.Constant(n)
	}
	return nil
}

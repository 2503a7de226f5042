package volumemanager

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// nothing is a DeviceMounter whose volumes are unmounted without an error.
type nothing struct{ volume.DeviceMounter }

func (nothing) UnmountDevice(context.Context, volume.Device) error { return nil }

// TestNobodyDetaches: a volume that the node is to detach by itself stays in use, as upstream's; one
// that a controller detaches is forgotten once it is unmounted.
func TestNobodyDetaches(t *testing.T) {
	for _, itself := range []bool{false, true} {
		r := newRig(t, false)
		r.m.o.AttachesItself = itself
		d := r.m.device(volume.Device{Name: "kubernetes.io/csi/disks^1", Volume: "pv-1"}, nothing{}, true)
		d.attached, d.state = true, mounted
		r.m.populated = true
		r.m.reconciling.wake(0)
		r.run(10 * time.Second)
		inUse, _ := r.m.GetVolumesInUse()
		if want := map[bool]int{true: 1}[itself]; len(inUse) != want || len(r.m.devices) != want {
			t.Errorf("AttachesItself %v: in use %v", itself, inUse)
		}
		if itself && (d.state != notMounted || d.backoff.kind != detachOperation || d.backoff.wait < 8*time.Second) {
			t.Errorf("state %v, %+v", d.state, d.backoff)
		}
	}
}

// TestNobodyAttaches: the pod is told of each attempt, between which the pauses double.
func TestNobodyAttaches(t *testing.T) {
	r := newRig(t, false)
	r.m.o.AttachesItself = true
	d := r.m.device(volume.Device{Name: "kubernetes.io/csi/disks^1", Volume: "pv-1"}, nothing{}, true)
	p := &podVolumes{pod: &v1.Pod{}}
	for _, at := range []time.Duration{0, time.Second, 2 * time.Second} {
		r.at(at+time.Millisecond, func() { d.attach(r.m, p) })
	}
	r.run(5 * time.Second)
	r.want(
		`0.0 Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv-1" : attaching volumes from the kubelet is not supported`,
		`1.0 Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv-1" : attaching volumes from the kubelet is not supported`,
	)
}

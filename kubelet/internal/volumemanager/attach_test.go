package volumemanager

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// nothing is a DeviceMounter whose volumes are unmounted without an error, and that finds some
// staged.
type nothing struct {
	volume.DeviceMounter
	staged   []volume.Device
	unstaged *[]v1.UniqueVolumeName
}

func (n nothing) UnmountDevice(_ context.Context, d volume.Device) error {
	if n.unstaged != nil {
		*n.unstaged = append(*n.unstaged, d.Name)
	}
	return nil
}

func (n nothing) Staged() []volume.Device { return n.staged }

// TestStagedForNobody: what an earlier kubelet had mounted for the node, and for no pod, is taken
// away, and in use until then if it is attached.
func TestStagedForNobody(t *testing.T) {
	r := newRig(t, false)
	var unstaged []v1.UniqueVolumeName
	n := nothing{staged: []volume.Device{{Name: "kubernetes.io/csi/disks^1"}, {Name: "kubernetes.io/csi/disks^2"}}, unstaged: &unstaged}
	r.claims.attached = []v1.AttachedVolume{{Name: "kubernetes.io/csi/disks^2"}}
	r.m.reconstructStaged(n)
	r.m.reconstructStaged(n) // which finds none twice
	if _, known := r.m.GetVolumesInUse(); !known {
		t.Fatal("what is in use is not known before anything is")
	}
	var first []v1.UniqueVolumeName
	r.m.o.InUseChanged = func() {
		if list, known := r.m.GetVolumesInUse(); known && first == nil {
			first = list
		}
	}
	r.m.syncDevices()
	if _, known := r.m.GetVolumesInUse(); known {
		t.Error("what is in use is known before the node's status was read")
	}
	r.m.populated = true
	r.run(5 * time.Second)
	inUse, known := r.m.GetVolumesInUse()
	if len(first) != 1 || first[0] != "kubernetes.io/csi/disks^2" || !known || len(inUse) != 0 || len(unstaged) != 2 || len(r.m.devices) != 0 {
		t.Errorf("in use first %v, at last %v; unstaged %v; devices left: %d", first, inUse, unstaged, len(r.m.devices))
	}
}

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

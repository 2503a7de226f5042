package volumemanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// driverVolume is what a pod's volume of a DeviceMounter has besides.
type driverVolume struct {
	plugin volume.DeviceMounter
	device *device // nil of a pod's own volume
	pv     *v1.PersistentVolume
	// disk is the name of the volume's directory: that of the PersistentVolume.
	disk      string
	claimName string // "": it is of none
	// readOnly is as the pod uses the claim, republish as the driver wants it.
	readOnly, republish bool
	// reconstructed: an earlier kubelet mounted it, so that failures to do so again leave
	// it uncertain.
	reconstructed bool
	// claim is that of a volume which has become larger than its claim says; nil: it has
	// not.
	claim *v1.PersistentVolumeClaim
	// known: what the API says of the volume was true when Untold counted knownAt.
	known   bool
	knownAt uint64
}

// device is a PersistentVolume on the node, which pods share: in use, attached, mounted for
// the node. It is known as long as it is wanted, or anything of it may be there.
type device struct {
	volume.Device
	plugin volume.DeviceMounter
	// attaches: it has to be attached to the node, which inUse tells the controller that it
	// must not undo.
	attaches, inUse, attached bool
	state                     mountState
	reconstructed             bool
	// found: it was found staged, of no pod. Whether it has to be attached is not known yet.
	found   bool
	busy    bool // an operation on it runs
	backoff backoff
	volumes []*podVolume
}

// device returns what is known of a PersistentVolume, from now on if nothing is.
func (m *Manager) device(is volume.Device, plugin volume.DeviceMounter, attaches bool) *device {
	for _, d := range m.devices {
		if d.Name != is.Name {
			continue
		}
		if d.found {
			d.found, d.attaches, d.Device = false, attaches, is
			m.unmarked = true
			m.devicesChanged()
		}
		return d
	}
	d := &device{Device: is, plugin: plugin, attaches: attaches}
	m.unmarked = true
	m.devices = append(m.devices, d)
	m.devicesChanged()
	return d
}

// devicesChanged works out anew which volumes are in use.
func (m *Manager) devicesChanged() {
	var list []v1.UniqueVolumeName
	for _, d := range m.devices {
		if d.attaches {
			list = append(list, d.Name)
		}
	}
	slices.Sort(list)
	if !slices.Equal(list, m.inUse) {
		m.inUse = list
		if m.o.InUseChanged != nil {
			m.o.InUseChanged()
		}
	}
}

// GetVolumesInUse returns the volumes that have to be attached, sorted, from when it is
// decided that they are to be attached until they are unmounted; false while that is not
// known. The list is shared, and another slice once it changes.
func (m *Manager) GetVolumesInUse() ([]v1.UniqueVolumeName, bool) { return m.inUse, !m.unsynced }

// MarkVolumesAsReportedInUse says which volumes the API knows to be in use.
func (m *Manager) MarkVolumesAsReportedInUse(names []v1.UniqueVolumeName) {
	if !m.unmarked && slices.Equal(names, m.reportedInUse) { // as nearly always
		return
	}
	m.reportedInUse, m.unmarked = names, false
	for _, d := range m.devices {
		if is := slices.Contains(names, d.Name); is != d.inUse {
			d.inUse = is
			m.reconciling.wake(0)
		}
	}
}

// syncDevices learns which of the volumes that an earlier kubelet left have to be attached:
// those that the node's status says to be (updateReconstructedFromNodeStatus). Without an API
// none has.
func (m *Manager) syncDevices() {
	if m.unsynced = len(m.devices) > 0 && m.o.Claims != nil; !m.unsynced {
		return
	}
	m.o.Group.Go("reconstructed volumes", func(ctx context.Context) {
		for m.unsynced {
			node, err := m.o.Claims.GetNode(ctx, m.o.NodeName)
			if err != nil {
				m.logf("Error fetching Node object: %v", err)
				if m.l.Sleep(ctx, loopPeriod) != nil {
					return
				}
				continue
			}
			m.unsynced = false
			for _, d := range m.devices {
				if d.reconstructed && slices.ContainsFunc(node.Status.VolumesAttached, func(a v1.AttachedVolume) bool { return a.Name == d.Name }) {
					d.attaches = true
				}
			}
			m.devicesChanged()
			if m.o.InUseChanged != nil {
				m.o.InUseChanged() // now it is known
			}
			m.reconciling.wake(0)
		}
	})
}

// use says that a pod's volume is on a device.
func (d *device) use(v *podVolume) {
	if !slices.Contains(d.volumes, v) {
		d.volumes = append(d.volumes, v)
	}
	v.driver.device = d
}

// leave has a pod's volume, which is gone, use its device no more.
func (v *podVolume) leave() {
	if v.driver != nil && v.driver.device != nil {
		d := v.driver.device
		d.volumes = slices.DeleteFunc(d.volumes, func(o *podVolume) bool { return o == v })
	}
}

// specName is the name of a volume in events: that of a PersistentVolume, if it is one.
func (v *podVolume) specName() string {
	switch {
	case v.driver != nil:
		return v.driver.disk
	case v.pv != nil:
		return v.pv.Name
	}
	return v.name
}

// occupied reports whether an operation runs on a device or on a pod's volume on it.
func (d *device) occupied() bool {
	return d.busy || slices.ContainsFunc(d.volumes, func(v *podVolume) bool { return v.running })
}

// bringUp does the next step of a wanted volume that is on a device: it waits until that is
// attached, mounts it, mounts it anew, or makes it larger (mountOrAttachVolumes).
func (m *Manager) bringUp(p *podVolumes, v *podVolume) {
	d := v.driver.device
	switch {
	case !d.attached && d.attaches && m.o.AttachesItself:
		d.attach(m, p)
	case !d.attached:
		m.verifyAttached(d)
	case v.state != mounted || v.remount:
		if m.mayBegin(d, mountOperation) {
			m.mountOn(d, p, v)
		}
	case v.driver.claim != nil:
		if m.mayBegin(d, expandOperation) {
			m.expand(d, p, v)
		}
	}
}

// mayBegin reports whether an operation on a device may begin now.
func (m *Manager) mayBegin(d *device, kind operation) bool {
	if d.occupied() {
		return false // its end wakes the reconciler
	}
	if t := d.backoff.until(kind); m.l.UnixNano() <= t {
		m.reconciling.wake(t)
		return false
	}
	return true
}

// run runs an operation on a device in a task. Its error begins a pause for its like.
func (m *Manager) run(d *device, kind operation, what string, do func(ctx context.Context) error) {
	d.busy = true
	m.o.Group.Go(what+"/"+string(d.Name), func(ctx context.Context) {
		err := do(ctx)
		d.busy = false
		if err == nil {
			d.backoff = backoff{}
		} else {
			d.backoff.failed(kind, m.l.UnixNano())
			m.logf("%v volume=%s durationBeforeRetry=%v", err, d.Name, d.backoff.wait)
		}
		m.populating.wake(0)
		m.reconciling.wake(0)
	})
}

// verifyAttached looks whether the node's status says that a device is attached. One that
// need not be is so at once; one that the status does not say to be in use yet is not asked
// for, as nobody keeps it from being detached (waitForVolumeAttach).
func (m *Manager) verifyAttached(d *device) {
	if !d.attaches {
		d.attached = true
		m.reconciling.wake(m.l.UnixNano())
		return
	}
	if !d.inUse || !m.mayBegin(d, verifyOperation) {
		return
	}
	m.run(d, verifyOperation, "verify attached", func(ctx context.Context) error {
		node, err := m.o.Claims.GetNode(ctx, m.o.NodeName)
		if err != nil {
			return fmt.Errorf("VerifyControllerAttachedVolume failed fetching node from API server: %w", err)
		}
		if !slices.ContainsFunc(node.Status.VolumesAttached, func(a v1.AttachedVolume) bool { return a.Name == d.Name }) {
			return errors.New("Volume not attached according to node status")
		}
		d.attached = true
		return nil
	})
}

// Upstream's kubelet attaches and detaches no volume of CSI either, and no other kind is
// attached (pkg/volume/csi/csi_attacher.go).
var (
	errAttach = errors.New("attaching volumes from the kubelet is not supported")
	errDetach = errors.New("detaching volumes from the kubelet is not supported")
)

// attach is what becomes of a device if no controller is to attach it: an error, which is
// told of the pod, again and again (GenerateAttachVolumeFunc).
func (d *device) attach(m *Manager, p *podVolumes) {
	if !m.mayBegin(d, attachOperation) {
		return
	}
	pod := kubecontainer.PodRef(p.pod)
	m.run(d, attachOperation, "attach", func(context.Context) error {
		err := fmt.Errorf("AttachVolume.Attach failed for volume %q : %w", d.Volume, errAttach)
		m.o.Recorder.Event(pod, v1.EventTypeWarning, events.FailedAttachVolume, err.Error())
		return err
	})
}

// detach is likewise what becomes of one that is not mounted any more: it stays in use
// (GenerateDetachVolumeFunc).
func (d *device) detach(m *Manager) {
	if m.mayBegin(d, detachOperation) {
		m.run(d, detachOperation, "detach", func(context.Context) error {
			return fmt.Errorf("DetachVolume.Detach failed for volume %q : %w", d.Volume, errDetach)
		})
	}
}

// request is what a plugin is asked for a pod's volume.
func (v *podVolume) request(p *podVolumes) *volume.Request {
	r := newRequest(p, v)
	r.PV = v.pv
	if v.driver != nil {
		r.PV, r.ReadOnly = v.driver.pv, v.driver.readOnly
		r.Present = v.driver.reconstructed || v.state == mounted
	}
	return r
}

// mountOn mounts a device for the node, if it is not, and then for a pod
// (GenerateMountVolumeFunc).
func (m *Manager) mountOn(d *device, p *podVolumes, v *podVolume) {
	r := v.request(p)
	v.running = true
	m.run(d, mountOperation, "mount", func(ctx context.Context) error {
		words, second, err := "MountVolume.MountDevice failed", "MountVolume.SetUp failed", error(nil)
		if d.Block {
			words, second = "MapVolume.SetUpDevice failed", "MapVolume.MapPodDevice failed"
		}
		if d.state != mounted {
			err = d.plugin.MountDevice(ctx, r, d.attaches)
			d.state = after(d.state, d.reconstructed, err)
			if err == nil {
				d.reconstructed = false
			}
		}
		if err == nil {
			words = second
			err = d.plugin.SetUp(ctx, r)
		}
		v.running = false
		if err == nil {
			if d.Block && v.state != mounted {
				m.tellMapped(v, r)
			}
			m.isMounted(p, v, r)
			return nil
		}
		if words == second {
			v.state = after(v.state, v.driver.reconstructed, err)
		}
		m.mountFailed(v, r, words, err)
		return err
	})
}

// tellMapped tells where a block device is to be seen.
func (m *Manager) tellMapped(v *podVolume, r *volume.Request) {
	global, pod := v.driver.plugin.MapPaths(r.Pod.UID, r.PV)
	for _, where := range []string{fmt.Sprintf("globalMapPath %q", global), fmt.Sprintf("volumeMapPath %q", pod)} {
		m.o.Recorder.Event(kubecontainer.PodRef(r.Pod), v1.EventTypeNormal, events.SuccessfulMountVolume, fmt.Sprintf("MapVolume.MapPodDevice succeeded for volume %q %s", v.specName(), where))
	}
}

// after is how a mount is after an attempt: one that failed for good leaves none; one that
// may have its effect still leaves it uncertain, as one that was not begun leaves what was
// (markVolumeErrorState).
func after(was mountState, reconstructed bool, err error) mountState {
	var unsure *volume.UncertainError
	var transient *volume.TransientError
	switch {
	case err == nil:
		return mounted
	case errors.As(err, &transient):
		return was
	case errors.As(err, &unsure):
		if was == notMounted {
			return uncertain
		}
		return was
	case was == uncertain && !reconstructed:
		return notMounted
	}
	return was
}

// tearDown takes away the devices that nobody wants and no pod has mounted
// (unmountDetachDevices).
func (m *Manager) tearDown() {
	for _, d := range slices.Clone(m.devices) {
		if d.occupied() || slices.ContainsFunc(d.volumes, func(v *podVolume) bool { return v.desired || v.state != notMounted }) {
			continue
		}
		if d.state == notMounted && d.attached && d.attaches && m.o.AttachesItself {
			d.detach(m)
			continue
		}
		if d.state == notMounted {
			m.devices = slices.DeleteFunc(m.devices, func(o *device) bool { return o == d })
			m.devicesChanged()
			continue
		}
		if !m.mayBegin(d, unmountDeviceOperation) {
			continue
		}
		m.run(d, unmountDeviceOperation, "unmount device", func(ctx context.Context) error {
			if err := d.plugin.UnmountDevice(ctx, d.Device); err != nil {
				return fmt.Errorf("UnmountDevice failed: %w", err)
			}
			d.state, d.reconstructed = notMounted, false
			return nil
		})
	}
}

// expand has a volume made larger that has been so in the API, and then says in the claim
// that it is (nodeExpandVolume).
func (m *Manager) expand(d *device, p *podVolumes, v *podVolume) {
	r, claim := v.request(p), v.driver.claim
	v.running = true
	m.run(d, expandOperation, "expand", func(ctx context.Context) error {
		defer func() { v.running = false }()
		pod := kubecontainer.PodRef(r.Pod)
		ref := &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion}
		does, err := d.plugin.Expand(ctx, r)
		if err != nil {
			text := fmt.Sprintf("NodeExpandVolume.NodeExpandVolume failed for volume %q : %v", v.specName(), err)
			m.o.Recorder.Event(pod, v1.EventTypeWarning, events.VolumeResizeFailed, text)
			return errors.New(text)
		}
		next := claim.DeepCopy()
		next.Status.Capacity = v1.ResourceList{v1.ResourceStorage: r.PV.Spec.Capacity[v1.ResourceStorage]}
		next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
			return c.Type == v1.PersistentVolumeClaimFileSystemResizePending || c.Type == v1.PersistentVolumeClaimResizing
		})
		delete(next.Status.AllocatedResourceStatuses, v1.ResourceStorage)
		if _, err := m.o.Claims.UpdatePersistentVolumeClaimStatus(ctx, next); err != nil {
			return fmt.Errorf("MountVolume.NodeExpandVolume update pvc status failed: %w", err)
		}
		if v.driver.claim == claim {
			v.driver.claim = nil
		}
		if does {
			text := fmt.Sprintf("MountVolume.NodeExpandVolume succeeded for volume %q %s", v.specName(), m.o.NodeName)
			m.o.Recorder.Event(pod, v1.EventTypeNormal, events.FileSystemResizeSuccessful, text)
			m.o.Recorder.Event(ref, v1.EventTypeNormal, events.FileSystemResizeSuccessful, text)
		}
		return nil
	})
}

// DriverStats asks the driver of a pod's volume how much there is in it; false: nobody can
// tell, or it is not mounted.
func (m *Manager) DriverStats(ctx context.Context, uid types.UID, name string) (volume.Stats, bool) {
	p := m.pods[uid]
	if p == nil {
		return volume.Stats{}, false
	}
	v := p.volume(name)
	if v == nil || v.driver == nil || v.state != mounted {
		return volume.Stats{}, false
	}
	s, ok, err := v.driver.plugin.Stats(ctx, uid, v.driver.disk)
	if err != nil {
		m.logf("Failed to calculate volume metrics podUID=%s volume=%s: %v", uid, name, err)
	}
	return s, ok
}

// grown returns the claim of a volume if that is larger than the claim says and can be
// written to; else nil (checkVolumeFSResize).
func grown(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, readOnly bool) *v1.PersistentVolumeClaim {
	if pv == nil || claim == nil || readOnly || pv.Spec.Capacity.Storage().Cmp(*claim.Status.Capacity.Storage()) <= 0 {
		return nil
	}
	return claim
}

// wantDriven notes that a volume of a DeviceMounter is wanted.
func (m *Manager) wantDriven(p *podVolumes, spec *v1.Volume, plugin volume.DeviceMounter, a *claimAnswer) {
	disk := spec.Name
	if a.pv != nil {
		disk = a.pv.Name
	}
	v := p.volume(spec.Name)
	if i := slices.IndexFunc(p.volumes, func(v *podVolume) bool { return v.spec == nil && v.driver != nil && v.driver.disk == disk }); v == nil && i >= 0 {
		v = p.volumes[i] // which an earlier kubelet mounted
		v.name = spec.Name
	}
	if v != nil && v.driver == nil {
		return // what is on the disk under that name is of another kind; it goes first
	}
	if v == nil {
		v = &podVolume{name: spec.Name, plugin: plugin, driver: &driverVolume{plugin: plugin, disk: disk}}
		p.volumes = append(p.volumes, v)
	}
	d := v.driver
	d.known = false
	d.pv, d.readOnly, d.republish, d.claim = a.pv, a.readOnly, a.facts.Republish, grown(a.pv, a.claim, a.readOnly)
	if a.claim != nil {
		d.claimName = a.claim.Name
	}
	v.spec, v.desired = spec, true
	if a.pv == nil {
		v.path = plugin.Path(p.uid, spec)
		return
	}
	v.path = plugin.MountedPath(p.uid, a.pv)
	m.device(volume.Device{Name: plugin.VolumeName(a.pv), Volume: a.pv.Name, Block: util.IsBlock(a.pv)}, plugin, a.facts.Attaches).use(v)
}

// reconstructDriven notes a volume that an earlier kubelet left: until its state is told, it
// may be mounted for the pod and for the node.
func (m *Manager) reconstructDriven(p *podVolumes, plugin volume.DeviceMounter, dir, name string, block bool) {
	unique, err := plugin.Reconstruct(p.uid, name, block)
	if err != nil {
		m.logf("Could not construct volume information, cleaning up mounts podUID=%s volume=%s: %v", p.uid, name, err)
		return
	}
	v := &podVolume{name: name, plugin: plugin, path: dir, state: uncertain, driver: &driverVolume{plugin: plugin, disk: name, reconstructed: true}}
	p.volumes = append(p.volumes, v)
	if unique == "" {
		return
	}
	d := m.device(volume.Device{Name: unique, Volume: name, Block: block}, plugin, false)
	d.attached, d.state, d.reconstructed = true, uncertain, true
	d.use(v)
}

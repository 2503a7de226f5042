// Package attachdetach has volumes of drivers attached to the nodes whose pods want them, and
// detached when no pod does: it makes and deletes VolumeAttachments, on which attachers act,
// and writes status.volumesAttached of nodes. It mirrors upstream's
// pkg/controller/volume/attachdetach, and of pkg/volume/csi what is the attacher's.
//
// # How it differs
//
// Upstream's reconciler looks at everything each 100 ms. Its passes here lie on the same
// instants, but there is one only after something has changed, or a wait is over.
package attachdetach

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Times of upstream's DefaultTimerConfig, and of its back-off.
const (
	period         = 100 * time.Millisecond
	maxUnmount     = 6 * time.Minute
	backoffInitial = 500 * time.Millisecond
	backoffMax     = 2*time.Minute + 2*time.Second
)

// ownDriver's volumes are directories of nodes, which nobody attaches.
const ownDriver = "node-storage.drydock.dev"

// place is a volume on a node.
type place struct {
	volume v1.UniqueVolumeName
	node   string
}

// attachment is what is known of a volume on a node: who wants it there, and whether it is.
type attachment struct {
	place
	// Of the PersistentVolume: its name, driver and handle, and whether it may be on several
	// nodes. The object itself would be kept in a version that nobody else has any more.
	pv, driver, handle string
	shared             bool
	// pods want the volume on the node, in the order of their coming.
	pods []controller.Key
	// attached: it is, or may be. reported: the node's status is to say so.
	attached, reported bool
	busy               bool      // an operation on it runs
	unwanted           time.Time // since when it is to be detached; zero: it is not
	told               bool      // of volumes that are on another node
	failed             time.Time
	wait               time.Duration
	detaching          bool // the operation that failed last
	seq                int  // counts attachments as they come
	open               bool // it is in Controller.open
}

// Controller attaches and detaches.
type Controller struct {
	api      *apiserver.Component
	g        *loop.Group
	recorder *record.Recorder
	// places are all that is known, and byVolume and byNode the same in the order in which
	// they came. open are those that are not as they are to stay, in that order, too.
	places   map[place]*attachment
	byVolume map[v1.UniqueVolumeName][]*attachment
	byNode   map[string][]*attachment
	open     []*attachment
	came     int
	// wants are the places that a pod wants, waiting the pods by the claims that they name.
	wants   map[controller.Key][]*attachment
	waiting map[controller.Key][]controller.Key
	next    time.Time // of the pass that is set; zero: none is
}

// New starts the controller with what the nodes' statuses say to be attached.
func New(opts controller.Options) *Controller {
	c := &Controller{
		api: opts.API, g: opts.Group, recorder: controller.NewRecorder(opts.Group, opts.API, "attachdetach-controller"),
		places: map[place]*attachment{}, byVolume: map[v1.UniqueVolumeName][]*attachment{}, byNode: map[string][]*attachment{},
		wants: map[controller.Key][]*attachment{}, waiting: map[controller.Key][]controller.Key{},
	}
	srv := opts.API.Server()
	for _, va := range apiserver.Objects[*storagev1.VolumeAttachment](srv.Store(), apiserver.KindVolumeAttachment) {
		c.recall(va)
	}
	for _, p := range srv.Pods() {
		c.pod(p, false)
	}
	srv.OnChange(c.onChange, apiserver.KindPod, apiserver.KindNode, apiserver.KindPersistentVolumeClaim, apiserver.KindVolumeAttachment)
	c.wake(0)
	return c
}

// recall notes what an earlier controller had attached, or may have.
func (c *Controller) recall(va *storagev1.VolumeAttachment) {
	name := va.Spec.Source.PersistentVolumeName
	if name == nil {
		return
	}
	pv, ok := controller.Lookup[*v1.PersistentVolume](c.api, apiserver.KindPersistentVolume, controller.Key{Name: *name})
	if !ok || pv.Spec.CSI == nil {
		return
	}
	a := c.at(pv, va.Spec.NodeName)
	a.attached, a.reported = true, va.Status.Attached
}

func (c *Controller) onChange(ch apiserver.Change) {
	switch o := ch.New.(type) {
	case *v1.Pod:
		if len(o.Spec.Volumes) > 0 && o.Spec.NodeName != "" {
			c.pod(o, ch.Type == watch.Deleted)
		}
	case *v1.PersistentVolumeClaim:
		for _, key := range c.waiting[controller.KeyOf(o)] {
			if p := c.api.Server().Pod(key.Namespace, key.Name); p != nil {
				c.pod(p, false)
			}
		}
	case *v1.Node:
		old, _ := ch.Old.(*v1.Node)
		if len(c.open) > 0 && (old == nil || ch.Type == watch.Deleted || !slices.Equal(old.Status.VolumesInUse, o.Status.VolumesInUse) || outOfService(old) != outOfService(o) || managed(old) != managed(o)) {
			c.wake(0)
		}
	case *storagev1.VolumeAttachment:
		if len(c.open) > 0 {
			c.wake(0)
		}
	}
}

// pod notes what a pod wants where it runs: volumes of claims that are bound, as long as it
// has not ended (DetermineVolumeAction).
func (c *Controller) pod(p *v1.Pod, deleted bool) {
	key := controller.KeyOf(p)
	over := deleted || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
	var wanted []*attachment
	for i := range p.Spec.Volumes {
		claim := controller.Key{Namespace: p.Namespace, Name: controller.ClaimOf(p, &p.Spec.Volumes[i])}
		if claim.Name == "" {
			continue
		}
		c.wait(claim, key, !over)
		if over || p.Spec.NodeName == "" {
			continue
		}
		if pv := c.volumeOf(claim); pv != nil {
			wanted = append(wanted, c.at(pv, p.Spec.NodeName))
		}
	}
	had := c.wants[key]
	if slices.Equal(had, wanted) {
		return
	}
	for _, a := range had {
		c.look(a)
		a.pods = slices.DeleteFunc(a.pods, func(k controller.Key) bool { return k == key })
	}
	for _, a := range wanted {
		c.look(a)
		a.pods = append(a.pods, key)
	}
	if len(wanted) == 0 {
		delete(c.wants, key)
	} else {
		c.wants[key] = wanted
	}
	c.wake(0)
}

// wait keeps which pods name a claim.
func (c *Controller) wait(claim, pod controller.Key, names bool) {
	if slices.Contains(c.waiting[claim], pod) == names {
		return
	}
	rest := slices.DeleteFunc(c.waiting[claim], func(k controller.Key) bool { return k == pod })
	if names {
		rest = append(rest, pod)
	}
	if len(rest) == 0 {
		delete(c.waiting, claim)
		return
	}
	c.waiting[claim] = rest
}

// volumeOf is the volume that a claim is bound to, if that has to be attached; else nil.
func (c *Controller) volumeOf(key controller.Key) *v1.PersistentVolume {
	claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](c.api, apiserver.KindPersistentVolumeClaim, key)
	if !ok || claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil
	}
	pv, ok := controller.Lookup[*v1.PersistentVolume](c.api, apiserver.KindPersistentVolume, controller.Key{Name: claim.Spec.VolumeName})
	if !ok || pv.Spec.CSI == nil || pv.Spec.CSI.Driver == ownDriver {
		return nil
	}
	driver, ok := controller.Lookup[*storagev1.CSIDriver](c.api, apiserver.KindCSIDriver, controller.Key{Name: pv.Spec.CSI.Driver})
	if ok && driver.Spec.AttachRequired != nil && !*driver.Spec.AttachRequired {
		return nil
	}
	return pv
}

// at returns what is known of a volume on a node, from now on if nothing is.
func (c *Controller) at(pv *v1.PersistentVolume, node string) *attachment {
	where := place{v1.UniqueVolumeName("kubernetes.io/csi/" + pv.Spec.CSI.Driver + "^" + pv.Spec.CSI.VolumeHandle), node}
	if a := c.places[where]; a != nil {
		return a
	}
	c.came++
	a := &attachment{
		place: where, pv: pv.Name, driver: pv.Spec.CSI.Driver, handle: pv.Spec.CSI.VolumeHandle, shared: shared(pv), seq: c.came,
	}
	c.places[where] = a
	c.byVolume[where.volume] = append(c.byVolume[where.volume], a)
	c.byNode[node] = append(c.byNode[node], a)
	c.look(a)
	return a
}

// look has the next pass look at an attachment.
func (c *Controller) look(a *attachment) {
	if a.open {
		return
	}
	a.open = true
	i, _ := slices.BinarySearchFunc(c.open, a, func(x, y *attachment) int { return x.seq - y.seq })
	c.open = slices.Insert(c.open, i, a)
}

// forget drops an attachment that nobody wants and that is none.
func (c *Controller) forget(a *attachment) {
	is := func(o *attachment) bool { return o == a }
	delete(c.places, a.place)
	if c.byVolume[a.volume] = slices.DeleteFunc(c.byVolume[a.volume], is); len(c.byVolume[a.volume]) == 0 {
		delete(c.byVolume, a.volume)
	}
	if c.byNode[a.node] = slices.DeleteFunc(c.byNode[a.node], is); len(c.byNode[a.node]) == 0 {
		delete(c.byNode, a.node)
	}
}

// name is that of the VolumeAttachment (getAttachmentName).
func (a *attachment) name() string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(a.handle+a.driver+a.node)))
}

// shared reports whether a volume may be on several nodes (IsMultiAttachAllowed).
func shared(pv *v1.PersistentVolume) bool {
	return len(pv.Spec.AccessModes) == 0 || slices.ContainsFunc(pv.Spec.AccessModes, func(m v1.PersistentVolumeAccessMode) bool {
		return m == v1.ReadWriteMany || m == v1.ReadOnlyMany
	})
}

// wake has the first pass that is at least after away be held.
func (c *Controller) wake(after time.Duration) {
	at := c.g.Loop().Now().Add(after + c.api.Delivery()).Truncate(period).Add(period)
	if !c.next.IsZero() && !at.Before(c.next) {
		return
	}
	c.next = at
	c.g.At(at, func() {
		if c.next.Equal(at) { // else an earlier one was set meanwhile
			c.next = time.Time{}
			c.reconcile()
		}
	})
}

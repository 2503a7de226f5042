// Package persistentvolume binds claims to volumes, has volumes provisioned for those that
// find none, and releases the volumes of claims that are gone. It mirrors upstream's
// pkg/controller/volume/persistentvolume.
//
// Claims of a cluster in which nobody provisions volumes are left to package nodestorage: see
// nodestorage.Takes.
//
// # How it differs
//
// Upstream looks at all claims and volumes each 15 s. Here only those are looked at that are
// not as they are to stay. No plugin of the controller's own provisions, and nothing is
// recycled: what a hostPath volume below /tmp held is not removed.
package persistentvolume

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/nodestorage"
)

// resyncPeriod is upstream's PVClaimBinderSyncPeriod.
const resyncPeriod = 15 * time.Second

// Controller binds claims and volumes.
type Controller struct {
	opts     controller.Options
	api      *apiserver.Component
	g        *loop.Group
	recorder *record.Recorder
	// claims and volumes have one worker each, as upstream.
	claims, volumes *controller.Queue
	index           *index
	// openClaims and openVolumes wait for something, and are looked at again each
	// resyncPeriod from started on.
	openClaims, openVolumes open
	started                 time.Time
	armed                   bool
}

// New starts the controller, also on what is there.
func New(opts controller.Options) *Controller {
	c := &Controller{
		opts: opts, api: opts.API, g: opts.Group, recorder: controller.NewRecorder(opts.Group, opts.API, "persistentvolume-controller"),
		index: newIndex(), openClaims: newOpen(), openVolumes: newOpen(), started: opts.Group.Loop().Now(),
	}
	queue := func(name string, sync func(context.Context, controller.Key) error) *controller.Queue {
		return controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: name, Delay: c.api.Delivery, Sync: sync})
	}
	c.claims, c.volumes = queue("claims", c.claim), queue("volumes", c.volume)
	srv := c.api.Server()
	srv.OnChange(c.claimChanged, apiserver.KindPersistentVolumeClaim)
	srv.OnChange(c.volumeChanged, apiserver.KindPersistentVolume)
	for _, pv := range apiserver.Objects[*v1.PersistentVolume](srv.Store(), apiserver.KindPersistentVolume) {
		c.addVolume(pv)
	}
	for _, claim := range apiserver.Objects[*v1.PersistentVolumeClaim](srv.Store(), apiserver.KindPersistentVolumeClaim) {
		c.addClaim(claim)
	}
	return c
}

// claimChanged queues a claim, or the volume of one that is gone.
func (c *Controller) claimChanged(ch apiserver.Change) {
	claim := ch.New.(*v1.PersistentVolumeClaim)
	if ch.Type != watch.Deleted {
		c.addClaim(claim)
		return
	}
	c.openClaims.remove(controller.KeyOf(claim))
	if pv, ok := c.lookupVolume(claim.Spec.VolumeName); ok {
		c.addVolume(pv)
	}
}

func (c *Controller) addClaim(claim *v1.PersistentVolumeClaim) {
	if !nodestorage.Takes(c.opts, claim) {
		c.claims.Add(controller.KeyOf(claim))
	}
}

// volumeChanged notes and queues a volume, or queues the claim of one that is gone.
func (c *Controller) volumeChanged(ch apiserver.Change) {
	pv := ch.New.(*v1.PersistentVolume)
	if ch.Type != watch.Deleted {
		c.addVolume(pv)
		return
	}
	c.index.drop(pv.Name)
	c.openVolumes.remove(controller.KeyOf(pv))
	if ref := pv.Spec.ClaimRef; ref != nil && !nodestorage.Owns(pv) {
		c.claims.Add(controller.Key{Namespace: ref.Namespace, Name: ref.Name})
	}
}

// addVolume notes a volume as it is now, and queues it.
func (c *Controller) addVolume(pv *v1.PersistentVolume) {
	if !nodestorage.Owns(pv) {
		c.index.put(pv)
		c.volumes.Add(controller.KeyOf(pv))
	}
}

// claim is a claim's turn. What fails waits for the next change or resync, as upstream.
func (c *Controller) claim(ctx context.Context, key controller.Key) error {
	claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](c.api, apiserver.KindPersistentVolumeClaim, key)
	if !ok || nodestorage.Takes(c.opts, claim) {
		c.openClaims.remove(key)
		return nil
	}
	err := c.syncClaim(ctx, claim)
	claim, ok = controller.Lookup[*v1.PersistentVolumeClaim](c.api, apiserver.KindPersistentVolumeClaim, key)
	if ok && (err != nil || claim.Status.Phase == v1.ClaimPending) {
		c.openClaims.add(key)
		c.arm()
		return nil
	}
	c.openClaims.remove(key)
	return nil
}

// volume is a volume's turn.
func (c *Controller) volume(ctx context.Context, key controller.Key) error {
	pv, ok := c.lookupVolume(key.Name)
	if !ok {
		c.openVolumes.remove(key)
		return nil
	}
	if err := c.syncVolume(ctx, pv); err != nil || c.retries(key.Name) {
		c.openVolumes.add(key)
		c.arm()
		return nil
	}
	c.openVolumes.remove(key)
	return nil
}

// retries reports whether a volume is to be deleted by the controller, and could not be.
func (c *Controller) retries(name string) bool {
	pv, ok := c.lookupVolume(name)
	return ok && pv.Status.Phase == v1.VolumeFailed
}

// lookupVolume returns a volume; false: there is none, or it is a node's own storage.
func (c *Controller) lookupVolume(name string) (*v1.PersistentVolume, bool) {
	if name == "" {
		return nil, false
	}
	pv, ok := controller.Lookup[*v1.PersistentVolume](c.api, apiserver.KindPersistentVolume, controller.Key{Name: name})
	if !ok || nodestorage.Owns(pv) {
		return nil, false
	}
	return pv, true
}

// arm sets the next resync, unless it is set.
func (c *Controller) arm() {
	if c.armed {
		return
	}
	c.armed = true
	passed := c.g.Loop().Since(c.started)
	c.g.After(resyncPeriod-passed%resyncPeriod, func() {
		c.armed = false
		c.openVolumes.each(c.volumes.Add)
		c.openClaims.each(c.claims.Add)
		if !c.openVolumes.empty() || !c.openClaims.empty() {
			c.arm()
		}
	})
}

// open is a set of keys, in the order of their coming.
type open struct {
	is    map[controller.Key]bool
	order []controller.Key
}

func newOpen() open { return open{is: map[controller.Key]bool{}} }

func (o *open) empty() bool { return len(o.is) == 0 }

func (o *open) add(key controller.Key) {
	if !o.is[key] {
		o.is[key] = true
		o.order = append(o.order, key)
	}
}

func (o *open) remove(key controller.Key) {
	if !o.is[key] {
		return
	}
	delete(o.is, key)
	for i, k := range o.order {
		if k == key {
			o.order = append(o.order[:i], o.order[i+1:]...)
			return
		}
	}
}

func (o *open) each(do func(controller.Key)) {
	for _, key := range o.order {
		do(key)
	}
}

package resourceclaim

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	draclaim "k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// workers is how many objects are synced at once
// (ResourceClaimControllerConfiguration.ConcurrentSyncs).
const workers = 50

// Controller looks after ResourceClaims.
type Controller struct {
	api          *apiserver.Component
	recorder     *record.Recorder
	pods, claims *controller.Queue
	// users are the pods that name a claim, and waiting those that name a template.
	users, waiting index
	// made are the claims by the pod that controls them.
	made map[types.UID][]controller.Key
}

// index is the pods by the name of something in their namespace, in the order of
// their coming.
type index map[controller.Key][]controller.Key

func (x index) add(key, pod controller.Key) {
	if !slices.Contains(x[key], pod) {
		x[key] = append(x[key], pod)
	}
}

func (x index) remove(key, pod controller.Key) {
	rest := slices.DeleteFunc(x[key], func(k controller.Key) bool { return k == pod })
	if len(rest) == 0 {
		delete(x, key)
		return
	}
	x[key] = rest
}

// New starts the controller.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API, users: index{}, waiting: index{}, made: map[types.UID][]controller.Key{}}
	c.recorder = controller.NewRecorder(opts.Group, opts.API, "resource_claim")
	c.pods = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "claims of pods", Workers: workers, Delay: opts.API.Delivery, Sync: c.syncPod})
	c.claims = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "resource claims", Workers: workers, Delay: opts.API.Delivery, Sync: c.syncClaim})
	srv := opts.API.Server()
	for _, claim := range apiserver.Objects[*resourcev1.ResourceClaim](srv.Store(), apiserver.KindResourceClaim) {
		c.own(claim, false)
		c.claims.Add(controller.KeyOf(claim))
	}
	for _, p := range srv.Pods() {
		c.onPod(p, false)
	}
	srv.OnChange(c.onChange, apiserver.KindPod, apiserver.KindResourceClaim, apiserver.KindResourceClaimTemplate)
	return c
}

func (c *Controller) onChange(ch apiserver.Change) {
	deleted := ch.Type == watch.Deleted
	key := controller.KeyOf(ch.New)
	switch ch.Kind {
	case apiserver.KindPod:
		if p := ch.New.(*v1.Pod); len(p.Spec.ResourceClaims) > 0 || p.Status.ExtendedResourceClaimStatus != nil {
			c.onPod(p, deleted)
		}
	case apiserver.KindResourceClaim:
		if !deleted {
			c.claims.Add(key)
		}
		c.own(ch.New, deleted)
		c.wake(c.users[key])
	case apiserver.KindResourceClaimTemplate:
		if !deleted {
			c.wake(c.waiting[key])
		}
	}
}

// own keeps the claims by the pod that controls them.
func (c *Controller) own(claim apiserver.Object, deleted bool) {
	ref := metav1.GetControllerOfNoCopy(claim)
	if ref == nil || ref.Kind != "Pod" {
		return
	}
	key := controller.KeyOf(claim)
	switch rest := c.made[ref.UID]; {
	case !deleted && !slices.Contains(rest, key):
		c.made[ref.UID] = append(rest, key)
	case deleted && len(rest) <= 1:
		delete(c.made, ref.UID)
	case deleted:
		c.made[ref.UID] = slices.DeleteFunc(rest, func(k controller.Key) bool { return k == key })
	}
}

// wake queues those of the pods for which there is something to do.
func (c *Controller) wake(pods []controller.Key) {
	for _, key := range pods {
		if p := c.api.Server().Pod(key.Namespace, key.Name); p != nil && c.needsWork(p) {
			c.pods.Add(key)
		}
	}
}

// onPod keeps the indexes and queues what a pod's change is of interest to: its
// claims when it is done with them, itself when it has not got them yet.
func (c *Controller) onPod(p *v1.Pod, deleted bool) {
	pod := controller.KeyOf(p)
	for i := range p.Spec.ResourceClaims {
		pc := &p.Spec.ResourceClaims[i]
		if t := pc.ResourceClaimTemplateName; t != nil {
			c.note(c.waiting, controller.Key{Namespace: p.Namespace, Name: *t}, pod, deleted)
		}
		name, _, err := draclaim.Name(p, pc)
		if err != nil || name == nil {
			continue
		}
		key := controller.Key{Namespace: p.Namespace, Name: *name}
		c.note(c.users, key, pod, deleted)
		if deleted || done(p) {
			c.claims.Add(key)
		}
	}
	// The scheduler makes that of extended resources; who gives it back is here.
	if s := p.Status.ExtendedResourceClaimStatus; s != nil && (deleted || done(p)) {
		c.claims.Add(controller.Key{Namespace: p.Namespace, Name: s.ResourceClaimName})
	}
	if !deleted && c.needsWork(p) {
		c.pods.Add(pod)
	}
}

func (c *Controller) note(x index, key, pod controller.Key, deleted bool) {
	if deleted {
		x.remove(key, pod)
		return
	}
	x.add(key, pod)
}

// done reports whether a pod needs no claims any more (isPodDone).
func done(p *v1.Pod) bool {
	return controller.PodTerminated(p) || p.DeletionTimestamp != nil && p.Spec.NodeName == ""
}

// needsWork reports whether a claim is to be made for a pod or reserved for it
// (podNeedsWork).
func (c *Controller) needsWork(p *v1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(p.Spec.ResourceClaims, func(pc v1.PodResourceClaim) bool {
		name, owned, err := draclaim.Name(p, &pc)
		if err != nil {
			return pc.ResourceClaimTemplateName != nil
		}
		if name == nil {
			return false
		}
		claim, ok := controller.Lookup[*resourcev1.ResourceClaim](c.api, apiserver.KindResourceClaim, controller.Key{Namespace: p.Namespace, Name: *name})
		switch {
		case !ok:
			return pc.ResourceClaimTemplateName != nil
		case owned && draclaim.IsForPod(p, claim, false) != nil:
			return true
		}
		return p.Spec.NodeName != "" && reservable(p, claim)
	})
}

// reservable reports whether a claim has devices, which the pod may have and does not.
func reservable(p *v1.Pod, claim *resourcev1.ResourceClaim) bool {
	return claim.Status.Allocation != nil && !draclaim.IsReservedForPod(p, claim, false) && draclaim.CanBeReserved(claim)
}

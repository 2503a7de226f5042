package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// This file is the plugin DynamicResources (plugins/dynamicresources). Pods without
// claims come by it at the length of their list.

// conflictTries is how often a write is tried that others got ahead of (client-go
// util/retry, DefaultRetry).
const conflictTries = 5

// claimState is what the plugin keeps for a cycle.
type claimState struct {
	claims []*resourcev1.ResourceClaim
	// available says where the claim of the same index can be used; nil: everywhere.
	available []*nodeaffinity.NodeSelector
	// unallocated are the claims to be allocated.
	unallocated []*resourcev1.ResourceClaim
	// extended is the claim of the pod's extended resources, the last of claims; nil: it asks for
	// none that drivers could have. variants are what becomes of it on nodes.
	extended *resourcev1.ResourceClaim
	variants []*extendedVariant
	// results are the allocations of unallocated by node.
	results map[*nodeInfo]nodeAllocation
	// unavailable are the indexes of claims that some node is no place for.
	unavailable map[int]bool
	// nodeText is said of nodes where allocation failed for a reason of its own.
	nodeText string
	// err ends the cycle: no other node would do better.
	err error
}

// nodeAllocation are the allocations of a pod's unallocated claims on a node.
type nodeAllocation struct {
	results []resourcev1.AllocationResult
	// extended is the claim of extended resources, whose allocation is the last; nil: there is none.
	extended *extendedVariant
}

// reservation is what a pod that was placed needs done before it is bound.
type reservation struct {
	claims []*resourcev1.ResourceClaim
	// allocations: of the claim of the same index; nil: it has one.
	allocations []*resourcev1.AllocationResult
	// extended: the last claim is that of the pod's extended resources; nil: it is not.
	extended *extendedVariant
}

// podClaims returns a pod's claims, or why it has to wait for them
// (foreachPodResourceClaim). A claim that was found to be needless is left out.
func podClaims(store *apiserver.Store, pod *v1.Pod) (claims []*resourcev1.ResourceClaim, missing string, err error) {
	for i := range pod.Spec.ResourceClaims {
		name, mustCheckOwner, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, "", fmt.Errorf("%w", err)
		}
		if name == nil {
			continue
		}
		claim, _ := store.Lookup(apiserver.KindResourceClaim, pod.Namespace, *name).(*resourcev1.ResourceClaim)
		switch {
		case claim == nil:
			return nil, *name, fmt.Errorf("could not find v1.ResourceClaim %q", pod.Namespace+"/"+*name)
		case claim.DeletionTimestamp != nil:
			return nil, *name, fmt.Errorf("resourceclaim %q is being deleted", claim.Name)
		case mustCheckOwner:
			if err := resourceclaim.IsForPod(pod, claim, false); err != nil {
				return nil, *name, fmt.Errorf("%w", err)
			}
		}
		claims = append(claims, claim)
	}
	return claims, "", nil
}

// gatedByClaims is PreEnqueue: a pod whose claims are not there is kept out of the
// queue, without a word, until they are.
func (s *Scheduler) gatedByClaims(q *queued, pod *v1.Pod) bool {
	if len(pod.Spec.ResourceClaims) == 0 || !s.profiles.of(pod).claimGates {
		return false
	}
	s.stopWaiting(q)
	_, missing, err := podClaims(s.store, pod)
	if err != nil && missing != "" {
		q.waitsFor = missing
		key := controller.Key{Namespace: q.namespace, Name: missing}
		s.waitingFor[key] = append(s.waitingFor[key], q)
	}
	return err != nil
}

// stopWaiting forgets the claim that a pod waits for outside of the queue.
func (s *Scheduler) stopWaiting(q *queued) {
	if q.waitsFor == "" {
		return
	}
	key := controller.Key{Namespace: q.namespace, Name: q.waitsFor}
	q.waitsFor = ""
	rest := slices.DeleteFunc(s.waitingFor[key], func(o *queued) bool { return o == q })
	if len(rest) == 0 {
		delete(s.waitingFor, key)
		return
	}
	s.waitingFor[key] = rest
}

// onClaim takes over a claim's change, and lets in who waited for the claim.
func (s *Scheduler) onClaim(c *apiserver.Change, deleted bool) {
	claim, _ := c.New.(*resourcev1.ResourceClaim)
	old, _ := c.Old.(*resourcev1.ResourceClaim)
	switch {
	case deleted:
		delete(s.devices.pending, claim.UID)
		s.devices.set(claim.UID, nil)
	case claim.Status.Allocation != nil || !s.devices.pending[claim.UID]:
		s.devices.set(claim.UID, claim.Status.Allocation)
	}
	if pod := extendedOwner(claim); pod != "" {
		s.devices.extended[pod] = claim
		if deleted {
			delete(s.devices.extended, pod)
		}
	}
	if deleted {
		return
	}
	for _, q := range slices.Clone(s.waitingFor[controller.KeyOf(claim)]) {
		if p := s.podOf(q); p != nil && q.place == gated && !s.gated(p) && !s.gatedByClaims(q, p) {
			s.arrive(q)
		}
	}
	s.moved(event{kind: resourceClaimChange, claim: claim, oldClaim: old})
}

// claimHelps is the hint about a claim's change (isSchedulableAfterClaimChange).
func (s *Scheduler) claimHelps(ev *event, p *v1.Pod) bool {
	claims, _, err := podClaims(s.store, p)
	switch {
	case err != nil:
		return false
	case ev.oldClaim != nil && ev.oldClaim.Status.Allocation != nil && ev.claim.Status.Allocation == nil:
		return true // its devices are free
	case !slices.ContainsFunc(claims, func(c *resourcev1.ResourceClaim) bool { return c.UID == ev.claim.UID }):
		return false
	}
	return ev.oldClaim == nil || !equality.Semantic.DeepEqual(&ev.oldClaim.Status, &ev.claim.Status)
}

// preFilterClaims reads the pod's claims. It returns why the pod fits on no node; ""
// if it may.
func (cy *cycle) preFilterClaims() (string, error) {
	s := cy.s
	st := &claimState{}
	cy.claims = st
	claims, _, err := podClaims(s.store, cy.pod)
	if err != nil {
		return err.Error(), nil
	}
	extended := cy.preFilterExtended()
	if extended != nil {
		claims = append(claims, extended)
	}
	available := make([]*nodeaffinity.NodeSelector, len(claims))
	var unallocated []*resourcev1.ResourceClaim
	for i, c := range claims {
		if a := c.Status.Allocation; a != nil {
			if !resourceclaim.CanBeReserved(c) && !resourceclaim.IsReservedForPod(cy.pod, c, false) {
				return "resourceclaim in use", nil
			}
			if a.NodeSelector != nil {
				if available[i], err = nodeaffinity.NewNodeSelector(a.NodeSelector); err != nil {
					return "", fmt.Errorf("%w", err)
				}
			}
			continue
		}
		if s.devices.pending[c.UID] {
			return fmt.Sprintf("resource claim %s is in the process of being allocated", controller.KeyOf(c)), nil
		}
		if text := s.classMissing(c); text != "" {
			return text, nil
		}
		unallocated = append(unallocated, c)
	}
	*st = claimState{claims: claims, available: available, unallocated: unallocated, extended: extended, results: map[*nodeInfo]nodeAllocation{}}
	return "", nil
}

// classMissing says which device class a claim asks for that there is not.
func (s *Scheduler) classMissing(c *resourcev1.ResourceClaim) string {
	check := func(class, request string) string {
		if s.store.Lookup(apiserver.KindDeviceClass, "", class) != nil {
			return ""
		}
		return fmt.Sprintf("request %s: device class %s does not exist", request, class)
	}
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if r.Exactly != nil {
			if text := check(r.Exactly.DeviceClassName, r.Name); text != "" {
				return text
			}
		}
		for j := range r.FirstAvailable {
			if text := check(r.FirstAvailable[j].DeviceClassName, r.Name+"/"+r.FirstAvailable[j].Name); text != "" {
				return text
			}
		}
	}
	return ""
}

// filterClaims is Filter. No pod that leaves would help where it refuses.
func (cy *cycle) filterClaims(n *nodeInfo) verdict {
	st := cy.claims
	if st.err != nil {
		return whyNoDevices | unresolvable
	}
	unallocated := st.unallocated
	var variant *extendedVariant
	if st.extended != nil {
		if st.extended.Name != unnamed {
			return whyClaimLeft | unresolvable
		}
		if variant = cy.variantFor(n); variant == nil {
			return 0
		}
		unallocated = append(slices.Clone(unallocated[:len(unallocated)-1]), variant.claim)
	}
	elsewhere := false
	for i := range st.claims {
		if sel := st.available[i]; sel != nil && !sel.Match(n.node) || cy.givenUp(st.claims[i]) {
			if st.unavailable == nil {
				st.unavailable = map[int]bool{}
			}
			st.unavailable[i], elsewhere = true, true
		}
	}
	if len(unallocated) > 0 {
		results, err := cy.s.devices.allocate(context.Background(), n.node, unallocated)
		switch {
		case errors.Is(err, structured.ErrFailedAllocationOnNode):
			st.nodeText = cmp.Or(st.nodeText, err.Error())
			return whyDevicesFail | unresolvable
		case err != nil:
			st.err = err
			return whyNoDevices | unresolvable
		case len(results) != len(unallocated):
			return whyNoDevices | unresolvable
		}
		st.results[n] = nodeAllocation{results, variant}
	}
	if elsewhere {
		return whyClaimElsewhere | unresolvable
	}
	return 0
}

// postFilterClaims is PostFilter: a claim that keeps the pod off nodes and that
// nobody else uses gives its devices back.
func (cy *cycle) postFilterClaims() string {
	if cy.claims == nil || len(cy.claims.claims) == 0 {
		return "no new claims to deallocate"
	}
	for i, c := range cy.claims.claims {
		if r := c.Status.ReservedFor; !cy.claims.unavailable[i] || len(r) > 1 || len(r) == 1 && r[0].UID != cy.pod.UID {
			continue
		}
		cy.s.deallocate(c)
		return "deallocation of ResourceClaim completed"
	}
	if left := cy.claims.extended; left != nil && left.Name != unnamed {
		cy.s.requests.add(func(ctx context.Context) {
			// If it fails the pod's next try finds it again.
			_ = deleteExtended(ctx, cy.s.opts.API, left)
		})
		return "deletion of ResourceClaim completed"
	}
	return "still not schedulable"
}

// deallocate has a claim give its devices back.
func (s *Scheduler) deallocate(claim *resourcev1.ResourceClaim) {
	next := claim.DeepCopy()
	next.Status.ReservedFor, next.Status.Allocation, next.Status.Devices = nil, nil, nil
	s.requests.add(func(ctx context.Context) {
		// Who changed it meanwhile may have another use for it: the pod is tried again.
		_, _ = controller.Update(ctx, s.opts.API, next, "status")
	})
}

// scoreClaims adds the scores of prioritized lists: what stands earlier is better
// (computeScore).
func (cy *cycle) scoreClaims(feasible []*nodeInfo, totals []int64) {
	best, raw := int64(0), make([]int64, len(feasible))
	for k, n := range feasible {
		results := cy.claims.results[n].results
		for _, c := range cy.claims.claims {
			a := c.Status.Allocation
			if a == nil && len(results) > 0 {
				a, results = &results[0], results[1:]
			}
			if a != nil {
				raw[k] += scoreAllocation(c, a)
			}
		}
		best = max(best, raw[k])
	}
	if best == 0 {
		return
	}
	for k := range totals {
		totals[k] += raw[k] * maxNodeScore / best * cy.c.profile.weights.devices
	}
}

func scoreAllocation(c *resourcev1.ResourceClaim, a *resourcev1.AllocationResult) int64 {
	var score int64
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		for j := range r.FirstAvailable {
			ref := resourceclaim.CreateSubRequestRef(r.Name, r.FirstAvailable[j].Name)
			if slices.ContainsFunc(a.Devices.Results, func(d resourcev1.DeviceRequestAllocationResult) bool { return d.Request == ref }) {
				score += int64(resourcev1.FirstAvailableDeviceRequestMaxSize - j)
			}
		}
	}
	return score
}

// reserve is Reserve: the devices are taken from now on, though no claim says so yet.
func (cy *cycle) reserve(n *nodeInfo) *reservation {
	if cy.claims == nil || len(cy.claims.claims) == 0 {
		return nil
	}
	found := cy.claims.results[n]
	r := &reservation{claims: slices.Clone(cy.claims.claims), extended: found.extended}
	switch last := len(r.claims) - 1; {
	case cy.claims.extended == nil:
	case r.extended != nil:
		r.claims[last] = r.extended.claim
	case last == 0:
		return nil // device plugins have it all
	default:
		r.claims = r.claims[:last]
	}
	r.allocations = make([]*resourcev1.AllocationResult, len(r.claims))
	results := found.results
	for i, c := range r.claims {
		if c.Status.Allocation != nil || len(results) == 0 {
			continue
		}
		a := &results[0]
		results = results[1:]
		cy.s.nameShares(c, a)
		r.allocations[i] = a
		cy.s.devices.pending[c.UID] = true
		cy.s.devices.set(c.UID, a)
	}
	return r
}

// nameShares replaces the IDs of shares, which the allocator draws from the world's
// randomness, by such as the seed decides.
func (s *Scheduler) nameShares(c *resourcev1.ResourceClaim, a *resourcev1.AllocationResult) {
	for i := range a.Devices.Results {
		if r := &a.Devices.Results[i]; r.ShareID != nil {
			hi, lo := s.l.Uint64("scheduler/share", string(c.UID), uint64(2*i)), s.l.Uint64("scheduler/share", string(c.UID), uint64(2*i+1))
			id := types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", hi>>32, hi>>16&0xffff, hi&0xfff, lo>>48&0xfff, lo&(1<<48-1)))
			r.ShareID = &id
		}
	}
}

// preBindClaims is PreBind: the allocations are written, the claims reserved for the pod, and
// their devices waited for.
func (s *Scheduler) preBindClaims(ctx context.Context, a *assumption) error {
	for i, c := range a.reserved.claims {
		if resourceclaim.IsReservedForPod(a.pod, c, false) {
			continue
		}
		extended := a.reserved.extended != nil && i == len(a.reserved.claims)-1
		if extended {
			if err := s.createExtended(ctx, a.reserved); err != nil {
				return err
			}
			c = a.reserved.claims[i]
		}
		if err := s.bindClaim(ctx, a.pod, c, a.reserved.allocations[i]); err != nil {
			return err
		}
		if extended {
			if err := tellExtended(ctx, s.opts.API, a.pod, a.reserved); err != nil {
				return err
			}
		}
	}
	return waitForDevices(ctx, s, a)
}

// bindClaim reserves one claim, again while others are ahead.
func (s *Scheduler) bindClaim(ctx context.Context, pod *v1.Pod, claim *resourcev1.ResourceClaim, a *resourcev1.AllocationResult) error {
	key := controller.KeyOf(claim)
	for try := 1; ; try++ {
		err := s.tryBindClaim(ctx, pod, claim.DeepCopy(), a)
		if !apierrors.IsConflict(err) || try == conflictTries {
			return err
		}
		if claim, err = controller.Get[*resourcev1.ResourceClaim](ctx, s.opts.API, apiserver.KindResourceClaim, key); err != nil {
			return fmt.Errorf("get updated claim %s after conflict: %w", key, err)
		}
	}
}

func (s *Scheduler) tryBindClaim(ctx context.Context, pod *v1.Pod, claim *resourcev1.ResourceClaim, a *resourcev1.AllocationResult) error {
	key := controller.KeyOf(claim)
	if claim.DeletionTimestamp != nil {
		return fmt.Errorf("claim %s got deleted in the meantime", key)
	}
	doing := "add reservation"
	if a != nil {
		if claim.Status.Allocation != nil {
			return fmt.Errorf("claim %s got allocated elsewhere in the meantime", key)
		}
		if !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
			claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
			is, err := controller.Update(ctx, s.opts.API, claim, "")
			if err != nil {
				return fmt.Errorf("add finalizer to claim %s: %w", key, err)
			}
			claim = is.DeepCopy()
		}
		claim.Status.Allocation = a.DeepCopy()
		doing = "add allocation and reservation"
	}
	if claim.Status.Allocation == nil {
		return fmt.Errorf("claim %s got deallocated elsewhere in the meantime", key)
	}
	if claim.Status.Allocation.AllocationTimestamp == nil {
		now := controller.WireTime(s.l.Now())
		claim.Status.Allocation.AllocationTimestamp = &now
	}
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
	if _, err := controller.Update(ctx, s.opts.API, claim, "status"); err != nil {
		return fmt.Errorf("%s to claim %s: %w", doing, key, err)
	}
	delete(s.devices.pending, claim.UID)
	return nil
}

// unreserve is Unreserve: what was not written is free again, and what was is no
// longer for the pod.
func (s *Scheduler) unreserve(ctx context.Context, a *assumption) {
	for i, c := range a.reserved.claims {
		is, _ := s.store.Lookup(apiserver.KindResourceClaim, c.Namespace, c.Name).(*resourcev1.ResourceClaim)
		if is != nil && is.UID != c.UID {
			is = nil
		}
		if a.reserved.allocations[i] != nil && s.devices.pending[c.UID] {
			delete(s.devices.pending, c.UID)
			s.devices.set(c.UID, nil)
			if is != nil {
				s.devices.set(c.UID, is.Status.Allocation)
				s.moved(event{kind: deviceChange})
			}
		}
		if a.reserved.extended != nil && i == len(a.reserved.claims)-1 {
			if is != nil {
				// If it fails the pod's next try finds it again.
				_ = deleteExtended(ctx, s.opts.API, is)
			}
			continue
		}
		if is == nil || is.Status.Allocation == nil || !resourceclaim.IsReservedForPod(a.pod, is, false) {
			continue
		}
		next := is.DeepCopy()
		next.Status.ReservedFor = slices.DeleteFunc(next.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == a.pod.UID })
		next.ResourceVersion = ""
		// The claim's controller does it when the pod goes, if this fails.
		_, _ = controller.Update(ctx, s.opts.API, next, "status")
	}
}

// claimNamesChanged reports whether the claims made for a pod have other names.
func claimNamesChanged(p, old *v1.Pod) bool {
	return len(p.Spec.ResourceClaims) > 0 && !resourceclaim.PodStatusEqual(p.Status.ResourceClaimStatuses, old.Status.ResourceClaimStatuses)
}

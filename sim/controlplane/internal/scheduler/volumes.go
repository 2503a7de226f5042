package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/component-helpers/storage/ephemeral"
	volumehelper "k8s.io/component-helpers/storage/volume"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/nodestorage"
)

// This file has the filters of the plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding
// and VolumeZone; volumebinding.go has what VolumeBinding does once a node was chosen. Pods
// whose claims are bound to volumes that any node can have cost a look at their claims: they
// have no volumeState.

// volumeTable is what the scheduler knows of volumes beyond the API's objects: what was decided
// of them and of claims, and is not written yet.
type volumeTable struct {
	s *Scheduler
	// taken are the volumes that were given to claims, by name.
	taken map[string]types.UID
	// selected are the nodes of claims that are to be provisioned.
	selected map[types.UID]string
	// limits: on how many nodes a driver has a limit of volumes, by driver.
	limits map[string]int
}

func newVolumeTable(s *Scheduler) volumeTable {
	return volumeTable{s: s, taken: map[string]types.UID{}, selected: map[types.UID]string{}, limits: map[string]int{}}
}

// volumeState is what the plugins know of a pod's volumes for a cycle.
type volumeState struct {
	bound []*v1.PersistentVolume
	// gone: a claim is bound to a volume that is not there.
	gone bool
	// unbound are the claims that wait for their pod to be placed, free the volumes that they
	// may get.
	unbound []*v1.PersistentVolumeClaim
	free    []*v1.PersistentVolume
	// exclusive are the claims that one pod alone may have; conflicts is how many of them others
	// have.
	exclusive []string
	conflicts int
	// off and on are pods that are taken off a node, and put on one, for a while.
	off, on []*v1.Pod
	// fresh are the drivers' volumes, which count for nodes' limits.
	fresh []driverVolume
	plans map[*nodeInfo]*volumePlan
}

// driverVolume is a volume as it counts for the limit of a driver.
type driverVolume struct{ driver, handle string }

// volumePlan is what has to be done for a pod to have its volumes on a node.
type volumePlan struct {
	// bindings are claims with the volumes that they get.
	bindings []volumePair
	// provision are the claims whose volumes are to be made.
	provision []*v1.PersistentVolumeClaim
}

type volumePair struct {
	claim *v1.PersistentVolumeClaim
	pv    *v1.PersistentVolume
}

// claimNamed returns the claim that a pod's volume is of, by its name; "": it is of none.
func (t *volumeTable) claimNamed(pod *v1.Pod, v *v1.Volume) (string, *v1.PersistentVolumeClaim) {
	name := controller.ClaimOf(pod, v)
	if name == "" {
		return "", nil
	}
	claim, _ := t.s.store.Lookup(apiserver.KindPersistentVolumeClaim, pod.Namespace, name).(*v1.PersistentVolumeClaim)
	return name, claim
}

// claimMissing is why a claim keeps its pod from being placed; "": it does not (podHasPVCs).
func claimMissing(pod *v1.Pod, v *v1.Volume, name string, claim *v1.PersistentVolumeClaim) string {
	switch {
	case claim == nil && v.Ephemeral != nil:
		return fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
	case claim == nil:
		return fmt.Sprintf("persistentvolumeclaim %q not found", name)
	case claim.Status.Phase == v1.ClaimLost:
		return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name, claim.Spec.VolumeName)
	case claim.DeletionTimestamp != nil:
		return fmt.Sprintf("persistentvolumeclaim %q is being deleted", name)
	case v.Ephemeral != nil:
		if err := ephemeral.VolumeIsForPod(pod, claim); err != nil {
			return err.Error()
		}
	}
	return ""
}

// preFilterVolumes reads a pod's claims. It returns why the pod has to wait for them, "" if it
// need not, and who says so.
func (cy *cycle) preFilterVolumes() (text string, by plugins) {
	s, pod, p := cy.s, cy.pod, cy.c.profile
	st, waits := volumeState{}, false
	if !p.runs(volumeRestrictions | nodeVolumeLimits | volumeBinding | volumeZone) {
		return "", 0
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		name, claim := s.volumes.claimNamed(pod, v)
		if name == "" {
			continue
		}
		if text := claimMissing(pod, v, name, claim); text != "" {
			if p.runs(volumeBinding) {
				return text, volumeBinding
			}
			continue
		}
		switch pv, _ := s.store.Lookup(apiserver.KindPersistentVolume, "", claim.Spec.VolumeName).(*v1.PersistentVolume); {
		case claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, volumehelper.AnnBindCompleted) && pv == nil:
			st.gone = true
		case claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, volumehelper.AnnBindCompleted):
			st.bound = append(st.bound, pv)
		case claim.Spec.VolumeName == "" && s.volumes.delays(claim):
			st.unbound = append(st.unbound, claim)
		default:
			waits = true
		}
		if slices.Contains(claim.Spec.AccessModes, v1.ReadWriteOncePod) {
			st.exclusive = append(st.exclusive, claim.Name)
			if s.volumes.takenByOther(pod, claim) {
				st.conflicts++
			}
		}
	}
	if waits && p.runs(volumeBinding) {
		return "pod has unbound immediate PersistentVolumeClaims", volumeBinding
	}
	if st.conflicts == 0 {
		// Upstream skips the plugin then: pods that are nominated to a node don't count.
		st.exclusive = nil
	}
	if len(st.unbound) > 0 {
		st.free = s.volumes.freeVolumes()
	}
	st.fresh = s.volumes.limited(pod)
	if st.gone || st.conflicts > 0 || len(st.unbound) > 0 || len(st.fresh) > 0 || slices.ContainsFunc(st.bound, placed) {
		st.plans = map[*nodeInfo]*volumePlan{}
		cy.volumes = &st
	}
	return "", 0
}

// placed reports whether a volume can't be used from every node.
func placed(pv *v1.PersistentVolume) bool {
	if pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil {
		return true
	}
	return slices.ContainsFunc(zoneLabels[:], func(l string) bool { return pv.Labels[l] != "" })
}

// storageClass returns a claim's class; nil: there is none of that name.
func (t *volumeTable) storageClass(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	class, _ := t.s.store.Lookup(apiserver.KindStorageClass, "", volumehelper.GetPersistentVolumeClaimClass(claim)).(*storagev1.StorageClass)
	return class
}

// delays reports whether a claim waits for its pod to be placed.
func (t *volumeTable) delays(claim *v1.PersistentVolumeClaim) bool {
	class := t.storageClass(claim)
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer &&
		!nodestorage.Takes(controller.Options{API: t.s.opts.API, Closed: t.s.opts.Closed}, claim)
}

// freeVolumes are those that claims may get.
func (t *volumeTable) freeVolumes() []*v1.PersistentVolume {
	return slices.DeleteFunc(slices.Clone(apiserver.Objects[*v1.PersistentVolume](t.s.store, apiserver.KindPersistentVolume)), func(pv *v1.PersistentVolume) bool {
		return t.taken[pv.Name] != "" || pv.Spec.ClaimRef != nil && pv.Status.Phase == v1.VolumeBound
	})
}

// move puts a pod on a node, or takes it off, for what follows in the cycle (AddPod, RemovePod).
func (st *volumeState) move(pod, p *v1.Pod, sign int) {
	if p.Namespace == pod.Namespace {
		for i := range p.Spec.Volumes {
			if slices.Contains(st.exclusive, controller.ClaimOf(p, &p.Spec.Volumes[i])) {
				st.conflicts += sign
			}
		}
	}
	from, to := &st.off, &st.on
	if sign < 0 {
		from, to = to, from
	}
	if i := slices.Index(*from, p); i >= 0 {
		*from = slices.Delete(*from, i, i+1)
		return
	}
	*to = append(*to, p)
}

// takenByOther reports whether another pod has a claim.
func (t *volumeTable) takenByOther(pod *v1.Pod, claim *v1.PersistentVolumeClaim) bool {
	uses := func(p *v1.Pod) bool {
		return p.UID != pod.UID && slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return controller.ClaimOf(p, &v) == claim.Name })
	}
	for _, p := range t.s.store.PodsInNamespace(claim.Namespace) {
		if (holds(p) || t.s.assumed[p.UID] != nil) && uses(p) {
			return true
		}
	}
	return false
}

// filterVolumes runs the filters, in their order.
func (cy *cycle) filterVolumes(n *nodeInfo) verdict {
	st, p := cy.volumes, cy.c.profile
	if st.conflicts > 0 && p.runs(volumeRestrictions) {
		return whyExclusive
	}
	if len(st.fresh) > 0 && p.runs(nodeVolumeLimits) && cy.s.volumes.beyondLimit(n, st) {
		return whyVolumeCount
	}
	if p.runs(volumeBinding) {
		if v := cy.findVolumes(n); v != 0 {
			return v | unresolvable
		}
	}
	if p.runs(volumeZone) && !inZone(st.bound, n.node.Labels) {
		return whyVolumeZone | unresolvable
	}
	return 0
}

// findVolumes is VolumeBinding.Filter: the node must be one from which bound volumes can be
// used, and there must be volumes for the other claims, or a class that makes them.
func (cy *cycle) findVolumes(n *nodeInfo) verdict {
	st := cy.volumes
	var v verdict
	if st.gone {
		v = whyVolumeGone
	} else if slices.ContainsFunc(st.bound, func(pv *v1.PersistentVolume) bool { return volumehelper.CheckNodeAffinity(pv, n.node.Labels) != nil }) {
		v = whyVolumeNode
	}
	if len(st.unbound) == 0 {
		return v
	}
	plan := &volumePlan{}
	var look []*v1.PersistentVolumeClaim
	for _, claim := range st.unbound {
		switch node := cmp.Or(cy.s.volumes.selected[claim.UID], claim.Annotations[volumehelper.AnnSelectedNode]); node {
		case "":
			look = append(look, claim)
		case n.name:
			plan.provision = append(plan.provision, claim)
		default:
			return v | whyNoVolume
		}
	}
	slices.SortStableFunc(look, func(a, b *v1.PersistentVolumeClaim) int {
		return a.Spec.Resources.Requests.Storage().Cmp(*b.Spec.Resources.Requests.Storage())
	})
	chosen := map[string]*v1.PersistentVolume{}
	for _, claim := range look {
		pv, err := volumehelper.FindMatchingVolume(claim, st.free, n.node, chosen, true, true)
		if err != nil || pv == nil {
			plan.provision = append(plan.provision, claim)
			continue
		}
		chosen[pv.Name] = pv
		plan.bindings = append(plan.bindings, volumePair{claim, pv})
	}
	for _, claim := range plan.provision {
		if why := cy.s.volumes.provisions(claim, n); why != 0 {
			return v | why
		}
	}
	st.plans[n] = plan
	return v
}

// provisions is why a claim can't be provisioned for a node; 0: it can
// (checkVolumeProvisions).
func (t *volumeTable) provisions(claim *v1.PersistentVolumeClaim, n *nodeInfo) verdict {
	class := t.storageClass(claim)
	if class == nil || class.Provisioner == "" || class.Provisioner == volumehelper.NotSupportedProvisioner || !topologyAllows(class.AllowedTopologies, n.node.Labels) {
		return whyNoVolume
	}
	driver, _ := t.s.store.Lookup(apiserver.KindCSIDriver, "", class.Provisioner).(*storagev1.CSIDriver)
	if driver == nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
		return 0
	}
	size := claim.Spec.Resources.Requests.Storage().Value()
	for _, c := range apiserver.Objects[*storagev1.CSIStorageCapacity](t.s.store, apiserver.KindCSIStorageCapacity) {
		limit := c.Capacity
		if c.MaximumVolumeSize != nil {
			limit = c.MaximumVolumeSize
		}
		if c.StorageClassName != class.Name || limit == nil || limit.Value() < size || c.NodeTopology == nil {
			continue
		}
		if sel, err := metav1.LabelSelectorAsSelector(c.NodeTopology); err == nil && sel.Matches(labels.Set(n.node.Labels)) {
			return 0
		}
	}
	return whyNoSpace
}

// topologyAllows is MatchTopologySelectorTerms.
func topologyAllows(terms []v1.TopologySelectorTerm, node map[string]string) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t v1.TopologySelectorTerm) bool {
		return len(t.MatchLabelExpressions) > 0 && !slices.ContainsFunc(t.MatchLabelExpressions, func(e v1.TopologySelectorLabelRequirement) bool {
			return !slices.Contains(e.Values, node[e.Key])
		})
	})
}

// zoneLabels are those of volumes that VolumeZone compares with nodes'. The earlier ones are
// old names of the later ones.
var zoneLabels = [...]string{v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion, v1.LabelTopologyZone, v1.LabelTopologyRegion}

// inZone is VolumeZone.Filter.
func inZone(bound []*v1.PersistentVolume, node map[string]string) bool {
	if !slices.ContainsFunc(zoneLabels[:], func(l string) bool { _, ok := node[l]; return ok }) {
		return true
	}
	for _, pv := range bound {
		for i, l := range zoneLabels {
			text, ok := pv.Labels[l]
			if !ok {
				continue
			}
			zones := strings.Split(text, "__") // of volumes that are in several
			is, ok := node[l]
			if !ok && i < len(zoneLabels)/2 {
				is, ok = node[zoneLabels[i+len(zoneLabels)/2]]
			}
			if !ok || !slices.Contains(zones, is) {
				return false
			}
		}
	}
	return true
}

// limited are a pod's volumes of drivers: those that may count for a limit. Without a node
// that has one there are none.
func (t *volumeTable) limited(pod *v1.Pod) []driverVolume {
	var out []driverVolume
	for i := range pod.Spec.Volumes {
		_, claim := t.claimNamed(pod, &pod.Spec.Volumes[i])
		if claim == nil {
			continue
		}
		d := driverVolume{}
		if claim.Spec.VolumeName != "" {
			pv, _ := t.s.store.Lookup(apiserver.KindPersistentVolume, "", claim.Spec.VolumeName).(*v1.PersistentVolume)
			if pv == nil || pv.Spec.CSI == nil {
				continue
			}
			d = driverVolume{pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle}
		} else if class := t.storageClass(claim); class != nil {
			d = driverVolume{class.Provisioner, string(claim.UID)}
		}
		if t.limits[d.driver] > 0 && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// beyondLimit is NodeVolumeLimits.Filter.
func (t *volumeTable) beyondLimit(n *nodeInfo, st *volumeState) bool {
	csiNode, _ := t.s.store.Lookup(apiserver.KindCSINode, "", n.name).(*storagev1.CSINode)
	if csiNode == nil {
		return false
	}
	for i := range csiNode.Spec.Drivers {
		d := &csiNode.Spec.Drivers[i]
		if limitOf(d) < 0 || !slices.ContainsFunc(st.fresh, func(v driverVolume) bool { return v.driver == d.Name }) {
			continue
		}
		if t.volumesOn(n, d.Name, st) > int(limitOf(d)) {
			return true
		}
	}
	return false
}

// limitOf is how many volumes a driver can have on a node; below 0: nobody says.
func limitOf(d *storagev1.CSINodeDriver) int32 {
	if d.Allocatable == nil || d.Allocatable.Count == nil {
		return -1
	}
	return *d.Allocatable.Count
}

// volumesOn counts a driver's volumes on a node, with some that are to come.
func (t *volumeTable) volumesOn(n *nodeInfo, driver string, st *volumeState) int {
	all := slices.DeleteFunc(slices.Clone(st.fresh), func(v driverVolume) bool { return v.driver != driver })
	add := func(v driverVolume) {
		if v.driver == driver && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	for _, p := range append(t.s.podsOn(n), st.on...) {
		if len(p.Spec.Volumes) > 0 && !slices.Contains(st.off, p) {
			for _, v := range t.limited(p) {
				add(v)
			}
		}
	}
	for _, va := range apiserver.Objects[*storagev1.VolumeAttachment](t.s.store, apiserver.KindVolumeAttachment) {
		if va.Spec.NodeName != n.name || va.Spec.Attacher != driver || va.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		if pv, _ := t.s.store.Lookup(apiserver.KindPersistentVolume, "", *va.Spec.Source.PersistentVolumeName).(*v1.PersistentVolume); pv != nil && pv.Spec.CSI != nil {
			add(driverVolume{driver, pv.Spec.CSI.VolumeHandle})
		}
	}
	return len(all)
}

// onCSINode counts the nodes that have a limit for a driver.
func (t *volumeTable) onCSINode(is, was *storagev1.CSINode) {
	count := func(n *storagev1.CSINode, by int) {
		if n == nil {
			return
		}
		for i := range n.Spec.Drivers {
			if d := &n.Spec.Drivers[i]; limitOf(d) >= 0 {
				t.limits[d.Name] += by
			}
		}
	}
	count(was, -1)
	count(is, 1)
}

// onStorage has pods tried again that a change of what volumes there are may help.
func (t *volumeTable) onStorage(c *apiserver.Change) {
	t.s.version++
	gone := c.Type == watch.Deleted
	switch is := c.New.(type) {
	case *v1.PersistentVolume:
		if !gone {
			t.s.moved(event{kind: volumeChange})
		}
	case *storagev1.StorageClass:
		if old, _ := c.Old.(*storagev1.StorageClass); !gone && (old == nil || !equality.Semantic.DeepEqual(old.AllowedTopologies, is.AllowedTopologies)) {
			t.s.moved(event{kind: storageClassChange})
		}
	case *storagev1.CSINode:
		old, _ := c.Old.(*storagev1.CSINode)
		if gone {
			t.onCSINode(nil, is)
			return
		}
		t.onCSINode(is, old)
		if old == nil || !equality.Semantic.DeepEqual(old.Spec.Drivers, is.Spec.Drivers) {
			t.s.moved(event{kind: volumeLimitChange})
		}
	case *storagev1.CSIStorageCapacity:
		if !gone {
			t.s.moved(event{kind: volumeSpaceChange})
		}
	case *storagev1.VolumeAttachment:
		if gone {
			t.s.moved(event{kind: volumeLimitChange})
		}
	}
}

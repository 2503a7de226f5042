package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// This file is the part of the plugin DynamicResources for pods that ask for extended resources of
// which a device class says that drivers have them (KEP-5004,
// plugins/dynamicresources/extendeddynamicresources.go). On a node whose device plugins have none of
// such a resource the scheduler claims devices in the pod's name, and tells the kubelet in the pod's
// status which container gets what.

// unnamed is what the claim of a pod's extended resources is called until it is created: nothing
// that a claim can be called.
const unnamed = "<extended-resources>"

// classMapping knows which device class stands behind an extended resource
// (k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache).
type classMapping map[v1.ResourceName]*resourcev1.DeviceClass

// set takes in a class that came or changed. Of two that name one resource the younger counts, and
// of two as old the one whose name comes first; the other one's own name means nothing then, either.
func (m classMapping) set(class, old *resourcev1.DeviceClass) {
	if name := class.Spec.ExtendedResourceName; name != nil {
		if other := m[v1.ResourceName(*name)]; other != nil {
			by := class.CreationTimestamp.Compare(other.CreationTimestamp.Time)
			if by < 0 || by == 0 && class.Name >= other.Name {
				return
			}
		}
	}
	if old != nil {
		m.remove(old)
	}
	if name := class.Spec.ExtendedResourceName; name != nil {
		m[v1.ResourceName(*name)] = class
	}
	m[implicitResource(class)] = class
}

func (m classMapping) remove(class *resourcev1.DeviceClass) {
	delete(m, implicitResource(class))
	if name := class.Spec.ExtendedResourceName; name != nil {
		delete(m, v1.ResourceName(*name))
	}
}

// implicitResource is the resource that each class stands behind.
func implicitResource(class *resourcev1.DeviceClass) v1.ResourceName {
	return v1.ResourceName(resourcev1.ResourceDeviceClassPrefix + class.Name)
}

// onDeviceClass takes over a class's change. What classes of pods remember of nodes is void when a
// resource is no longer what it was.
func (s *Scheduler) onDeviceClass(class, old *resourcev1.DeviceClass) {
	m := s.devices.mapping
	if class == nil {
		m.remove(old)
	} else {
		m.set(class, old)
	}
	s.classes.forget()
	s.version++
}

// classHelps is the hint of NodeResourcesFit about a device class
// (isSchedulableAfterDeviceClassEvent).
func classHelps(r *request, class, old *resourcev1.DeviceClass) bool {
	name := class.Spec.ExtendedResourceName
	asks := func(name v1.ResourceName) bool { return amountOf(r.ext, name) > 0 }
	switch {
	case old == nil && asks(implicitResource(class)):
		return true
	case name == nil, old != nil && old.Spec.ExtendedResourceName != nil && *old.Spec.ExtendedResourceName == *name:
		return false
	}
	return asks(v1.ResourceName(*name))
}

// delegated are the indexes of request.ext that drivers have to provide on a node.
func (c *class) delegated(n *nodeInfo) uint64 {
	var out uint64
	if c.mapped == 0 {
		return 0
	}
	for i, e := range c.request.ext {
		if bit := uint64(1) << min(i, maxExtended-1); c.mapped&bit != 0 && amountOf(n.allocExt, e.name) == 0 {
			out |= bit
		}
	}
	return out
}

// extendedVariant is the claim of a pod's extended resources for nodes on which drivers provide the
// same of them.
type extendedVariant struct {
	delegated uint64
	claim     *resourcev1.ResourceClaim
	mappings  []v1.ContainerExtendedResourceRequest
}

// preFilterExtended returns the claim of a pod's extended resources: one without requests and name,
// since these depend on the node, or one that a failed try has left.
func (cy *cycle) preFilterExtended() *resourcev1.ResourceClaim {
	if cy.c.mapped == 0 {
		return nil
	}
	if left := cy.s.devices.extended[cy.pod.UID]; left != nil {
		return left
	}
	isController := true
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: cy.pod.Namespace, Name: unnamed, UID: "extended-resources/" + cy.pod.UID, GenerateName: cy.pod.Name + "-extended-resources-",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: cy.pod.Name, UID: cy.pod.UID, Controller: &isController}},
		Annotations:     map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
	}}
}

// variantFor returns the claim of the pod's extended resources for a node; nil: its device plugins
// have them all, and the pod has no claims of its own.
func (cy *cycle) variantFor(n *nodeInfo) *extendedVariant {
	st := cy.claims
	bits := cy.c.delegated(n)
	if bits == 0 && len(st.claims) == 1 {
		return nil
	}
	for _, v := range st.variants {
		if v.delegated == bits {
			return v
		}
	}
	v := &extendedVariant{delegated: bits, claim: st.extended.DeepCopy()}
	for i, e := range cy.c.request.ext {
		if bits&(1<<min(i, maxExtended-1)) == 0 {
			continue
		}
		requests, mappings := requestsFor(cy.pod, e.name, cy.s.devices.mapping[e.name].Name)
		v.claim.Spec.Devices.Requests = append(v.claim.Spec.Devices.Requests, requests...)
		v.mappings = append(v.mappings, mappings...)
	}
	slices.SortFunc(v.claim.Spec.Devices.Requests, func(a, b resourcev1.DeviceRequest) int { return cmp.Compare(a.Name, b.Name) })
	st.variants = append(st.variants, v)
	return v
}

// requestsFor are the requests for one resource, and which container gets the devices of which. An
// init container uses the devices of containers that come after it and stay, and init containers
// share what they need beyond (createRequestsAndMappings).
func requestsFor(pod *v1.Pod, resource v1.ResourceName, class string) (requests []resourcev1.DeviceRequest, mappings []v1.ContainerExtendedResourceRequest) {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	brief := func(i int) bool {
		p := containers[i].RestartPolicy
		return i < len(pod.Spec.InitContainers) && (p == nil || *p != v1.ContainerRestartPolicyAlways)
	}
	lasting := make([]*resourcev1.DeviceRequest, len(containers))
	for i := range containers {
		if !brief(i) {
			var maps []v1.ContainerExtendedResourceRequest
			lasting[i], maps = requestOfContainer(i, &containers[i], resource, class, nil)
			mappings = append(mappings, maps...)
		}
	}
	var most *resourcev1.DeviceRequest
	var others []string
	first := len(mappings)
	for i := range containers {
		if !brief(i) {
			continue
		}
		r, maps := requestOfContainer(i, &containers[i], resource, class, lasting[i:])
		mappings = append(mappings, maps...)
		if r == nil {
			continue
		}
		others = append(others, r.Name)
		if most == nil || most.Exactly.Count < r.Exactly.Count {
			most = r
		}
	}
	for i := first; i < len(mappings); i++ {
		if slices.Contains(others, mappings[i].RequestName) {
			mappings[i].RequestName = most.Name
		}
	}
	for _, r := range append(lasting, most) {
		if r != nil {
			requests = append(requests, *r)
		}
	}
	return requests, mappings
}

// requestOfContainer is what a container needs of a resource beyond the requests that it may use,
// if anything, and whose devices it gets (createResourceRequestAndMappings).
func requestOfContainer(index int, c *v1.Container, resource v1.ResourceName, class string, usable []*resourcev1.DeviceRequest) (*resourcev1.DeviceRequest, []v1.ContainerExtendedResourceRequest) {
	q, ok := c.Resources.Requests[resource]
	need, whole := q.AsInt64()
	if !ok || !whole || need == 0 {
		return nil, nil
	}
	var mappings []v1.ContainerExtendedResourceRequest
	gets := func(request string) {
		mappings = append(mappings, v1.ContainerExtendedResourceRequest{ContainerName: c.Name, ResourceName: string(resource), RequestName: request})
	}
	for _, r := range usable {
		if r == nil {
			continue
		}
		gets(r.Name)
		if need -= r.Exactly.Count; need <= 0 {
			return nil, mappings
		}
	}
	before := 0
	for name := range c.Resources.Requests { //drydock:unordered counts
		if name < resource {
			before++
		}
	}
	r := &resourcev1.DeviceRequest{
		Name:    fmt.Sprintf("container-%d-request-%d", index, before),
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: need},
	}
	gets(r.Name)
	return r, mappings
}

// createExtended creates the claim whose devices were taken in the pod's name
// (createExtendedResourceClaimInAPI).
func (s *Scheduler) createExtended(ctx context.Context, r *reservation) error {
	last := len(r.claims) - 1
	claim := r.claims[last].DeepCopy()
	claim.Name, claim.UID = "", ""
	made, err := controller.Create(ctx, s.opts.API, claim)
	if err != nil {
		return fmt.Errorf("create claim for extended resources %s/: %w", claim.Namespace, err)
	}
	s.devices.rename(r.claims[last].UID, made.UID)
	r.claims[last] = made
	return nil
}

// tellExtended has the pod's status say which container gets the devices of which request
// (patchPodExtendedResourceClaimStatus).
func tellExtended(ctx context.Context, api *apiserver.Component, pod *v1.Pod, r *reservation) error {
	if len(r.extended.mappings) == 0 {
		return fmt.Errorf("nil or empty request mappings, no update of pod %s/%s ExtendedResourceClaimStatus", pod.Namespace, pod.Name)
	}
	status := pod.Status
	status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{
		RequestMappings: r.extended.mappings, ResourceClaimName: r.claims[len(r.claims)-1].Name,
	}
	if err := controller.PatchPodStatus(ctx, api, pod, &status); err != nil {
		return fmt.Errorf("update pod %s/%s ExtendedResourceClaimStatus: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// deleteExtended deletes a claim that the scheduler made (deleteClaim).
func deleteExtended(ctx context.Context, api *apiserver.Component, claim *resourcev1.ResourceClaim) error {
	key := controller.KeyOf(claim)
	for try := 1; ; try++ {
		next := claim.DeepCopy()
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
		_, err := controller.Update(ctx, api, next, "")
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) || try == conflictTries {
			return fmt.Errorf("update resourceclaim %s: %w", key, err)
		}
		if claim, err = controller.Get[*resourcev1.ResourceClaim](ctx, api, apiserver.KindResourceClaim, key); err != nil {
			return fmt.Errorf("get resourceclaim %s: %w", key, err)
		}
	}
	if err := controller.Delete(ctx, api, claim, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete resourceclaim %s: %w", key, err)
	}
	return nil
}

// extendedOwner is the pod that a claim of extended resources was made for; "": it is none.
func extendedOwner(claim *resourcev1.ResourceClaim) types.UID {
	if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return ""
	}
	if owner := metav1.GetControllerOfNoCopy(claim); owner != nil {
		return owner.UID
	}
	return ""
}

package dra

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Status says how the devices are that a container has by claims
// (UpdateAllocatedResourcesStatus). Of those of a driver that doesn't tell nothing is
// known.
func (m *Manager) Status(pod *v1.Pod, c *v1.Container) []v1.ResourceStatus {
	var out []v1.ResourceStatus
	for _, use := range c.Resources.Claims {
		info := m.infoOf(pod, use.Name)
		if info == nil {
			continue
		}
		s := v1.ResourceStatus{Name: v1.ResourceName("claim:" + use.Name)}
		if use.Request != "" {
			s.Name += v1.ResourceName("/" + use.Request)
		}
		for _, driver := range info.drivers() {
			for _, d := range info.DriverState[driver].Devices {
				if use.Request != "" && len(d.RequestNames) > 0 && !slices.Contains(d.RequestNames, resourceclaim.BaseRequestRef(use.Request)) {
					continue
				}
				id := v1.ResourceID(fmt.Sprintf("%s/%s/%s", driver, d.PoolName, d.DeviceName))
				if len(d.CDIDeviceIDs) > 0 {
					id = v1.ResourceID(d.CDIDeviceIDs[0])
				}
				if !slices.ContainsFunc(s.Resources, func(h v1.ResourceHealth) bool { return h.ResourceID == id }) {
					s.Resources = append(s.Resources, m.healthOf(id, driver, d))
				}
			}
		}
		if len(s.Resources) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// healthOf is what is known of a device.
func (m *Manager) healthOf(id v1.ResourceID, driver string, d device) v1.ResourceHealth {
	out := v1.ResourceHealth{ResourceID: id, Health: v1.ResourceHealthStatusUnknown}
	if m.c.Health != nil {
		var text string
		if out.Health, text = m.c.Health.current(driver, d.PoolName, d.DeviceName); text != "" {
			out.Message = &text
		}
	}
	return out
}

// infoOf is the claim that a pod calls so; nil: it is not known here.
func (m *Manager) infoOf(pod *v1.Pod, name string) *claimInfo {
	for i := range pod.Spec.ResourceClaims {
		if pod.Spec.ResourceClaims[i].Name != name {
			continue
		}
		if claim, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && claim != nil {
			return m.claims[key{Namespace: pod.Namespace, Name: *claim}]
		}
	}
	return nil
}

// DynamicResources are the devices that a container has by claims, as the pod resources
// API tells them (GetContainerClaimInfos).
func (m *Manager) DynamicResources(pod *v1.Pod, c *v1.Container) []*podresources.DynamicResource {
	var infos []*claimInfo
	for _, use := range c.Resources.Claims {
		infos = append(infos, m.infoOf(pod, use.Name))
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil &&
		slices.ContainsFunc(s.RequestMappings, func(r v1.ContainerExtendedResourceRequest) bool { return r.ContainerName == c.Name }) {
		infos = append(infos, m.claims[key{Namespace: pod.Namespace, Name: s.ResourceClaimName}])
	}
	var out []*podresources.DynamicResource
	for _, info := range infos {
		if info == nil {
			continue
		}
		r := &podresources.DynamicResource{ClaimName: info.ClaimName, ClaimNamespace: info.Namespace}
		for _, driver := range info.drivers() {
			for _, d := range info.DriverState[driver].Devices {
				has := &podresources.ClaimResource{DriverName: driver, PoolName: d.PoolName, DeviceName: d.DeviceName}
				for _, id := range d.CDIDeviceIDs {
					has.CdiDevices = append(has.CdiDevices, &podresources.CDIDevice{Name: id})
				}
				r.ClaimResources = append(r.ClaimResources, has)
			}
		}
		out = append(out, r)
	}
	return out
}

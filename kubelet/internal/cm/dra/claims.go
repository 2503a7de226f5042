package dra

import (
	"errors"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
)

// claimState is what is known of a claim, as the checkpoint has it (state.ClaimInfoState).
type claimState struct {
	ClaimUID  types.UID
	ClaimName string
	Namespace string
	// PodUIDs are the pods that use it.
	PodUIDs sets.Set[string]
	// DriverState has all drivers that have devices in the claim.
	DriverState map[string]driverState
}

// driverState are a driver's devices.
type driverState struct{ Devices []device }

// device is what a driver says of a device that it has prepared.
type device struct {
	PoolName     string
	DeviceName   string
	ShareID      *types.UID
	RequestNames []string
	CDIDeviceIDs []string
}

// claimInfo is a claim that pods of the node use.
type claimInfo struct {
	claimState
	prepared bool
}

func newClaimInfo(claim *resourcev1.ResourceClaim) (*claimInfo, error) {
	if claim.Status.Allocation == nil {
		return nil, errors.New("not allocated")
	}
	c := &claimInfo{claimState: claimState{
		ClaimUID: claim.UID, ClaimName: claim.Name, Namespace: claim.Namespace,
		PodUIDs: sets.New[string](), DriverState: map[string]driverState{},
	}}
	for i := range claim.Status.Allocation.Devices.Results {
		c.DriverState[claim.Status.Allocation.Devices.Results[i].Driver] = driverState{}
	}
	return c, nil
}

// drivers are those of the claim, by name.
func (c *claimInfo) drivers() []string {
	return slices.Sorted(maps.Keys(c.DriverState)) //drydock:unordered sorted
}

// request is the claim as drivers are asked for it.
func (c *claimInfo) request() *drapb.Claim {
	return &drapb.Claim{Namespace: c.Namespace, Uid: string(c.ClaimUID), Name: c.ClaimName}
}

// addDevice notes a device that a driver has prepared.
func (c *claimInfo) addDevice(driver string, d *drapb.Device) {
	s := c.DriverState[driver]
	s.Devices = append(s.Devices, device{
		PoolName: d.PoolName, DeviceName: d.DeviceName, ShareID: (*types.UID)(d.ShareId),
		RequestNames: d.RequestNames, CDIDeviceIDs: d.CdiDeviceIds,
	})
	c.DriverState[driver] = s
}

// cdiDevices are the CDI devices of a request; "" is all of the claim.
func (c *claimInfo) cdiDevices(request string) []string {
	var out []string
	for _, name := range c.drivers() {
		for _, d := range c.DriverState[name].Devices {
			if request == "" || len(d.RequestNames) == 0 || slices.Contains(d.RequestNames, request) {
				out = append(out, d.CDIDeviceIDs...)
			}
		}
	}
	return out
}

// key is a claim's name.
type key = types.NamespacedName

// sorted are the claims in the order of their names.
func (m *Manager) sorted() []*claimInfo {
	out := make([]*claimInfo, 0, len(m.claims))
	for _, c := range m.claims { //drydock:unordered sorted below
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *claimInfo) int {
		return slices.Compare([]string{a.Namespace, a.ClaimName}, []string{b.Namespace, b.ClaimName})
	})
	return out
}

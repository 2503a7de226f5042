package parity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	drahealth "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// scriptedClaimDevice is a device that a driver gives a claim.
type scriptedClaimDevice struct {
	Requests []string `json:"Requests"`
	Pool     string   `json:"Pool"`
	Device   string   `json:"Device"`
	CDI      []string `json:"CDI"`
}

// scriptedHealth is what a driver says of a device's health. Timeout is in seconds.
type scriptedHealth struct {
	Pool    string `json:"Pool"`
	Device  string `json:"Device"`
	Health  string `json:"Health"`
	Message string `json:"Message"`
	Timeout int64  `json:"Timeout"`
}

// startDRA is dra-start.
func (p *pluginPlay) startDRA(a *PluginAction) error {
	devices := map[string][]*drapb.Device{}
	for claim, list := range a.Claims { //drydock:unordered fills a map
		for _, d := range list {
			devices[claim] = append(devices[claim], &drapb.Device{RequestNames: d.Requests, PoolName: d.Pool, DeviceName: d.Device, CdiDeviceIds: d.CDI})
		}
	}
	prefixes := slices.Sorted(maps.Keys(devices)) //drydock:unordered sorted
	d := plugins.DRADriver{Name: a.Driver, Devices: plugins.ByName(prefixes, devices)}
	if a.HasHealth {
		d.Health = healthReports(a.Health)
	}
	p.node.Plugins().StartDriver(d)
	return nil
}

// healthReports are what a driver says of its devices; never nil.
func healthReports(list []scriptedHealth) []*drahealth.DeviceHealth {
	out := make([]*drahealth.DeviceHealth, len(list))
	for i, d := range list {
		out[i] = &drahealth.DeviceHealth{
			Device: &drahealth.DeviceIdentifier{PoolName: d.Pool, DeviceName: d.Device},
			Health: drahealth.HealthStatus(drahealth.HealthStatus_value[d.Health]), Message: d.Message, HealthCheckTimeoutSeconds: d.Timeout,
		}
	}
	return out
}

// createClaim is claim: a claim with its allocation.
func (p *pluginPlay) createClaim(a *PluginAction) error {
	api := p.cluster.API()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: podNamespace(a), Name: a.Name}}
	if err := json.Unmarshal(a.Spec, &claim.Spec); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	if a.OwnerPod != "" {
		owner := api.Pod(podNamespace(a), a.OwnerPod)
		if owner == nil {
			return fmt.Errorf("ownerPod: there is no pod %q", a.OwnerPod)
		}
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1.SchemeGroupVersion.WithKind("Pod"))}
	}
	made, err := api.Create(claim)
	if err != nil || a.Allocation == nil {
		return err
	}
	next := made.(*resourcev1.ResourceClaim).DeepCopy()
	next.Status.Allocation = a.Allocation
	_, err = api.Update(next, "status")
	return err
}

// reserve has a claim say which pods it is for.
func (p *pluginPlay) reserve(a *PluginAction) error {
	api := p.cluster.API()
	claim, ok := api.Store().Lookup(apiserver.KindResourceClaim, podNamespace(a), a.Claim).(*resourcev1.ResourceClaim)
	if !ok {
		return fmt.Errorf("claim: there is no claim %q", a.Claim)
	}
	next := claim.DeepCopy()
	next.Status.ReservedFor = nil
	for _, name := range a.Pods {
		pod := api.Pod(podNamespace(a), name)
		if pod == nil {
			return fmt.Errorf("pods: there is no pod %q", name)
		}
		next.Status.ReservedFor = append(next.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: pod.UID})
	}
	_, err := api.Update(next, "status")
	return err
}

// draState is dra_manager_state, blurred; nil: it can't be read. Its data is JSON in a
// text.
func draState(data []byte) any {
	var file struct {
		Data     string
		Checksum any
	}
	var content object
	if json.Unmarshal(data, &file) != nil || json.Unmarshal([]byte(file.Data), &content) != nil {
		return nil
	}
	for _, c := range children(content, "ClaimInfoStateList") {
		c["ClaimUID"] = "<uid>"
		pods := []any{}                 // a set, which the recorder has as a list
		for range child(c, "PodUIDs") { //drydock:unordered all are blurred alike
			pods = append(pods, "<uid>")
		}
		c["PodUIDs"] = pods
	}
	return object{"Data": content, "Checksum": "<number>"}
}

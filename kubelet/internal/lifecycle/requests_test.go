package lifecycle

import (
	"context"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestUsedByResizing: what a pod takes of the node while it is being resized is
// the most of what it is to get, was allocated and has.
func TestUsedByResizing(t *testing.T) {
	status := func(allocated, actual string, infeasible bool) func(*v1.Pod) {
		return func(p *v1.Pod) {
			a, b := pod(wants(map[v1.ResourceName]string{"cpu": allocated})), pod(wants(map[v1.ResourceName]string{"cpu": actual}))
			p.Status.ContainerStatuses = []v1.ContainerStatus{{
				Name: "main", AllocatedResources: a.Spec.Containers[0].Resources.Requests, Resources: &b.Spec.Containers[0].Resources}}
			if infeasible {
				p.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Reason: v1.PodReasonInfeasible}}
			}
		}
	}
	spec := wants(map[v1.ResourceName]string{"cpu": "500m"})
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		want int64
	}{
		{"no status", pod(spec), 500},
		{"settled", pod(spec, status("500m", "500m", false)), 500},
		{"still has more", pod(spec, status("500m", "800m", false)), 800},
		{"was allocated more", pod(spec, status("900m", "800m", false)), 900},
		{"grows", pod(spec, status("200m", "200m", false)), 500},
		{"can never grow", pod(spec, status("200m", "300m", true)), 300},
	} {
		if r := usedBy(tc.pod); r.milliCPU != tc.want {
			t.Errorf("%s: %d", tc.name, r.milliCPU)
		}
	}
	p := pod(spec)
	p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", Resources: &p.Spec.Containers[0].Resources}}
	if n := testing.AllocsPerRun(10, func() { resizes(p) }); n != 0 {
		t.Errorf("%v allocations for a pod that is not resized", n)
	}
}

func TestAppArmor(t *testing.T) {
	pending := func(p *v1.Pod) { p.Status.Phase = v1.PodPending }
	profile := func(kind v1.AppArmorProfileType, name string) *v1.AppArmorProfile {
		return &v1.AppArmorProfile{Type: kind, LocalhostProfile: &name}
	}
	ofPod := func(a *v1.AppArmorProfile) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.SecurityContext = &v1.PodSecurityContext{AppArmorProfile: a} }
	}
	ofContainer := func(a *v1.AppArmorProfile) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{AppArmorProfile: a} }
	}
	off := "Cannot enforce AppArmor: AppArmor is not enabled on the host"
	for _, tc := range []struct {
		name    string
		pod     *v1.Pod
		enabled bool
		want    string
	}{
		{"none", pod(pending), false, ""},
		{"the runtime's", pod(pending, ofPod(profile(v1.AppArmorProfileTypeRuntimeDefault, ""))), false, off},
		{"unconfined", pod(pending, ofPod(profile(v1.AppArmorProfileTypeUnconfined, ""))), false, ""},
		{"the container's goes first", pod(pending, ofPod(profile(v1.AppArmorProfileTypeRuntimeDefault, "")), ofContainer(profile(v1.AppArmorProfileTypeUnconfined, ""))), false, ""},
		{"annotation", pod(pending, func(p *v1.Pod) { p.Annotations = map[string]string{appArmorAnnotation + "main": "runtime/default"} }), false, off},
		{"enabled", pod(pending, ofPod(profile(v1.AppArmorProfileTypeLocalhost, "x"))), true, ""},
		{"empty name", pod(pending, ofPod(profile(v1.AppArmorProfileTypeLocalhost, ""))), true, "Cannot enforce AppArmor: invalid empty AppArmor profile name: localhost/"},
		{"running already", pod(ofPod(profile(v1.AppArmorProfileTypeRuntimeDefault, ""))), false, ""},
	} {
		r := AppArmor{Disabled: !tc.enabled}.Admit(context.Background(), &PodAdmitAttributes{Pod: tc.pod})
		if r.Admit != (tc.want == "") || r.Message != tc.want || !r.Admit && r.Reason != "AppArmor" {
			t.Errorf("%s: %+v", tc.name, r)
		}
	}
}

func TestDeclaredFeatures(t *testing.T) {
	never, no := v1.ContainerRestartPolicyNever, false
	p := pod(func(p *v1.Pod) {
		p.Spec.HostNetwork, p.Spec.HostUsers = true, &no
		p.Spec.Containers[0].RestartPolicy = &never
		p.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
	})
	r := NewDeclaredFeatures(nil).Admit(context.Background(), &PodAdmitAttributes{Pod: p})
	if r.Reason != "PodFeatureUnsupported" || r.Message != "Pod requires node features that are not available: RestartAllContainersOnContainerExits, UserNamespacesHostNetworkSupport" {
		t.Errorf("%+v", r)
	}
	r = NewDeclaredFeatures([]string{"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"}).Admit(context.Background(), &PodAdmitAttributes{Pod: p})
	if !r.Admit {
		t.Errorf("%+v", r)
	}
}

// The sum over replicas that share their containers is that over each.
func TestSumUsed(t *testing.T) {
	small, big := pod(wants(map[v1.ResourceName]string{"cpu": "100m"})), pod(wants(map[v1.ResourceName]string{"cpu": "1", "example.com/x": "2"}))
	with := func(o *v1.Pod, change func(*v1.Pod)) *v1.Pod {
		p := *o
		if change != nil {
			change(&p)
		}
		return &p
	}
	resized := func(p *v1.Pod) {
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", Resources: &v1.ResourceRequirements{Requests: big.Spec.Containers[0].Resources.Requests}}}
	}
	pods := []*v1.Pod{
		small, with(small, nil), with(small, resized), with(small, nil), big, with(big, nil), small,
		with(big, func(p *v1.Pod) { p.Spec.Overhead = small.Spec.Containers[0].Resources.Requests }),
		with(big, func(p *v1.Pod) { p.Spec.InitContainers = small.Spec.Containers }),
		with(big, func(p *v1.Pod) { p.Spec.Containers = append(big.Spec.Containers[:1:1], small.Spec.Containers...) }),
		with(big, func(p *v1.Pod) { p.Spec.Containers = nil }), with(big, nil),
	}
	var want requests
	for _, p := range pods {
		want.add(usedBy(p))
	}
	if got := sumUsed(pods); !reflect.DeepEqual(got, want) || got.milliCPU != 7600 {
		t.Errorf("%+v, not %+v", got, want)
	}
}

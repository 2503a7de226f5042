package store

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

func TestResizeSubresource(t *testing.T) {
	limits := v1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}
	for _, tc := range []struct {
		name, patch, want string
		mirror            bool
	}{
		{name: "both", patch: `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"200m"},"limits":{"cpu":"200m"}}}]}}`},
		{name: "the class", patch: `{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"200m"}}}]}}`, want: "Pod QOS Class may not change as a result of resizing"},
		{name: "a request above the limit", patch: `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"200m"}}}]}}`, want: "must be less than or equal to cpu limit of 100m"},
		{name: "a limit taken away", patch: `{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":null},"requests":{"cpu":null}}}]}}`, want: "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"},
		{name: "storage", patch: `{"spec":{"containers":[{"name":"main","resources":{"limits":{"ephemeral-storage":"1Gi"}}}]}}`, want: "only cpu and memory resources are mutable"},
		{name: "another container", patch: `{"spec":{"containers":[{"name":"two","image":"x"}]}}`, want: "containers may not be added or removed on resize"},
		{name: "the image is let be", patch: `{"spec":{"containers":[{"name":"main","image":"app:2"}]}}`},
		{name: "resize policy", patch: `{"spec":{"containers":[{"name":"main","resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]}]}}`, want: "only cpu and memory resources are mutable"},
		{name: "bad resize policy", patch: `{"spec":{"containers":[{"name":"main","resizePolicy":[{"resourceName":"gpu","restartPolicy":"Maybe"}]}]}}`, want: `Unsupported value: "gpu"`},
		{name: "a mirror", mirror: true, patch: `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"50m"}}}]}}`, want: "static pods cannot be resized"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			mustCreate(t, s, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}}})
			mustCreate(t, s, testPod("p", onNode("n"), func(p *v1.Pod) {
				p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: limits.DeepCopy(), Limits: limits.DeepCopy()}
				if tc.mirror {
					p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
				}
			}))
			_, err := s.Patch(t0, kinds.Pod, "default", "p", types.StrategicMergePatchType, []byte(tc.patch), "resize")
			check(t, err, tc.want)
			if got := s.Pod("default", "p"); got.Spec.Containers[0].Image != "app:1" {
				t.Errorf("image %s", got.Spec.Containers[0].Image)
			}
		})
	}
}

func TestPodLevelResources(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		l := v1.ResourceList{}
		for name, v := range map[v1.ResourceName]string{"cpu": cpu, "memory": memory} {
			if v != "" {
				l[name] = resource.MustParse(v)
			}
		}
		return l
	}
	for _, tc := range []struct {
		name                string
		requests, limits    v1.ResourceList
		containers, highest v1.ResourceList // of the container
		want                string
		defaulted           string // pod-level cpu request
	}{
		{name: "requests from limits", limits: list("1", ""), defaulted: "1"},
		{name: "requests from containers", limits: list("1", ""), containers: list("300m", ""), defaulted: "300m"},
		{name: "less than the containers", requests: list("100m", ""), containers: list("300m", ""), want: "must be greater than or equal to aggregate container requests of 300m"},
		{name: "a container's limit above the pod's", limits: list("1", ""), highest: list("2", ""), want: "must be less than or equal to pod limits of 1"},
		{name: "no such resource", requests: v1.ResourceList{"ephemeral-storage": resource.MustParse("1")}, want: `Unsupported value: "ephemeral-storage"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			p := testPod("p", func(p *v1.Pod) {
				p.Spec.Resources = &v1.ResourceRequirements{Requests: tc.requests, Limits: tc.limits}
				p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: tc.containers, Limits: tc.highest}
			})
			_, err := s.Create(t0, p)
			check(t, err, tc.want)
			if err != nil || tc.defaulted == "" {
				return
			}
			if got := s.Pod("default", "p").Spec.Resources.Requests.Cpu().String(); got != tc.defaulted {
				t.Errorf("request %s", got)
			}
		})
	}
}

func TestEphemeralContainers(t *testing.T) {
	for _, tc := range []struct{ name, patch, want string }{
		{"add", `{"spec":{"ephemeralContainers":[{"name":"two","image":"x","targetContainerName":"main"}]}}`, ""},
		{"change", `{"spec":{"ephemeralContainers":[{"name":"one","image":"y"}]}}`, `existing ephemeral containers "one" may not be changed`},
		{"remove", `{"spec":{"ephemeralContainers":[{"$patch":"delete","name":"one"}]}}`, `existing ephemeral containers "one" may not be removed`},
		{"no such target", `{"spec":{"ephemeralContainers":[{"name":"two","image":"x","targetContainerName":"nope"}]}}`, "targetContainerName: Not found"},
		{"resources", `{"spec":{"ephemeralContainers":[{"name":"two","image":"x","resources":{"limits":{"cpu":"1"}}}]}}`, "cannot be set for an Ephemeral Container"},
		{"probe", `{"spec":{"ephemeralContainers":[{"name":"two","image":"x","livenessProbe":{"exec":{"command":["x"]}}}]}}`, "cannot be set for an Ephemeral Container"},
		{"a name that is taken", `{"spec":{"ephemeralContainers":[{"name":"main","image":"x"}]}}`, "Duplicate value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			mustCreate(t, s, testPod("p", onNode("n")))
			add := func(patch string) error {
				_, err := s.Patch(t0, kinds.Pod, "default", "p", types.StrategicMergePatchType, []byte(patch), "ephemeralcontainers")
				return err
			}
			if err := add(`{"spec":{"ephemeralContainers":[{"name":"one","image":"x"}]}}`); err != nil {
				t.Fatal(err)
			}
			check(t, add(tc.patch), tc.want)
		})
	}
}

func TestRestartRules(t *testing.T) {
	always, never := v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyNever
	rule := func(action v1.ContainerRestartRuleAction, op v1.ContainerRestartRuleOnExitCodesOperator) v1.ContainerRestartRule {
		return v1.ContainerRestartRule{Action: action, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: []int32{1}}}
	}
	for _, tc := range []struct {
		name   string
		policy *v1.ContainerRestartPolicy
		rules  []v1.ContainerRestartRule
		want   string
	}{
		{"a policy", &never, nil, ""},
		{"a rule", &never, []v1.ContainerRestartRule{rule("Restart", "In")}, ""},
		{"all", &always, []v1.ContainerRestartRule{rule("RestartAllContainers", "NotIn")}, ""},
		{"no policy", nil, []v1.ContainerRestartRule{rule("Restart", "In")}, "must specify restartPolicy when restart rules are used"},
		{"action", &never, []v1.ContainerRestartRule{rule("Stop", "In")}, `Unsupported value: "Stop"`},
		{"operator", &never, []v1.ContainerRestartRule{rule("Restart", "Is")}, `Unsupported value: "Is"`},
		{"no codes", &never, []v1.ContainerRestartRule{{Action: "Restart"}}, "exitCodes: Required value"},
		{"too many", &never, make([]v1.ContainerRestartRule, 21), "must have at most 20 items"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			_, err := s.Create(t0, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{
				Name: "main", Image: "x", RestartPolicy: tc.policy, RestartPolicyRules: tc.rules}}}})
			check(t, err, tc.want)
		})
	}
}

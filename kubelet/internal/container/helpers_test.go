package container

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

func TestHashContainer(t *testing.T) {
	c := &v1.Container{Name: "test_container", Image: "foo/image:v1", Command: []string{"does", "not", "count"}}
	if got := HashContainer(c); got != "8e45cbd0" {
		t.Errorf("hash is %s", got)
	}
	var h Hasher
	for range 2 {
		if got := h.Hash(c); got != "8e45cbd0" {
			t.Errorf("remembered hash is %s", got)
		}
	}
	other := &v1.Container{Name: "test_container", Image: "foo/image:v2"}
	if h.Hash(other) == h.Hash(c) {
		t.Error("another image has the same hash")
	}
}

// The delays between a container's exit and its next start: 0, 10 s, 20 s ...
func TestCrashLoopSeries(t *testing.T) {
	b := NewBackoff(BackoffBase, BackoffMax)
	const key = 1
	now := loop.Epoch()
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 300} {
		want *= time.Second
		exit := now
		if want > 0 && !b.InBackOffSince(key, exit, exit.Add(want-1)) {
			t.Fatalf("exit %d: not in back-off before %v", i, want)
		}
		now = exit.Add(want)
		if b.InBackOffSince(key, exit, now) {
			t.Fatalf("exit %d: still in back-off after %v", i, want)
		}
		b.Next(key, exit, now)
	}
	// A run of more than ten minutes begins the series anew.
	exit := now.Add(BackoffExpiry + time.Second)
	if b.InBackOffSince(key, exit, exit) {
		t.Error("in back-off after a long run")
	}
	b.Next(key, exit, exit)
	if got := b.Delay(key); got != BackoffBase {
		t.Errorf("delay after a long run is %v", got)
	}
	b.GC(exit.Add(BackoffExpiry))
	if !b.Has(key) {
		t.Error("collected too early")
	}
	b.GC(exit.Add(BackoffExpiry + 1))
	if b.Has(key) {
		t.Error("not collected")
	}
}

func TestBackoffCapBelowBase(t *testing.T) {
	b := NewBackoff(BackoffBase, 3*time.Second)
	now := loop.Epoch()
	b.Next(1, now, now)
	b.Next(1, now, now)
	if got := b.Delay(1); got != 3*time.Second {
		t.Errorf("delay %v", got)
	}
	if !b.InBackOffSinceUpdate(1, now.Add(2*time.Second)) || b.InBackOffSinceUpdate(1, now.Add(3*time.Second)) {
		t.Error("back-off since the update ends at the wrong time")
	}
}

func TestCrashLoopKey(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", UID: "c"}}
	c := func(image, cpu string) *v1.Container {
		return &v1.Container{Name: "x", Image: image, Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Gi"),
		}}}
	}
	base := CrashLoopKey(pod, c("i", "1"))
	if base != CrashLoopKey(pod, c("i", "1000m")) {
		t.Error("equal containers have different keys")
	}
	if base == CrashLoopKey(pod, c("j", "1")) || base == CrashLoopKey(pod, c("i", "2")) {
		t.Error("another image or other resources have the same key")
	}
	limits := c("i", "1")
	limits.Resources.Limits, limits.Resources.Requests = limits.Resources.Requests, nil
	if base == CrashLoopKey(pod, limits) {
		t.Error("limits and requests have the same key")
	}
}

func TestShouldRestart(t *testing.T) {
	policy := func(p v1.ContainerRestartPolicy) *v1.ContainerRestartPolicy { return &p }
	rule := func(action v1.ContainerRestartRuleAction, op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) v1.ContainerRestartRule {
		return v1.ContainerRestartRule{Action: action, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes}}
	}
	const (
		in, notIn        = v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn
		restart, all     = v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers
		always, never    = v1.RestartPolicyAlways, v1.RestartPolicyNever
		onFailure, other = v1.RestartPolicyOnFailure, v1.RestartPolicy("")
	)
	own := func(p v1.ContainerRestartPolicy, rules ...v1.ContainerRestartRule) v1.Container {
		return v1.Container{RestartPolicy: policy(p), RestartPolicyRules: rules}
	}
	for _, tc := range []struct {
		name string
		c    v1.Container
		pod  v1.RestartPolicy
		code int32
		want bool
	}{
		{"always", v1.Container{}, always, 0, true},
		{"never", v1.Container{}, never, 1, false},
		{"on failure, success", v1.Container{}, onFailure, 0, false},
		{"on failure, failure", v1.Container{}, onFailure, 1, true},
		{"unknown policy", v1.Container{}, other, 0, true},
		{"own never over always", own("Never"), always, 1, false},
		{"own always over never", own("Always"), never, 0, true},
		{"own on failure, success", own("OnFailure"), always, 0, false},
		{"rule in", own("Never", rule(restart, in, 42)), never, 42, true},
		{"rule in, other code", own("Never", rule(restart, in, 42)), always, 41, false},
		{"rule not in", own("Never", rule(restart, notIn, 42)), never, 41, true},
		{"rule not in, listed", own("Never", rule(restart, notIn, 42)), never, 42, false},
		{"restart all", own("Never", rule(all, in, 3)), never, 3, true},
		{"other action, first match decides", own("Never", rule("Other", in, 3), rule(restart, in, 3)), never, 3, false},
		{"rule without codes", own("Never", v1.ContainerRestartRule{Action: restart}), never, 3, false},
		{"rules without a policy don't count", v1.Container{RestartPolicyRules: []v1.ContainerRestartRule{rule(restart, in, 3)}}, never, 3, false},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: tc.pod}}
		if got := ShouldRestart(&tc.c, pod, tc.code); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestShouldBeRestarted(t *testing.T) {
	now := metav1.NewTime(loop.Epoch())
	for _, tc := range []struct {
		name    string
		deleted bool
		status  *Status
		want    bool
	}{
		{"none", false, nil, true},
		{"none, deleted", true, nil, false},
		{"running", false, &Status{State: StateRunning}, false},
		{"created", false, &Status{State: StateCreated}, true},
		{"unknown", false, &Status{State: StateUnknown}, true},
		{"exited 0", false, &Status{State: StateExited}, false},
		{"exited 1", false, &Status{State: StateExited, ExitCode: 1}, true},
		{"exited 1, deleted", true, &Status{State: StateExited, ExitCode: 1}, false},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyOnFailure}}
		if tc.deleted {
			pod.DeletionTimestamp = &now
		}
		ps := &PodStatus{}
		if tc.status != nil {
			tc.status.Name = "c"
			// An older one must not count.
			ps.ContainerStatuses = []*Status{tc.status, {Name: "c", State: StateExited, ExitCode: 9}}
		}
		if got := ShouldBeRestarted(&v1.Container{Name: "c"}, pod, ps); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestContainerRef(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u", ResourceVersion: "7"}}
	pod.Spec.Containers = []v1.Container{{Name: "a"}, {}}
	pod.Spec.InitContainers = []v1.Container{{Name: "i"}}
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "e"}}}
	for _, tc := range []struct {
		c    *v1.Container
		want string
	}{
		{&pod.Spec.Containers[0], "spec.containers{a}"},
		{&pod.Spec.Containers[1], "spec.containers[1]"},
		{&pod.Spec.InitContainers[0], "spec.initContainers{i}"},
		{EphemeralAsContainer(&pod.Spec.EphemeralContainers[0]), "spec.ephemeralContainers{e}"},
		{&v1.Container{Name: "x"}, ""},
	} {
		ref := ContainerRef(pod, tc.c)
		want := v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Name: "p", Namespace: "n", UID: "u", ResourceVersion: "7", FieldPath: tc.want}
		if *ref != want {
			t.Errorf("%+v", *ref)
		}
	}
}

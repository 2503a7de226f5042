package lifecycle

import (
	"context"
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

func TestPreemption(t *testing.T) {
	cpu := func(q string) func(*v1.Pod) { return wants(map[v1.ResourceName]string{"cpu": q}) }
	named := func(name string) func(*v1.Pod) { return func(p *v1.Pod) { p.Name = name } }
	priority := func(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &n } }
	guaranteed := func(p *v1.Pod) { p.Status.QOSClass = v1.PodQOSGuaranteed }
	critical := priority(kubetypes.SystemCriticalPriority)
	selector := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }
	be, small, large := pod(named("be")), pod(named("small"), cpu("400m")), pod(named("large"), cpu("600m"))
	for _, c := range []struct {
		name   string
		pod    *v1.Pod
		others []*v1.Pod
		killed []string
		reason string
	}{
		{"not critical", pod(cpu("1500m"), priority(10)), []*v1.Pod{large}, nil, "OutOfcpu"},
		{"the one that is enough", pod(cpu("1500m"), critical), []*v1.Pod{large, small}, []string{"large"}, ""},
		{"burstable before guaranteed", pod(cpu("1600m"), critical), []*v1.Pod{pod(named("g"), cpu("300m"), guaranteed), small}, []string{"small"}, ""},
		{"guaranteed if it must be", pod(cpu("1900m"), critical), []*v1.Pod{pod(named("g"), cpu("300m"), guaranteed), small}, []string{"small", "g"}, ""},
		{"best effort where the number of pods is short", pod(critical), []*v1.Pod{small, be}, []string{"be"}, ""},
		{"of equals the later", pod(cpu("1300m"), critical), []*v1.Pod{large, pod(named("other"), cpu("600m"))}, []string{"other"}, ""},
		{"the smaller of two that are enough", pod(cpu("1300m"), critical), []*v1.Pod{small, large}, []string{"small"}, ""},
		{"of those the one with less memory", pod(cpu("1300m"), critical),
			[]*v1.Pod{pod(named("cpu"), wants(map[v1.ResourceName]string{"cpu": "500m", "memory": "20Mi"})), pod(named("memory"), wants(map[v1.ResourceName]string{"cpu": "600m", "memory": "10Mi"}))},
			[]string{"memory"}, ""},
		{"several: the last takes the place of the chosen", pod(cpu("1900m"), critical),
			[]*v1.Pod{pod(named("big"), cpu("600m")), pod(named("a"), cpu("300m")), pod(named("b"), cpu("300m"))}, []string{"big", "a", "b"}, ""},
		{"half of two resources is nearer than a tenth of one and all of the other", pod(wants(map[v1.ResourceName]string{"cpu": "1400m", "memory": "514Mi"}), critical),
			[]*v1.Pod{
				pod(named("one"), wants(map[v1.ResourceName]string{"cpu": "100m", "memory": "1000Mi"})),
				pod(named("half"), wants(map[v1.ResourceName]string{"cpu": "500m", "memory": "500Mi"})),
				pod(named("other"), wants(map[v1.ResourceName]string{"cpu": "1000m", "memory": "10Mi"})),
			}, []string{"half", "one", "other"}, ""},
		{"extended resources too", pod(wants(map[v1.ResourceName]string{"example.com/gpu": "1"}), critical),
			[]*v1.Pod{be, pod(named("gpu"), wants(map[v1.ResourceName]string{"example.com/gpu": "1"}))}, []string{"gpu"}, ""},
		{"static pods are critical", pod(cpu("1500m"), func(p *v1.Pod) {
			p.Annotations = map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}
		}), []*v1.Pod{large}, []string{"large"}, ""},
		{"critical pods of lower priority may go", pod(cpu("1500m"), priority(kubetypes.SystemCriticalPriority+1000)), []*v1.Pod{pod(named("c"), cpu("600m"), critical)}, []string{"c"}, ""},
		{"not other critical pods", pod(cpu("1500m"), critical), []*v1.Pod{pod(named("c"), cpu("600m"), critical)}, nil, "UnexpectedAdmissionError"},
		{"not for what room does not help", pod(cpu("1500m"), critical, selector), []*v1.Pod{large}, nil, "NodeAffinity"},
	} {
		n := node()
		var killed []string
		kill := func(_ context.Context, victim *v1.Pod) error {
			killed = append(killed, victim.Name)
			return errors.New("a failure is the victim's own")
		}
		p := &Predicates{Node: func() (*v1.Node, error) { return n, nil }, Preemption: &Preemption{Kill: kill}}
		r := p.Admit(context.Background(), &PodAdmitAttributes{Pod: c.pod, OtherPods: func() []*v1.Pod { return c.others }})
		if !slices.Equal(killed, c.killed) || r.Reason != c.reason || r.Admit != (c.reason == "") {
			t.Errorf("%s: killed %v, %+v", c.name, killed, r)
		}
	}
	_, err := victims(pod(critical), []*v1.Pod{small}, []shortage{{v1.ResourceCPU, 550}})
	if want := "no set of running pods found to reclaim resources: [(res: cpu, q: 150), ]"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

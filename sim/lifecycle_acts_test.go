package sim_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// This file draws what happens to the pods, and when. All of it is put on the
// loops before the run.

// Nothing is done after actsEnd, no fault lasts longer than faultsEnd.
const (
	actsEnd   = 180 * time.Second
	faultsEnd = 240 * time.Second
)

// create makes a pod at a time, if its name is free then.
func (r *lifeRun) create(at time.Duration, pod *v1.Pod) {
	r.c.At(at, func() {
		if _, err := r.c.API().Create(pod.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			r.fail("creating %s: %v", pod.Name, err)
		}
	})
}

// api does something to the API; what it answers is not looked at, since the
// object may be gone.
func (r *lifeRun) api(at time.Duration, fn func(api *apiserver.Server)) {
	r.c.At(at, func() { fn(r.c.API()) })
}

func (r *lifeRun) patch(at time.Duration, pod, sub, patch string) {
	r.api(at, func(api *apiserver.Server) {
		_, _ = api.Patch(apiserver.KindPod, "default", pod, types.StrategicMergePatchType, []byte(patch), sub)
	})
}

func (r *lifeRun) delete(at time.Duration, pod string, grace *int64) {
	r.api(at, func(api *apiserver.Server) {
		_ = api.Delete(apiserver.KindPod, "default", pod, metav1.DeleteOptions{GracePeriodSeconds: grace})
	})
}

func (r *lifeRun) putObjects(at time.Duration, name string, version int) {
	r.api(at, func(api *apiserver.Server) {
		meta := metav1.ObjectMeta{Name: name, Namespace: "default"}
		cm := &v1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{"key": fmt.Sprint(version)}}
		sec := &v1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Data: map[string][]byte{"key": []byte(fmt.Sprint(version))}}
		for _, o := range []apiserver.Object{cm, sec} {
			if _, err := api.Apply(o); err != nil {
				r.fail("applying %s: %v", name, err)
			}
		}
	})
}

// act draws one act.
func (r *lifeRun) act(m *maker) {
	at := 5*time.Second + m.seconds(int((actsEnd-5*time.Second)/time.Second))
	p := r.pods[m.IntN(len(r.pods))]
	n := r.c.Node(p.node)
	name := p.pod.Name
	containers := append(append([]v1.Container{}, p.pod.Spec.InitContainers...), p.pod.Spec.Containers...)
	c := containers[m.IntN(len(containers))].Name
	lasts := time.Second + m.seconds(40)
	switch m.IntN(20) {
	case 0, 1, 2:
		grace := []*int64{nil, ptr.To[int64](0), ptr.To[int64](1), ptr.To[int64](7)}
		r.delete(at, name, grace[m.IntN(4)])
		if m.chance(40) {
			r.delete(at+m.seconds(6), name, grace[m.IntN(4)])
		}
		if m.chance(50) {
			r.create(at+m.seconds(40), p.pod)
		}
		if m.chance(15) {
			n.At(at+m.seconds(int(*p.pod.Spec.TerminationGracePeriodSeconds)+3), func() { n.RestartKubelet(lasts / 4) })
		}
	case 3:
		r.patch(at, name, "", fmt.Sprintf(`{"metadata":{"labels":{"v":"%d"}}}`, m.IntN(9)))
	case 4:
		image := p.pod.Spec.Containers[0].Image
		r.patch(at, name, "", fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"image":"%s2"}]}}`, p.pod.Spec.Containers[0].Name, image))
	case 5:
		r.patch(at, name, "resize", fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":"%d50m"}}}]}}`, p.pod.Spec.Containers[0].Name, m.between(1, 9)))
	case 6:
		r.patch(at, name, "ephemeralcontainers", fmt.Sprintf(`{"spec":{"ephemeralContainers":[{"name":"dbg%d","image":"busybox:1","command":["sleep","%d"]}]}}`, m.IntN(3), m.between(1, 30)))
	case 7:
		n.At(at, func() { _ = n.Runtime().SignalContainerOutside("default/"+name, c, 15) })
	case 8:
		n.At(at, func() { _ = n.Runtime().StopContainerOutside("default/"+name, c) })
	case 9:
		n.At(at, func() { _ = n.Runtime().RemoveContainerOutside("default/"+name, c) })
	case 10:
		n.At(at, func() { _ = n.Runtime().StopSandboxOutside("default/" + name) })
	case 11:
		n.At(at, func() { _ = n.Runtime().KillSandboxOutside("default/" + name) })
	case 12:
		n.At(at, func() { _ = n.Runtime().RemoveSandboxOutside("default/" + name) })
	case 13:
		if m.chance(50) {
			object := m.objects[m.IntN(len(m.objects))]
			r.putObjects(at, object, m.between(2, 9))
		}
	default:
		r.nodeAct(m, n, name, at, lasts)
	}
}

// nodeAct is an act on a whole node, or a fault.
func (r *lifeRun) nodeAct(m *maker, n *sim.Node, pod string, at, lasts time.Duration) {
	switch m.IntN(9) {
	case 0:
		n.At(at, func() { n.RestartKubelet(lasts / 2) })
	case 1:
		n.At(at, n.StopRuntime)
		n.At(at+lasts, n.StartRuntime)
	case 2:
		if m.chance(50) {
			n.At(at, func() { r.cuts[n.Name()] = true; n.PowerCut(lasts) })
		}
	case 3:
		r.api(at, func(api *apiserver.Server) { r.c.At(at+lasts, api.Partition(n.Name())) })
	case 4:
		r.api(at, func(api *apiserver.Server) { r.c.At(at+lasts/2, api.Outage()) })
	case 5:
		object := m.objects[m.IntN(len(m.objects))]
		r.api(at, func(api *apiserver.Server) {
			for _, k := range []apiserver.Kind{apiserver.KindConfigMap, apiserver.KindSecret} {
				_ = api.Delete(k, "default", object, metav1.DeleteOptions{})
			}
		})
		r.putObjects(at+lasts, object, 3)
	default:
		f := fakecri.Fault{For: lasts}
		f.Method = []string{"StopContainer", "StartContainer", "CreateContainer", "RunPodSandbox", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox",
			"PullImage", "ExecSync", "ListContainers", "PodSandboxStatus", "ContainerStatus", "*", "UpdateContainerResources", "Status"}[m.IntN(15)]
		switch m.IntN(4) {
		case 0:
			f.Hang = true
		case 1:
			f.Latency = fakecri.Range{Min: time.Millisecond, Max: 4 * time.Second}
		default:
			f.Error = &fakecri.FaultError{Code: []string{"Unknown", "DeadlineExceeded", "Unavailable"}[m.IntN(3)]}
		}
		if m.chance(40) {
			f.Pod = "default/" + pod
		}
		if m.chance(40) {
			f.Count = m.between(1, 4)
		}
		n.At(at, func() { n.Runtime().AddFault(f) })
	}
}

// static has a static pod come, be edited perhaps, and go perhaps. Half of them
// get a twin in the API, of the mirror's name.
func (r *lifeRun) static(m *maker, n *sim.Node, i int) {
	file, name := fmt.Sprintf("s%d.yaml", i), fmt.Sprintf("st%d", i)
	text := func(grace int) []byte {
		return fmt.Appendf(nil, "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: %d, containers: [{name: f0, image: 'app:1'}]}}", name, grace)
	}
	at := m.seconds(60)
	write := func(grace int) func() {
		return func() {
			if err := n.WriteStaticPod(file, text(grace)); err != nil {
				r.fail("static pod: %v", err)
			}
		}
	}
	n.At(at, write(3))
	if m.chance(50) {
		n.At(at+m.seconds(60), write(4))
	}
	if m.chance(40) {
		n.At(at+m.seconds(100), func() { _ = n.RemoveStaticPod(file) })
		if m.chance(50) {
			n.At(at+60*time.Second+m.seconds(60), write(3))
		}
	}
	if m.chance(50) {
		twin := m.pod(name+"-"+n.Name(), n.Name())
		r.pods = append(r.pods, twin)
		twin.calm = false
		r.create(twin.at, twin.pod)
	}
	r.statics = append(r.statics, func() { _ = n.RemoveStaticPod(file) })
	r.staticNodes = append(r.staticNodes, n)
}

package kuberuntime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// seen is an Annotator.
type seen string

func (s seen) Annotate(own map[string]string) map[string]string {
	out := map[string]string{"seen": string(s)}
	for k, v := range own {
		out[k] = v
	}
	return out
}

// leanPods are pods of one spec, each of which differs from the first in
// something that decides what the runtime is told.
func leanPods() []*v1.Pod {
	spec := v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{
		Name: "app", Image: "registry.k8s.io/e2e-test-images/agnhost:2.40", Args: []string{"pause", "$(WHO)"},
		Ports: []v1.ContainerPort{{ContainerPort: 80}},
	}}}
	var pods []*v1.Pod
	for i, change := range []func(*v1.Pod){
		func(*v1.Pod) {},
		func(p *v1.Pod) { p.Labels = map[string]string{"app": "web"} },
		func(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} },
		func(p *v1.Pod) { p.Spec.HostNetwork = true },
		func(p *v1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "box", "sub" },
		func(p *v1.Pod) { p.Status.QOSClass = v1.PodQOSBurstable },
		func(p *v1.Pod) { p.Spec.Overhead = v1.ResourceList{v1.ResourceMemory: resource.MustParse("10Mi")} },
		func(p *v1.Pod) {
			p.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "1"}}}
		},
		func(p *v1.Pod) { p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(7))} },
		func(p *v1.Pod) { p.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"10.0.0.9"}} },
		func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3)) },
		func(p *v1.Pod) {
			p.Spec.Containers = append([]v1.Container(nil), p.Spec.Containers...)
			p.Spec.Containers[0].Ports = nil
		},
		func(*v1.Pod) {}, // as the first, which the memos have dropped
	} {
		pod := &v1.Pod{Spec: spec}
		pod.Name, pod.Namespace, pod.UID = fmt.Sprintf("p%d", i), "ns", types.UID(fmt.Sprintf("uid-%d", i))
		pod.Status.QOSClass = v1.PodQOSBestEffort
		change(pod)
		pods = append(pods, pod)
	}
	return pods
}

// env is a RuntimeHelper: pods of an even number have one environment, the
// others another.
type env [2][]*runtimeapi.KeyValue

func (e *env) GenerateRunContainerOptions(_ context.Context, pod *v1.Pod, _ *v1.Container, _ []string, _ bool) (*kubecontainer.RunContainerOptions, error) {
	return &kubecontainer.RunContainerOptions{Envs: e[pod.UID[len(pod.UID)-1]%2]}, nil
}

func (e *env) GetOrCreateUserNamespaceMappings(*v1.Pod, string) (*runtimeapi.UserNamespace, error) {
	return nil, nil
}

// shownBy has pods run, their containers restart once, and returns all that
// the runtime's calls then show. Whole messages are each made by a new manager,
// which shares nothing.
func shownBy(t *testing.T, lean bool) (shown []proto.Message) {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	g := l.NewGroup("kubelet")
	rt := fakecri.New(fakecri.Options{Loop: l, Programs: []fakecri.Program{{Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: 10 * time.Second, Max: 10 * time.Second}}}}})
	rt.StartDaemon()
	client := rt.Client(g)
	o := kuberuntime.Options{
		Loop: l, Group: g, RuntimeService: client, ImageService: client,
		Helper:    &env{{{Key: "WHO", Value: []byte("even")}}, {{Key: "WHO", Value: []byte("odd")}}},
		Annotator: func(uid types.UID) kuberuntime.Annotator { return seen(uid) },
		Node:      kuberuntime.NodeConfig{CgroupsPerQOS: true, CgroupRoot: "/"},
	}
	if lean {
		o.Lean = client
	}
	var m *kuberuntime.Manager
	pods := leanPods()
	b := kubecontainer.NewBackoff(time.Second, time.Second)
	g.Go("worker", func(ctx context.Context) {
		for range 2 {
			for _, pod := range pods {
				if m == nil || !lean {
					var err error
					if m, err = kuberuntime.New(o); err != nil {
						t.Error(err)
						return
					}
				}
				status := &kubecontainer.PodStatus{ID: pod.UID, Name: pod.Name, Namespace: pod.Namespace}
				if listed, err := m.GetPod(ctx, pod.UID); err != nil {
					t.Error(err)
				} else if listed != nil {
					if status, err = m.GetPodStatus(ctx, listed); err != nil {
						t.Error(err)
					}
				}
				if res := m.SyncPod(ctx, pod, status, nil, b, false); res.Error() != nil {
					t.Errorf("%s: %v", pod.Name, res.Error())
				}
			}
			if err := l.Sleep(ctx, 20*time.Second); err != nil {
				return
			}
		}
		shown = everything(ctx, t, client)
	})
	l.RunUntil(loop.Epoch().Add(10 * time.Minute))
	return shown
}

func everything(ctx context.Context, t *testing.T, c *fakecri.Client) (shown []proto.Message) {
	add := func(v proto.Message, err error) {
		if err != nil {
			t.Error(err)
		}
		shown = append(shown, v)
	}
	list := func(sf *runtimeapi.PodSandboxFilter, cf *runtimeapi.ContainerFilter) ([]*runtimeapi.PodSandbox, []*runtimeapi.Container) {
		sandboxes, err := c.ListPodSandbox(ctx, sf)
		add(&runtimeapi.ListPodSandboxResponse{Items: sandboxes}, err)
		containers, err := c.ListContainers(ctx, cf)
		add(&runtimeapi.ListContainersResponse{Containers: containers}, err)
		return sandboxes, containers
	}
	sandboxes, containers := list(nil, nil)
	for _, s := range sandboxes {
		add(c.PodSandboxStatus(ctx, s.Id, true))
		add(c.PodSandboxStats(ctx, s.Id))
	}
	for _, k := range containers {
		add(c.ContainerStatus(ctx, k.Id, true))
		add(c.ContainerStats(ctx, k.Id))
	}
	for _, selector := range []map[string]string{
		{"app": "web"}, {"io.kubernetes.pod.uid": "uid-3"}, {"io.kubernetes.pod.name": "p4", "io.kubernetes.pod.namespace": "ns"}, {"io.kubernetes.container.name": "app"},
	} {
		list(&runtimeapi.PodSandboxFilter{LabelSelector: selector}, &runtimeapi.ContainerFilter{LabelSelector: selector})
	}
	return shown
}

// Whoever looks sees the same of a runtime that keeps what replicas share and
// of one that gets whole messages.
func TestLeanIsInvisible(t *testing.T) {
	lean, whole := shownBy(t, true), shownBy(t, false)
	if n := len(leanPods()); len(whole) < 2+2*n+3*n {
		t.Fatalf("only %d answers", len(whole))
	}
	for i, w := range whole {
		if i >= len(lean) || !proto.Equal(w, lean[i]) {
			t.Fatalf("answer %d:\n%v\nlean:\n%v", i, w, lean[i:min(i+1, len(lean))])
		}
	}
}

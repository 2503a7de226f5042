package kuberuntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

func entryOf(was map[string]string) *state.Entry {
	e := &state.Entry{Actuated: state.Resources{Containers: map[string]v1.ResourceRequirements{}}}
	for name, r := range was {
		e.Actuated.Containers[name] = podtest.Resources(r)
	}
	return e
}

// resizable is a runtime that writes down what it is told of resources.
type resizable struct {
	*fakeRuntime
	used  int64
	wrong error
	// silent is one that tells no memory, statsFail one that tells nothing.
	silent    bool
	statsFail error
}

func (r *resizable) UpdateContainerResources(_ context.Context, id string, res *runtimeapi.ContainerResources) error {
	l := res.Linux
	r.calls = append(r.calls, fmt.Sprintf("%s shares=%d quota=%d memory=%dMi", id, l.CpuShares, l.CpuQuota, l.MemoryLimitInBytes>>20))
	return r.wrong
}

func (r *resizable) UpdatePodSandboxResources(_ context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	l := req.Resources
	r.calls = append(r.calls, fmt.Sprintf("pod shares=%d quota=%d memory=%dMi", l.CpuShares, l.CpuQuota, l.MemoryLimitInBytes>>20))
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}

func (r *resizable) ContainerStats(context.Context, string) (*runtimeapi.ContainerStats, error) {
	if r.silent || r.statsFail != nil {
		return &runtimeapi.ContainerStats{}, r.statsFail
	}
	return &runtimeapi.ContainerStats{Memory: &runtimeapi.MemoryUsage{UsageBytes: &runtimeapi.UInt64Value{Value: uint64(r.used)}}}, nil
}

// recordedAllocation keeps what was actuated.
type recordedAllocation struct{ s *state.State }

func (a recordedAllocation) State() *state.State { return a.s }
func (a recordedAllocation) Actuated(p *v1.Pod, c string, r v1.ResourceRequirements) {
	a.s.Get(p.UID).Actuate(c, r)
}
func (a recordedAllocation) ActuatedPod(p *v1.Pod, r *v1.ResourceRequirements) {
	a.s.Get(p.UID).Actuated.Pod = r
}

func TestResizeOrder(t *testing.T) {
	for _, tc := range []struct {
		name      string
		was, is   map[string]string
		used      int64
		wrong     error
		silent    bool
		statsFail error
		unable    bool // the runtime can't change resources at all
		calls     []string
		failure   string
	}{
		{name: "grows", was: map[string]string{"a": "100m/100m 64Mi/64Mi"}, is: map[string]string{"a": "200m/200m 128Mi/128Mi"}, calls: []string{
			"pod shares=102 quota=10000 memory=128Mi",
			"id-a shares=102 quota=10000 memory=128Mi",
			"pod shares=102 quota=20000 memory=128Mi",
			"pod shares=204 quota=20000 memory=128Mi",
			"id-a shares=204 quota=20000 memory=128Mi",
		}},
		{name: "shrinks", was: map[string]string{"a": "200m/200m 128Mi/128Mi"}, is: map[string]string{"a": "100m/100m 64Mi/64Mi"}, calls: []string{
			"id-a shares=204 quota=20000 memory=64Mi",
			"pod shares=204 quota=20000 memory=64Mi",
			"id-a shares=102 quota=10000 memory=64Mi",
			"pod shares=102 quota=20000 memory=64Mi",
			"pod shares=102 quota=10000 memory=64Mi",
		}},
		{name: "a pod without limits", was: map[string]string{"a": "100m/- -/-"}, is: map[string]string{"a": "200m/- -/-"}, calls: []string{
			"pod shares=204 quota=0 memory=0Mi",
			"id-a shares=204 quota=0 memory=0Mi",
		}},
		{name: "below what is used", was: map[string]string{"a": "100m/100m 128Mi/128Mi"}, is: map[string]string{"a": "50m/50m 64Mi/64Mi"}, used: 100 << 20,
			failure: `cannot decrease memory limits: [attempting to set pod memory limit (67108864) below current usage (104857600), attempting to set container "a" memory limit (67108864) below current usage (104857600)]`},
		{name: "without a word of what is used", was: map[string]string{"a": "100m/100m 128Mi/128Mi"}, is: map[string]string{"a": "100m/100m 64Mi/64Mi"}, silent: true,
			failure: `cannot decrease memory limits: missing container "a" memory usage`},
		{name: "what is used is not known", was: map[string]string{"a": "100m/100m 128Mi/128Mi"}, is: map[string]string{"a": "100m/100m 64Mi/64Mi"}, statsFail: errors.New("no"),
			failure: `unable to read memory usage for pod "p_ns(u)"`},
		{name: "what is used does not matter", was: map[string]string{"a": "100m/100m 64Mi/64Mi"}, is: map[string]string{"a": "200m/200m 64Mi/64Mi"}, statsFail: errors.New("no"), calls: []string{
			"pod shares=102 quota=20000 memory=64Mi",
			"pod shares=204 quota=20000 memory=64Mi",
			"id-a shares=204 quota=20000 memory=64Mi",
		}},
		{name: "a runtime that can't", was: map[string]string{"a": "100m/100m 64Mi/64Mi"}, is: map[string]string{"a": "200m/200m 64Mi/64Mi"}, unable: true, failure: "the runtime cannot change resources"},
		{name: "the first failure ends it", was: map[string]string{"a": "1/1 -/-", "b": "2/2 -/-"}, is: map[string]string{"a": "2/2 -/-", "b": "1/1 -/-"}, wrong: errors.New("no"),
			calls: []string{"id-b shares=1024 quota=100000 memory=0Mi"}, failure: "updating cpu of container b: no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := loop.New(loop.Options{})
			defer l.Close()
			rt := &resizable{fakeRuntime: &fakeRuntime{l: l}, used: tc.used, wrong: tc.wrong, silent: tc.silent, statsFail: tc.statsFail}
			var service RuntimeService = rt
			if tc.unable {
				service = rt.fakeRuntime
			}
			s := state.New()
			p := podtest.Sized(tc.is)
			s.Put(p.UID, entryOf(tc.was))
			again := 0
			m, err := New(Options{
				Loop: l, Group: l.Root(), RuntimeService: service, ImageService: rt, Allocation: recordedAllocation{s},
				Cgroups: &cm.PodCgroups{}, Reinspect: func(types.UID) { again++ },
			})
			if err != nil {
				t.Fatal(err)
			}
			var result kubecontainer.PodSyncResult
			l.Root().Go("sync", func(ctx context.Context) {
				result = m.SyncPod(ctx, p, podtest.Running(p, &m.hasher), nil, nil, false)
			})
			l.RunUntil(l.Now().Add(1e9))
			if len(result.SyncResults) != 1 || result.SyncResults[0].Action != kubecontainer.ResizePodInPlace || result.SyncResults[0].Message != tc.failure {
				t.Errorf("result %+v", result.SyncResults[0])
			}
			if !slices.Equal(rt.calls, tc.calls) {
				t.Errorf("calls\n%s", strings.Join(rt.calls, "\n"))
			}
			if again != 1 {
				t.Errorf("inspected again %d times", again)
			}
			if done := !actions.ResizeInProgress(p, s.Get(p.UID), podtest.Running(p, &m.hasher)); done != (tc.failure == "") {
				t.Errorf("done: %t", done)
			}
		})
	}
}

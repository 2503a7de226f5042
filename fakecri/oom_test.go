package fakecri

import (
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/usage"
)

// A program that passes several limits at one instant passes the innermost
// first, and after that no other: however the ties fall.
func TestInnermostLimit(t *testing.T) {
	const mib = 1 << 20
	greedy := Program{Match: Match{Container: "greedy"}, Behaviour: Behaviour{Memory: usage.Constant(2000 * mib)}}
	still := Program{Match: Match{Container: "still"}, Behaviour: Behaviour{Memory: usage.Constant(60 * mib)}}
	for _, tc := range []struct {
		name                 string
		container, pod, pods int64
		cgroup               string
	}{
		{name: "the container's", container: 50 * mib, pod: 120 * mib, pods: 500 * mib, cgroup: "own"},
		{name: "the pod's", pod: 120 * mib, pods: 500 * mib, cgroup: "/pod"},
		{name: "all pods'", pods: 500 * mib, cgroup: "/kubepods"},
		{name: "the machine's", cgroup: "/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, Options{Images: []Image{appImage}, Memory: 1 << 30, Programs: []Program{greedy, still}}, func(e *env) {
				e.rt.use.SetPodsMemoryLimit(tc.pods)
				var kills []OOMKill
				e.rt.use.WatchOOM(e.l.NewGroup("watcher"), func(k OOMKill) { kills = append(kills, k) })
				cfg := podConfig("web", 0)
				cfg.Linux = &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/pod", Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: tc.pod}}
				sb, err := e.c.RunPodSandbox(e.ctx, cfg, "")
				e.ok(err)
				start := func(name string, attempt uint32, limit int64) string {
					cfg := containerConfig("web", name, attempt)
					cfg.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{OomScoreAdj: 999, MemoryLimitInBytes: limit}}
					id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
					e.ok(err)
					e.ok(e.c.StartContainer(e.ctx, id))
					return id
				}
				other := start("still", 0, 0)
				for attempt := range uint32(12) {
					kills = nil
					id := start("greedy", attempt, tc.container)
					e.sleep(time.Second)
					e.exited(id, 137, "OOMKilled")
					cgroup := tc.cgroup
					if cgroup == "own" {
						cgroup = "/pod/" + id
					}
					if len(kills) != 1 || kills[0].Cgroup != cgroup || kills[0].Victim != "/pod/"+id {
						t.Errorf("attempt %d: kills: %+v", attempt, kills)
					}
				}
				if s := e.status(other); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
					t.Errorf("the other container is %v", s.State)
				}
			})
		})
	}
}

package prober

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// ForRuntime shows the results to the runtime manager.
func (m *Manager) ForRuntime() actions.ProbeResults { return runtimeView{m} }

// runtimeView keeps the runtime manager, and its syncs, from all else of the
// prober.
type runtimeView struct{ m *Manager }

func (v runtimeView) Liveness(id string) actions.ProbeResult {
	return runtimeResult(v.m.Liveness, id)
}
func (v runtimeView) Startup(id string) actions.ProbeResult {
	return runtimeResult(v.m.Startup, id)
}

// runtimeResult tells apart what is unknown from what nobody has probed: a sync
// waits for the latter.
func runtimeResult(m *results.Manager, id string) actions.ProbeResult {
	r, ok := m.Get(id)
	switch {
	case !ok:
		return actions.ProbeNone
	case r == results.Success:
		return actions.ProbeSuccess
	case r == results.Failure:
		return actions.ProbeFailure
	}
	return actions.ProbeUnknown
}

// Count is how often a probe came to a result.
type Count struct {
	Pod       *v1.Pod
	Container string
	// Type is Liveness, Readiness or Startup.
	Type string
	// Results are counted by results.Result.
	Results [3]uint64
}

// Counts are the probes that are run now, also those that were left out, by pod and
// in the order of their workers.
func (m *Manager) Counts() []Count {
	var out []Count
	now := m.o.Loop.UnixNano()
	for _, list := range m.pods { //drydock:unordered sorted below
		for _, w := range list {
			if w.ended {
				continue
			}
			c := Count{Pod: w.pod, Container: w.container.Name, Type: w.probeType.String()}
			for r, n := range w.told {
				c.Results[r] = uint64(n)
			}
			if w.parked != 0 && w.runs {
				c.Results[results.Success] += uint64(w.missed(now))
			}
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Count) int { return strings.Compare(string(a.Pod.UID), string(b.Pod.UID)) })
	return out
}

// StatusView shows the results and workers to status generation.
type StatusView struct{ m *Manager }

// ForStatus returns the StatusView.
func (m *Manager) ForStatus() StatusView { return StatusView{m} }

// Startup returns the newest result of a container's startup probe.
func (v StatusView) Startup(id kubecontainer.ContainerID) (success, known bool) {
	r, ok := v.m.Startup.Get(id.ID)
	return r == results.Success, ok
}

// Readiness returns the newest result of a container's readiness probe.
func (v StatusView) Readiness(id kubecontainer.ContainerID) (success, known bool) {
	r, ok := v.m.Readiness.Get(id.ID)
	return r == results.Success, ok
}

// HasStartupWorker reports whether a startup probe of that container is run.
func (v StatusView) HasStartupWorker(uid types.UID, container string) bool {
	return v.m.has(uid, container, startup)
}

// HasReadinessWorker reports whether a readiness probe of it is run.
func (v StatusView) HasReadinessWorker(uid types.UID, container string) bool {
	return v.m.has(uid, container, readiness)
}

// TriggerReadiness has the readiness probe run at once.
func (v StatusView) TriggerReadiness(uid types.UID, container string) {
	v.m.TriggerReadiness(uid, container)
}

package sim

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
)

// Created is a container that a kubelet had made.
type Created struct {
	At     time.Time // of the call
	Pod    string    // namespace/name
	Config *runtimeapi.ContainerConfig
}

// watchedRuntime tells of the containers that a kubelet has made.
type watchedRuntime struct {
	sampledRuntime
	rt      *fakecri.Runtime
	n       *Node
	created func(Created)
}

// CreateContainer implements the CRI.
func (r watchedRuntime) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, of *runtimeapi.PodSandboxConfig) (string, error) {
	at := r.n.l.Now()
	id, err := r.sampledRuntime.CreateContainer(ctx, sandbox, config, of)
	if err == nil {
		r.tell(at, sandbox, config)
	}
	return id, err
}

// CreateContainerOf is what a kubelet calls in its place if it can.
func (r watchedRuntime) CreateContainerOf(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig) (string, error) {
	at := r.n.l.Now()
	id, err := r.sampledRuntime.CreateContainerOf(ctx, sandbox, config)
	if err == nil {
		r.tell(at, sandbox, config)
	}
	return id, err
}

func (r watchedRuntime) tell(at time.Time, sandbox string, config *runtimeapi.ContainerConfig) {
	for _, s := range r.rt.Sandboxes() {
		if s.ID == sandbox {
			r.created(Created{at, s.Namespace + "/" + s.Pod, config})
		}
	}
}

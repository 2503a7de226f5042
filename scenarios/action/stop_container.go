package action

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/drydock-sim/drydock/fakecri"
)

// StopContainer stops a container behind the kubelet's back, with SIGTERM.
type StopContainer struct{ OnContainer }

// Do sends SIGTERM, which a real runtime follows with SIGKILL after 30 s.
func (a *StopContainer) Do(s Stage) error {
	return a.act(s, "stop", func(rt *fakecri.Runtime, pod, c string) error { return rt.SignalContainerOutside(pod, c, 15) }, func(ctx context.Context, rt internalapi.RuntimeService, id string) error {
		return rt.StopContainer(ctx, id, 30)
	})
}

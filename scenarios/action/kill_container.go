package action

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/drydock-sim/drydock/fakecri"
)

// KillContainer kills a container behind the kubelet's back, with SIGKILL.
type KillContainer struct{ OnContainer }

// Do kills it; the kubelet learns of it by its next relist.
func (a *KillContainer) Do(s Stage) error {
	return a.act(s, "kill", (*fakecri.Runtime).StopContainerOutside, func(ctx context.Context, rt internalapi.RuntimeService, id string) error {
		return rt.StopContainer(ctx, id, 0)
	})
}

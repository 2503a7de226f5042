package action

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/drydock-sim/drydock/fakecri"
)

// RemoveContainer removes a container behind the kubelet's back, as if it had
// never been there.
type RemoveContainer struct{ OnContainer }

// Do removes it, so that no list has it any more.
func (a *RemoveContainer) Do(s Stage) error {
	return a.act(s, "removal", (*fakecri.Runtime).RemoveContainerOutside, func(ctx context.Context, rt internalapi.RuntimeService, id string) error {
		return rt.RemoveContainer(ctx, id)
	})
}

package action

import (
	"context"
	"errors"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
)

// StopSandbox stops a pod's sandbox behind the kubelet's back.
type StopSandbox struct{ OnSandbox }

// Do stops the sandbox that is ready; earlier ones of the pod are left as they
// are.
func (a *StopSandbox) Do(s Stage) error {
	return behind(s, "stop of the sandbox", a.Node, a.Pod, "",
		func(rt *fakecri.Runtime) error { return rt.StopSandboxOutside(a.Pod) },
		func(ctx context.Context, rt internalapi.RuntimeService) error { return stopReady(ctx, rt, a.Pod) })
}

// stopReady stops a pod's sandbox that is ready. The kubelet may stop it at the same moment, for
// which containerd fails one of the two: a second stop says whether it is stopped.
func stopReady(ctx context.Context, rt internalapi.RuntimeService, pod string) error {
	list, err := rt.ListPodSandbox(ctx, nil)
	if err != nil {
		return err
	}
	for _, b := range list {
		if b.GetMetadata().GetNamespace()+"/"+b.GetMetadata().GetName() != pod || b.State != runtimeapi.PodSandboxState_SANDBOX_READY {
			continue
		}
		if rt.StopPodSandbox(ctx, b.Id) == nil {
			return nil
		}
		return rt.StopPodSandbox(ctx, b.Id)
	}
	return errors.New("there is no such sandbox")
}

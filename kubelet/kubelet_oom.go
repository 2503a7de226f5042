package kubelet

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/oom"
)

// watchOOM has the node's events tell of processes that the kernel kills because
// the machine has no memory left. Its error ends the kubelet.
func (kl *Kubelet) watchOOM() error {
	if kl.opts.OOM == nil {
		return nil
	}
	err := kl.opts.OOM.WatchOOM(func(k oom.Kill) {
		kl.logf("Got sys oom event event=%+v", k)
		if msg, ok := oom.EventMessage(k); ok {
			kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.SystemOOM, msg)
		}
	})
	if err != nil {
		err = fmt.Errorf("failed to start OOM watcher: %w", err)
		kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.KubeletSetupFailed, err.Error())
		return fmt.Errorf("failed to initialize internal modules: %w", err)
	}
	return nil
}

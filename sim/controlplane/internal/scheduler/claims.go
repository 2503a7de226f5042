package scheduler

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// claimsMissing is why a pod must wait for its claims, "" if it need not
// (plugins/volumebinding, PreFilter). Where the volumes are decides nothing here.
func (s *Scheduler) claimsMissing(pod *v1.Pod) (text string, by plugins) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = ephemeral.VolumeClaimName(pod, v)
		default:
			continue
		}
		claim, _ := s.store.Lookup(apiserver.KindPersistentVolumeClaim, pod.Namespace, name).(*v1.PersistentVolumeClaim)
		switch {
		case claim == nil && v.Ephemeral != nil:
			return fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name), volumeBinding
		case claim == nil:
			return fmt.Sprintf("persistentvolumeclaim %q not found", name), volumeBinding
		case claim.Status.Phase == v1.ClaimLost:
			return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name, claim.Spec.VolumeName), volumeBinding
		case claim.DeletionTimestamp != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted", name), volumeBinding
		case claim.Spec.VolumeName == "" || claim.Status.Phase != v1.ClaimBound:
			return "pod has unbound immediate PersistentVolumeClaims", volumeBinding
		}
	}
	return "", 0
}

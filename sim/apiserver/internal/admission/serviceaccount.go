package admission

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
)

const defaultServiceAccount = "default"

// nameServiceAccount is what is left of the plugin ServiceAccount where nobody makes
// accounts: a pod that names none has the default one.
func nameServiceAccount(pod *v1.Pod) {
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return
	}
	pod.Spec.ServiceAccountName = cmp.Or(pod.Spec.ServiceAccountName, defaultServiceAccount)
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
}

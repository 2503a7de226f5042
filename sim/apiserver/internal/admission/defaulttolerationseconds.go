package admission

import v1 "k8s.io/api/core/v1"

// defaultTolerationSeconds is how long a pod tolerates a node that is not
// ready or unreachable, unless it says otherwise.
const defaultTolerationSeconds = int64(300)

// addDefaultTolerations is the plugin DefaultTolerationSeconds
// (plugin/pkg/admission/defaulttolerationseconds).
func addDefaultTolerations(spec *v1.PodSpec) {
	var notReady, unreachable bool
	for _, t := range spec.Tolerations {
		if t.Effect != v1.TaintEffectNoExecute && t.Effect != "" {
			continue
		}
		notReady = notReady || t.Key == v1.TaintNodeNotReady || t.Key == ""
		unreachable = unreachable || t.Key == v1.TaintNodeUnreachable || t.Key == ""
	}
	add := func(key string) {
		spec.Tolerations = append(spec.Tolerations, v1.Toleration{
			Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: new(defaultTolerationSeconds)})
	}
	if !notReady {
		add(v1.TaintNodeNotReady)
	}
	if !unreachable {
		add(v1.TaintNodeUnreachable)
	}
}

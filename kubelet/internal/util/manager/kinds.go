package manager

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// Kind is a kind of objects that pods refer to, in lower case as error texts
// have it.
type Kind string

// The kinds that there are Stores of.
const (
	ConfigMap Kind = "configmap"
	Secret    Kind = "secret"
)

// ConfigMapClient is what a Store of configMaps needs of the API.
type ConfigMapClient interface {
	GetConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	// WatchConfigMap lists and watches one configMap until stop is called or g
	// dies, and reconnects by itself; listed gets nil when there is none.
	WatchConfigMap(g *loop.Group, namespace, name string, listed func(*v1.ConfigMap), event func(watch.EventType, *v1.ConfigMap)) (stop func())
}

// SecretClient is what a Store of secrets needs of the API, with the same rules.
type SecretClient interface {
	GetSecret(ctx context.Context, namespace, name string) (*v1.Secret, error)
	WatchSecret(g *loop.Group, namespace, name string, listed func(*v1.Secret), event func(watch.EventType, *v1.Secret)) (stop func())
}

// NewConfigMaps returns the Store of a node's configMaps; it mirrors upstream's
// pkg/kubelet/configmap.
func NewConfigMaps(client ConfigMapClient, o Options) *Store[*v1.ConfigMap] {
	return newStore(o, source[*v1.ConfigMap]{
		kind: ConfigMap, get: client.GetConfigMap, watch: client.WatchConfigMap,
		immutable: func(c *v1.ConfigMap) bool { return ptr.Deref(c.Immutable, false) },
	})
}

// NewSecrets returns the Store of a node's secrets; it mirrors upstream's
// pkg/kubelet/secret.
func NewSecrets(client SecretClient, o Options) *Store[*v1.Secret] {
	return newStore(o, source[*v1.Secret]{
		kind: Secret, get: client.GetSecret, watch: client.WatchSecret,
		immutable: func(s *v1.Secret) bool { return ptr.Deref(s.Immutable, false) },
	})
}

// visitReferences calls visit with each object that a pod refers to, some
// perhaps more than once. The order decides in which order watches begin: the
// environments of all containers, what images are pulled with, the volumes
// (upstream pkg/api/v1/pod, VisitPodConfigmapNames and VisitPodSecretNames).
func visitReferences(pod *v1.Pod, visit func(kind Kind, name string)) {
	named := func(kind Kind, name string) {
		if name != "" { // validation lets some references be empty
			visit(kind, name)
		}
	}
	spec := &pod.Spec
	for c := range kubecontainer.Containers(spec) {
		visitEnvironment(c.Env, c.EnvFrom, named)
	}
	for i := range spec.ImagePullSecrets {
		named(Secret, spec.ImagePullSecrets[i].Name)
	}
	for i := range spec.Volumes {
		visitVolume(&spec.Volumes[i], named)
	}
}

func visitEnvironment(env []v1.EnvVar, from []v1.EnvFromSource, named func(kind Kind, name string)) {
	for i := range from {
		if r := from[i].ConfigMapRef; r != nil {
			named(ConfigMap, r.Name)
		}
		if r := from[i].SecretRef; r != nil {
			named(Secret, r.Name)
		}
	}
	for i := range env {
		f := env[i].ValueFrom
		if f == nil {
			continue
		}
		if f.ConfigMapKeyRef != nil {
			named(ConfigMap, f.ConfigMapKeyRef.Name)
		}
		if f.SecretKeyRef != nil {
			named(Secret, f.SecretKeyRef.Name)
		}
	}
}

func visitVolume(v *v1.Volume, named func(kind Kind, name string)) {
	switch {
	case v.ConfigMap != nil:
		named(ConfigMap, v.ConfigMap.Name)
	case v.Secret != nil:
		named(Secret, v.Secret.SecretName)
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		named(Secret, v.CSI.NodePublishSecretRef.Name)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			s := &v.Projected.Sources[i]
			if s.ConfigMap != nil {
				named(ConfigMap, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				named(Secret, s.Secret.Name)
			}
		}
	}
}

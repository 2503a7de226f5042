// Package secret gives the kubelet the secrets that its pods refer to. It
// answers to upstream's pkg/kubelet/secret.
package secret

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/util/manager"
)

// Client is what a Manager needs of the API.
type Client interface {
	GetSecret(ctx context.Context, namespace, name string) (*v1.Secret, error)
	// WatchSecret lists and watches one secret until stop is called or g
	// dies, and reconnects by itself; listed gets nil when there is none.
	WatchSecret(g *loop.Group, namespace, name string, listed func(*v1.Secret), event func(watch.EventType, *v1.Secret)) (stop func())
}

// Options are what a Manager is made of.
type Options struct {
	Group  *loop.Group
	Client Client
	// Strategy is configMapAndSecretChangeDetectionStrategy, Resync
	// syncFrequency.
	Strategy kubeletconfig.ResourceChangeDetectionStrategy
	Resync   time.Duration
	// Node returns the node, or nil.
	Node func() *v1.Node
}

// Manager keeps the secrets of registered pods.
type Manager struct {
	store *manager.Store[*v1.Secret]
}

// New returns a Manager without pods.
func New(o Options) *Manager {
	return &Manager{manager.New(manager.Options[*v1.Secret]{
		Group: o.Group, Kind: "secret", Get: o.Client.GetSecret, Watch: o.Client.WatchSecret,
		References: References, Strategy: o.Strategy, Resync: o.Resync, Node: o.Node,
		Immutable: func(s *v1.Secret) bool { return s.Immutable != nil && *s.Immutable },
	})}
}

// GetSecret returns a secret that a registered pod refers to; it is shared
// and must not be written to. It may wait. Errors: manager.Store.Get.
func (m *Manager) GetSecret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return m.store.Get(ctx, namespace, name)
}

// Peek returns what GetSecret would return without waiting; nil for none. ok
// is false if it would wait.
func (m *Manager) Peek(namespace, name string) (s *v1.Secret, ok bool) {
	return m.store.Peek(namespace, name)
}

// RegisterPod notes what a pod refers to, at each sync of it.
func (m *Manager) RegisterPod(pod *v1.Pod) { m.store.RegisterPod(pod) }

// ReplacePod takes over the next version of a pod's object, which refers to the
// same.
func (m *Manager) ReplacePod(old, pod *v1.Pod) { m.store.ReplacePod(old, pod) }

// UnregisterPod forgets a pod.
func (m *Manager) UnregisterPod(pod *v1.Pod) { m.store.UnregisterPod(pod.UID) }

// References calls visit with the name of each secret that a pod refers to.
func References(pod *v1.Pod, visit func(name string)) {
	named := func(name string) {
		if name != "" {
			visit(name)
		}
	}
	container := func(env []v1.EnvVar, from []v1.EnvFromSource) {
		for i := range from {
			if r := from[i].SecretRef; r != nil {
				named(r.Name)
			}
		}
		for i := range env {
			if f := env[i].ValueFrom; f != nil && f.SecretKeyRef != nil {
				named(f.SecretKeyRef.Name)
			}
		}
	}
	spec := &pod.Spec
	for i := range spec.ImagePullSecrets {
		named(spec.ImagePullSecrets[i].Name)
	}
	for i := range spec.InitContainers {
		container(spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom)
	}
	for i := range spec.Containers {
		container(spec.Containers[i].Env, spec.Containers[i].EnvFrom)
	}
	for i := range spec.EphemeralContainers {
		container(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	for i := range spec.Volumes {
		volumeReferences(&spec.Volumes[i], named)
	}
}

func volumeReferences(v *v1.Volume, named func(name string)) {
	switch {
	case v.Secret != nil:
		named(v.Secret.SecretName)
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		named(v.CSI.NodePublishSecretRef.Name)
	case v.Projected != nil:
		for j := range v.Projected.Sources {
			if s := v.Projected.Sources[j].Secret; s != nil {
				named(s.Name)
			}
		}
	}
}

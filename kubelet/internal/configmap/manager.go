// Package configmap gives the kubelet the configMaps that its pods refer to. It
// answers to upstream's pkg/kubelet/configmap.
package configmap

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
	GetConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	// WatchConfigMap lists and watches one configMap until stop is called or g
	// dies, and reconnects by itself; listed gets nil when there is none.
	WatchConfigMap(g *loop.Group, namespace, name string, listed func(*v1.ConfigMap), event func(watch.EventType, *v1.ConfigMap)) (stop func())
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

// Manager keeps the configMaps of registered pods.
type Manager struct {
	store *manager.Store[*v1.ConfigMap]
}

// New returns a Manager without pods.
func New(o Options) *Manager {
	return &Manager{manager.New(manager.Options[*v1.ConfigMap]{
		Group: o.Group, Kind: "configmap", Get: o.Client.GetConfigMap, Watch: o.Client.WatchConfigMap,
		References: References, Strategy: o.Strategy, Resync: o.Resync, Node: o.Node,
		Immutable: func(c *v1.ConfigMap) bool { return c.Immutable != nil && *c.Immutable },
	})}
}

// GetConfigMap returns a configMap that a registered pod refers to; it is shared
// and must not be written to. It may wait. Errors: manager.Store.Get.
func (m *Manager) GetConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return m.store.Get(ctx, namespace, name)
}

// Peek returns what GetConfigMap would return without waiting; nil for none. ok
// is false if it would wait.
func (m *Manager) Peek(namespace, name string) (c *v1.ConfigMap, ok bool) {
	return m.store.Peek(namespace, name)
}

// RegisterPod notes what a pod refers to, at each sync of it.
func (m *Manager) RegisterPod(pod *v1.Pod) { m.store.RegisterPod(pod) }

// ReplacePod takes over the next version of a pod's object, which refers to the
// same.
func (m *Manager) ReplacePod(old, pod *v1.Pod) { m.store.ReplacePod(old, pod) }

// UnregisterPod forgets a pod.
func (m *Manager) UnregisterPod(pod *v1.Pod) { m.store.UnregisterPod(pod.UID) }

// References calls visit with the name of each configMap that a pod refers to.
func References(pod *v1.Pod, visit func(name string)) {
	named := func(name string) {
		if name != "" {
			visit(name)
		}
	}
	container := func(env []v1.EnvVar, from []v1.EnvFromSource) {
		for i := range from {
			if r := from[i].ConfigMapRef; r != nil {
				named(r.Name)
			}
		}
		for i := range env {
			if f := env[i].ValueFrom; f != nil && f.ConfigMapKeyRef != nil {
				named(f.ConfigMapKeyRef.Name)
			}
		}
	}
	spec := &pod.Spec
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
		v := &spec.Volumes[i]
		switch {
		case v.ConfigMap != nil:
			named(v.ConfigMap.Name)
		case v.Projected != nil:
			for j := range v.Projected.Sources {
				if c := v.Projected.Sources[j].ConfigMap; c != nil {
					named(c.Name)
				}
			}
		}
	}
}

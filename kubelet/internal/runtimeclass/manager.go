// Package runtimeclass finds the runtime handlers of RuntimeClasses. It mirrors
// upstream's pkg/kubelet/runtimeclass, and differs in that it watches the
// classes from the first pod on that names one, and has that pod wait for the
// list.
package runtimeclass

import (
	"context"

	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Client is what a Manager needs of the API.
type Client interface {
	// WatchRuntimeClasses lists and watches the classes until stop is called
	// or g dies, and reconnects by itself.
	WatchRuntimeClasses(g *loop.Group, listed func([]*nodev1.RuntimeClass), event func(watch.EventType, *nodev1.RuntimeClass)) (stop func())
}

// Manager knows the classes of the cluster.
type Manager struct {
	g       *loop.Group
	client  Client
	classes map[string]*nodev1.RuntimeClass // nil before the watch began
	synced  loop.Event
}

// New returns a Manager, which asks for nothing yet.
func New(g *loop.Group, client Client) *Manager { return &Manager{g: g, client: client} }

// LookupRuntimeHandler returns the handler of the class, "" for no name. It
// waits for the first list of classes. Errors: NotFound, the end of ctx.
func (m *Manager) LookupRuntimeHandler(ctx context.Context, name *string) (string, error) {
	if name == nil || *name == "" {
		return "", nil
	}
	if m.classes == nil {
		m.watch()
	}
	if err := m.synced.Wait(ctx); err != nil {
		return "", err
	}
	c := m.classes[*name]
	if c == nil {
		return "", apierrors.NewNotFound(schema.GroupResource{Group: nodev1.GroupName, Resource: "runtimeclass"}, *name)
	}
	return c.Handler, nil
}

// Handler is the handler of a class if it is known, or else "".
func (m *Manager) Handler(name string) string {
	if c := m.classes[name]; c != nil {
		return c.Handler
	}
	return ""
}

func (m *Manager) watch() {
	m.classes = map[string]*nodev1.RuntimeClass{}
	m.client.WatchRuntimeClasses(m.g, func(list []*nodev1.RuntimeClass) {
		m.classes = make(map[string]*nodev1.RuntimeClass, len(list))
		for _, c := range list {
			m.classes[c.Name] = c
		}
		if !m.synced.Fired() {
			m.synced.Fire()
		}
	}, func(t watch.EventType, c *nodev1.RuntimeClass) {
		if t == watch.Deleted {
			delete(m.classes, c.Name)
			return
		}
		m.classes[c.Name] = c
	})
}

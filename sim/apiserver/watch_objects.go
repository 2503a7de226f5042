package apiserver

import (
	"context"
	"slices"
	"time"

	nodev1 "k8s.io/api/node/v1"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/stats"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// watched is what a new watch lists.
func (h *hub) watched(w *watcher) []Object {
	switch {
	case w.in.Kind == KindPod:
		pods := h.store.ListPodsOnNode(w.name)
		return lists.Map(pods, func(pod *v1.Pod) Object { return pod })
	case w.in.Watch == kind.Whole:
		list, _ := h.store.List(w.in.Kind, "") // the kind is served
		return list
	case w.in.Kind == KindResourceSlice, w.in.Kind == KindPodCertificateRequest:
		list, _ := h.store.List(w.in.Kind, "") // the kind is served
		return slices.DeleteFunc(list, func(o Object) bool { return w.in.NodeName(o) != w.name })
	}
	if o := h.store.Lookup(w.in.Kind, w.namespace, w.name); o != nil {
		return []Object{o}
	}
	return nil
}

// watchID names what is watched.
type watchID struct {
	kind            Kind
	namespace, name string
}

// watchKey is what a watch, or a change, of one object is found by; ok is false
// for kinds that are watched by node. Kinds that are watched whole have one key.
func watchKey(in *kind.Info, namespace, name string) (key watchID, ok bool) {
	switch in.Watch {
	case kind.ByName:
		return watchID{in.Kind, namespace, name}, true
	case kind.Whole:
		return watchID{kind: in.Kind}, true
	}
	return watchID{}, false
}

func (h *hub) indexSubscription(sub *subscription) {
	if key, ok := watchKey(sub.in, sub.namespace, sub.name); ok {
		h.byObject[key] = append(h.byObject[key], sub)
	}
}

func (h *hub) dropFromIndex(sub *subscription) {
	key, ok := watchKey(sub.in, sub.namespace, sub.name)
	if !ok {
		return
	}
	subs := h.byObject[key]
	if i := slices.Index(subs, sub); i >= 0 {
		subs = append(subs[:i:i], subs[i+1:]...)
	}
	if len(subs) == 0 {
		delete(h.byObject, key)
		return
	}
	h.byObject[key] = subs
}

// notifyObject sends a change to those who watch the object.
func (h *hub) notifyObject(c Change, in *kind.Info, t *traffic) {
	key, _ := watchKey(in, c.New.GetNamespace(), c.New.GetName())
	if n := len(h.byObject[key]); n > 0 {
		h.stats.Sent(&t.toNodes, stats.UserKubelet, in.Resource, h.l.UnixNano(), n)
	}
	for _, sub := range h.byObject[key] {
		h.sendAfter(sub, h.flow.FanOut(in.Resource), delivery(sub.w, sub.conn, c.Type, c.New))
	}
}

// groupWatchers are the watches of objects that die with one group.
type groupWatchers struct {
	g    *loop.Group
	live []*watcher
}

// watchObject watches what is named until stop is called or g dies.
func (c *Client) watchObject(g *loop.Group, k Kind, namespace, name string, listed func([]Object), event func(watch.EventType, Object)) (stop func()) {
	return c.startObject(&watcher{c: c, g: g, in: c.kinds.Find(k), namespace: namespace, name: name, listed: listed, event: event})
}

// startObject is watchObject for a watcher that was made.
func (c *Client) startObject(w *watcher) (stop func()) {
	g, set := w.g, c.watchersOf(w.g)
	set.live = append(set.live, w)
	w.begin()
	return func() {
		if w.stopped || g.Dead() {
			return
		}
		w.stopped = true
		w.retry.Stop()
		set.live = slices.DeleteFunc(set.live, func(o *watcher) bool { return o == w })
		w.close()
	}
}

// watchersOf returns the set of g's watches; one hook closes them all.
func (c *Client) watchersOf(g *loop.Group) *groupWatchers {
	for _, s := range c.watchers {
		if s.g == g {
			return s
		}
	}
	set := &groupWatchers{g: g}
	c.watchers = append(c.watchers, set)
	g.OnKill(func() {
		for _, w := range set.live {
			w.close()
		}
		set.live = nil
		c.watchers = slices.DeleteFunc(c.watchers, func(o *groupWatchers) bool { return o == set })
	})
	return set
}

// watchOne is watchObject for an object of type T; listed gets nil when there
// is none.
func watchOne[T Object](c *Client, g *loop.Group, k Kind, namespace, name string, listed func(T), event func(watch.EventType, T)) (stop func()) {
	return c.watchObject(g, k, namespace, name, func(list []Object) {
		var o T
		if len(list) > 0 {
			o = list[0].(T)
		}
		listed(o)
	}, func(t watch.EventType, o Object) { event(t, o.(T)) })
}

// WatchConfigMap lists and watches one configMap until stop is called or g
// dies. listed gets nil when there is none. The callbacks run on g's loop and
// must not wait. After a break it connects again by itself and listed is called
// anew.
func (c *Client) WatchConfigMap(g *loop.Group, namespace, name string, listed func(*v1.ConfigMap), event func(watch.EventType, *v1.ConfigMap)) (stop func()) {
	return watchOne(c, g, KindConfigMap, namespace, name, listed, event)
}

// WatchSecret is WatchConfigMap for a secret.
func (c *Client) WatchSecret(g *loop.Group, namespace, name string, listed func(*v1.Secret), event func(watch.EventType, *v1.Secret)) (stop func()) {
	return watchOne(c, g, KindSecret, namespace, name, listed, event)
}

// WatchServices lists the services of all namespaces, by namespace and name,
// and watches them until stop is called or g dies; otherwise as
// WatchConfigMap.
func (c *Client) WatchServices(g *loop.Group, listed func([]*v1.Service), event func(watch.EventType, *v1.Service)) (stop func()) {
	return c.watchObject(g, KindService, "", "", func(list []Object) {
		services := make([]*v1.Service, len(list))
		for i, o := range list {
			services[i] = o.(*v1.Service)
		}
		listed(services)
	}, func(t watch.EventType, o Object) { event(t, o.(*v1.Service)) })
}

// WatchEndpointSlices is WatchServices for endpoint slices.
func (c *Client) WatchEndpointSlices(g *loop.Group, listed func([]*discoveryv1.EndpointSlice), event func(watch.EventType, *discoveryv1.EndpointSlice)) (stop func()) {
	return c.watchObject(g, KindEndpointSlice, "", "", func(list []Object) {
		slices := make([]*discoveryv1.EndpointSlice, len(list))
		for i, o := range list {
			slices[i] = o.(*discoveryv1.EndpointSlice)
		}
		listed(slices)
	}, func(t watch.EventType, o Object) { event(t, o.(*discoveryv1.EndpointSlice)) })
}

// WatchResourceSlices is WatchPods for what drivers offer on a node, of all drivers.
func (c *Client) WatchResourceSlices(g *loop.Group, nodeName string, listed func([]*resourcev1.ResourceSlice), event func(watch.EventType, *resourcev1.ResourceSlice)) {
	c.watch(g, KindResourceSlice, nodeName, func(list []Object) {
		listed(lists.Map(list, func(o Object) *resourcev1.ResourceSlice { return o.(*resourcev1.ResourceSlice) }))
	}, func(t watch.EventType, o Object) { event(t, o.(*resourcev1.ResourceSlice)) })
}

// CreateResourceSlice says what a driver offers.
func (c *Client) CreateResourceSlice(ctx context.Context, slice *resourcev1.ResourceSlice) (*resourcev1.ResourceSlice, error) {
	return call(ctx, c, wire.Request{Verb: "create", Resource: "resourceslices"}, func(s *store.Store, now time.Time) (*resourcev1.ResourceSlice, error) {
		return as[*resourcev1.ResourceSlice](s.Create(now, slice))
	})
}

// UpdateResourceSlice is Store.Update.
func (c *Client) UpdateResourceSlice(ctx context.Context, slice *resourcev1.ResourceSlice) (*resourcev1.ResourceSlice, error) {
	return call(ctx, c, wire.Request{Verb: "update", Resource: "resourceslices", Name: slice.Name}, func(s *store.Store, now time.Time) (*resourcev1.ResourceSlice, error) {
		return as[*resourcev1.ResourceSlice](s.Update(now, slice, ""))
	})
}

// DeleteResourceSlice is Store.Delete.
func (c *Client) DeleteResourceSlice(ctx context.Context, name string) error {
	_, err := call(ctx, c, wire.Request{Verb: "delete", Resource: "resourceslices", Name: name}, func(s *store.Store, now time.Time) (Object, error) {
		return s.Delete(now, KindResourceSlice, "", name, metav1.DeleteOptions{})
	})
	return err
}

// GetConfigMap returns a configMap. Errors: NotFound.
func (c *Client) GetConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return call(ctx, c, wire.Request{Verb: "get", Resource: "configmaps", Namespace: namespace, Name: name}, func(s *store.Store, _ time.Time) (*v1.ConfigMap, error) {
		return as[*v1.ConfigMap](s.Get(KindConfigMap, namespace, name))
	})
}

// GetSecret returns a secret. Errors: NotFound.
func (c *Client) GetSecret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return call(ctx, c, wire.Request{Verb: "get", Resource: "secrets", Namespace: namespace, Name: name}, func(s *store.Store, _ time.Time) (*v1.Secret, error) {
		return as[*v1.Secret](s.Get(KindSecret, namespace, name))
	})
}

// GetResourceClaim returns a claim of devices. Errors: NotFound.
func (c *Client) GetResourceClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	return call(ctx, c, wire.Request{Verb: "get", Resource: "resourceclaims", Namespace: namespace, Name: name}, func(s *store.Store, _ time.Time) (*resourcev1.ResourceClaim, error) {
		return as[*resourcev1.ResourceClaim](s.Get(KindResourceClaim, namespace, name))
	})
}

// DeleteResourceSlices deletes what drivers offer on a node: of one driver, or of all: "".
func (c *Client) DeleteResourceSlices(ctx context.Context, nodeName, driver string) error {
	_, err := call(ctx, c, wire.Request{Verb: "deletecollection", Resource: "resourceslices"}, func(s *store.Store, now time.Time) (struct{}, error) {
		list, err := s.List(KindResourceSlice, "")
		for _, o := range list {
			spec := &o.(*resourcev1.ResourceSlice).Spec
			if err != nil || spec.NodeName == nil || *spec.NodeName != nodeName || driver != "" && spec.Driver != driver {
				continue
			}
			_, err = s.Delete(now, KindResourceSlice, "", o.GetName(), metav1.DeleteOptions{})
		}
		return struct{}{}, err
	})
	return err
}

// GetPersistentVolumeClaim returns a claim. Errors: NotFound.
func (c *Client) GetPersistentVolumeClaim(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error) {
	r := wire.Request{Verb: "get", Resource: "persistentvolumeclaims", Namespace: namespace, Name: name}
	return callKnown(ctx, c, r, subject{KindPersistentVolumeClaim, namespace, name}, func(s *store.Store) (*v1.PersistentVolumeClaim, error) {
		return as[*v1.PersistentVolumeClaim](s.Get(KindPersistentVolumeClaim, namespace, name))
	})
}

// GetPersistentVolume returns a volume. Errors: NotFound.
func (c *Client) GetPersistentVolume(ctx context.Context, name string) (*v1.PersistentVolume, error) {
	r := wire.Request{Verb: "get", Resource: "persistentvolumes", Name: name}
	return callKnown(ctx, c, r, subject{KindPersistentVolume, "", name}, func(s *store.Store) (*v1.PersistentVolume, error) {
		return as[*v1.PersistentVolume](s.Get(KindPersistentVolume, "", name))
	})
}

// ListServices returns the services of a namespace ("" for all), by namespace
// and name.
func (c *Client) ListServices(ctx context.Context, namespace string) ([]*v1.Service, error) {
	return call(ctx, c, wire.Request{Verb: "list", Resource: "services", Namespace: namespace}, func(s *store.Store, _ time.Time) ([]*v1.Service, error) {
		list, err := s.List(KindService, namespace)
		if err != nil {
			return nil, err
		}
		services := make([]*v1.Service, len(list))
		for i, o := range list {
			services[i] = o.(*v1.Service)
		}
		return services, nil
	})
}

// WatchRuntimeClasses lists the runtime classes by name and watches them until
// stop is called or g dies; otherwise as WatchConfigMap.
func (c *Client) WatchRuntimeClasses(g *loop.Group, listed func([]*nodev1.RuntimeClass), event func(watch.EventType, *nodev1.RuntimeClass)) (stop func()) {
	return c.watchObject(g, KindRuntimeClass, "", "", func(list []Object) {
		classes := make([]*nodev1.RuntimeClass, len(list))
		for i, o := range list {
			classes[i] = o.(*nodev1.RuntimeClass)
		}
		listed(classes)
	}, func(t watch.EventType, o Object) { event(t, o.(*nodev1.RuntimeClass)) })
}

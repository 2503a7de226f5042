package clientgo

import (
	"context"
	"errors"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/drydock-sim/drydock/ground/loop"
)

// WatchPods lists the pods that are bound to the node and watches them until g
// dies. The callbacks run on the loop. After a break that needs a new list,
// listed is called anew; one that doesn't shows nothing.
func (c *Client) WatchPods(g *loop.Group, nodeName string, listed func(pods []*v1.Pod), event func(t watch.EventType, pod *v1.Pod)) {
	pods := c.main.CoreV1().Pods(metav1.NamespaceAll)
	watchObjects(c, g, "pods", fields.OneTermEqualSelector("spec.nodeName", nodeName), lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		watch: pods.Watch,
	}, listed, event)
}

// WatchNode is WatchPods for one node; listed gets nil when there is none.
func (c *Client) WatchNode(g *loop.Group, nodeName string, listed func(node *v1.Node), event func(t watch.EventType, node *v1.Node)) {
	nodes := c.main.CoreV1().Nodes()
	watchObjects(c, g, "node "+nodeName, byName(nodeName), lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
		watch: nodes.Watch,
	}, first(listed), event)
}

// WatchServices is WatchPods for the services of all namespaces, until stop is
// called or g dies.
func (c *Client) WatchServices(g *loop.Group, listed func([]*v1.Service), event func(watch.EventType, *v1.Service)) (stop func()) {
	services := c.main.CoreV1().Services(metav1.NamespaceAll)
	return watchObjects(c, g, "services", fields.Everything(), lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return services.List(ctx, o) },
		watch: services.Watch,
	}, listed, event)
}

// WatchRuntimeClasses is WatchServices for runtime classes.
func (c *Client) WatchRuntimeClasses(g *loop.Group, listed func([]*nodev1.RuntimeClass), event func(watch.EventType, *nodev1.RuntimeClass)) (stop func()) {
	classes := c.main.NodeV1().RuntimeClasses()
	return watchObjects(c, g, "runtimeclasses", fields.Everything(), lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return classes.List(ctx, o) },
		watch: classes.Watch,
	}, listed, event)
}

// WatchConfigMap is WatchServices for one configMap; listed gets nil when there
// is none.
func (c *Client) WatchConfigMap(g *loop.Group, namespace, name string, listed func(*v1.ConfigMap), event func(watch.EventType, *v1.ConfigMap)) (stop func()) {
	maps := c.main.CoreV1().ConfigMaps(namespace)
	return watchObjects(c, g, "configmap "+namespace+"/"+name, byName(name), lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return maps.List(ctx, o) },
		watch: maps.Watch, minTimeout: manyTimeout,
	}, first(listed), event)
}

// WatchSecret is WatchConfigMap for a secret.
func (c *Client) WatchSecret(g *loop.Group, namespace, name string, listed func(*v1.Secret), event func(watch.EventType, *v1.Secret)) (stop func()) {
	secrets := c.main.CoreV1().Secrets(namespace)
	return watchObjects(c, g, "secret "+namespace+"/"+name, byName(name), lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return secrets.List(ctx, o) },
		watch: secrets.Watch, minTimeout: manyTimeout,
	}, first(listed), event)
}

// WatchClusterTrustBundles is WatchServices for bundles of whom to trust.
func (c *Client) WatchClusterTrustBundles(g *loop.Group, listed func([]*certificatesv1beta1.ClusterTrustBundle), event func(watch.EventType, *certificatesv1beta1.ClusterTrustBundle)) (stop func()) {
	bundles := c.main.CertificatesV1beta1().ClusterTrustBundles()
	return watchObjects(c, g, "clustertrustbundles", fields.Everything(), lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return bundles.List(ctx, o) },
		watch: bundles.Watch,
	}, listed, event)
}

// WatchPodCertificateRequests is WatchPods for the requests of the node's kubelet.
func (c *Client) WatchPodCertificateRequests(g *loop.Group, nodeName string, listed func([]*certificatesv1beta1.PodCertificateRequest), event func(watch.EventType, *certificatesv1beta1.PodCertificateRequest)) {
	requests := c.main.CertificatesV1beta1().PodCertificateRequests(metav1.NamespaceAll)
	watchObjects(c, g, "podcertificaterequests", fields.OneTermEqualSelector("spec.nodeName", nodeName), lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return requests.List(ctx, o) },
		watch: requests.Watch,
	}, listed, event)
}

// byName selects the one object of a name.
func byName(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }

// first makes of a callback for one object one for a list.
func first[T any](fn func(*T)) func([]*T) {
	return func(list []*T) {
		if len(list) == 0 {
			fn(nil)
			return
		}
		fn(list[0])
	}
}

// lister is how objects of a kind are listed and watched.
type lister struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// minTimeout is for how long a watch is asked for at least; 0 means client-go's
	// five minutes.
	minTimeout time.Duration
}

// manyTimeout is the least time of watches of which there may be thousands
// (pkg/kubelet/util/manager, watch_based_manager.go).
const manyTimeout = 30 * time.Minute

// watchObjects runs a reflector until stop is called, or g dies.
func watchObjects[T any](c *Client, g *loop.Group, name string, selector fields.Selector, ls lister, listed func([]*T), event func(watch.EventType, *T)) (stop func()) {
	if g.Dead() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(c.watchesOf(g))
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector.String()
			return ls.list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector.String()
			return ls.watch(ctx, o)
		},
	}, c.main)
	f := &feed[T]{ctx: ctx, l: c.l, g: g, listed: listed, event: event}
	r := cache.NewReflectorWithOptions(lw, any(new(T)).(runtime.Object), f, cache.ReflectorOptions{Name: name, MinWatchTimeout: ls.minTimeout})
	go r.RunWithContext(ctx)
	return cancel
}

// watchesOf returns the context of g's watches: one hook ends them all, as
// there can be no end of watches that are started and stopped while g lives.
func (c *Client) watchesOf(g *loop.Group) context.Context {
	if ctx := c.watches[g]; ctx != nil {
		return ctx
	}
	ctx, cancel := context.WithCancel(context.Background())
	if c.watches == nil {
		c.watches = map[*loop.Group]context.Context{}
	}
	c.watches[g] = ctx
	g.OnKill(func() {
		cancel()
		delete(c.watches, g)
	})
	return ctx
}

// feed is the store of a reflector: it keeps nothing and posts what comes, in
// its order, to the loop.
type feed[T any] struct {
	ctx    context.Context
	l      *loop.Loop
	g      *loop.Group
	listed func([]*T)
	event  func(watch.EventType, *T)
}

// errKind would be a mistake of the server's.
var errKind = errors.New("clientgo: the watch delivered an object of another kind")

// post has fn run on the loop, unless the watch has been stopped by then.
func (f *feed[T]) post(fn func()) {
	f.l.Post(func() {
		if f.ctx.Err() == nil && !f.g.Dead() {
			fn()
		}
	})
}

// tell hands an event to the loop.
func (f *feed[T]) tell(t watch.EventType, obj any) error {
	o, ok := obj.(*T)
	if !ok {
		return errKind
	}
	f.post(func() { f.event(t, o) })
	return nil
}

// Add implements cache.ReflectorStore, as the methods below.
func (f *feed[T]) Add(obj any) error { return f.tell(watch.Added, obj) }

// Update is told of a changed object.
func (f *feed[T]) Update(obj any) error { return f.tell(watch.Modified, obj) }

// Delete is told of an object's last state.
func (f *feed[T]) Delete(obj any) error { return f.tell(watch.Deleted, obj) }

// Replace is told of a new list.
func (f *feed[T]) Replace(list []any, _ string) error {
	objs := make([]*T, len(list))
	for i, e := range list {
		o, ok := e.(*T)
		if !ok {
			return errKind
		}
		objs[i] = o
	}
	f.post(func() { f.listed(objs) })
	return nil
}

// Resync does nothing.
func (f *feed[T]) Resync() error { return nil }

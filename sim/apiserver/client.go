package apiserver

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// Client is the API as a node sees it. A call waits on the node's loop for the
// latency both ways; a request that was sent arrives even if its caller dies.
// Errors are API statuses, or *url.Error when no answer came.
type Client struct {
	podCertificates

	srv    *Server // only for closures that run on the server's loop
	server *loop.Loop
	peer   *peer // the same
	kinds  *Kinds
	l      *loop.Loop
	node   string
	opts   Options
	base   uint64

	sends   uint64
	watches uint64
	renewal *renewal  // of the lease
	idle    *exchange // for the next requests
	idles   int
	limiter *rate.Limiter // nil: no limit
	// watchers are those of single objects, by the group that they die with.
	watchers []*groupWatchers
	// told are the objects of which the last answer is true until told otherwise.
	told map[subject]struct{}
	// untold grows when told has lost something.
	untold loop.Version
}

// Node returns the name of the node that the client belongs to.
func (c *Client) Node() string { return c.node }

// tell has fn run on the server's loop after a drawn latency.
func (c *Client) tell(fn func()) {
	c.sends++
	d := c.l.Between(c.opts.LatencyMin, c.opts.LatencyMax, "api/request", c.node, c.sends)
	transmit(c.l, c.server, loop.Hash(0, nil, c.base, c.sends), d, fn)
}

// WatchPods lists the pods whose spec.nodeName is nodeName and watches them
// until g dies. The callbacks run on g's loop and must not wait. After a break
// it connects again by itself and listed is called anew.
func (c *Client) WatchPods(g *loop.Group, nodeName string, listed func(pods []*v1.Pod), event func(t watch.EventType, pod *v1.Pod)) {
	c.watch(g, KindPod, nodeName, func(list []Object) {
		pods := make([]*v1.Pod, len(list))
		for i, o := range list {
			pods[i] = o.(*v1.Pod)
		}
		listed(pods)
	}, func(t watch.EventType, o Object) { event(t, o.(*v1.Pod)) })
}

// WatchNode is WatchPods for one node; listed gets nil when there is none.
func (c *Client) WatchNode(g *loop.Group, nodeName string, listed func(node *v1.Node), event func(t watch.EventType, node *v1.Node)) {
	c.watch(g, KindNode, nodeName, func(list []Object) {
		if len(list) == 0 {
			listed(nil)
			return
		}
		listed(list[0].(*v1.Node))
	}, func(t watch.EventType, o Object) { event(t, o.(*v1.Node)) })
}

// GetPod returns a pod. Errors: NotFound.
func (c *Client) GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	return ask[*v1.Pod](ctx, c, wire.Request{Verb: "get", Resource: "pods", Namespace: namespace, Name: name}, args{}, func(s *store.Store, _ time.Time, r *wire.Request, _ *args) (any, error) {
		return s.Get(KindPod, r.Namespace, r.Name)
	})
}

// CreatePod creates a pod; kubelets create mirror pods.
func (c *Client) CreatePod(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	return call(ctx, c, wire.Request{Verb: "create", Resource: "pods", Namespace: pod.Namespace}, func(s *store.Store, now time.Time) (*v1.Pod, error) {
		return as[*v1.Pod](s.Create(now, pod))
	})
}

// PatchPodStatus is Store.PatchPodStatus. room, if not nil, is a pod that has
// nothing but status in it, which the server may make its own.
func (c *Client) PatchPodStatus(ctx context.Context, namespace, name string, uid types.UID, base, status *v1.PodStatus, room *v1.Pod) (*v1.Pod, error) {
	a := args{uid: uid, base: base, status: status, room: room}
	return ask[*v1.Pod](ctx, c, wire.Request{Verb: "patch", Resource: "pods/status", Namespace: namespace, Name: name}, a, func(s *store.Store, now time.Time, r *wire.Request, a *args) (any, error) {
		return s.PatchPodStatusIn(r.Namespace, r.Name, a.uid, a.base, a.status, a.room)
	})
}

// DeletePod is Store.Delete of a pod.
func (c *Client) DeletePod(ctx context.Context, namespace, name string, opts metav1.DeleteOptions) error {
	_, err := call(ctx, c, wire.Request{Verb: "delete", Resource: "pods", Namespace: namespace, Name: name}, func(s *store.Store, now time.Time) (Object, error) {
		return s.Delete(now, KindPod, namespace, name, opts)
	})
	return err
}

// CreateNode registers a node.
func (c *Client) CreateNode(ctx context.Context, node *v1.Node) (*v1.Node, error) {
	return call(ctx, c, wire.Request{Verb: "create", Resource: "nodes", Heartbeat: true}, func(s *store.Store, now time.Time) (*v1.Node, error) {
		return as[*v1.Node](s.CreateNode(now, node))
	})
}

// GetNode returns a node. Errors: NotFound.
func (c *Client) GetNode(ctx context.Context, name string) (*v1.Node, error) {
	return call(ctx, c, wire.Request{Verb: "get", Resource: "nodes", Name: name, Heartbeat: true}, func(s *store.Store, _ time.Time) (*v1.Node, error) {
		return as[*v1.Node](s.Get(KindNode, "", name))
	})
}

// PatchNode is Store.PatchNode.
func (c *Client) PatchNode(ctx context.Context, name string, base, node *v1.Node) (*v1.Node, error) {
	return call(ctx, c, wire.Request{Verb: "patch", Resource: "nodes/status", Name: name, Heartbeat: true}, func(s *store.Store, now time.Time) (*v1.Node, error) {
		return s.PatchNode(now, name, base, node)
	})
}

// GetLease returns a lease. Errors: NotFound.
func (c *Client) GetLease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	return call(ctx, c, wire.Request{Verb: "get", Resource: "leases", Namespace: namespace, Name: name, Heartbeat: true}, func(s *store.Store, _ time.Time) (*coordinationv1.Lease, error) {
		return as[*coordinationv1.Lease](s.Get(KindLease, namespace, name))
	})
}

// CreateLease creates a lease.
func (c *Client) CreateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return call(ctx, c, wire.Request{Verb: "create", Resource: "leases", Namespace: lease.Namespace, Heartbeat: true}, func(s *store.Store, now time.Time) (*coordinationv1.Lease, error) {
		return as[*coordinationv1.Lease](s.Create(now, lease))
	})
}

// UpdateLease is Store.UpdateLease.
func (c *Client) UpdateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return call(ctx, c, wire.Request{Verb: "update", Resource: "leases", Namespace: lease.Namespace, Name: lease.Name, Heartbeat: true}, func(s *store.Store, now time.Time) (*coordinationv1.Lease, error) {
		return s.UpdateLease(now, lease)
	})
}

// CreateEvent is Store.PostEvent: the event returned is the one given, without
// what the server adds. It is read until there is an answer.
func (c *Client) CreateEvent(ctx context.Context, event *v1.Event) (*v1.Event, error) {
	return ask[*v1.Event](ctx, c, wire.Request{Verb: "create", Resource: "events", Namespace: event.Namespace}, args{event: event}, func(s *store.Store, now time.Time, _ *wire.Request, a *args) (any, error) {
		return a.event, s.PostEvent(now, a.event)
	})
}

// PatchEvent is Store.PatchEvent.
func (c *Client) PatchEvent(ctx context.Context, base, event *v1.Event) (*v1.Event, error) {
	return call(ctx, c, wire.Request{Verb: "patch", Resource: "events", Namespace: event.Namespace, Name: event.Name}, func(s *store.Store, now time.Time) (*v1.Event, error) {
		return s.PatchEvent(now, base, event)
	})
}

// as gives an answer its type.
func as[T Object](o Object, err error) (T, error) {
	if err != nil {
		var zero T
		return zero, err
	}
	return o.(T), nil
}

// SetLimits gives the client a full token bucket, as a new process has: at most
// qps requests per second and burst at once, 0 for client-go's default, a qps
// under 0 for no limit. Calls on nodes and leases (the kubelet's heartbeat
// client, whose QPS is -1), watches and events are left out; events have a client
// of their own, whose limits kubelet/record keeps. A new client has no limit.
func (c *Client) SetLimits(qps float64, burst int) {
	c.limiter = wire.NewLimiter(qps, burst)
}

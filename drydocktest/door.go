package drydocktest

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// door is the way of a facade to the API of a cluster in a bubble (facade.Door). What
// happens to requests on their way is the API's to say (apiserver.Remote).
type door struct {
	p   *pump
	api *apiserver.Server
	l   *loop.Loop
	log requestLog
}

func newDoor(p *pump) *door {
	api := p.session.Cluster().API()
	return &door{p: p, api: api, l: api.Loop()}
}

// call is what a transport says of a request, in its context, and is told.
type call struct {
	who, key string
	// stream is set for a watch: it breaks the connection.
	stream func()
	watch  *apiserver.RemoteWatch // of the loop's
	// lost is the error that the client gets in the place of an answer, when its request
	// has been served.
	lost error
}

type callKey struct{}

// errClosed is the answer of a cluster whose test is over.
var errClosed = errors.New("drydocktest: the test is over")

// Do implements facade.Door.
func (d *door) Do(ctx context.Context, fn func()) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return errors.New("drydocktest: a request that is no client's")
	}
	var answer error
	done := make(chan struct{})
	x := &crossing{stamp: time.Now().UnixNano(), who: c.who, key: c.key}
	what := requestOf(ctx)
	x.take = func() {
		d.log.note(x)
		remote := apiserver.RemoteOf(d.api, c.who)
		remote.Send(what, x.stamp, func() {
			if c.stream != nil {
				d.watch(ctx, remote, what, c)
			}
			fn()
		}, func(after time.Duration, err error) {
			d.deliver(after, func() {
				answer = err
				close(done)
			})
		})
	}
	d.p.put(x)
	select {
	case <-done:
		if lost := (*url.Error)(nil); errors.As(answer, &lost) {
			c.lost = lost.Err
		}
		return answer
	case <-ctx.Done():
		return ctx.Err()
	case <-d.p.stopped:
		c.lost = errClosed
		return errClosed
	}
}

// watch begins a watch's connection, which ends with its context.
func (d *door) watch(ctx context.Context, remote *apiserver.Remote, what apiserver.Request, c *call) {
	c.watch = remote.Watch(what.Resource, d.deliver, c.stream)
	context.AfterFunc(ctx, func() {
		d.p.put(&crossing{stamp: time.Now().UnixNano(), who: c.who, key: "end of " + c.key, take: c.watch.End})
	})
}

// Deliver implements facade.Door.
func (d *door) Deliver(ctx context.Context, fn func()) {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.watch != nil {
		c.watch.Deliver(fn)
		return
	}
	d.deliver(time.Duration(d.p.lookahead), fn)
}

// deliver has fn run in the bubble, a time from now on.
func (d *door) deliver(after time.Duration, fn func()) {
	d.p.deliver(d.l.UnixNano()+int64(after), fn)
}

// requestOf is a request as faults see it.
func requestOf(ctx context.Context) apiserver.Request {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || !info.IsResourceRequest {
		return apiserver.Request{Verb: "get", Resource: "/"}
	}
	resource := strings.TrimSuffix(info.Resource+"/"+info.Subresource, "/")
	return apiserver.Request{Verb: info.Verb, Group: info.APIGroup, Resource: resource, Namespace: info.Namespace, Name: info.Name}
}

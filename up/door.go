package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/facade"
)

// door is the way of clients over sockets to the cluster (facade.Door). A request is served
// between two windows of the engine, as soon as it comes: its network takes the time that
// it takes. What faults and the load model do to it is the API's to say (apiserver.Remote).
type door struct {
	pacer *loop.Pacer
	api   *apiserver.Server
	// say takes what whoever runs the cluster is to know.
	say func(text string)
}

// safely runs what a request does. A mistake of the server's there is the request's end,
// not the cluster's, as kube-apiserver's filters have it.
func (d *door) safely(fn func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			d.say(fmt.Sprintf("a request failed by a mistake of Drydock's; the cluster goes on: %v\n%s", v, debug.Stack()))
			err = apierrors.NewInternalError(fmt.Errorf("panic: %v", v))
		}
	}()
	fn()
	return nil
}

// errClosed is the answer of a cluster that has ended.
var errClosed = errors.New("up: the cluster is closed")

// Do implements facade.Door.
func (d *door) Do(ctx context.Context, fn func()) error {
	done := make(chan error, 1)
	if err := d.pacer.On(d.api.Loop(), func() {
		what, ok := requestOf(ctx)
		if !ok {
			done <- d.safely(fn)
			return
		}
		who := askerOf(ctx)
		remote := apiserver.NearRemoteOf(d.api, who.User)
		what.By = who
		var failed error
		remote.Arrive(what, func() {
			if c := connectionOf(ctx); c != nil {
				c.watch = remote.Watch(what.Resource, d.after, c.hangUp)
			}
			failed = d.safely(fn)
		}, func(after time.Duration, err error) {
			d.after(after, func() { done <- cmp.Or(err, failed) })
		})
	}); err != nil {
		return errClosed
	}
	select {
	case err := <-done:
		if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
			return http.ErrAbortHandler // the answer is lost
		}
		return err
	case <-ctx.Done(): // also when the cluster ends
		return ctx.Err()
	}
}

// Deliver implements facade.Door.
func (d *door) Deliver(ctx context.Context, fn func()) {
	if c := connectionOf(ctx); c != nil && c.watch != nil {
		c.watch.Deliver(fn)
		return
	}
	fn()
}

// after has fn run on the API's loop, a time of the cluster's from now on.
func (d *door) after(wait time.Duration, fn func()) {
	if wait <= 0 {
		fn()
		return
	}
	d.api.Loop().Root().After(wait, fn)
}

// connection is that of a watch.
type connection struct {
	hangUp context.CancelFunc
	watch  *apiserver.RemoteWatch // of the loop's
}

// end has a connection forgotten.
func (d *door) end(c *connection) {
	// A cluster that has ended has forgotten it.
	_ = d.pacer.On(d.api.Loop(), func() {
		if c.watch != nil {
			c.watch.End()
		}
	})
}

type connectionKey struct{}

func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// watchable serves watches so that faults can break them.
type watchable struct {
	h    http.Handler
	door *door
}

// ServeHTTP implements http.Handler.
func (s watchable) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if facade.IsWatch(req) {
		c := &connection{}
		ctx, hangUp := context.WithCancel(context.WithValue(req.Context(), connectionKey{}, c))
		c.hangUp = hangUp
		defer func() {
			hangUp()
			s.door.end(c)
		}()
		req = req.WithContext(ctx)
	}
	s.h.ServeHTTP(w, req)
}

// askerOf is who makes a request.
func askerOf(ctx context.Context) *apiserver.Asker {
	if u, ok := request.UserFrom(ctx); ok {
		return &apiserver.Asker{User: u.GetName(), Groups: u.GetGroups()}
	}
	return &apiserver.Asker{}
}

// requestOf is a request as faults and flow control see it, if it is about a resource.
func requestOf(ctx context.Context) (apiserver.Request, bool) {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || !info.IsResourceRequest {
		return apiserver.Request{}, false
	}
	resource := strings.TrimSuffix(info.Resource+"/"+info.Subresource, "/")
	return apiserver.Request{Verb: info.Verb, Group: info.APIGroup, Resource: resource, Namespace: info.Namespace, Name: info.Name}, true
}

package controller

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// NewRecorder returns a started recorder of a component's events. They go by
// the controller's own client, so they take from its QPS, as upstream's. source
// is the events' source: "deployment-controller", "job-controller", ...
func NewRecorder(g *loop.Group, api *apiserver.Component, source string) *record.Recorder {
	r := record.New(record.Options{Loop: g.Loop(), Client: eventClient{api}, Component: source})
	r.Start(g)
	return r
}

// Reference returns what an event says of its object, which the API made.
func Reference(obj apiserver.Object) *v1.ObjectReference {
	version, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return &v1.ObjectReference{
		APIVersion: version, Kind: kind,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
}

// eventClient writes events as requests of a component.
type eventClient struct{ api *apiserver.Component }

// CreateEvent implements record.Client.
func (c eventClient) CreateEvent(ctx context.Context, ev *v1.Event) (*v1.Event, error) {
	err := c.api.Do(ctx, eventRequest("create", ev), func(s *apiserver.Server) error { return s.PostEvent(ev) })
	if err != nil {
		return nil, err
	}
	return ev, nil
}

// PatchEvent implements record.Client: a recurring event's count and last time.
func (c eventClient) PatchEvent(ctx context.Context, base, ev *v1.Event) (made *v1.Event, err error) {
	err = c.api.Do(ctx, eventRequest("patch", ev), func(s *apiserver.Server) (err error) {
		made, err = s.PatchEvent(base, ev)
		return err
	})
	return made, err
}

func eventRequest(verb string, ev *v1.Event) apiserver.Request {
	return apiserver.Request{Verb: verb, Resource: "events", Namespace: ev.Namespace, Name: ev.Name}
}

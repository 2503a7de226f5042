package kinds

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Event is the kind of events. There are more of them than of all else: the store
// keeps them packed, nodes never watch them, and the garbage collector leaves them
// to their time to live.
const Event kind.Kind = "Event"

// event returns the row of Event (pkg/registry/core/event/strategy.go).
func event() *kind.Info {
	return &kind.Info{
		Kind: Event, Meta: kind.MetaLeft, CheckName: path.ValidatePathSegmentName, AnyFinalizer: true, Version: "v1", Resource: "events", ShortNames: []string{"ev"}, CreatesOnUpdate: true, Unwritten: true, Namespaced: true, Uncollected: true,
		Views: []kind.View{eventView()},
		Strategy: &kind.Typed[v1.Event, *v1.Event]{
			Fields: eventFields,
			Reset:  asjson.Event,
			Check:  func(e *v1.Event) field.ErrorList { return validateEventAs(e, "reportingComponent") },
			Entry:  eventEntry,
			Table:  eventColumns(),
		},
	}
}

// eventEntry makes an event a record of the object that it is about. One of
// events.k8s.io has its count in a series and its source in reportingController,
// which kubectl shows in their places.
func eventEntry(n *kind.Notes, c kind.Change, e *v1.Event) {
	if c.Type == watch.Deleted {
		return
	}
	count, source := e.Count, e.Source.Component
	if e.Series != nil {
		count = e.Series.Count
	}
	// One of the two is set: which, tells the API that the event came by.
	source = cmp.Or(source, e.ReportingController)
	o := &e.InvolvedObject
	// A reader looks for what happened to an object, not for the event's own name.
	n.Kind, n.Verb, n.Object = trace.KindEvent, e.Reason, n.Named(o.Kind, o.Namespace, o.Name)
	n.Add("type", e.Type)
	n.Add("message", e.Message)
	n.AddInt("count", int64(count))
	if o.FieldPath != "" {
		n.Add("field", o.FieldPath)
	}
	n.Add("source", source)
}

// eventFields are those of ToSelectableFields (pkg/registry/core/event/strategy.go).
func eventFields(e *v1.Event) selectable.Set {
	o := &e.InvolvedObject
	return selectable.Set{
		"involvedObject.kind": o.Kind, "involvedObject.namespace": o.Namespace, "involvedObject.name": o.Name, "involvedObject.uid": string(o.UID),
		"involvedObject.apiVersion": o.APIVersion, "involvedObject.resourceVersion": o.ResourceVersion, "involvedObject.fieldPath": o.FieldPath,
		"reason": e.Reason, "reportingComponent": e.ReportingController, "source": cmp.Or(e.Source.Component, e.ReportingController), "type": e.Type,
	}
}

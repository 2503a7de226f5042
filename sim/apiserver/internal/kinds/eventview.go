package kinds

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// eventView is events.k8s.io/v1 of events, which are stored as core/v1
// (pkg/apis/events/v1/conversion.go).
func eventView() kind.View {
	return kind.View{
		Group: eventsv1.GroupName, Version: "v1",
		New: func() kind.Object { return &eventsv1.Event{} },
		FromStored: func(o kind.Object) (kind.Object, error) {
			e := o.(*v1.Event)
			out := &eventsv1.Event{
				ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
				Action: e.Action, Reason: e.Reason, Regarding: e.InvolvedObject, Related: e.Related, Note: e.Message, Type: e.Type,
				DeprecatedSource: e.Source, DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count,
			}
			if e.Series != nil {
				out.Series = &eventsv1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
			}
			return out, nil
		},
		ToStored: func(o kind.Object) (kind.Object, error) {
			e := o.(*eventsv1.Event)
			out := &v1.Event{
				ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
				Action: e.Action, Reason: e.Reason, InvolvedObject: e.Regarding, Related: e.Related, Message: e.Note, Type: e.Type,
				Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount,
			}
			if e.Series != nil {
				out.Series = &v1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
			}
			return out, nil
		},
		Labels: map[string]string{
			"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace", "regarding.name": "involvedObject.name",
			"regarding.uid": "involvedObject.uid", "regarding.apiVersion": "involvedObject.apiVersion",
			"regarding.resourceVersion": "involvedObject.resourceVersion", "regarding.fieldPath": "involvedObject.fieldPath",
			"reason": "reason", "reportingController": "reportingComponent", "type": "type",
		},
		Check: func(obj, old kind.Object, _ string) field.ErrorList {
			e := obj.(*v1.Event)
			errs := validateEventAs(e, "reportingController")
			if old == nil {
				return append(errs, validateNewEvent(e)...)
			}
			return append(errs, validateEventUpdate(e, old.(*v1.Event))...)
		},
	}
}

// Limits of what events with a time may say.
const (
	maxEventWord = 128
	maxEventNote = 1024
)

// validateEventAs is legacyValidateEvent (pkg/apis/core/validation/events.go), which
// events pass however they come; reporter is what the field with the reporting
// controller is called there. An event stands beside what it is about. About what has
// no namespace, default holds them, and kube-system those that have a time.
func validateEventAs(e *v1.Event, reporter string) field.ErrorList {
	var errs field.ErrorList
	timed, ns := !e.EventTime.IsZero(), e.InvolvedObject.Namespace
	lone := ns == "" && e.Namespace != metav1.NamespaceDefault && !(timed && e.Namespace == metav1.NamespaceSystem)
	if lone || ns != "" && ns != e.Namespace && !timed {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), ns, "does not match event.namespace"))
	}
	if !timed {
		return errs
	}
	if e.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath(reporter), ""))
	}
	if !fields.PlainLabel(e.ReportingController) { // nearly all are
		errs = append(errs, fields.QualifiedName(e.ReportingController, field.NewPath(reporter))...)
	}
	for _, f := range []struct {
		name, value string
		most        int
	}{{"reportingInstance", e.ReportingInstance, maxEventWord}, {"action", e.Action, maxEventWord}, {"reason", e.Reason, maxEventWord}, {"message", e.Message, maxEventNote}} {
		if f.value == "" && f.name != "message" {
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		}
		if len(f.value) > f.most {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", fmt.Sprintf("can have at most %v characters", f.most)))
		}
	}
	return errs
}

// validateNewEvent is the stricter part of ValidateEventCreate, for who comes by
// events.k8s.io.
func validateNewEvent(e *v1.Event) field.ErrorList {
	errs := validateSeries(e.Series)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != v1.EventTypeNormal && e.Type != v1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", e.Type)))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"firstTimestamp", !e.FirstTimestamp.IsZero()}, {"lastTimestamp", !e.LastTimestamp.IsZero()}, {"count", e.Count != 0}, {"source", e.Source != v1.EventSource{}}} {
		if f.set {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", "needs to be unset"))
		}
	}
	return errs
}

// validateSeries is validateV1EventSeries: one event is none.
func validateSeries(s *v1.EventSeries) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if s.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateEventUpdate is the stricter part of ValidateEventUpdate: only the series
// grows. Times may differ by less than they are written with.
func validateEventUpdate(e, old *v1.Event) field.ErrorList {
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(e.Series, old.Series) {
		errs = validateSeries(e.Series)
	}
	same := e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond))
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"involvedObject", e.InvolvedObject, old.InvolvedObject}, {"reason", e.Reason, old.Reason}, {"message", e.Message, old.Message},
		{"source", e.Source, old.Source}, {"firstTimestamp", e.FirstTimestamp, old.FirstTimestamp}, {"lastTimestamp", e.LastTimestamp, old.LastTimestamp},
		{"count", e.Count, old.Count}, {"reason", e.Reason, old.Reason}, {"type", e.Type, old.Type}, {"eventTime", e.EventTime, old.EventTime}, {"action", e.Action, old.Action},
		{"related", e.Related, old.Related}, {"reportingController", e.ReportingController, old.ReportingController}, {"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		if f.name != "eventTime" || !same {
			errs = append(errs, fields.Immutable(f.now, f.was, field.NewPath(f.name))...)
		}
	}
	return errs
}

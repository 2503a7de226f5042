package kinds

import (
	"cmp"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// eventColumns are those of printEvent (pkg/printers/internalversion). Events of
// events.k8s.io have a time where others have two, and a series where others count.
func eventColumns() []kind.Column[v1.Event] {
	type event = v1.Event
	doc := event{}.SwaggerDoc()
	text := func(name, about string, priority int32, of func(e *event) string) kind.Column[event] {
		return kind.Column[event]{Name: name, Type: "string", Description: about, Priority: priority, Cell: func(e *event, _ time.Time) any { return of(e) }}
	}
	name := kind.NameColumn[event]()
	name.Priority = 1
	return []kind.Column[event]{
		{Name: "Last Seen", Type: "string", Description: doc["lastTimestamp"], Cell: func(e *event, now time.Time) any {
			switch {
			case e.Series != nil:
				return kind.Age(metav1.Time(e.Series.LastObservedTime), now)
			case e.LastTimestamp.IsZero():
				return kind.Age(firstSeen(e), now)
			}
			return kind.Age(e.LastTimestamp, now)
		}},
		text("Type", doc["type"], 0, func(e *event) string { return e.Type }),
		text("Reason", doc["reason"], 0, func(e *event) string { return e.Reason }),
		text("Object", doc["involvedObject"], 0, func(e *event) string {
			if e.InvolvedObject.Name == "" {
				return strings.ToLower(e.InvolvedObject.Kind)
			}
			return strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
		}),
		text("Subobject", v1.ObjectReference{}.SwaggerDoc()["fieldPath"], 1, func(e *event) string { return e.InvolvedObject.FieldPath }),
		text("Source", doc["source"], 1, func(e *event) string {
			who, where := cmp.Or(e.Source.Component, e.ReportingController), cmp.Or(e.Source.Host, e.ReportingInstance)
			if where == "" {
				return who
			}
			return who + ", " + where
		}),
		text("Message", doc["message"], 0, func(e *event) string { return strings.TrimSpace(e.Message) }),
		{Name: "First Seen", Type: "string", Description: doc["firstTimestamp"], Priority: 1, Cell: func(e *event, now time.Time) any { return kind.Age(firstSeen(e), now) }},
		{Name: "Count", Type: "string", Description: doc["count"], Priority: 1, Cell: func(e *event, _ time.Time) any {
			if e.Series != nil {
				return int64(e.Series.Count)
			}
			return int64(max(e.Count, 1))
		}},
		name,
	}
}

// firstSeen is when an event, or the first of them, was.
func firstSeen(e *v1.Event) metav1.Time {
	if e.FirstTimestamp.IsZero() {
		return metav1.Time(e.EventTime)
	}
	return e.FirstTimestamp
}

package kind

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Column is one of a table of objects of type T (pkg/printers/internalversion).
type Column[T any] struct {
	// Name is its head: "Ready". Without one there are cells only: upstream's table of
	// IPAddress has such. Type is "string", "integer" and the like.
	Name, Type string
	// Format says more of the type: "name" of the column with the object's name.
	Format      string
	Description string
	// Priority is 0 of what is always shown, more of what only wide tables have.
	Priority int32
	// Cell is what stands in it, of an object at a time of the cluster's.
	Cell func(o *T, now time.Time) any
}

// NameColumn is the column with the object's name.
func NameColumn[T any, P interface {
	*T
	Object
}]() Column[T] {
	return Column[T]{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
		Cell: func(o *T, _ time.Time) any { return P(o).GetName() }}
}

// AgeColumn is the column with the time since the object was made.
func AgeColumn[T any, P interface {
	*T
	Object
}]() Column[T] {
	return Column[T]{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell: func(o *T, now time.Time) any { return Age(P(o).GetCreationTimestamp(), now) }}
}

// Age is how tables say how long ago something was (translateTimestampSince).
func Age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func definitionsOf[T any](columns []Column[T]) []metav1.TableColumnDefinition {
	out := make([]metav1.TableColumnDefinition, 0, len(columns))
	for _, c := range columns {
		if c.Name != "" {
			out = append(out, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority})
		}
	}
	return out
}

// MetaColumns are the columns of a kind that says nothing of its own
// (k8s.io/apiserver, pkg/registry/rest/table.go). MetaCells are their cells.
func MetaColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
	}
}

// MetaCells are an object's name and the time when it was made.
func MetaCells(o Object, _ time.Time) []any {
	return []any{o.GetName(), o.GetCreationTimestamp().UTC().Format(time.RFC3339)}
}

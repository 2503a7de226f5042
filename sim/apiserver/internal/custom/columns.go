package custom

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/jsonpath"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// column is one of a table of custom resources, after their name.
type column struct {
	metav1.TableColumnDefinition
	path *jsonpath.JSONPath
}

// newColumns are those that a version states; if none, the age
// (serveDefaultColumnsIfEmpty).
func newColumns(list []apiextensionsv1.CustomResourceColumnDefinition) ([]column, error) {
	if len(list) == 0 {
		list = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"}}
	}
	out := make([]column, len(list))
	for i, c := range list {
		path, err := newPath(c.JSONPath)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		text := c.Description
		if text == "" {
			text = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		out[i] = column{metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: text, Priority: c.Priority}, path}
	}
	return out, nil
}

// newPath parses a path like .spec.size. What isn't there is no error of its own.
func newPath(text string) (*jsonpath.JSONPath, error) {
	path := jsonpath.New(text)
	if err := path.Parse("{" + text + "}"); err != nil {
		return nil, fmt.Errorf("path %q: %w", text, err)
	}
	return path.AllowMissingKeys(true), nil
}

// find returns what is at a path of an object, of several values the first; nil:
// nothing.
func find(path *jsonpath.JSONPath, o map[string]any) any {
	found, err := path.FindResults(o)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return nil
	}
	return found[0][0].Interface()
}

// cell is what stands in a column (pkg/registry/customresource/tableconvertor).
func (c *column) cell(o map[string]any, now time.Time) any {
	v := find(c.path, o)
	if v == nil {
		return nil
	}
	switch c.Type {
	case "string":
		var text bytes.Buffer
		if c.path.PrintResults(&text, []reflect.Value{reflect.ValueOf(v)}) != nil {
			return nil
		}
		return text.String()
	case "integer":
		switch n := v.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch n := v.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := v.(bool); ok {
			return b
		}
	case "date":
		text, ok := v.(string)
		if !ok {
			return nil
		}
		var t metav1.Time
		if t.UnmarshalQueryParameter(text) != nil {
			return "<invalid>"
		}
		return kind.Age(t, now)
	}
	return nil
}

// Columns implements kind.Strategy.
func (s *strategy) Columns() []metav1.TableColumnDefinition {
	out := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}}
	for _, c := range s.columns {
		out = append(out, c.TableColumnDefinition)
	}
	return out
}

// Cells implements kind.Strategy.
func (s *strategy) Cells(o kind.Object, now time.Time) []any {
	out := []any{o.GetName()}
	for i := range s.columns {
		out = append(out, s.columns[i].cell(content(o), now))
	}
	return out
}

// RowConditions implements kind.Strategy.
func (*strategy) RowConditions(kind.Object) []metav1.TableRowCondition { return nil }

// selectable is a field that selectors name.
type selectable struct {
	name string
	path *jsonpath.JSONPath
}

func newFields(list []apiextensionsv1.SelectableField) ([]selectable, error) {
	var out []selectable
	for _, f := range list {
		path, err := newPath(f.JSONPath)
		if err != nil {
			return nil, fmt.Errorf("selectable field: %w", err)
		}
		out = append(out, selectable{strings.TrimPrefix(f.JSONPath, "."), path})
	}
	return out, nil
}

// SelectableFields implements kind.Strategy.
func (s *strategy) SelectableFields(o kind.Object) fields.Set {
	if len(s.fields) == 0 {
		return nil
	}
	out := fields.Set{}
	for _, f := range s.fields {
		if v := find(f.path, content(o)); v != nil {
			out[f.name] = fmt.Sprint(v)
		} else {
			out[f.name] = ""
		}
	}
	return out
}

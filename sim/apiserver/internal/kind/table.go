package kind

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Table holds the kinds that an API serves. Those of custom resources come and go
// with their definitions; the others are there from the beginning.
type Table struct {
	rows   []*Info
	byType map[reflect.Type]*Info
	custom map[schema.GroupKind]*Info // nil before the first
}

// NewTable returns a table of kinds. What others need comes first (a namespace
// before what is in it), what is asked for most often last: that is the order in
// which lists of everything are made, and Index begins at the end.
func NewTable(rows ...*Info) *Table {
	t := &Table{rows: rows, byType: map[reflect.Type]*Info{}}
	for _, in := range rows {
		in.noun = nounOf(in.Kind)
		t.byType[reflect.TypeOf(in.New())] = in
	}
	return t
}

// Define adds the row of custom resources, whose objects are of type
// *unstructured.Unstructured, in the place of an earlier one of the same kind. It
// returns the row's index.
func (t *Table) Define(in *Info) int {
	in.noun = nounOf(Kind(in.CustomKind))
	if t.custom == nil {
		t.custom = map[schema.GroupKind]*Info{}
	}
	t.custom[in.GroupKind()] = in
	if i := t.Index(in.Kind); i >= 0 {
		t.rows[i] = in
		return i
	}
	t.rows = append(t.rows, in)
	return len(t.rows) - 1
}

// Undefine takes out the row with that index, which custom resources have. The
// indices of rows behind it are one less from then on.
func (t *Table) Undefine(i int) {
	delete(t.custom, t.rows[i].GroupKind())
	t.rows = slices.Delete(t.rows, i, i+1)
}

// All returns the kinds, what others need first. The slice is the table's own.
func (t *Table) All() []*Info { return t.rows }

// Collected returns the kinds whose objects the garbage collector looks after.
func (t *Table) Collected() []Kind {
	var out []Kind
	for _, in := range t.rows {
		if !in.Uncollected {
			out = append(out, in.Kind)
		}
	}
	return out
}

// Uncollected returns the kinds that the garbage collector leaves alone.
func (t *Table) Uncollected() []Kind {
	var out []Kind
	for _, in := range t.rows {
		if in.Uncollected {
			out = append(out, in.Kind)
		}
	}
	return out
}

// Index returns a kind's place in the table; -1 if it is not served. It is asked
// at every write: a few comparisons from the end, where the kinds stand that are
// written most often, cost less than a map.
func (t *Table) Index(k Kind) int {
	i := len(t.rows) - 1
	for i >= 0 && t.rows[i].Kind != k {
		i--
	}
	return i
}

// Find returns a kind's row; nil if it is not served.
func (t *Table) Find(k Kind) *Info {
	if i := t.Index(k); i >= 0 {
		return t.rows[i]
	}
	return nil
}

// FindGroupKind returns the row of what references and manifests name by group and kind,
// built in or custom; nil if it is not served.
func (t *Table) FindGroupKind(gk schema.GroupKind) *Info {
	if in := t.Find(Kind(gk.Kind)); in != nil && in.Group == gk.Group {
		return in
	}
	return t.custom[gk]
}

// Namespaced reports whether objects of a kind live in a namespace. Of a kind that
// is not served, that is taken for granted: most do.
func (t *Table) Namespaced(k Kind) bool {
	in := t.Find(k)
	return in == nil || in.Namespaced
}

// Of returns the row of an object's kind, which its Go type tells; nil if the API
// stores no such thing. Objects made in code have no kind written in them, but for
// custom resources.
func (t *Table) Of(obj runtime.Object) *Info {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return t.custom[u.GroupVersionKind().GroupKind()]
	}
	return t.byType[reflect.TypeOf(obj)]
}

// Decode decodes one manifest, YAML or JSON, strictly.
func (t *Table) Decode(manifest []byte) (Object, error) {
	data, err := yaml.YAMLToJSONStrict(manifest)
	if err != nil {
		return nil, err
	}
	var tm metav1.TypeMeta
	if err := json.Unmarshal(data, &tm); err != nil {
		return nil, err
	}
	if tm.Kind == "" {
		return nil, errors.New("kind: Required value")
	}
	if tm.APIVersion == "" {
		return nil, errors.New("apiVersion: Required value")
	}
	in := t.Find(Kind(tm.Kind))
	if in == nil {
		return nil, fmt.Errorf("kind: no kind %q is served", tm.Kind)
	}
	if want := in.APIVersion(); tm.APIVersion != want {
		return nil, fmt.Errorf("apiVersion: %s is served in %q, not in %q", tm.Kind, want, tm.APIVersion)
	}
	obj := in.New()
	if err := DecodeStrictly(data, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// DecodeStrictly decodes JSON; unknown and duplicate fields are errors.
func DecodeStrictly(data []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		return fmt.Errorf("strict decoding error: %w", errors.Join(strict...))
	}
	return nil
}

// Validate defaults and validates a copy of a manifest without a cluster: what
// Create would refuse for the manifest's own sake, or nothing would act on, is an error
// that names the fields.
func (t *Table) Validate(obj Object) error {
	in := t.Of(obj)
	if in == nil {
		return fmt.Errorf("no kind is served for %T", obj)
	}
	c := obj.DeepCopyObject().(Object)
	if in.Namespaced && c.GetNamespace() == "" {
		c.SetNamespace(metav1.NamespaceDefault)
	}
	if c.GetName() == "" && c.GetGenerateName() != "" {
		c.SetName(c.GetGenerateName() + "xxxxx")
	}
	in.SetDefaults(c)
	in.UseUID(c, c.GetUID())
	in.Complete(c)
	if errs := append(in.WithMeta(c, in.Validate(c, false)), in.Unsimulated(c)...); len(errs) > 0 {
		return apierrors.NewInvalid(in.GroupKind(), c.GetName(), errs)
	}
	return nil
}

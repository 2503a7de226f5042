package facade

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// lazySchemas is a TypeConverter that is made when it is first asked: client-go's
// schemas take a tenth of a second to read, and who only reads objects needs none.
type lazySchemas func() managedfields.TypeConverter

func newLazySchemas(make func() managedfields.TypeConverter) lazySchemas {
	return sync.OnceValue(make)
}

// ObjectToTyped implements managedfields.TypeConverter.
func (l lazySchemas) ObjectToTyped(obj runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return l().ObjectToTyped(obj, o...)
}

// TypedToObject implements managedfields.TypeConverter.
func (l lazySchemas) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	return l().TypedToObject(v)
}

// typedSchemas are those of the kinds with a Go type.
type typedSchemas struct {
	lazySchemas
	known *runtime.Scheme
}

func newTypedSchemas(types *runtime.Scheme) typedSchemas {
	// Its own: a program may have added to the one that client-go shares.
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known))
	return typedSchemas{newLazySchemas(func() managedfields.TypeConverter { return newGoSchemas(applyconfigurations.NewTypeConverter(types)) }), known}
}

// of returns the schemas of a kind. Client-go's have neither definitions of custom
// resources nor APIServices, whose types are deduced: of a list apply then takes the whole.
func (s typedSchemas) of(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	if s.known.Recognizes(gvk) {
		return s.lazySchemas
	}
	return managedfields.NewDeducedTypeConverter()
}

// goSchemas is a TypeConverter that spares objects with a Go type what they don't need. It
// can be left out: the same comes of the one below, for twice the work.
//
//   - An update has both objects checked against their schema, with duplicates allowed. A
//     struct of that type can't fail that, but for keys that lists lack: then the
//     comparison fails that comes next.
//   - For each manager an object is made a map, only to see which version it has. The one
//     that it was made of says so, too.
type goSchemas struct {
	managedfields.TypeConverter

	mu     sync.Mutex // held for moments
	types  map[schema.GroupVersionKind]goType
	recent [4]conversion // the last ones, in turns
	turn   int
}

// goType is the schema of a kind.
type goType struct {
	schema *smdschema.Schema
	ref    smdschema.TypeRef
}

// conversion is what was made of an object.
type conversion struct {
	obj   runtime.Object
	value *typed.TypedValue
}

func newGoSchemas(all managedfields.TypeConverter) *goSchemas {
	return &goSchemas{TypeConverter: all, types: map[schema.GroupVersionKind]goType{}}
}

// ObjectToTyped implements managedfields.TypeConverter.
func (g *goSchemas) ObjectToTyped(obj runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if _, isMap := obj.(runtime.Unstructured); isMap || !slices.Contains(o, typed.AllowDuplicates) {
		return g.TypeConverter.ObjectToTyped(obj, o...)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	g.mu.Lock()
	defer g.mu.Unlock()
	of, ok := g.types[gvk]
	if !ok {
		v, err := g.TypeConverter.ObjectToTyped(obj, o...)
		if err == nil {
			g.types[gvk] = goType{v.Schema(), v.TypeRef()}
		}
		return v, err
	}
	v, err := value.NewValueReflect(obj)
	if err != nil {
		return nil, err
	}
	out := typed.AsTypedUnvalidated(v, of.schema, of.ref)
	g.recent[g.turn] = conversion{obj, out}
	g.turn = (g.turn + 1) % len(g.recent)
	return out, nil
}

// TypedToObject implements managedfields.TypeConverter.
func (g *goSchemas) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	g.mu.Lock()
	i := slices.IndexFunc(g.recent[:], func(c conversion) bool { return c.value == v })
	if i >= 0 {
		defer g.mu.Unlock()
		return g.recent[i].obj, nil
	}
	g.mu.Unlock()
	return g.TypeConverter.TypedToObject(v)
}

package facade

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
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
	return typedSchemas{newLazySchemas(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(types) }), known}
}

// of returns the schemas of a kind. Client-go's have neither definitions of custom
// resources nor APIServices, whose types are deduced: of a list apply then takes the whole.
func (s typedSchemas) of(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	if s.known.Recognizes(gvk) {
		return s.lazySchemas
	}
	return managedfields.NewDeducedTypeConverter()
}

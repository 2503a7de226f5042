package facade

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
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

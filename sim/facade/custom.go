package facade

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// definitionChanged serves the resources of a definition that is established.
func (f *Facade) definitionChanged(c apiserver.Change) {
	defer f.registerAPIs()
	kind := apiserver.Kind(c.New.GetName())
	row := f.o.API.Store().Kinds().Find(kind)
	if c.Type == watch.Deleted {
		f.kinds.drop(kind)
		return
	}
	if row == nil || row.CustomKind == "" {
		return
	}
	k, err := f.customKind(row, c.New.(*apiextensionsv1.CustomResourceDefinition))
	if err != nil {
		return // the row was made of the same definition
	}
	f.kinds.add(k)
}

// customKind serves custom resources.
func (f *Facade) customKind(row *apiserver.KindInfo, def *apiextensionsv1.CustomResourceDefinition) (*servedKind, error) {
	gvk := row.GroupVersionKind()
	k := &servedKind{row: row, storage: &storage{f: f, row: row}, singular: def.Status.AcceptedNames.Singular, definition: def}
	creater, typer := unstructuredscheme.NewUnstructuredCreator(), unstructuredscheme.NewUnstructuredObjectTyper()
	for _, sub := range subresources(row) {
		scope := newScope(k.storage, sub)
		scope.Serializer, scope.ParameterCodec = customSerializer{f.types, creater, typer, rowDefaults{row}}, f.types.parameters
		scope.Creater, scope.Defaulter, scope.Typer = creater, rowDefaults{row}, typer
		scope.Convertor, scope.UnsafeConvertor = fieldLabels{sameVersion{}, row, nil}, sameVersion{}
		var err error
		if scope.FieldManager, err = managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), sameVersion{}, rowDefaults{row}, creater, gvk, gvk.GroupVersion(), sub, resetFields(row, sub)); err != nil {
			return nil, fmt.Errorf("managed fields of %s: %w", def.Name, err)
		}
		k.set(sub, scope)
	}
	return k, nil
}

// rowDefaults are the defaults of a kind's row.
type rowDefaults struct{ row *apiserver.KindInfo }

// Default implements runtime.ObjectDefaulter.
func (d rowDefaults) Default(obj runtime.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		d.row.SetDefaults(u)
	}
}

// sameVersion is an ObjectConvertor between versions of which there is one.
type sameVersion struct{}

// Convert implements runtime.ObjectConvertor.
func (sameVersion) Convert(in, out, _ any) error {
	from, ok1 := in.(runtime.Unstructured)
	to, ok2 := out.(runtime.Unstructured)
	if !ok1 || !ok2 {
		return fmt.Errorf("no conversion from %T to %T", in, out)
	}
	to.SetUnstructuredContent(from.UnstructuredContent())
	return nil
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (sameVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor: fieldLabels stands before it.
func (sameVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

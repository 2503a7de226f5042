package facade

import (
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// definitionChanged serves the resources of a definition that is established, in each of
// its versions.
func (f *Facade) definitionChanged(c apiserver.Change) {
	kind := apiserver.Kind(c.New.GetName())
	if c.Type == watch.Deleted {
		f.kinds.drop(kind)
		f.registerAPIs()
		return
	}
	row := f.o.API.Store().Kinds().Find(kind)
	if row == nil || row.Custom == nil {
		return
	}
	versions := row.Custom.Versions
	types := newLazySchemas(func() managedfields.TypeConverter { return customTypes(versions) })
	var all []*servedKind
	for _, v := range versions {
		k, err := f.customKind(v, c.New.(*apiextensionsv1.CustomResourceDefinition), types)
		if err != nil {
			return // the row was made of the same definition
		}
		all = append(all, k)
	}
	f.kinds.replace(kind, all)
	f.registerAPIs()
}

// customKind serves custom resources in a version.
func (f *Facade) customKind(row *apiserver.KindInfo, def *apiextensionsv1.CustomResourceDefinition, types managedfields.TypeConverter) (*servedKind, error) {
	gvk := row.GroupVersionKind()
	k := &servedKind{row: row, storage: &storage{f: f, row: row}, singular: row.Custom.Singular, definition: def, deprecated: row.Custom.Deprecated}
	creater, typer := unstructuredscheme.NewUnstructuredCreator(), unstructuredscheme.NewUnstructuredObjectTyper()
	for _, sub := range subresources(row) {
		scope := newScope(k.storage, sub)
		scope.Serializer, scope.ParameterCodec = customSerializer{f.types, creater, typer, rowDefaults{row}, row.Custom.Coerce}, f.types.parameters
		scope.Creater, scope.Defaulter, scope.Typer = creater, rowDefaults{row}, typer
		scope.Convertor, scope.UnsafeConvertor = fieldLabels{sameVersion{}, row, nil}, sameVersion{}
		var err error
		if scope.FieldManager, err = managedfields.NewDefaultCRDFieldManager(types, betweenVersions{f.o.API, row.Custom.Versions}, rowDefaults{row}, creater, gvk, gvk.GroupVersion(), sub, resetFields(row, sub)); err != nil {
			return nil, fmt.Errorf("managed fields of %s: %w", def.Name, err)
		}
		k.set(sub, scope)
	}
	var err error
	k.own, err = f.ownKinds(k)
	return k, err
}

// refuseCustom answers a subresource or a method that custom resources don't have, which
// upstream's router doesn't know of.
func (f *Facade) refuseCustom(k *servedKind, info *request.RequestInfo, code int, w http.ResponseWriter, req *http.Request) {
	if code == http.StatusNotFound {
		f.fail(apierrors.NewNotFound(k.row.GroupResource(), info.Name), w, req)
		return
	}
	f.fail(apierrors.NewMethodNotSupported(k.row.GroupResource(), info.Verb), w, req)
}

// checkType refuses a custom resource of another kind than the path says: decoding finds
// nothing wrong with it.
func (s *storage) checkType(obj runtime.Object) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || gvk.Kind == s.row.CustomKind {
		return nil
	}
	return apierrors.NewInvalid(gvk.GroupKind(), u.GetName(), field.ErrorList{field.Invalid(field.NewPath("kind"), gvk.Kind, "must be "+s.row.CustomKind)})
}

// betweenVersions converts custom resources for managed fields: who manages what of an
// object is known in the version that each manager wrote. It is for use on the API's
// loop.
type betweenVersions struct {
	api      *apiserver.Server
	versions []*apiserver.KindInfo
}

// Convert implements runtime.ObjectConvertor.
func (betweenVersions) Convert(in, out, context any) error {
	return sameVersion{}.Convert(in, out, context)
}

// ConvertToVersion implements runtime.ObjectConvertor. What a webhook is yet to convert is
// left as it is: the request is made again then (see storage.Update). So is what was
// written in a version that isn't there any more.
func (b betweenVersions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	for _, row := range b.versions {
		gvk := row.GroupVersionKind()
		if to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk}); !ok || to != gvk || gvk == u.GroupVersionKind() {
			continue
		}
		out, err := b.api.Store().InVersion(u, row)
		switch {
		case errors.Is(err, apiserver.ErrWebhookCalls):
			return in, nil
		case err != nil:
			return nil, err
		}
		return out, nil
	}
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (betweenVersions) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return sameVersion{}.ConvertFieldLabel(gvk, label, value)
}

// rowDefaults are the defaults of a kind's row.
type rowDefaults struct{ row *apiserver.KindInfo }

// Default implements runtime.ObjectDefaulter.
func (d rowDefaults) Default(obj runtime.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok && u.GroupVersionKind() == d.row.GroupVersionKind() {
		d.row.SetDefaults(u)
	}
}

// sameVersion is an ObjectConvertor of custom resources, whose versions differ by no more
// than what they are called: what is stored in another, the storage converts.
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

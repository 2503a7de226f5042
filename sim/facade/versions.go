package facade

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// versions converts objects of a kind between the groups and versions that it is
// served in, and what is no such object as the scheme does. The handlers see stored
// objects; those of a view are what is read and written of them.
type versions struct {
	*runtime.Scheme
	row *apiserver.KindInfo
	// unsafe lets what is converted share memory with what it was.
	unsafe bool
}

// view returns the view that an object's Go type is of; nil: it is no view's.
func (v versions) view(obj runtime.Object) *apiserver.KindView {
	for i := range v.row.Views {
		if reflect.TypeOf(v.row.Views[i].New()) == reflect.TypeOf(obj) {
			return &v.row.Views[i]
		}
	}
	return nil
}

// isStored reports whether an object is of the type that is stored.
func (v versions) isStored(obj runtime.Object) bool {
	return reflect.TypeOf(v.row.New()) == reflect.TypeOf(obj)
}

// kindIn is what the kind is called in a view; nil is what is stored.
func (v versions) kindIn(view *apiserver.KindView) schema.GroupVersionKind {
	if view == nil {
		return v.row.GroupVersionKind()
	}
	return view.GroupVersion().WithKind(v.row.Written())
}

// wanted finds the view that a target asks for; nil is what is stored. False: it asks
// for none of the kind's.
func (v versions) wanted(target runtime.GroupVersioner, list bool) (*apiserver.KindView, bool) {
	asks := func(view *apiserver.KindView) bool {
		gvk := v.kindIn(view)
		if list {
			gvk.Kind += "List"
		}
		got, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
		return ok && got == gvk
	}
	if asks(nil) {
		return nil, true
	}
	for i := range v.row.Views {
		if asks(&v.row.Views[i]) {
			return &v.row.Views[i], true
		}
	}
	return nil, false
}

// convert makes an object of the kind one of a view, or a stored one.
func (v versions) convert(obj apiserver.Object, to *apiserver.KindView) (apiserver.Object, error) {
	var err error
	if from := v.view(obj); from != nil && from != to {
		if obj, err = from.ToStored(obj); err != nil {
			return nil, fmt.Errorf("from %s: %w", from.GroupVersion(), err)
		}
	}
	if to != nil && v.isStored(obj) {
		if obj, err = to.FromStored(obj); err != nil {
			return nil, fmt.Errorf("to %s: %w", to.GroupVersion(), err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(v.kindIn(to))
	return obj, nil
}

// Convert implements runtime.ObjectConvertor.
func (v versions) Convert(in, out, context any) error {
	from, ok1 := in.(apiserver.Object)
	into, ok2 := out.(apiserver.Object)
	if !ok1 || !ok2 || reflect.TypeOf(in) == reflect.TypeOf(out) || !(v.view(from) != nil || v.isStored(from)) || !(v.view(into) != nil || v.isStored(into)) {
		return v.Scheme.Convert(in, out, context)
	}
	obj, err := v.convert(from.DeepCopyObject().(apiserver.Object), v.view(into))
	if err != nil {
		return err
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(obj).Elem())
	return nil
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (v versions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	if u, ok := in.(runtime.Unstructured); ok {
		typed, err := v.Scheme.ConvertToVersion(u, u.GetObjectKind().GroupVersionKind().GroupVersion())
		if err != nil {
			return nil, err
		}
		in = typed
	}
	plain := v.Scheme.ConvertToVersion
	if v.unsafe {
		plain = v.Scheme.UnsafeConvertToVersion
	}
	if meta.IsListType(in) {
		return v.convertList(in, target, plain)
	}
	obj, ok := in.(apiserver.Object)
	if !ok || v.view(obj) == nil && !v.isStored(obj) {
		return plain(in, target)
	}
	to, ok := v.wanted(target, false)
	if !ok || to == v.view(obj) {
		return plain(in, target)
	}
	if !v.unsafe {
		obj = obj.DeepCopyObject().(apiserver.Object)
	}
	return v.convert(obj, to)
}

// convertList converts a list's items.
func (v versions) convertList(in runtime.Object, target runtime.GroupVersioner, plain func(runtime.Object, runtime.GroupVersioner) (runtime.Object, error)) (runtime.Object, error) {
	to, ok := v.wanted(target, true)
	if !ok {
		return plain(in, target)
	}
	gvk := v.kindIn(to)
	gvk.Kind += "List"
	out, err := v.New(gvk)
	if err != nil || reflect.TypeOf(out) == reflect.TypeOf(in) {
		return plain(in, target)
	}
	var items []runtime.Object
	err = meta.EachListItem(in, func(item runtime.Object) error {
		if !v.unsafe {
			item = item.DeepCopyObject()
		}
		obj, err := v.convert(item.(apiserver.Object), to)
		if err != nil {
			return err
		}
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // a list's items name no type
		items = append(items, obj)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := meta.SetList(out, items); err != nil {
		return nil, err
	}
	from, ok1 := in.(metav1.ListInterface)
	into, ok2 := out.(metav1.ListInterface)
	if ok1 && ok2 {
		into.SetResourceVersion(from.GetResourceVersion())
		into.SetContinue(from.GetContinue())
		into.SetRemainingItemCount(from.GetRemainingItemCount())
	}
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out, nil
}

// typedCodecs is the runtime.NegotiatedSerializer of a kind without views.
type typedCodecs struct {
	serializer.CodecFactory
	types *runtime.Scheme
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (c typedCodecs) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return versioning.NewCodec(nil, d, otherVersions{c.types}, c.types, c.types, c.types, nil, gv, c.types.Name())
}

// otherVersions lets pass what says that it is of another version of the same kind, empty:
// handlers refuse it for its version, once they see it.
type otherVersions struct{ *runtime.Scheme }

// Convert implements runtime.ObjectConvertor.
func (o otherVersions) Convert(in, out, context any) error {
	err := o.Scheme.Convert(in, out, context)
	from, ok1 := in.(runtime.Object)
	into, ok2 := out.(runtime.Object)
	if err != nil && ok1 && ok2 && reflect.TypeOf(from).Elem().Name() == reflect.TypeOf(into).Elem().Name() {
		return nil
	}
	return err
}

// versionedCodecs is the runtime.NegotiatedSerializer of a kind with views.
type versionedCodecs struct {
	runtime.NegotiatedSerializer
	versions versions
}

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (c versionedCodecs) EncoderForVersion(e runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	how := c.versions
	how.unsafe = true
	return versioning.NewCodec(e, nil, how, how.Scheme, how.Scheme, how.Scheme, gv, nil, "views of "+string(how.row.Kind))
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (c versionedCodecs) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	how := c.versions
	return versioning.NewCodec(nil, d, how, how.Scheme, how.Scheme, how.Scheme, nil, gv, "views of "+string(how.row.Kind))
}

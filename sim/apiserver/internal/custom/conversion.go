package custom

import (
	"fmt"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// converter returns the Convert of a version.
func (all schemas) converter(gvk schema.GroupVersionKind) func(kind.Object) kind.Object {
	return func(o kind.Object) kind.Object {
		u := o.(*unstructured.Unstructured).DeepCopy()
		u.SetGroupVersionKind(gvk)
		all.complete(u, gvk)
		return u
	}
}

// complete does in place to what was converted what is done to what is read.
func (all schemas) complete(u *unstructured.Unstructured, gvk schema.GroupVersionKind) {
	// What a later schema takes for no object is left to the rules for updates.
	_, _ = prune(u.Object, all[gvk.Version], false)
	defaulting.Default(u.Object, all[gvk.Version])
}

// adopter returns the Adopt of a version: what a webhook answers is to be the same object,
// of whose metadata it has labels and annotations to say (validateConvertedObject and
// restoreObjectMeta of k8s.io/apiextensions-apiserver,
// pkg/apiserver/conversion/webhook_converter.go).
func (all schemas) adopter(gvk schema.GroupVersionKind) func(in, answer kind.Object) (kind.Object, error) {
	return func(in, answer kind.Object) (kind.Object, error) {
		from, out := in.(*unstructured.Unstructured), answer.(*unstructured.Unstructured).DeepCopy()
		invalid := func(format string, args ...any) error {
			return fmt.Errorf("conversion webhook for %v returned %s", from.GroupVersionKind(), fmt.Sprintf(format, args...))
		}
		if have, want := out.GroupVersionKind().GroupVersion(), gvk.GroupVersion(); have != want {
			return nil, invalid("invalid object at index 0: invalid groupVersion (expected %v, received %v)", want, have)
		}
		if have, want := out.GetKind(), from.GetKind(); have != want {
			return nil, invalid("invalid object at index 0: invalid kind (expected %v, received %v)", want, have)
		}
		for _, same := range []struct{ what, want, have string }{
			{"name", from.GetName(), out.GetName()},
			{"namespace", from.GetNamespace(), out.GetNamespace()},
		} {
			if same.want != same.have {
				return nil, invalid("invalid object: must have the same %s: %v != %v", same.what, same.want, same.have)
			}
		}
		if err := adoptMeta(from, out); err != nil {
			return nil, invalid("invalid metadata: %v", err)
		}
		all.complete(out, gvk)
		return out, nil
	}
}

// adoptMeta gives an answer the metadata of what was asked about, but for its own labels
// and annotations.
func adoptMeta(from, out *unstructured.Unstructured) error {
	answered, found := out.Object["metadata"]
	if !found {
		return fmt.Errorf("missing metadata in converted object")
	}
	says, ok := answered.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", answered)
	}
	meta := map[string]any{}
	if have, ok := from.Object["metadata"].(map[string]any); ok {
		meta = runtime.DeepCopyJSON(have)
	}
	out.Object["metadata"] = meta
	for _, name := range []string{"labels", "annotations"} {
		value, found := says[name]
		if !found || value == nil {
			delete(meta, name)
			continue
		}
		list, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
		}
		texts := map[string]string{}
		for k, v := range list { //drydock:unordered any of the mistakes will do
			text, ok := v.(string)
			if !ok {
				return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, k, v)
			}
			texts[k] = text
		}
		was, check := from.GetLabels(), metav1validation.ValidateLabels
		at := field.NewPath("metadata", "labels")
		if name == "annotations" {
			was, check, at = from.GetAnnotations(), apivalidation.ValidateAnnotations, field.NewPath("metadata", "annotation")
		}
		if !maps.Equal(was, texts) {
			if errs := check(texts, at); len(errs) > 0 {
				return errs.ToAggregate()
			}
		}
		meta[name] = list
	}
	return nil
}

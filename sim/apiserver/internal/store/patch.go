package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"sigs.k8s.io/yaml"
)

// Patch applies a user's patch to an object, or to what the subresource sub
// selects of it. data is JSON or YAML; pt is types.StrategicMergePatchType,
// types.MergePatchType or types.JSONPatchType. Errors: NotFound, BadRequest (a
// malformed patch or a field that does not exist), Invalid (also a uid
// that is not the stored one), Conflict (a resourceVersion in the patch that isn't).
func (s *Store) Patch(now time.Time, k kind.Kind, namespace, name string, pt types.PatchType, data []byte, sub string) (kind.Object, error) {
	in := s.kinds.Find(k)
	if in == nil {
		return nil, errNoKind(k)
	}
	if in.Namespaced && namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	old, err := s.Get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	was, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	patch, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patch is neither JSON nor YAML: %v", err))
	}
	is, err := applyPatch(in, was, patch, pt)
	if err != nil {
		return nil, err
	}
	obj := in.New()
	if err := kind.DecodeStrictly(is, obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if obj.GetName() != name || obj.GetNamespace() != old.GetNamespace() {
		return nil, apierrors.NewBadRequest("the name and the namespace of an object cannot be patched")
	}
	return s.update(now, obj, sub, "patch", false)
}

// applyPatch returns the object's JSON with the patch applied. Errors: BadRequest,
// and Invalid for a JSON patch whose tests or paths don't fit, as upstream has it.
func applyPatch(in *kind.Info, was, patch []byte, pt types.PatchType) ([]byte, error) {
	var is []byte
	var err error
	switch pt {
	case types.StrategicMergePatchType:
		is, err = strategicMerge(in, was, patch)
	case types.MergePatchType:
		is, err = jsonpatch.MergePatch(was, patch)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if is, err = p.Apply(was); err != nil {
			return nil, apierrors.NewInvalid(in.GroupKind(), "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(patch), err.Error())})
		}
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unknown patch type %q", pt))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return is, nil
}

// strategicMerge keeps a malformed patch from bringing the process down: the
// library panics on some directives of the wrong type.
func strategicMerge(in *kind.Info, was, patch []byte) (is []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("malformed strategic merge patch: %v", v)
		}
	}()
	return strategicpatch.StrategicMergePatch(was, patch, in.New())
}

// Apply creates an object, or brings the stored one to what the manifest says
// as kubectl apply does: a three-way merge with the manifest applied last, so
// that what a manifest no longer has goes, and what others set stays.
func (s *Store) Apply(now time.Time, obj kind.Object) (kind.Object, error) {
	in := s.rowOf(obj)
	if in == nil {
		return nil, errNotServed(obj)
	}
	if len(obj.GetManagedFields()) > 0 { // the server's, in a manifest that was read from one
		obj = in.Copy(obj)
		obj.SetManagedFields(nil)
	}
	k, ns := in.Kind, obj.GetNamespace()
	switch {
	case !in.Namespaced:
		ns = ""
	case ns == "":
		ns = metav1.NamespaceDefault
	}
	manifest, err := manifestJSON(obj, ns)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	key := objectKey{k, ns, obj.GetName()}
	old := s.Lookup(k, ns, obj.GetName())
	if old == nil {
		made, err := s.Create(now, obj)
		if err == nil {
			s.applied[objectKey{k, ns, made.GetName()}] = manifest
		}
		return made, err
	}
	cur, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	patch, pt, err := threeWay(in, s.applied[key], manifest, cur)
	if err != nil {
		return nil, err
	}
	// The manifest may say less than before and still change nothing.
	if bytes.Equal(patch, []byte("{}")) {
		s.applied[key] = manifest
		return old, nil
	}
	done, err := s.Patch(now, k, ns, obj.GetName(), pt, patch, "")
	if err == nil {
		s.applied[key] = manifest
	}
	return done, err
}

// threeWay is the patch by which a manifest, as it was last applied and as it is now,
// changes what is stored: of custom resources a merge patch, as kubectl has it.
func threeWay(in *kind.Info, was, manifest, cur []byte) ([]byte, types.PatchType, error) {
	if in.CustomKind != "" {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(was, manifest, cur)
		if err != nil {
			return nil, "", apierrors.NewBadRequest(err.Error())
		}
		return patch, types.MergePatchType, nil
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(in.New())
	if err != nil {
		return nil, "", apierrors.NewInternalError(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(was, manifest, cur, meta, true)
	if err != nil {
		return nil, "", apierrors.NewBadRequest(err.Error())
	}
	return patch, types.StrategicMergePatchType, nil
}

// manifestJSON is the manifest without what only the server writes.
func manifestJSON(obj kind.Object, namespace string) ([]byte, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	// These are the server's: a manifest that has them does not mean them.
	delete(m, "status")
	delete(m, "apiVersion")
	delete(m, "kind")
	if meta, ok := m["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
		if namespace != "" {
			meta["namespace"] = namespace
		}
	}
	return json.Marshal(m)
}

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Patch applies a user's patch to an object, or to what the subresource sub
// selects of it. data is JSON or YAML; pt is types.StrategicMergePatchType,
// types.MergePatchType or types.JSONPatchType. Errors: NotFound, BadRequest (a
// malformed patch or a field that does not exist), Invalid, Conflict (a uid or
// resourceVersion in the patch that is not the stored one).
func (s *Store) Patch(now time.Time, k Kind, namespace, name string, pt types.PatchType, data []byte, sub string) (Object, error) {
	if k.Namespaced() && namespace == "" {
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
	is, err := applyPatch(k, was, patch, pt)
	if err != nil {
		return nil, err
	}
	obj := k.info().newObject()
	if err := strictDecode(is, obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if obj.GetName() != name || obj.GetNamespace() != old.GetNamespace() {
		return nil, apierrors.NewBadRequest("the name and the namespace of an object cannot be patched")
	}
	return s.update(now, obj, sub, "patch")
}

func applyPatch(k Kind, was, patch []byte, pt types.PatchType) ([]byte, error) {
	var is []byte
	var err error
	switch pt {
	case types.StrategicMergePatchType:
		is, err = strategicMerge(k, was, patch)
	case types.MergePatchType:
		is, err = jsonpatch.MergePatch(was, patch)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if is, err = p.Apply(was); err != nil {
			return nil, apierrors.NewInvalid(k.info().gk(), "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(patch), err.Error())})
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
func strategicMerge(k Kind, was, patch []byte) (is []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("malformed strategic merge patch: %v", v)
		}
	}()
	return strategicpatch.StrategicMergePatch(was, patch, k.info().newObject())
}

// strictDecode decodes JSON; unknown and duplicate fields are errors.
func strictDecode(data []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		return fmt.Errorf("strict decoding error: %w", errors.Join(strict...))
	}
	return nil
}

// Decode decodes one manifest, YAML or JSON, strictly.
func Decode(manifest []byte) (Object, error) {
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
	for _, in := range infos() {
		if string(in.kind) != tm.Kind {
			continue
		}
		if want := in.gk().WithVersion(in.version).GroupVersion().String(); tm.APIVersion != want {
			return nil, fmt.Errorf("apiVersion: %s is served in %q, not in %q", tm.Kind, want, tm.APIVersion)
		}
		obj := in.newObject()
		if err := strictDecode(data, obj); err != nil {
			return nil, err
		}
		return obj, nil
	}
	return nil, fmt.Errorf("kind: no kind %q is served", tm.Kind)
}

// Validate defaults and validates a copy of a manifest without a cluster: what
// Create would refuse for the manifest's own sake is an error that names the
// fields.
func Validate(obj Object) error {
	k, ok := KindOf(obj)
	if !ok {
		return fmt.Errorf("no kind is served for %T", obj)
	}
	in := k.info()
	c := obj.DeepCopyObject().(Object)
	if in.namespaced && c.GetNamespace() == "" {
		c.SetNamespace(metav1.NamespaceDefault)
	}
	if c.GetName() == "" && c.GetGenerateName() != "" {
		c.SetName(c.GetGenerateName() + "xxxxx")
	}
	setDefaults(c)
	if job, ok := c.(*batchv1.Job); ok {
		generateJobSelector(job, job.UID)
	}
	if errs := append(validateMeta(c, in), validateObject(c, false)...); len(errs) > 0 {
		return apierrors.NewInvalid(in.gk(), c.GetName(), errs)
	}
	return nil
}

// Apply creates an object, or brings the stored one to what the manifest says
// as kubectl apply does: a three-way merge with the manifest applied last, so
// that what a manifest no longer has goes, and what others set stays.
func (s *Store) Apply(now time.Time, obj Object) (Object, error) {
	k, ok := KindOf(obj)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("no kind is served for %T", obj))
	}
	ns := obj.GetNamespace()
	switch {
	case !k.Namespaced():
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
	meta, err := strategicpatch.NewPatchMetaFromStruct(k.info().newObject())
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(s.applied[key], manifest, cur, meta, true)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if bytes.Equal(patch, []byte("{}")) {
		s.applied[key] = manifest
		return old, nil
	}
	done, err := s.Patch(now, k, ns, obj.GetName(), types.StrategicMergePatchType, patch, "")
	if err == nil {
		s.applied[key] = manifest
	}
	return done, err
}

// manifestJSON is the manifest without what only the server writes.
func manifestJSON(obj Object, namespace string) ([]byte, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
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

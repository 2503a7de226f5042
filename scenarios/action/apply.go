package action

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Apply creates objects in the API, or updates what is there. It has exactly one of its fields.
//
// In the timeline: creates objects in the API, or updates what is there, as
// kubectl apply does.
type Apply struct {
	// A file of manifests, relative to the scenario's file; a directory of such files; or - for standard input.
	File string `json:"file,omitempty"`
	// Several such files, in their order.
	Files []string `json:"files,omitempty"`
	// An object, or a list of them, written in place.
	Manifest *value.Manifest `json:"manifest,omitempty"`

	// Objects is what is applied, in its order, wherever it is written.
	// Namespaced objects that name no namespace are in default. They are
	// shared and must not be changed.
	Objects []value.Object `json:"-"`
}

// Check reads the files.
func (a *Apply) Check(at Place) {
	if !value.ExactlyOne(a.File != "", len(a.Files) > 0, a.Manifest != nil) {
		at.Errorf("needs exactly one of file, files and manifest")
		return
	}
	if a.Manifest != nil {
		checkManifest(at.Field("manifest"))
		a.Objects = a.Manifest.Objects
	}
	if a.File != "" {
		a.Objects = value.FileObjects(at.Field("file"), a.File, a.Objects)
	}
	for i, f := range a.Files {
		a.Objects = value.FileObjects(at.Field("files").Index(i), f, a.Objects)
	}
	a.Objects = helmOrder(at, a.Objects)
}

// checkManifest refuses a text, which only a static pod's manifest may be.
func checkManifest(at decode.Place) {
	if at.IsText() {
		at.Errorf("want a Kubernetes object or a list of them, got a text")
	}
}

// Do applies the objects one after another, and ends at the first that the API
// refuses.
func (a *Apply) Do(s Stage) error {
	if err := applyAll(s, a.Objects, false); err != nil {
		return err
	}
	return applyImplied(s, a.Objects)
}

// definitionTime is more than what a definition takes to be established.
const definitionTime = 10 * time.Millisecond

// applyAll applies objects. A custom resource whose definition is among what was applied
// with it waits until that is established, as a user would; one without a definition
// gets one that takes anything.
func applyAll(s Stage, objects []value.Object, waited bool) error {
	defined := false
	for i, o := range objects {
		obj, ok := o.Object.(apiserver.Object)
		if !ok {
			return fmt.Errorf("%s: the API does not serve %T", o.Pos, o.Object)
		}
		row := s.Cluster().Store().Kinds().Of(obj)
		if row == nil {
			if waited {
				return fmt.Errorf("%s: the API serves no %s", o.Pos, obj.GetObjectKind().GroupVersionKind())
			}
			if !defined {
				if _, err := s.Cluster().API().Apply(impliedDefinition(obj)); err != nil {
					return fmt.Errorf("%s: %w", o.Pos, err)
				}
			}
			s.Later(s.Cluster().Now()+definitionTime, func() error {
				if err := applyAll(s, objects[i:], !defined); err != nil {
					s.Fail("", err)
				}
				return nil
			})
			return nil
		}
		if err := applyOne(s, obj, row); err != nil {
			return fmt.Errorf("%s: %w", o.Pos, err)
		}
		waited = false
		defined = defined || row.Kind == apiserver.KindCustomResourceDefinition
	}
	return nil
}

// impliedDefinition is the definition of a custom resource that nobody brought one of:
// objects are kept as they are. Its scope is taken from the object: of those without a
// namespace only kinds called Cluster... are the cluster's.
func impliedDefinition(obj apiserver.Object) apiserver.Object {
	gvk := obj.GetObjectKind().GroupVersionKind()
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	scope := apiextensionsv1.NamespaceScoped
	if obj.GetNamespace() == "" && strings.HasPrefix(gvk.Kind, "Cluster") {
		scope = apiextensionsv1.ClusterScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: string(apiserver.KindCustomResourceDefinition)},
		ObjectMeta: metav1.ObjectMeta{Name: plural.Resource + "." + gvk.Group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, implied by a manifest"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural.Resource, Singular: singular.Resource, Kind: gvk.Kind, ListKind: gvk.Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

// applyOne applies an object of the kind of a row.
func applyOne(s Stage, obj apiserver.Object, row *apiserver.KindInfo) error {
	ns := obj.GetNamespace()
	switch {
	case !row.Namespaced:
		ns = ""
	case ns == "":
		ns = metav1.NamespaceDefault
	}
	if ns != "" && s.Cluster().Store().Lookup(apiserver.KindNamespace, "", ns) == nil {
		s.Warn("namespace " + ns + ": nothing makes it; it is created, as helm install --create-namespace does")
		if _, err := s.Cluster().API().Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			return fmt.Errorf("namespace %s: %w", ns, err)
		}
	}
	name := objectName(row.Written(), ns, obj.GetName())
	note(s, name, "apply")
	if pod, ok := obj.(*v1.Pod); ok {
		warnUnsupported(s, pod)
	}
	for _, what := range row.Dropped(obj) {
		s.Warn(name + ": " + what)
	}
	_, err := s.Cluster().API().Apply(obj)
	return err
}

// Applied are the objects, for who compares scenarios.
func (a *Apply) Applied() []runtime.Object {
	out := make([]runtime.Object, len(a.Objects))
	for i, o := range a.Objects {
		out[i] = o.Object
	}
	return out
}

// Pods counts what comes of the objects.
func (a *Apply) Pods(nodes int) int {
	return lists.Sum(a.Objects, func(o value.Object) int { return podsOf(o.Object, nodes) })
}

// podsOf is how many pods come of an applied object, at least 1 for whatever it
// is.
func podsOf(o runtime.Object, nodes int) int {
	n := int32(1)
	switch o := o.(type) {
	case *appsv1.Deployment:
		n = ptr.Deref(o.Spec.Replicas, 1)
	case *appsv1.ReplicaSet:
		n = ptr.Deref(o.Spec.Replicas, 1)
	case *appsv1.StatefulSet:
		n = ptr.Deref(o.Spec.Replicas, 1)
	case *batchv1.Job:
		n = ptr.Deref(o.Spec.Parallelism, 1)
	case *appsv1.DaemonSet:
		return max(nodes, 1)
	}
	return int(max(n, 1))
}

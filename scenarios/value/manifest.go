package value

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Manifest is Kubernetes objects that are written in place: one or a list. For
// a static pod it may also be a text, which has no Objects.
type Manifest struct {
	// Objects are decoded strictly. They are shared and must not be changed.
	Objects []Object
	// Content is the manifest as a file would have it, in YAML.
	Content []byte
}

// Object is a Kubernetes object and where it is written.
type Object struct {
	runtime.Object
	Pos decode.Position
}

// StaticPods are manifest files, in the order in which they are written.
type StaticPods []StaticPod

// StaticPod is a manifest file of a static pod.
type StaticPod struct {
	File     string
	Manifest Manifest
}

// ListKind is the kind that stands for its items.
const ListKind = "List"

// ManifestKind is a kind of object that manifests may have.
type ManifestKind struct {
	APIVersion string
	namespaced bool
	Make       func() runtime.Object
}

// ManifestKinds are the kinds of object that manifests may have, by name: those of
// the API that not only components write.
func ManifestKinds() map[string]ManifestKind {
	out := map[string]ManifestKind{}
	for _, k := range apiserver.NewKindsWith(apiserver.AllGates()).All() {
		if !k.Unwritten {
			out[string(k.Kind)] = ManifestKind{k.GroupVersionKind().GroupVersion().String(), k.Namespaced, func() runtime.Object { return k.New() }}
		}
	}
	return out
}

// Kind names a kind of object that the API serves.
type Kind string

// Values returns the kinds by name, of which a document may name one.
func (Kind) Values() []string {
	var out []string
	for _, k := range apiserver.NewKindsWith(apiserver.AllGates()).All() {
		out = append(out, string(k.Kind))
	}
	slices.Sort(out)
	return out
}

// DecodeYAML decodes objects that are written in place. A text is taken as it is.
func (m *Manifest) DecodeYAML(at decode.Place) bool {
	if _, scalar := at.Scalar(); scalar {
		if s, ok := at.Text(); ok {
			m.Content = []byte(s)
		}
		return true
	}
	m.Objects = Objects(at, nil)
	m.Content = at.YAML()
	return true
}

// Objects decodes the object at a place, or those of a list, strictly, and
// appends them.
func Objects(at decode.Place, to []Object) []Object {
	if !at.IsList() {
		return object(at, to)
	}
	for _, e := range at.Items() {
		to = object(e, to)
	}
	return to
}

// FileObjects decodes the objects of a file that a place names, relative to the
// document's own file, and appends them.
func FileObjects(at decode.Place, name string, to []Object) []Object {
	for _, doc := range at.Documents(name) {
		to = Objects(doc, to)
	}
	return to
}

// object decodes one object, or those of a List, and appends what it is.
func object(at decode.Place, to []Object) []Object {
	if !at.IsMapping() {
		at.Mismatch("a Kubernetes object")
		return to
	}
	kind, ok := header(at, "kind")
	if !ok {
		return to
	}
	if kind == ListKind || strings.HasSuffix(kind, ListKind) && at.Field("items").IsList() {
		return list(at, kind, to)
	}
	if isCustom(at.Field("apiVersion")) {
		return custom(at, to)
	}
	kinds := ManifestKinds()
	k, ok := kinds[kind]
	if !ok {
		names := decode.SortedKeys(kinds)
		at.Field("kind").Refuse("kind %q is none of %s%s", decode.Short(kind), strings.Join(names, ", "), suggest.Suffix(kind, names))
		return to
	}
	version, ok := header(at, "apiVersion")
	if !ok {
		return to
	}
	if old := olderVersion(version, kind); old != nil {
		k = ManifestKind{version, true, old}
	}
	if version != k.APIVersion {
		at.Field("apiVersion").Refuse("the apiVersion of a %s is %s, not %q", kind, k.APIVersion, decode.Short(version))
		return to
	}
	obj, before := k.Make(), at.Errors()
	at.Decode(obj)
	if m, ok := obj.(metav1.Object); ok && k.namespaced && m.GetNamespace() == "" {
		m.SetNamespace(metav1.NamespaceDefault)
	}
	obj = currentVersion(obj)
	dropServers(at, obj)
	// What could not be decoded is not worth validating.
	if at.Errors() == before {
		at.Root().Found(Written{obj})
	}
	return append(to, Object{obj, at.Root().Pos()})
}

// isCustom reports whether an apiVersion is that of custom resources: groups of theirs
// have a dot, and are none of the API's own.
func isCustom(version decode.Place) bool {
	if !version.Written() {
		return false
	}
	text, _ := version.Scalar()
	group, _, ok := strings.Cut(text, "/")
	return ok && strings.Contains(group, ".") && !slices.ContainsFunc(apiserver.NewKindsWith(apiserver.AllGates()).All(), func(k *apiserver.KindInfo) bool { return k.Group == group })
}

// custom decodes a custom resource, whose definition the reader doesn't know: what it
// says otherwise is found when it is applied.
func custom(at decode.Place, to []Object) []Object {
	m, _ := at.Plain().(map[string]any)
	obj := &unstructured.Unstructured{Object: m}
	if obj.GetName() == "" {
		at.Field("metadata").Missing("name")
		return to
	}
	dropServers(at, obj)
	at.Found(Undefined{obj})
	return append(to, Object{obj, at.Root().Pos()})
}

// Written is a decoded object as the reader's Found gets it, for the API's
// validation.
type Written struct{ runtime.Object }

// manifestList is a List (k8s.io/api/core/v1, with objects of any kind).
type manifestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []any `json:"items"` // looked at one by one
}

// list decodes the items of a List, or of one of a kind of its own such as
// ConfigMapList, and appends them.
func list(at decode.Place, kind string, to []Object) []Object {
	if version, ok := header(at, "apiVersion"); ok && kind == ListKind && version != "v1" {
		at.Field("apiVersion").Refuse("the apiVersion of a List is v1, not %q", decode.Short(version))
	}
	at.Decode(&manifestList{})
	for _, e := range at.Field("items").Items() {
		to = object(e, to)
	}
	return to
}

// header returns one of the two fields that say what an object is.
func header(at decode.Place, key string) (string, bool) {
	if to := at.Field(key); to.Written() {
		if text, ok := to.Scalar(); ok && text != "" {
			return text, true
		}
	}
	at.Missing(key)
	return "", false
}

// DecodeYAML decodes a mapping of file names to manifests.
func (s *StaticPods) DecodeYAML(at decode.Place) bool {
	entries, _ := at.Entries("a mapping of file names to manifests")
	for _, e := range entries {
		p := StaticPod{File: e.Name()}
		e.Decode(&p.Manifest)
		*s = append(*s, p)
	}
	return true
}

// CheckStaticPod checks a static pod's file and its manifest, which may be a
// text that is no manifest at all.
func CheckStaticPod(at decode.Place, file string, m *Manifest) {
	if file == "" || strings.ContainsAny(file, "/\x00") || file == "." || file == ".." {
		at.Errorf("%q is no file name", decode.Short(file))
	}
	if len(m.Objects) > 1 {
		at.Errorf("a static pod's manifest has one pod, not %d objects", len(m.Objects))
	}
	for _, o := range m.Objects {
		if _, ok := o.Object.(*v1.Pod); !ok {
			at.Errorf("a static pod's manifest must be a Pod")
		}
	}
}

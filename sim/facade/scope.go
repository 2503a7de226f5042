package facade

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// patchTypes are the patches that kinds with a Go type take.
var patchTypes = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType)}

// maxRequestBytes is upstream's default for a request's body.
const maxRequestBytes = 3 << 20

// servedKind is what serves one kind.
type servedKind struct {
	row     *apiserver.KindInfo
	scope   *handlers.RequestScope
	storage *storage
	// singular is what clients call one object; "" is the kind in lower case.
	singular string
	// definition is that of custom resources.
	definition *apiextensionsv1.CustomResourceDefinition
	// deprecated is what a client is told that uses the kind's version; "": nothing.
	deprecated string
	// subs are the scopes of the subresources through which the object is updated, own
	// those with objects of other kinds.
	subs map[string]*handlers.RequestScope
	own  map[string]*ownKind
	// renews: updates are first looked at by package renewals.
	renews bool
	// virtual is set of kinds of which nothing is stored.
	virtual *virtualKind
}

// hasStatus reports whether a kind has the subresource status.
func hasStatus(row *apiserver.KindInfo) bool {
	return row.PrepareUpdate(row.New(), row.New(), "status")
}

// subresources are those through which a kind's objects are updated, with "" for the
// object itself.
func subresources(row *apiserver.KindInfo) []string {
	list := append([]string{""}, row.Subresources...)
	if hasStatus(row) {
		list = append(list, "status")
	}
	return list
}

// set sets the scope of a subresource.
func (k *servedKind) set(sub string, scope *handlers.RequestScope) {
	if sub == "" {
		k.scope = scope
		return
	}
	if k.subs == nil {
		k.subs = map[string]*handlers.RequestScope{}
	}
	k.subs[sub] = scope
}

// served are the kinds that a facade serves, by resource. The API's loop writes to it
// when definitions come and go, handlers read it.
type served struct {
	mu         sync.RWMutex
	byResource map[schema.GroupVersionResource]*servedKind
	order      []*servedKind
	changes    uint64 // counts what comes and goes
}

func newServed(f *Facade) *served {
	s := &served{byResource: map[schema.GroupVersionResource]*servedKind{}}
	schemas := newTypedSchemas(f.types.scheme)
	f.o.API.Store().UseTypes(schemas)
	for _, row := range f.o.API.Store().Kinds().All() {
		converter := schemas.of(row.GroupVersionKind())
		for _, view := range viewsOf(row) {
			k, err := typedKind(f, row, view, converter)
			if err != nil {
				panic(fmt.Sprintf("facade: %s: %v", row.Kind, err)) // the table names a kind that clients don't know
			}
			s.add(k)
		}
	}
	return s
}

// viewsOf are the views of a kind, after nil for what is stored.
func viewsOf(row *apiserver.KindInfo) []*apiserver.KindView {
	out := []*apiserver.KindView{nil}
	for i := range row.Views {
		out = append(out, &row.Views[i])
	}
	return out
}

// add serves a kind, in the place of what is served under the same name.
func (s *served) add(k *servedKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byResource[k.scope.Resource]; old != nil {
		s.order[slices.Index(s.order, old)] = k
	} else {
		s.order = append(s.order, k)
	}
	s.byResource[k.scope.Resource] = k
	s.changes++
}

// replace serves a kind in these versions only.
func (s *served) replace(kind apiserver.Kind, versions []*servedKind) {
	s.mu.Lock()
	for r, k := range s.byResource {
		if k.row.Kind == kind && !slices.ContainsFunc(versions, func(v *servedKind) bool { return v.scope.Resource == r }) {
			delete(s.byResource, r)
			s.order = slices.DeleteFunc(s.order, func(o *servedKind) bool { return o == k })
		}
	}
	s.mu.Unlock()
	for _, k := range versions {
		s.add(k)
	}
}

// drop ends that a kind is served.
func (s *served) drop(kind apiserver.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.order = slices.DeleteFunc(s.order, func(k *servedKind) bool {
		if k.row.Kind != kind {
			return false
		}
		delete(s.byResource, k.scope.Resource)
		return true
	})
}

// find returns what serves a resource; nil: nothing does.
func (s *served) find(r schema.GroupVersionResource) *servedKind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byResource[r]
}

// all are the kinds that are served, as of so many changes.
func (s *served) all() (kinds []*servedKind, changes uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.order), s.changes
}

// goTypes are the Go types of what is sent and served.
type goTypes struct {
	scheme     *runtime.Scheme
	codecs     serializer.CodecFactory
	parameters runtime.ParameterCodec
}

// newTypes returns the types of what is sent, and of the kinds of a table, which are
// defaulted when they are decoded.
func newTypes(kinds []*apiserver.KindInfo) goTypes {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		utilruntime.Must(add(s)) // types that don't go together are a mistake of the libraries
	}
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	for _, row := range kinds {
		s.AddTypeDefaultingFunc(row.New(), func(obj any) { row.SetDefaults(obj.(apiserver.Object)) })
		for i := range row.Views {
			if v := &row.Views[i]; v.Defaults != nil {
				s.AddTypeDefaultingFunc(v.New(), func(obj any) { v.Defaults(obj.(apiserver.Object)) })
			}
		}
	}
	s.AddTypeDefaultingFunc(&authenticationv1.TokenRequest{}, func(obj any) { apiserver.SetTokenDefaults(obj.(*authenticationv1.TokenRequest)) })
	return goTypes{s, serializer.NewCodecFactory(s), runtime.NewParameterCodec(s)}
}

// newScope is what all kinds tell the library alike: what is missing depends on whether
// their objects have a Go type.
func newScope(store *storage, sub string) *handlers.RequestScope {
	row := store.row
	gvk := versions{row: row}.kindIn(store.view)
	return &handlers.RequestScope{
		Namer:                    handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: !row.Namespaced},
		Authorizer:               authorizerfactory.NewAlwaysAllowAuthorizer(),
		EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		TableConvertor:           store,
		Resource:                 gvk.GroupVersion().WithResource(row.Resource),
		Kind:                     gvk,
		Subresource:              sub,
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		HubGroupVersion:          row.GroupVersionKind().GroupVersion(),
		MaxRequestBodyBytes:      maxRequestBytes,
	}
}

// typedKind serves a kind whose objects have a Go type, in a view or, for nil, as they
// are stored.
func typedKind(f *Facade, row *apiserver.KindInfo, view *apiserver.KindView, converter managedfields.TypeConverter) (*servedKind, error) {
	how := versions{Scheme: f.types.scheme, row: row}
	gvk := how.kindIn(view)
	k := &servedKind{row: row, storage: &storage{f: f, row: row, view: view}, deprecated: f.types.deprecated(gvk)}
	for _, sub := range subresources(row) {
		scope := newScope(k.storage, sub)
		scope.Serializer, scope.ParameterCodec = typedCodecs{f.types.codecs, f.types.scheme}, f.types.parameters
		scope.Creater, scope.Defaulter, scope.Typer = f.types.scheme, f.types.scheme, f.types.scheme
		scope.Convertor, scope.UnsafeConvertor = fieldLabels{f.types.scheme, row, view}, runtime.UnsafeObjectConvertor(f.types.scheme)
		convertor := runtime.ObjectConvertor(f.types.scheme)
		if len(row.Views) > 0 {
			scope.Serializer = versionedCodecs{f.types.codecs, how}
			scope.Convertor, scope.UnsafeConvertor, convertor = fieldLabels{how, row, view}, how, how
		}
		var err error
		if scope.FieldManager, err = managedfields.NewDefaultFieldManager(converter, convertor, f.types.scheme, f.types.scheme, gvk, scope.HubGroupVersion, sub, resetFields(row, sub)); err != nil {
			return nil, fmt.Errorf("managed fields of %s: %w", row.Kind, err)
		}
		k.set(sub, scope)
	}
	k.renews = len(row.Views) == 0 && resetFields(row, "") == nil
	if view != nil { // who wants other subresources asks for what is stored
		return k, nil
	}
	var err error
	k.own, err = f.ownKinds(k)
	return k, err
}

// deprecated says since when a version of a kind is deprecated; "": it isn't.
func (t *goTypes) deprecated(gvk schema.GroupVersionKind) string {
	obj, err := t.scheme.New(gvk)
	if err != nil || !deprecation.IsDeprecated(obj, 1, 36) {
		return ""
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return deprecation.WarningMessage(obj)
}

// resetFields are the fields that a request through a subresource, or the object
// itself, doesn't reach, and so doesn't manage (GetResetFields of upstream's strategies).
func resetFields(row *apiserver.KindInfo, sub string) map[fieldpath.APIVersion]fieldpath.Filter {
	fields := &fieldpath.Set{}
	own, ok := row.ResetFields[sub]
	switch {
	case ok:
		for _, path := range own {
			var parts []any
			for name := range strings.SplitSeq(path, ".") {
				parts = append(parts, name)
			}
			fields.Insert(fieldpath.MakePathOrDie(parts...))
		}
	case !hasStatus(row): // nothing is kept apart
		return nil
	case sub == "status":
		fields.Insert(fieldpath.MakePathOrDie("spec"))
		if path := row.StatusKeeps.Path(); path != nil {
			fields.Insert(pathOf(path))
		}
		if row.Kind == apiserver.KindPod {
			fields.Insert(fieldpath.MakePathOrDie("metadata", "deletionTimestamp"))
		}
	default:
		fields.Insert(fieldpath.MakePathOrDie("status"))
	}
	by := map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(row.APIVersion()): fields}
	for i := range row.Views {
		by[fieldpath.APIVersion(row.Views[i].GroupVersion().String())] = fields
	}
	return fieldpath.NewExcludeFilterSetMap(by)
}

func pathOf(names []string) fieldpath.Path {
	var path fieldpath.Path
	for _, name := range names {
		path = append(path, fieldpath.PathElement{FieldName: &name})
	}
	return path
}

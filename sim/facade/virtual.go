package facade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// virtualKind is a kind of which nothing is stored.
type virtualKind struct {
	create rest.Creater // nil: that can't be
	read   *components  // nil: that can't be
}

// addVirtual serves the kinds of the core group of which nothing is stored.
func (f *Facade) addVirtual() error {
	pods := f.kinds.find(v1.SchemeGroupVersion.WithResource("pods")).storage
	return errors.Join(
		f.serveVirtual(&apiserver.KindInfo{Kind: "Binding", Version: "v1", Resource: "bindings", Namespaced: true},
			func(*storage) virtualKind { return virtualKind{create: &legacyBindings{&bindings{pods}}} }),
		f.serveVirtual(&apiserver.KindInfo{Kind: "ComponentStatus", Version: "v1", Resource: "componentstatuses", ShortNames: []string{"cs"}},
			func(*storage) virtualKind { return virtualKind{read: &components{f: f}} }),
	)
}

// serveVirtual serves a kind of which nothing is stored. make is given a storage for what
// it has to ask of the API.
func (f *Facade) serveVirtual(row *apiserver.KindInfo, make func(*storage) virtualKind) error {
	gvk, types := row.GroupVersionKind(), f.types
	s := &servedKind{row: row, storage: &storage{f: f, row: row}}
	virtual := make(s.storage)
	s.virtual, s.scope = &virtual, newScope(s.storage, "")
	s.scope.TableConvertor = nil
	if virtual.read != nil {
		s.scope.TableConvertor = virtual.read
	}
	s.scope.Serializer, s.scope.ParameterCodec = types.codecs, types.parameters
	s.scope.Creater, s.scope.Defaulter, s.scope.Typer = types.scheme, types.scheme, types.scheme
	s.scope.Convertor, s.scope.UnsafeConvertor = types.scheme, runtime.UnsafeObjectConvertor(types.scheme)
	var err error
	if s.scope.FieldManager, err = managedfields.NewDefaultFieldManager(managedfields.NewDeducedTypeConverter(), types.scheme, types.scheme, types.scheme, gvk, gvk.GroupVersion(), "", nil); err != nil {
		return fmt.Errorf("managed fields of %s: %w", row.Kind, err)
	}
	f.kinds.add(s)
	return nil
}

// handler returns what serves a request; nil: nothing does.
func (k *virtualKind) handler(scope *handlers.RequestScope, info *request.RequestInfo, namespaced bool, method string) http.HandlerFunc {
	switch {
	case info.Subresource != "":
	case k.create != nil && info.Name == "" && method == http.MethodPost && namespaced == (info.Namespace != ""):
		return handlers.CreateResource(k.create, scope, nil)
	case k.read != nil && method == http.MethodGet && info.Verb == "list":
		return handlers.ListResource(k.read, nil, scope, false, 0)
	case k.read != nil && method == http.MethodGet && info.Verb == "get":
		return handlers.GetResource(k.read, scope)
	}
	return nil
}

// verbs are what can be done.
func (k *virtualKind) verbs() metav1.Verbs {
	if k.create != nil {
		return createVerbs
	}
	return metav1.Verbs{"get", "list"}
}

// legacyBindings bind pods by a path of their own (LegacyBindingREST of upstream's
// pkg/registry/core/pod/storage).
type legacyBindings struct{ *bindings }

// Create implements rest.Creater.
func (b *legacyBindings) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return b.bindings.Create(ctx, obj.(*v1.Binding).Name, obj, validate, options)
}

// components tells how the parts of the control plane are (pkg/registry/core/componentstatus):
// of the API's own storage. Of the others it doesn't know.
type components struct{ f *Facade }

// componentNames are in the order in which they are listed.
var componentNames = []string{"controller-manager", "etcd-0", "scheduler"}

// New implements rest.Storage.
func (*components) New() runtime.Object { return &v1.ComponentStatus{} }

// Destroy implements rest.Storage.
func (*components) Destroy() {}

// NewList implements rest.Lister.
func (*components) NewList() runtime.Object { return &v1.ComponentStatusList{} }

// status says how a part is.
func (c *components) status(ctx context.Context, name string) v1.ComponentStatus {
	how := v1.ComponentCondition{Type: v1.ComponentHealthy, Status: v1.ConditionUnknown, Message: "nobody has asked it"}
	if name == "etcd-0" {
		how.Status, how.Message = v1.ConditionTrue, "ok"
		if err := c.f.answers(ctx); err != nil {
			how.Status, how.Message, how.Error = v1.ConditionFalse, "", err.Error()
		}
	}
	return v1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name}, Conditions: []v1.ComponentCondition{how}}
}

// Get implements rest.Getter.
func (c *components) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if !slices.Contains(componentNames, name) {
		return nil, apierrors.NewNotFound(v1.Resource("componentstatus"), name)
	}
	st := c.status(ctx, name)
	return &st, nil
}

// List implements rest.Lister.
func (c *components) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	list, sel := &v1.ComponentStatusList{Items: []v1.ComponentStatus{}}, selectionOf(options)
	for _, name := range componentNames {
		st := c.status(ctx, name)
		if sel.labels.Empty() && (sel.fields.Empty() || sel.fields.Matches(nameField(name))) {
			list.Items = append(list.Items, st)
		}
	}
	return list, nil
}

// nameField is the one field by which parts are selected.
type nameField string

// Has implements fields.Fields.
func (nameField) Has(field string) bool { return field == "metadata.name" }

// Get implements fields.Fields.
func (n nameField) Get(field string) string {
	if field == "metadata.name" {
		return string(n)
	}
	return ""
}

// ConvertToTable implements rest.TableConvertor.
func (*components) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
			{Name: "Status", Type: "string", Description: "Status of the component conditions"},
			{Name: "Message", Type: "string", Description: "Message of the component conditions"},
			{Name: "Error", Type: "string", Description: "Error of the component conditions"},
		}
	}
	add := func(obj runtime.Object) error {
		st, how := obj.(*v1.ComponentStatus), map[v1.ConditionStatus]string{v1.ConditionTrue: "Healthy", v1.ConditionFalse: "Unhealthy"}
		for _, c := range st.Conditions {
			table.Rows = append(table.Rows, metav1.TableRow{
				Cells:  []any{st.Name, cmp.Or(how[c.Status], "Unknown"), c.Message, c.Error},
				Object: runtime.RawExtension{Object: st},
			})
		}
		return nil
	}
	if !meta.IsListType(obj) {
		return table, add(obj)
	}
	return table, meta.EachListItem(obj, add)
}

// elsewhere are subresources that lead out of the API, to the machines that pods run on,
// with their kinds and verbs. They are listed as upstream lists them; a request is told
// that nobody is there.
var elsewhere = map[apiserver.Kind][]metav1.APIResource{
	apiserver.KindPod: {
		{Name: "attach", Kind: "PodAttachOptions", Verbs: streamVerbs}, {Name: "exec", Kind: "PodExecOptions", Verbs: streamVerbs},
		{Name: "portforward", Kind: "PodPortForwardOptions", Verbs: streamVerbs}, {Name: "log", Kind: "Pod", Verbs: metav1.Verbs{"get"}},
		{Name: "proxy", Kind: "PodProxyOptions", Verbs: proxyVerbs},
	},
	apiserver.KindNode:    {{Name: "proxy", Kind: "NodeProxyOptions", Verbs: proxyVerbs}},
	apiserver.KindService: {{Name: "proxy", Kind: "ServiceProxyOptions", Verbs: proxyVerbs}},
}

var (
	streamVerbs = metav1.Verbs{"create", "get"}
	proxyVerbs  = metav1.Verbs{"create", "delete", "get", "patch", "update"}
)

// isElsewhere reports whether a subresource of a kind leads out of the API.
func isElsewhere(kind apiserver.Kind, sub string) bool {
	sub, _, _ = strings.Cut(sub, "/")
	return slices.ContainsFunc(elsewhere[kind], func(r metav1.APIResource) bool { return r.Name == sub })
}

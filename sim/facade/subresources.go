package facade

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// ownKind is a subresource whose objects are of a kind of its own.
type ownKind struct {
	scope *handlers.RequestScope
	// create is what a POST does, scale what is read and updated; nil: that can't be.
	create rest.NamedCreater
	scale  *scaleStorage
}

// handler returns what serves a request; nil: the subresource has no such method.
func (o *ownKind) handler(method string) http.HandlerFunc {
	switch {
	case method == http.MethodPost && o.create != nil:
		return handlers.CreateNamedResource(o.create, o.scope, nil)
	case o.scale == nil:
		return nil
	case method == http.MethodGet:
		return handlers.GetResource(o.scale, o.scope)
	case method == http.MethodPut:
		return handlers.UpdateResource(o.scale, o.scope, nil)
	case method == http.MethodPatch:
		return handlers.PatchResource(o.scale, o.scope, nil, patchTypes)
	}
	return nil
}

// ownKinds are the subresources of a kind whose objects are of other kinds, by name.
func (f *Facade) ownKinds(k *servedKind) (map[string]*ownKind, error) {
	out := map[string]*ownKind{}
	add := func(sub string, gvk schema.GroupVersionKind, o ownKind) error {
		scope := *k.scope
		scope.TableConvertor = rest.NewDefaultTableConvertor(k.row.GroupResource())
		scope.Kind, scope.HubGroupVersion, scope.Subresource = gvk, gvk.GroupVersion(), sub
		scope.Serializer, scope.Creater, scope.Defaulter, scope.Typer = f.types.codecs, f.types.scheme, f.types.scheme, f.types.scheme
		scope.Convertor, scope.UnsafeConvertor = f.types.scheme, runtime.UnsafeObjectConvertor(f.types.scheme)
		var err error
		// client-go's schemas have no Scale: its fields are plain.
		scope.FieldManager, err = managedfields.NewDefaultFieldManager(managedfields.NewDeducedTypeConverter(), f.types.scheme, f.types.scheme, f.types.scheme, gvk, gvk.GroupVersion(), sub, nil)
		if err != nil {
			return fmt.Errorf("managed fields of %s: %w", sub, err)
		}
		o.scope = &scope
		out[sub] = &o
		return nil
	}
	if k.row.Kind == apiserver.KindPod {
		if err := add("binding", v1.SchemeGroupVersion.WithKind("Binding"), ownKind{create: &bindings{k.storage}}); err != nil {
			return nil, err
		}
		if err := add("eviction", policyv1.SchemeGroupVersion.WithKind("Eviction"), ownKind{create: &evictions{k.storage}}); err != nil {
			return nil, err
		}
	}
	if k.row.Kind == apiserver.KindServiceAccount {
		if err := add("token", authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), ownKind{create: &tokens{k.storage}}); err != nil {
			return nil, err
		}
	}
	_, scales := k.row.Scale(k.row.New())
	if scales || k.row.Custom != nil && k.row.Custom.Scale != nil {
		if err := add("scale", autoscalingv1.SchemeGroupVersion.WithKind("Scale"), ownKind{scale: &scaleStorage{k.storage}}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// success is the answer to what makes no object that could be shown.
func success(code int32) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusSuccess, Code: code}
}

// bindings bind pods to nodes (pkg/registry/core/pod/storage, BindingREST).
type bindings struct{ *storage }

// New implements rest.Storage.
func (*bindings) New() runtime.Object { return &v1.Binding{} }

// Create implements rest.NamedCreater.
func (b *bindings) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	binding := obj.(*v1.Binding)
	err := b.do(ctx, func(api *apiserver.Server) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		_, err := b.written(api, options.DryRun, func() (apiserver.Object, error) {
			return api.Bind(request.NamespaceValue(ctx), name, binding.Target.Name, binding.ObjectMeta)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return success(http.StatusCreated), nil
}

// evictions delete pods within their disruption budgets (EvictionREST).
type evictions struct{ *storage }

// New implements rest.Storage.
func (*evictions) New() runtime.Object { return &policyv1.Eviction{} }

// Create implements rest.NamedCreater.
func (e *evictions) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	eviction := obj.(*policyv1.Eviction)
	if eviction.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	var how metav1.DeleteOptions
	if eviction.DeleteOptions != nil {
		how = *eviction.DeleteOptions
	}
	err := e.do(ctx, func(api *apiserver.Server) (err error) {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		perform(api, append(how.DryRun, options.DryRun...), func() { err = api.Evict(request.NamespaceValue(ctx), name, how) })
		return err
	})
	if err != nil {
		return nil, err
	}
	return success(http.StatusCreated), nil
}

// tokens make tokens of service accounts (TokenREST).
type tokens struct{ *storage }

// New implements rest.Storage.
func (*tokens) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate implements
// rest.SubresourceObjectMetaPreserver: a request may name the account's UID.
func (*tokens) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create implements rest.NamedCreater.
func (t *tokens) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (out runtime.Object, err error) {
	req := obj.(*authenticationv1.TokenRequest)
	err = t.do(ctx, func(api *apiserver.Server) (err error) {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		stampFields(req, nil, api.Loop().Now())
		perform(api, options.DryRun, func() {
			var made *authenticationv1.TokenRequest
			if made, err = api.Tokens().Create(request.NamespaceValue(ctx), name, req); err == nil {
				out = made
			}
		})
		return err
	})
	return out, err
}

// scaleStorage is the subresource scale of a workload.
type scaleStorage struct{ *storage }

var _ rest.Patcher = (*scaleStorage)(nil)

// New implements rest.Storage.
func (*scaleStorage) New() runtime.Object { return &autoscalingv1.Scale{} }

// Get implements rest.Getter.
func (s *scaleStorage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (out runtime.Object, err error) {
	err = s.do(ctx, func(api *apiserver.Server) error {
		scale, err := api.GetScale(s.row.Kind, request.NamespaceValue(ctx), name)
		if err == nil && scale.Spec.Replicas == apiserver.UnsetReplicas {
			return apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", s.row.Custom.Scale.Path()))
		}
		out = scale
		return err
	})
	return out, err
}

// Update implements rest.Updater. The managers of the scale's number are the object's.
func (s *scaleStorage) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (out runtime.Object, created bool, err error) {
	err = s.do(ctx, func(api *apiserver.Server) error {
		stored, err := api.Get(s.row.Kind, request.NamespaceValue(ctx), name)
		if err != nil {
			return err
		}
		old, err := api.GetScale(s.row.Kind, request.NamespaceValue(ctx), name)
		if err != nil {
			return err
		}
		managers := managedfields.NewScaleHandler(stored.GetManagedFields(), s.row.GroupVersionKind().GroupVersion(), s.replicas())
		if old.ManagedFields, err = managers.ToSubresource(); err != nil {
			return fmt.Errorf("managed fields: %w", err)
		}
		obj, err := info.UpdatedObject(ctx, old)
		if err != nil {
			return err
		}
		if err := validate(ctx, obj, old); err != nil {
			return err
		}
		scale := obj.DeepCopyObject().(*autoscalingv1.Scale)
		if scale.UID != "" && scale.UID != stored.GetUID() {
			gr := s.row.GroupResource()
			gr.Resource += "/scale"
			return apierrors.NewConflict(gr, name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", scale.UID, stored.GetUID()))
		}
		if scale.ManagedFields, err = managers.ToParent(scale.ManagedFields); err != nil {
			return fmt.Errorf("managed fields: %w", err)
		}
		stampFields(scale, stored, api.Loop().Now())
		perform(api, options.DryRun, func() {
			var made *autoscalingv1.Scale
			if made, err = api.UpdateScale(s.row.Kind, scale); err == nil {
				out = made
			}
		})
		return err
	})
	return out, false, err
}

// replicas says where an object keeps the number that its scale is about.
func (s *scaleStorage) replicas() managedfields.ResourcePathMappings {
	if s.row.Custom == nil {
		return managedfields.ResourcePathMappings{s.row.APIVersion(): fieldpath.MakePathOrDie("spec", "replicas")}
	}
	out := managedfields.ResourcePathMappings{}
	for _, v := range s.row.Custom.Versions {
		if out[v.APIVersion()] = nil; v.Custom.Scale != nil {
			out[v.APIVersion()] = pathOf(v.Custom.Scale.Replicas)
		}
	}
	return out
}

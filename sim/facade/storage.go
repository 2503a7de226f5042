package facade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// storage is one kind, or a subresource of it, as the handlers of k8s.io/apiserver see
// it. Each call crosses to the API's loop once.
type storage struct {
	f           *Facade
	row         *apiserver.KindInfo
	view        *apiserver.KindView // that requests come by; nil: what is stored
	subresource string
}

var (
	_ rest.CreaterUpdater    = (*storage)(nil)
	_ rest.Patcher           = (*storage)(nil)
	_ rest.Lister            = (*storage)(nil)
	_ rest.Watcher           = (*storage)(nil)
	_ rest.GracefulDeleter   = (*storage)(nil)
	_ rest.CollectionDeleter = (*storage)(nil)
)

// sub is the storage of a subresource.
func (s *storage) sub(name string) *storage { return &storage{s.f, s.row, s.view, name} }

// do has fn run on the API's loop, and returns its error or the door's.
func (s *storage) do(ctx context.Context, fn func(api *apiserver.Server) error) error {
	calls := &apiserver.WebhookCalls{}
	if s.f.o.Webhooks == nil {
		calls = nil // nobody asks them
	}
	err := apiserver.ErrWebhookCalls
	for attempt := 0; errors.Is(err, apiserver.ErrWebhookCalls); attempt++ {
		if attempt == maxAttempts {
			return unexplained(errRestless)
		}
		c := &caller{}
		if e := s.f.o.Door.Do(ctx, func() {
			s.f.clock.set(s.f.o.API.Loop().Now())
			s.f.o.API.Calling(c.of(ctx, calls), func() { err = fn(s.f.o.API) })
		}); e != nil {
			if status := apierrors.APIStatus(nil); errors.As(e, &status) {
				return e
			}
			if errors.Is(e, http.ErrAbortHandler) {
				panic(http.ErrAbortHandler)
			}
			return apierrors.NewServerTimeout(s.row.GroupResource(), "request", 1)
		}
		if errors.Is(err, apiserver.ErrWebhookCalls) {
			s.f.callWebhooks(ctx, calls)
			continue
		}
		c.tell(ctx)
	}
	// The handlers hand an error without a status to a handler of the process, which
	// holds the caller up by the wall's time.
	if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
		return unexplained(err)
	}
	return err
}

// unexplained is an error without a reason, as upstream answers one that it doesn't know.
func unexplained(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}}
}

// lend returns an object with a struct of its own, since the libraries write to what
// they are given. What a webhook is to convert is left to shown.
func (s *storage) lend(obj apiserver.Object) runtime.Object {
	if s.row.Custom != nil && obj.GetObjectKind().GroupVersionKind().Version != s.row.Version {
		if s.row.Custom.Hook != nil {
			return obj
		}
		return s.row.Custom.Convert(obj)
	}
	return s.row.Copy(obj)
}

// item is lend for a list, whose items don't name their type unless they have none of
// their own in Go.
func (s *storage) item(obj apiserver.Object) runtime.Object {
	out := s.lend(obj)
	if s.row.CustomKind == "" {
		out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return out
}

// New implements rest.Storage.
func (s *storage) New() runtime.Object { return s.row.New() }

// Destroy implements rest.Storage.
func (s *storage) Destroy() {}

// NewList implements rest.Lister.
func (s *storage) NewList() runtime.Object {
	gvk := s.row.GroupVersionKind()
	gvk.Kind += "List"
	if s.row.CustomKind != "" {
		gvk.Kind = s.row.Custom.List
		list := &unstructured.UnstructuredList{Object: map[string]any{}}
		list.SetGroupVersionKind(gvk)
		list.SetContinue("") // is always said
		return list
	}
	list, err := s.f.types.scheme.New(gvk)
	if err != nil {
		panic(fmt.Sprintf("facade: %v", err)) // every kind has a list
	}
	list.GetObjectKind().SetGroupVersionKind(gvk)
	return list
}

// Get implements rest.Getter.
func (s *storage) Get(ctx context.Context, name string, options *metav1.GetOptions) (out runtime.Object, err error) {
	version, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	err = s.do(ctx, func(api *apiserver.Server) error {
		if err := reached(version, api.Store().Version()); err != nil {
			return err
		}
		obj, err := api.Get(s.row.Kind, request.NamespaceValue(ctx), name)
		if err == nil {
			out = s.lend(obj)
		}
		return err
	})
	return s.shown(ctx, out, err)
}

// List implements rest.Lister.
func (s *storage) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	list := s.NewList()
	err := s.do(ctx, func(api *apiserver.Server) error { return s.list(api, list, request.NamespaceValue(ctx), options) })
	return s.shown(ctx, list, err)
}

// Watch implements rest.Watcher. The watch ends with the request.
func (s *storage) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	var one *watcher
	err := s.do(ctx, func(api *apiserver.Server) (err error) {
		if err = ctx.Err(); err == nil {
			one, err = s.f.watches.add(ctx, s, request.NamespaceValue(ctx), options)
		}
		if err == nil {
			context.AfterFunc(ctx, one.Stop)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	go one.run()
	return one, nil
}

// Create implements rest.Creater.
func (s *storage) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (out runtime.Object, err error) {
	err = s.do(ctx, func(api *apiserver.Server) (err error) {
		out, err = s.create(ctx, api, obj, validate, options.DryRun)
		return err
	})
	return s.shown(ctx, out, err)
}

// create is Create, on the loop.
func (s *storage) create(ctx context.Context, api *apiserver.Server, obj runtime.Object, validate rest.ValidateObjectFunc, dryRun []string) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	if err := s.checkType(obj); err != nil {
		return nil, err
	}
	o := obj.(apiserver.Object)
	stampFields(o, nil, api.Loop().Now())
	askedBy(ctx, o)
	out, err := s.written(api, dryRun, func() (apiserver.Object, error) { return api.Create(o) })
	if err == nil {
		s.warn(ctx, out, nil)
	}
	return out, err
}

// warn tells the client what the kind has to say of an object that was written.
func (s *storage) warn(ctx context.Context, obj runtime.Object, old apiserver.Object) {
	for _, text := range s.row.Warnings(obj.(apiserver.Object), old, s.subresource) {
		warning.AddWarning(ctx, "", text)
	}
}

// warnOfDelete tells the client what becomes of the dependents of what it deletes,
// unless it has said so itself.
func (s *storage) warnOfDelete(ctx context.Context, options *metav1.DeleteOptions) {
	if s.row.DeleteWarning != "" && options.PropagationPolicy == nil && options.OrphanDependents == nil {
		warning.AddWarning(ctx, "", s.row.DeleteWarning)
	}
}

// written does a write, for show only if that is asked for.
func (s *storage) written(api *apiserver.Server, dryRun []string, write func() (apiserver.Object, error)) (out runtime.Object, err error) {
	perform(api, dryRun, func() {
		var obj apiserver.Object
		api.Store().Through(s.view, func() { obj, err = write() })
		if err == nil {
			out = s.lend(obj)
		}
	})
	return out, err
}

// perform does what a request asks for, for show only if that is asked for.
func perform(api *apiserver.Server, dryRun []string, fn func()) {
	if len(dryRun) > 0 {
		api.Store().DryRun(fn)
		return
	}
	fn()
}

// Update implements rest.Updater. What the request makes of the stored object is
// computed on the loop, so that nothing comes between.
func (s *storage) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, validateNew rest.ValidateObjectFunc, validate rest.ValidateObjectUpdateFunc, mayCreate bool, options *metav1.UpdateOptions) (out runtime.Object, created bool, err error) {
	err = s.do(ctx, func(api *apiserver.Server) error {
		stored, err := api.Get(s.row.Kind, request.NamespaceValue(ctx), name)
		if apierrors.IsNotFound(err) && (mayCreate || s.row.CreatesOnUpdate) && s.subresource == "" {
			created = true
			out, err = s.createByUpdate(ctx, api, info, validateNew, options.DryRun)
			return err
		}
		if err != nil {
			return err
		}
		if p := info.Preconditions(); p != nil && p.UID != nil {
			if err := apiserver.CheckUID(s.row, stored, *p.UID, len(options.DryRun) > 0); err != nil {
				return err
			}
		}
		old, err := s.old(api, stored)
		if err != nil {
			return err
		}
		obj, err := info.UpdatedObject(ctx, old)
		if api.Store().Wanting() {
			return apiserver.ErrWebhookCalls // for managed fields of other versions
		}
		if err != nil {
			return err
		}
		if err := validate(ctx, obj, old); err != nil {
			return err
		}
		if err := s.checkType(obj); err != nil {
			return err
		}
		o := obj.DeepCopyObject().(apiserver.Object) // it may share with what is stored
		stampFields(o, stored, api.Loop().Now())
		out, err = s.written(api, options.DryRun, func() (apiserver.Object, error) {
			return api.Store().Replace(api.Loop().Now(), o, s.subresource, verbOf(ctx))
		})
		if err == nil {
			s.warn(ctx, out, stored)
		}
		return err
	})
	out, err = s.shown(ctx, out, err)
	return out, created, err
}

// old is what is stored, as who changes it sees it.
func (s *storage) old(api *apiserver.Server, stored apiserver.Object) (runtime.Object, error) {
	if s.row.Custom == nil {
		return s.lend(stored), nil
	}
	obj, err := api.Store().InVersion(stored, s.row)
	if err != nil {
		return nil, err
	}
	return s.row.Copy(obj), nil
}

// createByUpdate makes the object that a request would update if it were there.
func (s *storage) createByUpdate(ctx context.Context, api *apiserver.Server, info rest.UpdatedObjectInfo, validate rest.ValidateObjectFunc, dryRun []string) (runtime.Object, error) {
	obj, err := info.UpdatedObject(ctx, s.row.New())
	if err != nil {
		return nil, err
	}
	obj.(apiserver.Object).SetResourceVersion("") // of one that is gone
	return s.create(ctx, api, obj, validate, dryRun)
}

// verbOf is what the trace calls an update.
func verbOf(ctx context.Context) string {
	if info, ok := request.RequestInfoFrom(ctx); ok && info.Verb == "patch" {
		return "patch"
	}
	return "update"
}

// Delete implements rest.GracefulDeleter.
func (s *storage) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (out runtime.Object, gone bool, err error) {
	s.warnOfDelete(ctx, options)
	err = s.do(ctx, func(api *apiserver.Server) error {
		obj, err := api.Get(s.row.Kind, request.NamespaceValue(ctx), name)
		if err != nil {
			return err
		}
		if err := validate(ctx, s.lend(obj)); err != nil {
			return err
		}
		perform(api, options.DryRun, func() {
			obj, err = api.Store().Delete(api.Loop().Now(), s.row.Kind, request.NamespaceValue(ctx), name, *options)
		})
		if err != nil {
			return err
		}
		gone = len(options.DryRun) > 0 || api.Store().Lookup(s.row.Kind, request.NamespaceValue(ctx), name) == nil
		out = s.deleted(obj, gone)
		return nil
	})
	out, err = s.shown(ctx, out, err)
	return out, gone, err
}

// deleted is the answer to a delete.
func (s *storage) deleted(obj apiserver.Object, gone bool) runtime.Object {
	if !gone || s.row.ReturnsDeleted {
		return s.lend(obj)
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: obj.GetName(), Group: s.row.Group, Kind: s.row.Resource, UID: obj.GetUID(),
	}}
}

// DeleteCollection implements rest.CollectionDeleter. The answer is the list as it was.
func (s *storage) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, which *metainternalversion.ListOptions) (runtime.Object, error) {
	s.warnOfDelete(ctx, options)
	list, sel := s.NewList(), selectionOf(which)
	err := s.do(ctx, func(api *apiserver.Server) error {
		all, err := api.List(s.row.Kind, request.NamespaceValue(ctx))
		if err != nil {
			return err
		}
		var items []runtime.Object
		var which []apiserver.Object
		for _, obj := range all {
			if sel.matches(s.row, obj) {
				which, items = append(which, obj), append(items, s.item(obj))
			}
		}
		if err := s.fill(api, list, items); err != nil {
			return err
		}
		perform(api, options.DryRun, func() {
			for _, obj := range which {
				if err = api.Delete(s.row.Kind, obj.GetNamespace(), obj.GetName(), *options); err != nil && !apierrors.IsNotFound(err) {
					return
				}
			}
			err = nil
		})
		return err
	})
	return s.shown(ctx, list, err)
}

// fill makes a list of items, as of now.
func (*storage) fill(api *apiserver.Server, list runtime.Object, items []runtime.Object) error {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	m.SetResourceVersion(strconv.FormatUint(api.Store().Version(), 10))
	m.SetContinue("") // is shown where lists have no Go type
	return meta.SetList(list, items)
}

// stampFields gives the managed fields that a request has changed the cluster's time,
// and sorts them anew: the library has written the machine's.
func stampFields(obj, old metav1.Object, now time.Time) {
	var was []metav1.ManagedFieldsEntry
	if old != nil {
		was = old.GetManagedFields()
	}
	list, at := slices.Clone(obj.GetManagedFields()), metav1.NewTime(now.Truncate(time.Second))
	for i := range list {
		same := func(e metav1.ManagedFieldsEntry) bool { return equality.Semantic.DeepEqual(e, list[i]) }
		if list[i].Time != nil && !slices.ContainsFunc(was, same) {
			list[i].Time = &at
		}
	}
	// As sortEncodedManagedFields of apimachinery (pkg/util/managedfields/internal).
	slices.SortStableFunc(list, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), compareTimes(a.Time, b.Time), cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
	})
	obj.SetManagedFields(list)
}

// compareTimes orders times of which either may not be there: those come first.
func compareTimes(a, b *metav1.Time) int {
	unix := func(t *metav1.Time) int64 {
		if t == nil {
			return 0
		}
		return t.Unix()
	}
	return cmp.Compare(unix(a), unix(b))
}

// put serves requests that replace an object of a kind.
func (k *servedKind) put(store *storage, scope *handlers.RequestScope) http.HandlerFunc {
	if !k.renews || scope.Subresource != "" {
		return handlers.UpdateResource(store, scope, nil)
	}
	return func(w http.ResponseWriter, req *http.Request) {
		r := &replacement{storage: store, apiVersion: scope.Kind.GroupVersion().String()}
		r.agent, _, _ = strings.Cut(req.UserAgent(), "/")
		handlers.UpdateResource(r, scope, nil)(w, req)
	}
}

// replacement is a storage as one such request sees it.
type replacement struct {
	*storage
	apiVersion string
	agent      string         // who manages what it writes, unless the request says so
	sent       runtime.Object // what the request's body is decoded into
}

// New implements rest.Storage.
func (r *replacement) New() runtime.Object {
	r.sent = r.storage.New()
	return r.sent
}

// Update implements rest.Updater.
func (r *replacement) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, validateNew rest.ValidateObjectFunc, validate rest.ValidateObjectUpdateFunc, mayCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	manager := options.FieldManager
	if manager == "" {
		manager = r.agent
	}
	return r.storage.Update(ctx, name, &renewal{info, r, manager}, validateNew, validate, mayCreate, options)
}

// renewal is what such a request makes of the stored object.
type renewal struct {
	rest.UpdatedObjectInfo
	*replacement
	manager string
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (r *renewal) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if out := r.f.managed.Renewed(old, r.sent, r.manager, r.apiVersion); out != nil {
		return out, nil
	}
	return r.UpdatedObjectInfo.UpdatedObject(ctx, old)
}

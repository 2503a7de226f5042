package facade

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/facade/internal/renewals"
)

// Options are what a facade is made of.
type Options struct {
	// API is the cluster's, Door the way to it.
	API  *apiserver.Server
	Door Door
	// Authenticate says whose a bearer token is, "" being none; nil refuses it. It is
	// called from any goroutine. Without it every request is an administrator's.
	Authenticate func(token string) user.Info
	// Certificates lets in whom a client's certificate names that the API's authority
	// signed, for as long as it is good by the API's clock.
	Certificates bool
	// Webhooks calls admission webhooks. Nil: none is asked, but behind a RealDoor,
	// where HTTPWebhooks calls them.
	Webhooks Webhooks
	// TokenKey, one of P-256, signs the tokens of service accounts, which then are let
	// in besides. Without it they are signed with a key that follows from the seed: for
	// clients that nobody else can pass for.
	TokenKey *ecdsa.PrivateKey
	// Nodes leads to the kubelets; nil: nothing leads out of the API to the machines.
	Nodes Nodes
	// Control, if set, serves what is below ControlPath, to administrators.
	Control http.Handler
}

// ControlPath is the path below which there is no API of Kubernetes.
const ControlPath = "/drydock/"

// Facade serves the API over HTTP.
type Facade struct {
	o        Options
	requests request.RequestInfoResolver
	types    goTypes
	kinds    *served
	watches  *watches
	managed  renewals.Sets
	clock    clock
	// discoveries is what clients are told of kinds, paths what is outside of groups.
	discoveries *discoveries
	paths       map[string]rootPath
	openAPI     *openAPI
	began       time.Time    // of the cluster's
	handler     http.Handler // serve, with what is around it
}

// New returns the facade of an API. It is called before the API's loop runs, or on it.
func New(o Options) *Facade {
	if _, real := o.Door.(*RealDoor); real && o.Webhooks == nil {
		o.Webhooks = HTTPWebhooks{}
	}
	f := &Facade{
		o: o,
		requests: &request.RequestInfoFactory{
			APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
		},
	}
	o.API.OpenDoor()
	if o.TokenKey != nil {
		if err := o.API.Tokens().SignWith(o.TokenKey); err != nil {
			panic(fmt.Sprintf("facade: %v", err)) // no key of P-256
		}
	}
	o.API.Store().GiveAddresses(o.API.Loop().Now())
	f.types = newTypes(o.API.Store().Kinds().All())
	f.kinds = newServed(f)
	if err := errors.Join(f.addVirtual(), f.addReviews()); err != nil {
		panic(fmt.Sprintf("facade: %v", err)) // a mistake of the libraries
	}
	f.watches, f.managed = newWatches(o), renewals.Sets{}
	f.discoveries, f.openAPI = newDiscoveries(), &openAPI{f: f}
	f.paths, f.began = f.rootPaths(), o.API.Loop().Now()
	o.API.OnChange(f.definitionChanged, apiserver.KindCustomResourceDefinition)
	f.registerAPIs()
	f.handler = filters.WithWarningRecorder(f.withUsers(http.HandlerFunc(f.serve)))
	return f
}

// ServeHTTP implements http.Handler.
func (f *Facade) ServeHTTP(w http.ResponseWriter, req *http.Request) { f.handler.ServeHTTP(w, req) }

// serve finds who serves a request.
func (f *Facade) serve(w http.ResponseWriter, req *http.Request) {
	info, _ := request.RequestInfoFrom(req.Context())
	// Handlers of patches write to the audit's context, those of watches measure from when
	// the request came: both must be there.
	req = req.WithContext(audit.WithAuditContext(request.WithReceivedTimestamp(req.Context(), time.Now())))
	if f.o.Control != nil && strings.HasPrefix(req.URL.Path, ControlPath) {
		f.serveControl(w, req)
		return
	}
	if !info.IsResourceRequest {
		f.serveRoot(w, req)
		return
	}
	k := f.kinds.find(schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource})
	if k == nil && f.discover().group(info.APIGroup) == nil {
		http.NotFound(w, req)
		return
	}
	if k == nil || !k.row.Namespaced && info.Namespace != "" && info.Resource != "namespaces" {
		f.refuse(w, req, http.StatusNotFound)
		return
	}
	if info.Verb == "" { // a method that has no verb
		f.refuse(w, req, http.StatusMethodNotAllowed)
		return
	}
	if isElsewhere(k.row.Kind, info.Subresource) {
		if k.row.Namespaced && info.Namespace == "" {
			f.refuse(w, req, http.StatusNotFound)
			return
		}
		f.serveElsewhere(k, info)(w, req)
		return
	}
	h, code := k.handler(info, req.Method)
	if h == nil && k.row.Custom != nil {
		f.refuseCustom(k, info, code, w, req)
		return
	}
	if h == nil {
		f.refuse(w, req, code)
		return
	}
	if k.deprecated != "" {
		warning.AddWarning(req.Context(), "", k.deprecated)
	}
	h(w, req)
}

// refuse answers a path or a method that is not served, as upstream's router does.
func (f *Facade) refuse(w http.ResponseWriter, req *http.Request, code int) {
	f.fail(apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false), w, req)
}

// fail answers with an error.
func (f *Facade) fail(err *apierrors.StatusError, w http.ResponseWriter, req *http.Request) {
	responsewriters.ErrorNegotiated(err, f.types.codecs, schema.GroupVersion{Version: "v1"}, w, req)
}

// handler returns what serves a request, or the code by which it is refused.
func (k *servedKind) handler(info *request.RequestInfo, method string) (http.HandlerFunc, int) {
	if k.virtual != nil {
		return k.virtual.handler(k.scope, info, k.row.Namespaced, method), http.StatusMethodNotAllowed
	}
	scope, store := k.scope, k.storage
	if sub := info.Subresource; sub != "" {
		if own := k.own[sub]; own != nil {
			return own.handler(method), http.StatusMethodNotAllowed
		}
		if scope = k.subs[sub]; scope == nil {
			return nil, http.StatusNotFound
		}
		if sub == "finalize" && method != http.MethodPut { // of a namespace: there is nothing else to do with it
			return nil, http.StatusMethodNotAllowed
		}
		store = k.storage.sub(sub)
	}
	if info.Name == "" {
		switch {
		case method == http.MethodGet:
			return k.partial(watchable(handlers.ListResource(store, store, scope, info.Verb == "watch", 0))), 0
		case method == http.MethodPost && (!k.row.Namespaced || info.Namespace != ""):
			return handlers.CreateResource(store, scope, nil), 0
		case method == http.MethodDelete && deletesCollection(k.row):
			return handlers.DeleteCollection(store, true, scope, nil), 0
		}
		return nil, http.StatusMethodNotAllowed
	}
	switch method {
	case http.MethodGet:
		if info.Verb == "list" || info.Verb == "watch" { // of one object, by its field
			return k.partial(watchable(handlers.ListResource(store, store, scope, info.Verb == "watch", 0))), 0
		}
		return k.partial(handlers.GetResource(store, scope)), 0
	case http.MethodPut:
		return k.put(store, scope), 0
	case http.MethodPatch:
		return handlers.PatchResource(store, scope, nil, patchTypes), 0
	case http.MethodDelete:
		if info.Verb == "deletecollection" { // of one object, by its field
			return handlers.DeleteCollection(store, true, scope, nil), 0
		}
		if info.Subresource == "" {
			return handlers.DeleteResource(store, true, scope, nil), 0
		}
	}
	return nil, http.StatusMethodNotAllowed
}

// watchTimeout is how long a watch lives that doesn't say, in seconds. Upstream draws
// between 30 and 60 minutes.
const watchTimeout = "2700"

// watchable has a watch that says nothing of its end last for watchTimeout.
func watchable(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if q := req.URL.Query(); q.Get("timeoutSeconds") == "" {
			q.Set("timeoutSeconds", watchTimeout)
			u := *req.URL
			u.RawQuery = q.Encode()
			req = req.WithContext(req.Context())
			req.URL = &u
		}
		h(w, req)
	}
}

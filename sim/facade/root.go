package facade

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// serverVersion is of whom the API behaves like one.
var serverVersion = version.Info{
	Major: "1", Minor: "36", EmulationMajor: "1", EmulationMinor: "36", MinCompatibilityMajor: "1", MinCompatibilityMinor: "35",
	GitVersion: "v1.36.3", GitCommit: "drydock", GitTreeState: "clean", BuildDate: "1970-01-01T00:00:00Z",
	GoVersion: goruntime.Version(), Compiler: goruntime.Compiler, Platform: goruntime.GOOS + "/" + goruntime.GOARCH,
}

// rootPath is a path outside of groups.
type rootPath struct {
	serve http.HandlerFunc
	// getOnly says that other methods are refused.
	getOnly bool
}

// rootPaths are the paths outside of groups but for those of discovery.
func (f *Facade) rootPaths() map[string]rootPath {
	paths := map[string]rootPath{
		"/": {serve: f.serveIndex},
		"/version": {serve: func(w http.ResponseWriter, _ *http.Request) {
			responsewriters.WriteRawJSON(http.StatusOK, serverVersion, w)
		}, getOnly: true},
		"/metrics": {serve: f.serveMetrics}, "/metrics/slis": {serve: f.serveSLIs},
		"/statusz": {serve: f.serveStatus}, "/flagz": {serve: serveFlags},

		"/openapi/v2": {serve: f.openAPI.serve}, "/openapi/v3": {serve: f.openAPI.serve}, "/openapi/v3/": {serve: f.openAPI.serve},
	}
	for path, serve := range map[string]http.HandlerFunc{"/.well-known/openid-configuration": f.serveOpenID, jwksPath: f.serveKeys} {
		paths[path] = rootPath{serve: serve, getOnly: true}
	}
	f.addHealth(paths)
	return paths
}

// serveRoot serves a request that is not for a resource.
func (f *Facade) serveRoot(w http.ResponseWriter, req *http.Request) {
	if p, ok := f.paths[req.URL.Path]; ok {
		if p.getOnly && req.Method != http.MethodGet {
			f.refuse(w, req, http.StatusMethodNotAllowed)
			return
		}
		p.serve(w, req)
		return
	}
	if strings.HasPrefix(req.URL.Path, "/openapi/v3/") {
		f.openAPI.serve(w, req)
		return
	}
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch h := f.discoveryHandler(path); {
	case h == nil && (path[0] == "api" && len(path) > 1 || path[0] == "apis" && len(path) > 2):
		f.refuse(w, req, http.StatusNotFound)
	case h == nil:
		http.NotFound(w, req)
	case req.Method != http.MethodGet:
		f.refuse(w, req, http.StatusMethodNotAllowed)
	default:
		h.ServeHTTP(w, req)
	}
}

// serveIndex lists the paths that there are.
func (f *Facade) serveIndex(w http.ResponseWriter, _ *http.Request) {
	list := []string{"/api", "/apis", "/apis/"}
	for path := range f.paths {
		if path != "/" {
			list = append(list, path)
		}
	}
	d := f.discover()
	for gv := range d.resources {
		if gv.Group == "" {
			list = append(list, "/api/"+gv.Version)
		} else {
			list = append(list, "/apis/"+gv.String())
		}
	}
	for _, g := range d.groups {
		if g.Name != "" {
			list = append(list, "/apis/"+g.Name)
		}
	}
	slices.Sort(list)
	responsewriters.WriteRawJSON(http.StatusOK, metav1.RootPaths{Paths: list}, w)
}

// document serves an object as it is.
func (f *Facade) document(obj runtime.Object) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		responsewriters.WriteObjectNegotiated(f.types.codecs, negotiation.DefaultEndpointRestrictions, schema.GroupVersion{Version: "v1"}, w, req, http.StatusOK, obj, false)
	})
}

// plain is the media type of texts.
const plain = "text/plain; charset=utf-8"

// answers reports whether the API's loop answers.
func (f *Facade) answers(ctx context.Context) error {
	if err := f.o.Door.Do(ctx, func() {}); err != nil {
		return fmt.Errorf("the API doesn't answer: %w", err)
	}
	return nil
}

// serveMetrics tells what only the facade counts, in Prometheus' text format.
func (f *Facade) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", metricsType)
	fmt.Fprintf(w, "# HELP apiserver_terminated_watchers_total Counter of watchers closed due to unresponsiveness.\n# TYPE apiserver_terminated_watchers_total counter\napiserver_terminated_watchers_total %d\n", f.CutWatches())
}

// jwksPath is where the keys are by which tokens of service accounts are checked.
const jwksPath = "/openid/v1/jwks"

// serveOpenID says where the keys of tokens are.
func (f *Facade) serveOpenID(w http.ResponseWriter, _ *http.Request) {
	data, err := apiserver.TokenConfiguration("https://" + serverAddress + jwksPath)
	serveOpenIDDocument(w, data, err, "application/json")
}

// jwksForms is the one form of keys.
var jwksForms = []form{{accepted: []string{"jwk-set+json"}, sent: "application/jwk-set+json"}}

// serveKeys serves the keys of tokens.
func (f *Facade) serveKeys(w http.ResponseWriter, req *http.Request) {
	as := acceptable(req, jwksForms)
	if as == nil {
		f.refuse(w, req, http.StatusNotAcceptable)
		return
	}
	var data []byte
	var err error
	if e := f.o.Door.Do(req.Context(), func() { data, err = f.o.API.Tokens().Keys() }); e != nil {
		err = e
	}
	serveOpenIDDocument(w, data, err, as.sent)
}

// serveOpenIDDocument serves what clients may keep for an hour, as upstream's
// pkg/routes/openidmetadata.go.
func serveOpenIDDocument(w http.ResponseWriter, data []byte, err error, mediaType string) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Write(data) //nolint:errcheck // the client has gone
}

// serveSLIs tells the health of the API's parts, in Prometheus' text format.
func (f *Facade) serveSLIs(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", metricsType)
	well := 1
	if f.answers(req.Context()) != nil {
		well = 0
	}
	fmt.Fprint(w, "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n# TYPE kubernetes_healthcheck gauge\n")
	for _, path := range slices.Sorted(maps.Keys(health)) {
		for _, name := range slices.Concat(healthChecks, health[path]) {
			fmt.Fprintf(w, "kubernetes_healthcheck{name=%q,type=%q} %d\n", name, strings.TrimPrefix(path, "/"), well)
		}
	}
}

// forPeople is what pages that people read begin with.
const forPeople = "\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n\n"

// serveStatus says since when the API runs, by the cluster's clock.
func (f *Facade) serveStatus(w http.ResponseWriter, req *http.Request) {
	now := f.began
	if err := f.o.Door.Do(req.Context(), func() { now = f.o.API.Loop().Now() }); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", plain)
	fmt.Fprintf(w, "\nkube-apiserver statusz%sStarted: %s\nUp: %s\nGo version: %s\nBinary version: %s\nEmulation version: %s.%s\n", forPeople,
		f.began.UTC().Format(time.RFC1123), now.Sub(f.began).Round(time.Second), serverVersion.GoVersion, serverVersion.GitVersion, serverVersion.EmulationMajor, serverVersion.EmulationMinor)
}

// serveFlags says that the API has no flags.
func serveFlags(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", plain)
	fmt.Fprint(w, "\nkube-apiserver flagz"+forPeople)
}

// metricsType is the media type of Prometheus' text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

package facade

import (
	"context"
	"fmt"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
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
		"/metrics": {serve: f.serveMetrics},

		"/openapi/v2": {serve: f.openAPI.serve}, "/openapi/v3": {serve: f.openAPI.serve}, "/openapi/v3/": {serve: f.openAPI.serve},
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
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores")
	fmt.Fprintf(w, "# HELP apiserver_terminated_watchers_total Counter of watchers closed due to unresponsiveness.\n# TYPE apiserver_terminated_watchers_total counter\napiserver_terminated_watchers_total %d\n", f.CutWatches())
}

package facade

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// healthChecks are the parts of kube-apiserver whose health is asked for by name. Here
// they are all one part, the API's loop: it answers or it doesn't.
var healthChecks = []string{
	"ping", "log", "etcd",
	"poststarthook/start-apiserver-admission-initializer", "poststarthook/generic-apiserver-start-informers",
	"poststarthook/priority-and-fairness-config-consumer", "poststarthook/priority-and-fairness-filter",
	"poststarthook/storage-object-count-tracker-hook", "poststarthook/start-apiextensions-informers",
	"poststarthook/start-apiextensions-controllers", "poststarthook/crd-informer-synced", "poststarthook/start-system-namespaces-controller",
	"poststarthook/start-cluster-authentication-info-controller", "poststarthook/start-kube-apiserver-identity-lease-controller",
	"poststarthook/start-kube-apiserver-identity-lease-garbage-collector", "poststarthook/start-legacy-token-tracking-controller",
	"poststarthook/start-service-ip-repair-controllers", "poststarthook/start-kubernetes-service-cidr-controller",
	"poststarthook/peer-endpoint-reconciler-controller", "poststarthook/storage-readiness", "poststarthook/bootstrap-controller",
	"poststarthook/scheduling/bootstrap-system-priority-classes", "poststarthook/priority-and-fairness-config-producer",
	"poststarthook/start-kube-aggregator-informers", "poststarthook/apiservice-status-local-available-controller",
	"poststarthook/apiservice-status-remote-available-controller", "poststarthook/apiservice-registration-controller",
	"poststarthook/apiservice-discovery-controller", "poststarthook/kube-apiserver-autoregistration", "autoregister-completion",
	"poststarthook/apiservice-openapi-controller", "poststarthook/apiservice-openapiv3-controller",
}

// health are the paths under which health is asked for, with the parts that only they have.
var health = map[string][]string{
	"/healthz": {"loopback-serving-certificate"},
	"/livez":   {"loopback-serving-certificate"},
	"/readyz":  {"etcd-readiness", "informer-sync", "shutdown"},
}

// addHealth adds the paths of health.
func (f *Facade) addHealth(paths map[string]rootPath) {
	for path, own := range health {
		checks := slices.Concat(healthChecks, own)
		paths[path] = rootPath{serve: f.serveHealth(strings.TrimPrefix(path, "/"), checks)}
		for _, name := range checks {
			paths[path+"/"+name] = rootPath{serve: f.serveCheck}
		}
	}
}

// serveCheck tells whether one part is well.
func (f *Facade) serveCheck(w http.ResponseWriter, req *http.Request) {
	if err := f.answers(req.Context()); err != nil {
		http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", plain)
	fmt.Fprint(w, "ok")
}

// serveHealth tells whether all parts are well but those excluded; one by one if asked to,
// or if any is not (k8s.io/apiserver/pkg/server/healthz).
func (f *Facade) serveHealth(name string, checks []string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		query := req.URL.Query()
		err := f.answers(req.Context())
		var out bytes.Buffer
		failed := false
		for _, check := range checks {
			switch {
			case slices.Contains(query["exclude"], check):
				fmt.Fprintf(&out, "[+]%s excluded: ok\n", check)
			case err != nil:
				failed = true
				fmt.Fprintf(&out, "[-]%s failed: reason withheld\n", check)
			default:
				fmt.Fprintf(&out, "[+]%s ok\n", check)
			}
		}
		var unknown []string
		for _, check := range query["exclude"] {
			if !slices.Contains(checks, check) {
				unknown = append(unknown, fmt.Sprintf("%q", check))
			}
		}
		if slices.Sort(unknown); len(unknown) > 0 {
			fmt.Fprintf(&out, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(slices.Compact(unknown), ","))
		}
		if failed {
			http.Error(w, fmt.Sprintf("%s%s check failed", out.String(), name), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", plain)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !query.Has("verbose") {
			fmt.Fprint(w, "ok")
			return
		}
		fmt.Fprintf(w, "%s%s check passed\n", out.String(), name)
	}
}

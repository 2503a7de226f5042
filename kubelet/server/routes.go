package server

import (
	"encoding/json"
	"net/http"

	"github.com/emicklei/go-restful/v3"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// The paths that there are for everybody who may ask.
const (
	podsPath        = "/pods"
	runningPodsPath = "/runningpods/"
	statsPath       = "/stats/"
	logsPath        = "/logs/"
	checkpointPath  = "/checkpoint/"
	configzPath     = "/configz"
	slisPath        = "/metrics/slis"
	pprofPath       = "/debug/pprof/"
)

// installOpen installs what the read-only server has, too.
func (s *Server) installOpen() {
	root := rootHandler("healthz", s.o.Checks)
	s.handle("/healthz", root)
	for _, c := range s.o.Checks {
		s.handle("/healthz/"+c.Name, checkHandler(c))
	}
	s.handle(slisPath, http.HandlerFunc(s.serveSLIs))
	s.add(podsPath, restful.MIME_JSON, route{"GET", "", s.getPods})
	s.add(statsPath, restful.MIME_JSON, route{"GET", "/summary", s.getSummary})
	for _, p := range [...]MetricsPath{Metrics, CAdvisorMetrics, ResourceMetrics, ProbeMetrics} {
		s.handle(string(p), s.metricsHandler(p))
	}
}

// installDebugging installs what needs enableDebuggingHandlers. The process's own
// comes last, since /statusz lists the paths.
func (s *Server) installDebugging() {
	if cfg := s.o.Config; !enabled(cfg.EnableSystemLogHandler) {
		s.handle(logsPath, disabled("logs endpoint is disabled."))
	} else if s.o.SystemLogs != nil {
		s.add(logsPath, "", route{"GET", "", s.getSystemLogs}, route{"GET", "/{logpath:*}", s.getSystemLogs})
	}
	s.add("/run", "", withUID("POST", s.getRun)...)
	s.add("/exec", "", append(withUID("GET", s.getExec), withUID("POST", s.getExec)...)...)
	s.add("/attach", "", append(withUID("GET", s.getAttach), withUID("POST", s.getAttach)...)...)
	s.add("/portForward", "",
		route{"GET", "/{podNamespace}/{podID}", s.getPortForward}, route{"POST", "/{podNamespace}/{podID}", s.getPortForward},
		route{"GET", "/{podNamespace}/{podID}/{uid}", s.getPortForward}, route{"POST", "/{podNamespace}/{podID}/{uid}", s.getPortForward})
	s.add("/containerLogs", "", route{"GET", "/{podNamespace}/{podID}/{containerName}", s.getContainerLogs})
	s.handle(configzPath, configzHandler(s.o.Config))
	s.add(runningPodsPath, restful.MIME_JSON, route{"GET", "", s.getRunningPods})
	s.add(checkpointPath, restful.MIME_JSON, route{"POST", "/{podNamespace}/{podID}/{containerName}", s.checkpoint})
	if s.o.Install != nil {
		s.o.Install(s.c, s.paths)
	}
}

// installDisabled says at the paths of debugging handlers that there are none.
func (s *Server) installDisabled() {
	for _, p := range [...]string{"/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", runningPodsPath, pprofPath, logsPath} {
		s.handle(p, disabled("Debug endpoints are disabled."))
	}
}

// disabled answers that an endpoint is switched off.
func disabled(message string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, message, http.StatusMethodNotAllowed)
	})
}

// route is one of a service's.
type route struct {
	method, path string
	to           restful.RouteFunction
}

// withUID are the routes to a container, with and without its pod's UID.
func withUID(method string, to restful.RouteFunction) []route {
	return []route{
		{method, "/{podNamespace}/{podID}/{containerName}", to},
		{method, "/{podNamespace}/{podID}/{uid}/{containerName}", to},
	}
}

// add installs a service. produces is its content type, "": whatever comes.
func (s *Server) add(root, produces string, routes ...route) {
	ws := new(restful.WebService).Path(root)
	if produces != "" {
		ws.Produces(produces)
	}
	for _, r := range routes {
		ws.Route(ws.Method(r.method).Path(r.path).To(r.to))
	}
	s.c.Add(ws)
}

// configzHandler shows the configuration (k8s.io/component-base/configz, whose
// registry is the process's).
func configzHandler(c *kubeletconfig.KubeletConfiguration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		shown := *c
		shown.Logging.FlushFrequency.SerializeAsString = true
		shown.Kind, shown.APIVersion = "KubeletConfiguration", kubeletconfig.SchemeGroupVersion.String()
		b, err := json.Marshal(map[string]any{"kubeletconfig": &shown})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(b)
	})
}

// getSystemLogs serves the machine's logs.
func (s *Server) getSystemLogs(req *restful.Request, resp *restful.Response) {
	s.o.SystemLogs.ServeHTTP(resp, req.Request)
}

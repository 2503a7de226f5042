package server

import (
	"net/http"

	"github.com/emicklei/go-restful/v3"
	"github.com/prometheus/client_golang/prometheus"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// Options are what a Server is made of.
type Options struct {
	Host Host
	// Config says which paths there are. It is what /configz shows, and not written
	// to; nil: the server is the read-only one, with what needs no authorization.
	Config *kubeletconfig.KubeletConfiguration
	// Checks are those of /healthz, in their order.
	Checks []Check
	// Filter is run before each request that a path is there for; nil: everybody may
	// ask anything. See restful.Container.Filter.
	Filter restful.FilterFunction
	// Logs copies logs, Streams connects streams. Without one of them its paths answer
	// 501.
	Logs    LogReader
	Streams Streams
	// SystemLogs serves /logs/, Process what is told of the process rather than of the
	// kubelet: metrics of the library's own. nil: there is none.
	SystemLogs http.Handler
	Process    prometheus.Gatherer
	// Install adds handlers of the process (profiles, flags, zpages), if the
	// configuration has debugging handlers. paths are those that are there already.
	Install func(c *restful.Container, paths []string)
}

// Server serves a kubelet.
type Server struct {
	o Options
	c *restful.Container
	// paths are those of plain handlers, in the order of their installation.
	paths []string
}

// New returns a Server.
func New(o Options) *Server {
	s := &Server{o: o, c: restful.NewContainer()}
	if o.Filter != nil {
		s.c.Filter(o.Filter)
	}
	s.installOpen()
	switch {
	case o.Config != nil && enabled(o.Config.EnableDebuggingHandlers):
		s.installDebugging()
	default:
		s.installDisabled()
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.c.ServeHTTP(w, r) }

// handle installs a plain handler, behind the filter.
func (s *Server) handle(path string, h http.Handler) {
	s.c.HandleWithFilter(path, h)
	s.paths = append(s.paths, path)
}

// enabled is a switch that is on unless it says otherwise.
func enabled(v *bool) bool { return v == nil || *v }

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is something wrong with the API as nodes see it. What the scenario and
// the controllers do on the server's loop is not touched by faults.
type Fault struct {
	// Node, Verb ("get", "list", "watch", "create", "update", "patch",
	// "delete"), Resource ("pods", "pods/status", "leases", ...), Namespace and
	// Name select requests; "" is any. "pods" selects its subresources too.
	Node, Verb, Resource, Namespace, Name string

	// Code, when not 0, is the HTTP status of the answer.
	Code int32
	// Reason and Message replace those that the code gives.
	Reason  metav1.StatusReason
	Message string
	// Latency is added before a request is handled.
	Latency time.Duration
	// Drop has messages vanish, as in a partition: requests time out, watches
	// stall and break after a time.
	Drop bool
	// Refuse has connections refused at once, as by an API server that is
	// down: watches break.
	Refuse bool
	// Probability is how likely a request is hit; 0 means always. Watches in
	// progress are only broken by faults that always hit.
	Probability float64

	n uint64
}

// fate is what faults do to a request.
type fate struct {
	drop, refuse bool
	err          error
	latency      time.Duration
}

func (f *Fault) matches(node string, r *request) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	resource := r.resource
	if i := len(f.Resource); i > 0 && len(resource) > i && resource[i] == '/' {
		resource = resource[:i]
	}
	return is(f.Node, node) && is(f.Verb, r.verb) && is(f.Resource, resource) && is(f.Namespace, r.namespace) && is(f.Name, r.name)
}

// fate combines the faults that hit a request.
func (s *Server) fate(node string, r *request) fate {
	var out fate
	for _, f := range s.faults {
		if !f.matches(node, r) {
			continue
		}
		if f.Probability > 0 {
			f.n++
			if s.l.Float64("api/fault", node+"/"+r.verb+"/"+r.resource, f.n) >= f.Probability {
				continue
			}
		}
		out.drop = out.drop || f.Drop
		out.refuse = out.refuse || f.Refuse
		out.latency += f.Latency
		if f.Code != 0 && out.err == nil {
			out.err = f.status(r)
		}
	}
	return out
}

// status is the error that the fault answers with.
func (f *Fault) status(r *request) error {
	gr := schema.GroupResource{Resource: r.resource}
	e := apierrors.NewGenericServerResponse(int(f.Code), r.verb, gr, r.name, "injected fault", 0, true)
	if f.Reason != "" {
		e.ErrStatus.Reason = f.Reason
	}
	if f.Message != "" {
		e.ErrStatus.Message = f.Message
	}
	return e
}

// AddFault makes a fault act from now on until the function returned is
// called.
func (s *Server) AddFault(f Fault) (remove func()) {
	p := &f
	s.faults = append(s.faults, p)
	s.reviewWatches()
	return func() {
		for i, o := range s.faults {
			if o == p {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
				s.reviewWatches()
				return
			}
		}
	}
}

// Partition cuts a node off the API ("" cuts all nodes off) until the function
// returned is called.
func (s *Server) Partition(node string) (heal func()) {
	return s.AddFault(Fault{Node: node, Drop: true})
}

// Outage has the API refuse connections until the function returned is called.
func (s *Server) Outage() (end func()) { return s.AddFault(Fault{Refuse: true}) }

const serverAddress = "https://kubernetes.default.svc:443"

// urlError wraps an error of the transport as client-go's callers see it: it
// is no API status.
func urlError(r *request, err error) error {
	method := map[string]string{
		"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost,
		"update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete,
	}[r.verb]
	u := serverAddress + "/api/v1"
	if r.resource == "leases" {
		u = serverAddress + "/apis/coordination.k8s.io/v1"
	}
	if r.namespace != "" {
		u += "/namespaces/" + r.namespace
	}
	u += "/" + r.resource
	if r.name != "" {
		u += "/" + r.name
	}
	return &url.Error{Op: method[:1] + lower(method[1:]), URL: u, Err: err}
}

func lower(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] |= 0x20
	}
	return string(b)
}

// errTimeout is a request's end when no answer came.
func errTimeout(r *request) error {
	if r.heartbeat {
		return urlError(r, fmt.Errorf("%w (Client.Timeout exceeded while awaiting headers)", context.DeadlineExceeded))
	}
	return urlError(r, fmt.Errorf("dial tcp: i/o timeout: %w", context.DeadlineExceeded))
}

func errRefused(r *request) error {
	return urlError(r, fmt.Errorf("dial tcp: connect: %w", syscall.ECONNREFUSED))
}

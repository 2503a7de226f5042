package wire

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
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
	// Lose has requests be handled, and their answers vanish with the connection.
	Lose bool
	// Probability is how likely a request is hit; 0 means always. Watches in
	// progress are only broken by faults that always hit.
	Probability float64
	// OnHit, if any, is called on the server's loop with each request and each watch that the
	// fault is about.
	OnHit func()

	n uint64
}

// Fate is what faults do to a request.
type Fate struct {
	Drop, Refuse, Lose bool

	Err     error
	Latency time.Duration
}

// matches reports whether a fault hits the requests of a node, or of a component by
// its name. Without a subresource of its own, a fault hits a resource's
// subresources too.
func (f *Fault) matches(node string, r *Request) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	resource := r.Resource
	if i := len(f.Resource); i > 0 && len(resource) > i && resource[i] == '/' {
		resource = resource[:i]
	}
	return is(f.Node, node) && is(f.Verb, r.Verb) && is(f.Resource, resource) && is(f.Namespace, r.Namespace) && is(f.Name, r.Name)
}

// noteHit tells of a hit who wants to know.
func (f *Fault) noteHit() {
	if f.OnHit != nil {
		f.OnHit()
	}
}

// Faults are those that act now.
type Faults struct {
	l    *loop.Loop
	list []*Fault
}

// NewFaults returns faults whose chances are drawn on a loop.
func NewFaults(l *loop.Loop) *Faults { return &Faults{l: l} }

// Any reports whether there are faults.
func (fs *Faults) Any() bool { return len(fs.list) > 0 }

// FateOf combines the faults that hit a request of a node or a component.
func (fs *Faults) FateOf(who string, r *Request) Fate {
	var out Fate
	for _, f := range fs.list {
		if !f.matches(who, r) {
			continue
		}
		f.noteHit()
		if f.Probability > 0 {
			f.n++
			if fs.l.Float64("api/fault", who+"/"+r.Verb+"/"+r.Resource, f.n) >= f.Probability {
				continue
			}
		}
		out.Drop = out.Drop || f.Drop
		out.Refuse = out.Refuse || f.Refuse
		out.Lose = out.Lose || f.Lose
		out.Latency += f.Latency
		if f.Code != 0 && out.Err == nil {
			out.Err = f.status(r)
		}
	}
	return out
}

// Cuts returns what the faults that always hit do to a watch of a resource, or of
// any that no fault names ("").
func (fs *Faults) Cuts(who, resource string) (drop, refuse bool) {
	r := Request{Verb: "watch", Resource: resource}
	for _, f := range fs.list {
		if f.Probability == 0 && f.matches(who, &r) {
			f.noteHit()
			drop = drop || f.Drop
			refuse = refuse || f.Refuse
		}
	}
	return drop, refuse
}

// Lag returns by how much more than requests' latency the events of a watch are late:
// that of the faults that always hit and name the verb watch.
func (fs *Faults) Lag(who, resource string) (d time.Duration) {
	r := Request{Verb: "watch", Resource: resource}
	for _, f := range fs.list {
		if f.Verb == r.Verb && f.Probability == 0 && f.matches(who, &r) {
			f.noteHit()
			d += f.Latency
		}
	}
	return d
}

// Add makes a fault act until drop is called. It reports whether it still acted.
func (fs *Faults) Add(f Fault) (drop func() bool) {
	p := &f
	fs.list = append(fs.list, p)
	return func() bool {
		i := slices.Index(fs.list, p)
		if i >= 0 {
			fs.list = append(fs.list[:i:i], fs.list[i+1:]...)
		}
		return i >= 0
	}
}

// status is the error that the fault answers with.
func (f *Fault) status(r *Request) error {
	gr := schema.GroupResource{Resource: r.Resource}
	e := apierrors.NewGenericServerResponse(int(f.Code), r.Verb, gr, r.Name, "injected fault", 0, true)
	if f.Reason != "" {
		e.ErrStatus.Reason = f.Reason
	}
	if f.Message != "" {
		e.ErrStatus.Message = f.Message
	}
	return e
}

// ErrUnauthorized is the answer to who shows no good credentials.
func ErrUnauthorized() error { return apierrors.NewUnauthorized("Unauthorized") }

// serverAddress is what errors of the transport name.
const serverAddress = "https://kubernetes.default.svc:443"

// ErrTransport wraps an error of the transport as client-go's callers see it: it
// is no API status.
func ErrTransport(r *Request, err error) error {
	method := map[string]string{
		"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost,
		"update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete,
	}[r.Verb]
	u := serverAddress + "/api/v1"
	if r.Resource == "leases" {
		u = serverAddress + "/apis/coordination.k8s.io/v1"
	}
	if r.Namespace != "" {
		u += "/namespaces/" + r.Namespace
	}
	u += "/" + r.Resource
	if r.Name != "" {
		u += "/" + r.Name
	}
	return &url.Error{Op: method[:1] + lower(method[1:]), URL: u, Err: err}
}

// lower is strings.ToLower of a method's name.
func lower(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] |= 0x20
	}
	return string(b)
}

// ErrTimeout is a request's end when no answer came.
func ErrTimeout(r *Request) error {
	if r.Heartbeat {
		return ErrTransport(r, fmt.Errorf("%w (Client.Timeout exceeded while awaiting headers)", context.DeadlineExceeded))
	}
	return ErrTransport(r, fmt.Errorf("dial tcp: i/o timeout: %w", context.DeadlineExceeded))
}

// ErrLost is a request's end when the connection broke before the answer came: the
// request may have been handled.
func ErrLost(r *Request) error {
	return ErrTransport(r, fmt.Errorf("read tcp: %w", linux.ECONNRESET))
}

// ErrRefused is a request's end when nobody listens.
func ErrRefused(r *Request) error {
	return ErrTransport(r, fmt.Errorf("dial tcp: connect: %w", linux.ECONNREFUSED))
}

package action

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// APIFault makes requests to the API slow or fail. It has at least one of error, latency and refuse.
type APIFault struct {
	// The verb of the requests. Any unless said.
	Verb string `json:"verb,omitempty" enum:"get,list,watch,create,update,patch,delete"`
	// The resource of the requests: `pods`, `pods/status`, `leases`. `pods` means its subresources too. Any unless said.
	Resource string `json:"resource,omitempty"`
	// The namespace of the requests. Any unless said.
	Namespace string `json:"namespace,omitempty"`
	// The name of the object that requests are about. Any unless said.
	Name string `json:"name,omitempty"`
	// The error that requests fail with: an HTTP code, or a code, a reason and a message.
	Error *APIError `json:"error,omitempty"`
	// How much longer requests take.
	Latency time.Duration `json:"latency,omitempty"`
	// Connections are refused, as by a server that is down.
	Refuse bool `json:"refuse,omitempty"`
	// How likely a request is hit, over 0 and up to 1. All are hit unless said.
	Probability float64 `json:"probability,omitempty"`
	// How long the fault lasts. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// APIError is what a request to the API fails with.
type APIError struct {
	// The HTTP code, 400 to 599.
	Code int32 `json:"code" required:""`
	// The reason, such as TooManyRequests. Unless said, what belongs to the code.
	Reason string `json:"reason,omitempty"`
	// The error's text.
	Message string `json:"message,omitempty"`
}

// Shorthand has an error be written as just its code.
func (e *APIError) Shorthand() any { return &e.Code }

// Check wants an effect, and a resource that there is.
func (f *APIFault) Check(at decode.Place) {
	if f.Error == nil && f.Latency == 0 && !f.Refuse {
		at.Errorf("has no effect: needs error, latency or refuse")
	}
	if f.Error != nil && (f.Error.Code < 400 || f.Error.Code > 599) {
		at.Field("error").Errorf("the code %d is not within 400 and 599", f.Error.Code)
	}
	if f.Probability < 0 || f.Probability > 1 {
		at.Field("probability").Errorf("%v is not within 0 and 1", f.Probability)
	}
	if f.Resource != "" {
		value.OneOf(at.Field("resource"), "resource", f.Resource, resources(f.Resource))
	}
}

// resources are those that a fault may name, with the subresources of the one that it
// does, and what is said of a custom resource.
func resources(named string) (out []string) {
	base, sub, _ := strings.Cut(named, "/")
	for _, row := range apiserver.NewKindsWith(apiserver.AllGates()).All() {
		out = append(out, row.Resource)
		if row.Resource == base && slices.Contains(subresources(), sub) {
			out = append(out, named)
		}
	}
	return append(out, "pods/status", "pods/binding", "pods/eviction", "nodes/status")
}

// subresources are those that requests are about.
func subresources() []string {
	return []string{"status", "scale", "binding", "eviction", "ephemeralcontainers", "resize", "token", "finalize", "approval", "log", "exec", "attach", "portforward", "proxy"}
}

// Begin has the fault act for each of the clients, for its time; "" is everybody.
func (f *APIFault) Begin(s Stage, clients ...string) {
	hit := false // on the API's loop
	s.AtEnd(func() {
		if !hit {
			s.Missed("the fault " + f.words() + " hit no request")
		}
	})
	for _, n := range clients {
		rule := apiserver.Fault{OnHit: func() { hit = true }, Node: n, Verb: f.Verb, Resource: f.Resource, Namespace: f.Namespace, Name: f.Name, Latency: f.Latency, Refuse: f.Refuse, Probability: f.Probability}
		if f.Error != nil {
			rule.Code, rule.Reason, rule.Message = f.Error.Code, metav1.StatusReason(f.Error.Reason), f.Error.Message
		}
		during(s, f.words(), n, f.For, s.Cluster().API().AddFault(rule))
	}
}

// words names the fault in a timeline: "error 503 and delay of 2s for patch pods".
func (f *APIFault) words() string {
	var what []string
	switch {
	case f.Refuse:
		what = append(what, "refusal of connections")
	case f.Error != nil:
		what = append(what, fmt.Sprintf("error %d", f.Error.Code))
	}
	if f.Latency > 0 {
		what = append(what, "delay of "+text.ShortTime(f.Latency))
	}
	out := strings.Join(what, " and ")
	if about := strings.TrimSpace(f.Verb + " " + f.Resource); about != "" {
		out += " for " + about
	}
	return out
}

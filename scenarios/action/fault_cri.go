package action

import (
	"slices"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// CRIFault makes calls of the container runtime slow, hang or fail. It has at least one of error, latency and hang.
type CRIFault struct {
	// The CRI method, or a pattern such as `List*`. All methods unless said.
	Method string `json:"method,omitempty"`
	// The pod that calls must be about: namespace/name, or a name in the namespace default, with * and ?. Any call unless said.
	Pod string `json:"pod,omitempty"`
	// The container that calls must be about, with * and ?. Any unless said.
	Container string `json:"container,omitempty"`
	// The image that calls must be about, with * and ?. Any unless said.
	Image string `json:"image,omitempty"`
	// The error that calls fail with: a gRPC code, or a code and a message.
	Error *CRIError `json:"error,omitempty"`
	// How much longer calls take: a time or a range.
	Latency *value.Range `json:"latency,omitempty"`
	// Calls do not return until the fault is over or the caller gives up.
	Hang bool `json:"hang,omitempty"`
	// How long the fault lasts. To the end unless said.
	For time.Duration `json:"for,omitempty"`
	// The first call that it hits, counted from 1.
	Nth int `json:"nth,omitempty"`
	// How many calls it hits from there on. All unless said.
	Count int `json:"count,omitempty"`
}

// CRIError is what a call of the container runtime fails with.
type CRIError struct {
	// The gRPC code. Unknown unless said.
	Code string `json:"code,omitempty" enum:"Canceled,Unknown,InvalidArgument,DeadlineExceeded,NotFound,AlreadyExists,PermissionDenied,ResourceExhausted,FailedPrecondition,Aborted,OutOfRange,Unimplemented,Internal,Unavailable,DataLoss,Unauthenticated"`
	// The error's text.
	Message string `json:"message,omitempty"`
}

// Shorthand has an error be written as just its code.
func (e *CRIError) Shorthand() any { return &e.Code }

// Check wants an effect, and a method that there is.
func (f *CRIFault) Check(at decode.Place) {
	if f.Error == nil && f.Latency == nil && !f.Hang {
		at.Errorf("has no effect: needs error, latency or hang")
	}
	methods := fakecri.Methods()
	if f.Method != "" && !slices.ContainsFunc(methods, func(m string) bool { return fakecri.MatchPattern(f.Method, m) }) {
		value.OneOf(at.Field("method"), "CRI method", f.Method, methods)
	}
	if f.Pod != "*" {
		f.Pod = value.PodRef(at.Field("pod"), f.Pod)
	}
	value.NotNegative(at.Field("nth"), f.Nth)
	value.NotNegative(at.Field("count"), f.Count)
}

// Runtime is the fault as the runtime takes it.
func (f *CRIFault) Runtime() fakecri.Fault {
	rule := fakecri.Fault{
		Method: f.Method, Pod: f.Pod, Container: f.Container, Image: f.Image,
		Latency: f.Latency.Runtime(), Hang: f.Hang, For: f.For, Nth: f.Nth, Count: f.Count,
	}
	if e := f.Error; e != nil {
		rule.Error = &fakecri.FaultError{Code: e.Code, Message: e.Message}
	}
	return rule
}

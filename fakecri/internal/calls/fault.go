package calls

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// Fault is a rule that makes calls slow, hang or fail. It acts when a call
// arrives, before it has done anything but reserve its name: first the
// latency, then the hang, then the error; without an error the call then goes
// on as usual. Several faults may hit one call: latencies add up, the first
// error counts.
type Fault struct {
	// Name shows in the trace. Default: the method.
	Name string

	// Method is a CRI method ("StopContainer"), a pattern ("List*") or "" or
	// "*" for all.
	Method string
	// Pod is "namespace/name", with * and ?; "" for any. A pattern other than
	// "" and "*" never matches a call that is about no pod in particular.
	Pod string
	// Container is a container's name, with * and ?; "" for any.
	Container string
	// Image is the image as the request names it, with * and ?; "" for any.
	Image string

	// Error is what the calls fail with; nil means that they don't.
	Error *FaultError
	// Latency is added to each call.
	Latency program.Range
	// Hang makes calls wait until the fault ends or they are cancelled.
	Hang bool

	// From is when the fault begins, counted from AddFault.
	From time.Duration
	// For is how long it lasts; 0 means until it is removed.
	For time.Duration
	// Nth is the first matching call that is hit, counted from 1 since the
	// fault began; 0 means 1.
	Nth int
	// Count is how many calls are hit from there on; 0 means all.
	Count int
	// OnHit, if any, is called with each call that is hit, on the runtime's loop.
	OnHit func()
}

// FaultError is an error of a call.
type FaultError struct {
	// Code is a gRPC code, "DeadlineExceeded" or "DEADLINE_EXCEEDED".
	// Default Unknown, which is what containerd answers for most failures.
	Code string
	// Message is the error's text. Default: "injected fault".
	Message string
}

// err is the error as a call returns it.
func (e *FaultError) err() error {
	code, err := ParseCode(e.Code)
	if err != nil {
		code = codes.Unknown
	}
	msg := cmp.Or(e.Message, "injected fault")
	return status.Error(code, msg)
}

// ParseCode returns the gRPC code of that name, in the spelling of Go
// ("DeadlineExceeded") or of the specification ("DEADLINE_EXCEEDED"). "" is
// Unknown; OK is refused.
func ParseCode(name string) (codes.Code, error) {
	if name == "" {
		return codes.Unknown, nil
	}
	want := strings.ReplaceAll(name, "_", "")
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if strings.EqualFold(c.String(), want) {
			return c, nil
		}
	}
	if strings.EqualFold(want, "Cancelled") {
		return codes.Canceled, nil
	}
	return codes.Unknown, fmt.Errorf("no gRPC error code %q", name)
}

// Validate returns what is wrong with the rule, naming the field.
func (f Fault) Validate() error {
	if !strings.ContainsAny(f.Method, "*?") && f.Method != "" {
		if _, ok := MethodByName(f.Method); !ok {
			return fmt.Errorf("method: no CRI method %q", f.Method)
		}
	}
	if f.Error != nil {
		if _, err := ParseCode(f.Error.Code); err != nil {
			return fmt.Errorf("error.code: %w", err)
		}
	}
	switch {
	case f.Error == nil && !f.Hang && f.Latency == (program.Range{}):
		return fmt.Errorf("has no effect: one of error, latency and hang is needed")
	case f.Latency.Min < 0:
		return fmt.Errorf("latency: negative")
	case f.From < 0:
		return fmt.Errorf("from: negative")
	case f.For < 0:
		return fmt.Errorf("for: negative")
	case f.Nth < 0:
		return fmt.Errorf("nth: negative")
	case f.Count < 0:
		return fmt.Errorf("count: negative")
	}
	return nil
}

// fault is a rule in force, or one that will be.
type fault struct {
	Fault
	methods [methodCount]bool
	active  bool
	seen    int // matching calls while active
	end     loop.Event
	timer   *loop.Timer
}

// spent reports whether the fault will hit no further call.
func (f *fault) spent() bool {
	return f.Count > 0 && f.seen >= max(f.Nth, 1)-1+f.Count
}

// matches reports whether a call is one that the rule is about now.
func (f *fault) matches(m Method, s *Subject) bool {
	if !f.active || !f.methods[m] || f.spent() {
		return false
	}
	if f.Pod != "" && f.Pod != "*" && (s.Pod == "" || !program.MatchPattern(f.Pod, s.Namespace+"/"+s.Pod)) {
		return false
	}
	if f.Container != "" && f.Container != "*" && (s.Container == "" || !program.MatchPattern(f.Container, s.Container)) {
		return false
	}
	return f.Image == "" || f.Image == "*" || s.Image != "" && program.MatchPattern(f.Image, s.Image)
}

// hit counts a matching call and reports whether it is one of those to be hit.
func (f *fault) hit() bool {
	f.seen++
	return f.seen >= max(f.Nth, 1)
}

// AddFault is Runtime.AddFault.
func (r *Daemon) AddFault(rule Fault) (remove func()) {
	f := &fault{Fault: rule}
	for m := range methods {
		f.methods[m] = program.GlobMatch(rule.Method, methods[m].name)
	}
	if f.Name == "" {
		f.Name = cmp.Or(f.Method, "*")
	}
	r.faults = append(r.faults, f)
	f.timer = r.Loop.Root().NewTimer("cri fault "+f.Name, nil)
	begin := func() {
		f.active = true
		r.changed()
		r.recordFault(f, "begin", nil)
		if f.For > 0 {
			f.timer = r.Loop.Root().After(f.For, func() { r.removeFault(f) })
		}
	}
	if f.From > 0 {
		f.timer = r.Loop.Root().After(f.From, begin)
	} else {
		begin()
	}
	return func() { r.removeFault(f) }
}

// removeFault ends a rule, once: by its time or by who added it.
func (r *Daemon) removeFault(f *fault) {
	for i, o := range r.faults {
		if o != f {
			continue
		}
		r.faults = append(r.faults[:i:i], r.faults[i+1:]...)
		f.timer.Stop()
		if f.active {
			f.active = false
			r.recordFault(f, "end", nil)
		}
		r.changed()
		f.end.Fire()
		return
	}
}

// recordFault makes a trace record of a rule; s is the call that it hit, or nil.
func (r *Daemon) recordFault(f *fault, verb string, s *Subject) {
	if r.Recorder == nil {
		return
	}
	fields := make([]trace.Field, 0, 4)
	if s != nil {
		if s.Pod != "" {
			fields = append(fields, trace.Str("pod", s.Namespace+"/"+s.Pod))
		}
		if s.Container != "" {
			fields = append(fields, trace.Str("container", s.Container))
		}
		if s.Image != "" {
			fields = append(fields, trace.Str("image", s.Image))
		}
	}
	r.Recorder.Record(trace.KindFault, "cri "+f.Name, verb, fields...)
}

// Faulty reports whether there is any fault, now or to come.
func (r *Daemon) Faulty() bool { return len(r.faults) > 0 }

// ListingFaulted reports whether a fault could touch a listing now.
func (r *Daemon) ListingFaulted() bool {
	return slices.ContainsFunc(r.faults, func(f *fault) bool {
		return f.active && !f.spent() && (f.methods[ListPodSandbox] || f.methods[ListContainers])
	})
}

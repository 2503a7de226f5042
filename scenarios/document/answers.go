package document

import (
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Port is a port that a container listens on: a number, or one with what it answers. One that says neither http nor grpc answers 200 to every request and SERVING to every health check.
type Port struct {
	// The number.
	Port int `json:"port" required:""`
	// When it begins to listen, after the container's start. One that has been told to stop by then doesn't.
	After time.Duration `json:"after,omitempty"`
	// When it stops listening, after the container's start. Never unless said.
	Until time.Duration `json:"until,omitempty"`
	// How long an answer takes: a time or a range. No time unless said.
	Latency *value.Range `json:"latency,omitempty"`
	// What it answers to HTTP requests: the first that matches counts, and there is 404 for what none matches.
	HTTP []HTTPAnswer `json:"http,omitempty"`
	// What it answers to gRPC health checks: the first that matches counts, and a service that none matches is unknown.
	GRPC []GRPCAnswer `json:"grpc,omitempty"`
}

// HTTPAnswer is the answer to the HTTP requests that it matches.
type HTTPAnswer struct {
	// The path, a pattern in which * stands for any text and ? for one character. Every path unless said.
	Path string `json:"path,omitempty"`
	// The status code. 200 unless said.
	Status int `json:"status,omitempty"`
	// The body.
	Body string `json:"body,omitempty"`
	// From when on it is the answer, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// Until when it is the answer, after the container's start. For ever unless said.
	Until time.Duration `json:"until,omitempty"`
}

// GRPCAnswer is the answer to the gRPC health checks that it matches.
type GRPCAnswer struct {
	// The service, a pattern in which * stands for any text and ? for one character. Every service unless said.
	Service string `json:"service,omitempty"`
	// The status. SERVING unless said.
	Status string `json:"status,omitempty" enum:"SERVING,NOT_SERVING,UNKNOWN,SERVICE_UNKNOWN"`
	// From when on it is the answer, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// Until when it is the answer, after the container's start. For ever unless said.
	Until time.Duration `json:"until,omitempty"`
}

// ExecRule is how the commands end that it matches.
type ExecRule struct {
	// The command's words, joined by blanks: a pattern in which * stands for any text and ? for one character. Every command unless said.
	Command string `json:"command,omitempty"`
	// The exit code, 0 to 255.
	Exit int32 `json:"exit,omitempty"`
	// What it writes.
	Output string `json:"output,omitempty"`
	// How long it runs: a time or a range. No time unless said.
	Takes *value.Range `json:"takes,omitempty"`
	// From when on it counts, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// Until when it counts, after the container's start. For ever unless said.
	Until time.Duration `json:"until,omitempty"`
}

// Shorthand has a port be written as just its number.
func (p *Port) Shorthand() any { return &p.Port }

// Check wants a number that ports have.
func (p *Port) Check(at decode.Place) {
	if p.Port < 1 || p.Port > 65535 {
		at.Field("port").Errorf("the port %d is not within 1 and 65535", p.Port)
	}
	value.Window(at, p.After, p.Until)
}

// Check wants a status code, and a path that a request can have.
func (a *HTTPAnswer) Check(at decode.Place) {
	if a.Status != 0 && (a.Status < 100 || a.Status > 599) {
		at.Field("status").Errorf("the status code %d is not within 100 and 599", a.Status)
	}
	if a.Path != "" && strings.IndexByte("/*?", a.Path[0]) < 0 {
		at.Field("path").Errorf("%q begins with no slash, as every path does", a.Path)
	}
	value.Window(at, a.After, a.Until)
}

// Check wants an answer that has a time.
func (a *GRPCAnswer) Check(at decode.Place) { value.Window(at, a.After, a.Until) }

// Check wants an exit code, and a time.
func (x *ExecRule) Check(at decode.Place) {
	checkExit(at.Field("exit"), x.Exit)
	value.Window(at, x.After, x.Until)
}

// answers translates what a container says to those who ask it something.
func (b *Behaviour) answers(out *fakecri.Behaviour) {
	out.TerminationMessage = b.TerminationMessage
	if b.Ports != nil {
		out.Ports = make([]fakecri.Port, len(b.Ports))
	}
	for i := range b.Ports {
		p := &b.Ports[i]
		q := fakecri.Port{Port: p.Port, After: p.After, Until: p.Until, Latency: p.Latency.Runtime()}
		for _, a := range p.HTTP {
			q.HTTP = append(q.HTTP, fakecri.HTTPAnswer(a))
		}
		for _, a := range p.GRPC {
			q.GRPC = append(q.GRPC, fakecri.GRPCAnswer(a))
		}
		out.Ports[i] = q
	}
	for i := range b.Exec {
		x := &b.Exec[i]
		out.Exec = append(out.Exec, fakecri.ExecRule{Command: x.Command, Exit: x.Exit, Output: x.Output, Takes: x.Takes.Runtime(), After: x.After, Until: x.Until})
	}
}

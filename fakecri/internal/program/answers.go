package program

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Port is a port that a stated program listens on. One with neither HTTP nor
// GRPC answers 200 to every path and SERVING for every service.
type Port struct {
	// Port is the number.
	Port int
	// After is when it begins to listen, after the program's start, and Until
	// when it stops; 0 means never. One that has been told to end by then
	// doesn't begin.
	After, Until time.Duration
	// Latency is how long an answer takes.
	Latency Range
	// HTTP is what it answers to requests; the first that matches counts, and
	// what none matches gets 404.
	HTTP []HTTPAnswer
	// GRPC is what it answers to health checks; the first that matches
	// counts, and a service that none matches is unknown.
	GRPC []GRPCAnswer

	// Raw says that it speaks neither: connections are taken, and whoever asks
	// something finds his closed, unless it is one of Talks.
	Raw   bool
	Talks []Talk

	// Answer, if any, works out the answers of a known image's server.
	Answer func(a Asked) (code int, body string)
}

// Talk is what a server says to words of its own protocol.
type Talk struct {
	Ask string `json:"ask"` // without spaces at its ends
	Say string `json:"say"`
}

// Asked is a request to a known image's server, whose answers are worked out.
type Asked struct {
	Server
	Req *http.Request
	At  time.Duration // since the start of the program
}

// Server is the container that a request has come to.
type Server interface {
	Now() time.Time
	Hostname() string
	// Exit ends the program with a code, once it has answered.
	Exit(code int32)
	// Files are what its processes see of files, nil without processes.
	Files() Files
}

// Files can be looked at.
type Files interface {
	Stat(name string) (fs.FileInfo, error)
	ReadFile(name string) ([]byte, error)
}

// HTTPAnswer is the answer to the requests that it matches.
type HTTPAnswer struct {
	// Path is a pattern with * and ?, compared with the path without query;
	// "" matches every path.
	Path string
	// Status is the code; 0 means 200.
	Status int
	Body   string
	// After and Until bound when it is the answer, after the program's start;
	// an Until of 0 means for ever.
	After, Until time.Duration
}

// GRPCAnswer is the answer to the health checks that it matches.
type GRPCAnswer struct {
	// Service is a pattern with * and ?; "" matches every service.
	Service string
	// Status is SERVING ("" too), NOT_SERVING, UNKNOWN or SERVICE_UNKNOWN.
	Status string
	// After and Until bound when it is the answer, after the program's start;
	// an Until of 0 means for ever.
	After, Until time.Duration
}

// ExecRule is how commands end that are run in the container.
type ExecRule struct {
	// Command is a pattern with * and ?, compared with the command's words,
	// joined by blanks; "" matches every command.
	Command string
	// Exit is the exit code, Output what it writes to stdout.
	Exit   int32
	Output string
	// Takes is how long it runs.
	Takes Range
	// After and Until bound when it counts, after the program's start; an
	// Until of 0 means for ever.
	After, Until time.Duration
}

// healthStatuses are those of grpc.health.v1.
var healthStatuses = []string{"", "SERVING", "NOT_SERVING", "UNKNOWN", "SERVICE_UNKNOWN"}

// During reports whether a time after the start is within a span whose end of 0
// is open.
func During(t, after, until time.Duration) bool {
	return t >= after && (until <= 0 || t < until)
}

// spanError is what is wrong with a span of time, nil for nothing.
func spanError(after, until time.Duration) error {
	switch {
	case after < 0 || until < 0:
		return fmt.Errorf("after, until: negative")
	case until > 0 && until <= after:
		return fmt.Errorf("until: %s is not later than after, %s", until, after)
	}
	return nil
}

// validateAnswers validates ports and commands.
func (b *Behaviour) validateAnswers() error {
	for i := range b.Ports {
		if err := b.Ports[i].validate(); err != nil {
			return fmt.Errorf("ports[%d].%w", i, err)
		}
	}
	for i := range b.Exec {
		x := &b.Exec[i]
		err := spanError(x.After, x.Until)
		if err == nil && (x.Exit < 0 || x.Exit > 255) {
			err = fmt.Errorf("exit: %d is not within 0 to 255", x.Exit)
		}
		if err == nil && x.Takes.Min < 0 {
			err = fmt.Errorf("takes: negative")
		}
		if err != nil {
			return fmt.Errorf("exec[%d].%w", i, err)
		}
	}
	return nil
}

// validate returns what is wrong with the port, naming the field.
func (p *Port) validate() error {
	if p.Port < 1 || p.Port > 65535 {
		return fmt.Errorf("port: %d is not within 1 to 65535", p.Port)
	}
	if p.Latency.Min < 0 {
		return fmt.Errorf("latency: negative")
	}
	if err := spanError(p.After, p.Until); err != nil {
		return err
	}
	for i := range p.HTTP {
		a := &p.HTTP[i]
		if a.Status != 0 && (a.Status < 100 || a.Status > 599) {
			return fmt.Errorf("http[%d].status: %d is not within 100 to 599", i, a.Status)
		}
		if err := spanError(a.After, a.Until); err != nil {
			return fmt.Errorf("http[%d].%w", i, err)
		}
	}
	for i := range p.GRPC {
		a := &p.GRPC[i]
		if !slices.Contains(healthStatuses, a.Status) {
			return fmt.Errorf("grpc[%d].status: %q is none of %s", i, a.Status, strings.Join(healthStatuses[1:], ", "))
		}
		if err := spanError(a.After, a.Until); err != nil {
			return fmt.Errorf("grpc[%d].%w", i, err)
		}
	}
	return nil
}

// AnyPort is how a program answers that states no ports.
var AnyPort = &Port{}

// lists reports whether Ports says something of a port.
func (b *Behaviour) lists(number int) bool {
	return slices.ContainsFunc(b.Ports, func(p Port) bool { return p.Port == number })
}

// AnswersUnlisted reports whether the program answers on a port of which nothing is said, wherever
// its container declares it or its own probes ask.
func (b *Behaviour) AnswersUnlisted(number int) bool {
	return b.Ports == nil || b.others && !b.lists(number)
}

// PortAt returns how the program answers on a port a time after its start, or nil
// when it doesn't listen there.
func (b *Behaviour) PortAt(number int, t time.Duration) *Port {
	if b.AnswersUnlisted(number) {
		return AnyPort
	}
	for i := range b.Ports {
		if p := &b.Ports[i]; p.Port == number && During(t, p.After, p.Until) {
			return p
		}
	}
	return nil
}

// Http returns the answer to a request for a path; speaks is false when the
// port speaks gRPC only.
func (p *Port) Http(path string, t time.Duration) (status int, body string, speaks bool) {
	if len(p.HTTP) == 0 {
		return 200, "", len(p.GRPC) == 0 && !p.Raw
	}
	for i := range p.HTTP {
		a := &p.HTTP[i]
		if GlobMatch(a.Path, path) && During(t, a.After, a.Until) {
			return cmp.Or(a.Status, 200), a.Body, true
		}
	}
	return 404, "404 page not found\n", true
}

// Grpc returns the health of a service, "" when it is unknown; speaks is false
// when the port speaks HTTP only.
func (p *Port) Grpc(service string, t time.Duration) (health string, speaks bool) {
	if len(p.GRPC) == 0 {
		return "SERVING", len(p.HTTP) == 0 && !p.Raw
	}
	for i := range p.GRPC {
		a := &p.GRPC[i]
		if GlobMatch(a.Service, service) && During(t, a.After, a.Until) {
			if a.Status == "" {
				return "SERVING", true
			}
			return a.Status, true
		}
	}
	return "", true
}

// ExecFor returns the rule for a command a time after the start; known tells
// whether any rule, now or at another time, is about it.
func (b *Behaviour) ExecFor(argv []string, t time.Duration) (rule *ExecRule, known bool) {
	if len(b.Exec) == 0 {
		return nil, false
	}
	line := strings.Join(argv, " ")
	for i := range b.Exec {
		x := &b.Exec[i]
		if !GlobMatch(x.Command, line) {
			continue
		}
		known = true
		if During(t, x.After, x.Until) {
			return x, true
		}
	}
	return nil, known
}

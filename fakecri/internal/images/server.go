package images

import (
	"encoding/json"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// server is the server that an image is for.
type server struct {
	// Programs are its command by name; default: that of the image's command. A
	// command line begins with one of them, or with the Wrapper: the entrypoint's
	// script, after which the first program may be left out before options, URLs and With,
	// and any other command is run as it is.
	Programs []string `json:"programs,omitempty"`
	Wrapper  string   `json:"wrapper,omitempty"`
	// With is an argument without which the program is no server. Ends are arguments with
	// which it says something and ends well, beside --help and --version; Alone says that
	// it does so without any.
	With  string   `json:"with,omitempty"`
	Ends  []string `json:"ends,omitempty"`
	Alone bool     `json:"alone,omitempty"`
	// Scripts says that it is no server, and runs what nobody knows if it has arguments.
	Scripts bool `json:"scripts,omitempty"`
	// Needs are what it doesn't start without.
	Needs []need `json:"needs,omitempty"`

	Ports []port `json:"ports"`
	// Ready is how long it takes to listen.
	Ready duration `json:"ready,omitempty"`
	Stop  stop     `json:"stop,omitempty"`

	// Page is what ports say that say nothing else; PageFlag are options that name another.
	Page     string   `json:"page,omitempty"`
	PageFlag []string `json:"pageFlag,omitempty"`
	// Root is the directory whose files it sends in the page's stead, once
	// somebody has put any there: by a mount, or in a container with processes by
	// an exec. Config are the files that somebody brings along who wants other
	// pages; pages are not looked for there, and what is not found is the page then.
	Root   string   `json:"root,omitempty"`
	Config []string `json:"config,omitempty"`
	// Says are lines that it begins with, on stderr.
	Says []string `json:"says,omitempty"`
	// Title is how the first program shows in the process listing, before its
	// arguments, and PIDFile where it writes the number of its process.
	Title   string `json:"title,omitempty"`
	PIDFile string `json:"pidFile,omitempty"`
}

// port is one that a server listens on, or several of one kind.
type port struct {
	// Port is the number unless From says others, and Also are more; 0 means that there
	// is none then.
	Port int   `json:"port,omitempty"`
	Also []int `json:"also,omitempty"`
	// When is an expression for the command line, without which there is no such port.
	When string `json:"when,omitempty"`
	// From is where numbers may be said: the first place that says one counts.
	From []source `json:"from,omitempty"`
	// HTTP is what it answers to requests, and Raw says that it answers none: it speaks
	// a protocol of its own. GRPC has it answer health checks, too.
	HTTP []answer `json:"http,omitempty"`
	Raw  bool     `json:"raw,omitempty"`
	GRPC bool     `json:"grpc,omitempty"`
	// Talks are what it answers to words of its own protocol.
	Talks []talk `json:"talks,omitempty"`

	when *regexp.Regexp
}

// talk is what a port says to words of its own protocol; if a variable must match an
// expression for that, Else is what it says otherwise.
type talk struct {
	Ask   string `json:"ask"`
	Say   string `json:"say"`
	Env   string `json:"env,omitempty"`
	Match string `json:"match,omitempty"`
	Else  string `json:"else,omitempty"`
}

// answer is what a port answers to requests for a path; * and ? are patterns.
type answer struct {
	Path   string `json:"path,omitempty"`
	Status int    `json:"status,omitempty"` // default 200
	Body   string `json:"body,omitempty"`
}

// stop is what the server does on its stop signal.
type stop struct {
	Exit  int32    `json:"exit,omitempty"`
	After duration `json:"after,omitempty"`
}

// need is something that the server doesn't start without: one of the variables, which
// only the wrapper asks for, or something at a path: that of an option, or the one named.
type need struct {
	Env  []string `json:"env,omitempty"`
	File []string `json:"file,omitempty"`
	// Says is its last line, on stderr, and Exit its exit code; default 1.
	Says string `json:"says"`
	Exit int32  `json:"exit,omitempty"`
}

// duration is one as people write it.
type duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	v, err := time.ParseDuration(text)
	*d = duration(v)
	return err
}

// check is what is wrong with a file's server.
func (s *server) check() error {
	for i := range s.Ports {
		p := &s.Ports[i]
		for j := range p.From {
			if err := p.From[j].compile(); err != nil {
				return err
			}
		}
		if p.When != "" {
			var err error
			if p.when, err = regexp.Compile(p.When); err != nil {
				return err
			}
		}
		for _, t := range p.Talks {
			if _, err := regexp.Compile(t.Match); err != nil {
				return err
			}
		}
	}
	return nil
}

// endsSoon is what a program does that only says something.
var endsSoon = &program.Behaviour{RunFor: program.Millis(50, 50), Ports: []program.Port{}}

// daemon is what the server's programs do. Those who share it don't write to it.
func (s *server) daemon() daemonFunc {
	// Of a server that sends files only what its image has is there, unless somebody
	// brings pages or a configuration along.
	usual := s.listensOn(nil)
	own, brought := s.behaviour(usual, s.Root != ""), s.behaviour(usual, false)
	return func(st *Start) *program.Behaviour {
		wrapped := s.Wrapper != "" && path.Base(st.Argv[0]) == s.Wrapper
		argv := s.command(st.Argv)
		if argv == nil {
			return nil
		}
		switch args := argv[1:]; {
		case s.says(args):
			return endsSoon
		case s.Scripts || s.With != "" && !slices.Contains(args, s.With):
			return nil
		}
		st = &Start{Config: st.Config, Argv: argv, Env: st.Env, Files: st.Files}
		for i := range s.Needs {
			if n := &s.Needs[i]; !n.met(st, wrapped) {
				return &program.Behaviour{
					RunFor: program.Millis(100, 100), ExitCode: max(n.Exit, 1), Ports: []program.Port{},
					Logs: []program.LogLine{{Stream: program.StderrName, Text: n.Says}},
				}
			}
		}
		concerned := slices.ContainsFunc(st.Config.GetMounts(), func(m *runtimeapi.Mount) bool { return s.concerns(m.ContainerPath) })
		switch ports := s.listensOn(st); {
		case !sameNumbers(ports, usual) || s.varies(st):
			return s.behaviour(s.said(st, ports), s.Root != "" && !concerned)
		case concerned:
			return brought
		}
		return own
	}
}

// inits are programs that only start another, after --.
var inits = []string{"tini", "dumb-init"}

// unwrapped is a command line without the wrapper.
func (s *server) unwrapped(argv []string) []string {
	if slices.Contains(inits, path.Base(argv[0])) {
		if i := slices.Index(argv, "--"); i > 0 && i+1 < len(argv) {
			argv = argv[i+1:]
		}
	}
	if s.Wrapper != "" && path.Base(argv[0]) == s.Wrapper {
		if argv = argv[1:]; len(argv) == 0 || strings.HasPrefix(argv[0], "-") || strings.Contains(argv[0], "://") || argv[0] == s.With {
			return append([]string{s.Programs[0]}, argv...)
		}
	}
	return argv
}

// command is the server's command line, nil of one that runs something else.
func (s *server) command(argv []string) []string {
	argv = s.unwrapped(argv)
	if !slices.Contains(s.Programs, path.Base(argv[0])) {
		return nil
	}
	return argv
}

// says reports whether the arguments have the program say something and end.
func (s *server) says(args []string) bool {
	return s.Alone && len(args) == 0 || slices.ContainsFunc(args, func(a string) bool {
		return a == "--help" || a == "--version" || slices.Contains(s.Ends, a)
	})
}

// met reports whether what the server needs is there.
func (n *need) met(st *Start, wrapped bool) bool {
	for i, f := range n.File {
		v, ok := f, i == len(n.File)-1
		if f[0] == '-' {
			v, ok = st.option([]string{f})
		}
		if ok { // what is written to a mount later is nobody's business here
			return st.hides(v) || st.brought(v) != nil || st.Files != nil && len(st.Files.Names(v)) > 0
		}
	}
	return !wrapped || slices.ContainsFunc(n.Env, func(name string) bool { return st.variable(name) != "" })
}

// listensOn are the server's ports; those that it has if nothing is said, without a start.
func (s *server) listensOn(st *Start) []program.Port {
	out := []program.Port{}
	for i := range s.Ports {
		p := &s.Ports[i]
		for _, n := range p.numbers(st) {
			if slices.ContainsFunc(out, func(o program.Port) bool { return o.Port == n }) {
				continue
			}
			at := program.Port{Port: n, After: time.Duration(s.Ready), Raw: p.Raw}
			for _, t := range p.Talks {
				say := t.Say
				if t.Env != "" && (st == nil || !regexp.MustCompile(t.Match).MatchString(st.variable(t.Env))) {
					say = t.Else
				}
				at.Talks = append(at.Talks, program.Talk{Ask: t.Ask, Say: say})
			}
			for _, a := range p.HTTP {
				at.HTTP = append(at.HTTP, program.HTTPAnswer{Path: a.Path, Status: a.Status, Body: a.Body})
			}
			if p.GRPC {
				at.GRPC = []program.GRPCAnswer{{Status: "SERVING"}}
			}
			out = append(out, at)
		}
	}
	return out
}

// varies reports whether what is answered, and not only where, depends on the start.
func (s *server) varies(st *Start) bool {
	if _, ok := st.option(s.PageFlag); ok {
		return true
	}
	return slices.ContainsFunc(s.Ports, func(p port) bool {
		return slices.ContainsFunc(p.Talks, func(t talk) bool { return t.Env != "" && st.variable(t.Env) != "" })
	})
}

// said has ports answer with the page that an option names.
func (s *server) said(st *Start, ports []program.Port) []program.Port {
	if page, ok := st.option(s.PageFlag); ok {
		for i := range ports {
			ports[i].HTTP = append(ports[i].HTTP, program.HTTPAnswer{Body: page + "\n"})
		}
	}
	return ports
}

func sameNumbers(a, b []program.Port) bool {
	return slices.EqualFunc(a, b, func(x, y program.Port) bool { return x.Port == y.Port })
}

// concerns reports whether something that is mounted there may change what is served.
func (s *server) concerns(mount string) bool {
	return slices.ContainsFunc(append([]string{s.Root}, s.Config...), func(p string) bool {
		return p != "" && (mount == p || strings.HasPrefix(mount, p+"/") || strings.HasPrefix(p, mount+"/"))
	})
}

// behaviour is what the programs do on those ports; strict has pages beside the first
// missing.
func (s *server) behaviour(ports []program.Port, strict bool) *program.Behaviour {
	ports = slices.Clone(ports)
	for i := range ports {
		p := &ports[i]
		if p.Raw || len(p.HTTP)+len(p.GRPC) > 0 {
			continue
		}
		if s.Page != "" {
			p.HTTP = []program.HTTPAnswer{{Body: s.Page}}
		}
		if s.Root != "" {
			p.Answer = s.pages(strict)
		}
	}
	b := &program.Behaviour{Ports: ports, OnTerm: program.OnTerm{Exit: s.Stop.Exit, After: program.Exactly(time.Duration(s.Stop.After))}}
	for _, line := range s.Says {
		b.Logs = append(b.Logs, program.LogLine{Stream: program.StderrName, Text: line})
	}
	return b
}

// pages answers with the files of the root, and the page in their stead.
func (s *server) pages(strict bool) func(a program.Asked) (int, string) {
	return func(a program.Asked) (int, string) {
		if code, body, ok := s.file(a); ok {
			return code, body
		}
		if name := a.Req.URL.Path; strict && name != "/" && name != "" && name != "/index.html" && !s.configured(a.Files()) {
			return http.StatusNotFound, missingPage(http.StatusNotFound)
		}
		return http.StatusOK, s.Page
	}
}

// missingPage is what a server says with a status of its own.
func missingPage(code int) string {
	return "<html><body><h1>" + http.StatusText(code) + "</h1></body></html>\n"
}

// file is the answer from the root; ok is false without one.
func (s *server) file(a program.Asked) (code int, body string, ok bool) {
	v := a.Files()
	if v == nil {
		return 0, "", false
	}
	if _, err := v.Stat(s.Root); err != nil {
		return 0, "", false
	}
	name := path.Join(s.Root, path.Clean("/"+a.Req.URL.Path))
	st, err := v.Stat(name)
	missing := http.StatusNotFound
	if err == nil && st.IsDir() {
		name, missing = path.Join(name, "index.html"), http.StatusForbidden
	}
	data, err := v.ReadFile(name)
	if err == nil {
		return http.StatusOK, string(data), true
	}
	if s.configured(v) {
		return 0, "", false
	}
	return missing, missingPage(missing), true
}

// configured reports whether a container has written a configuration of its own, in which
// nobody here looks for pages.
func (s *server) configured(v program.Files) bool {
	return v != nil && slices.ContainsFunc(s.Config, func(f string) bool {
		_, err := v.Stat(f)
		return err == nil
	})
}

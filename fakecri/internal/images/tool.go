package images

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// tool is a command of an image that asks a server of its kind, or tells it something, as
// probes and hooks do: pg_isready, redis-cli ping, nginx -s quit.
type tool struct {
	Commands []string `json:"commands"`
	// Args is a pattern of its arguments, with spaces between them and compared without
	// case; "" for whatever they are.
	Args string `json:"args,omitempty"`

	// Port is where it finds its server unless an option or a variable says another; 0:
	// it asks nobody. At are options whose value is host:port, or an URL.
	Port     int      `json:"port,omitempty"`
	HostFlag []string `json:"hostFlag,omitempty"`
	PortFlag []string `json:"portFlag,omitempty"`
	At       []string `json:"at,omitempty"`
	HostEnv  []string `json:"hostEnv,omitempty"`
	PortEnv  []string `json:"portEnv,omitempty"`

	// Says is what it prints when its server is there: {ip}, {host} and {port} are the
	// container's address and the server's. Nothing: what it would print is not known.
	// Quiet: nothing.
	Says  string `json:"says,omitempty"`
	Quiet bool   `json:"quiet,omitempty"`
	// Down is what it says on stderr when nobody listens there, and Exit its exit code
	// then; default 1.
	Down string `json:"down,omitempty"`
	Exit int    `json:"exit,omitempty"`
	// Takes is how long it takes.
	Takes duration `json:"takes,omitempty"`
	// Stops has it stop the container's server, as the stop signal does.
	Stops bool `json:"stops,omitempty"`
}

// Tool is one of an image's tools, with a command line.
type Tool struct {
	*tool
	start Start
}

// Tool is the tool that a command line runs, of any known image; ok is false of any
// other command. Those of the image itself come first.
func (st *Store) Tool(src *Source, argv, env []string) (Tool, bool) {
	if len(argv) == 0 {
		return Tool{}, false
	}
	base, args := path.Base(argv[0]), strings.ToLower(strings.Join(argv[1:], " "))
	find := func(k *knownImage) *tool {
		for i := range k.Tools {
			t := &k.Tools[i]
			if slices.Contains(t.Commands, base) && program.GlobMatch(strings.ToLower(t.Args), args) {
				return t
			}
		}
		return nil
	}
	start := Start{Argv: argv, Env: func() []string { return env }}
	if src.Known != nil {
		if t := find(src.Known); t != nil {
			return Tool{t, start}, true
		}
	}
	for _, k := range st.catalogue.all() {
		if t := find(k); t != nil {
			return Tool{t, start}, true
		}
	}
	return Tool{}, false
}

// Target is where the tool looks for its server; port is 0 of one that asks nobody.
func (t Tool) Target() (host string, port int) {
	host, port = "127.0.0.1", t.Port
	if port == 0 {
		return host, 0
	}
	first := func(flags, env []string) string {
		if v, ok := t.start.option(flags); ok {
			return v
		}
		for _, e := range env {
			if v := t.start.variable(e); v != "" {
				return v
			}
		}
		return ""
	}
	if v := first(t.HostFlag, t.HostEnv); v != "" && v[0] != '/' { // a directory is a socket's
		host = v
	}
	if n, err := strconv.Atoi(first(t.PortFlag, t.PortEnv)); err == nil {
		port = n
	}
	at := first(t.At, nil)
	for _, a := range t.start.Argv[1:] {
		if at == "" && strings.Contains(a, "://") {
			at = a
		}
	}
	if at == "" {
		return host, port
	}
	if _, rest, ok := strings.Cut(at, "://"); ok {
		at = rest
	}
	at = at[strings.LastIndexByte(at, '@')+1:]
	at, _, _ = strings.Cut(at, "/")
	at, _, _ = strings.Cut(at, ",")
	h, p, _ := strings.Cut(at, ":")
	if n, err := strconv.Atoi(p); err == nil {
		port = n
	}
	if h != "" {
		host = h
	}
	return host, port
}

// Text fills in a text of the tool's.
func (t Tool) Text(text, ip, host string, port int) string {
	return strings.NewReplacer("{ip}", ip, "{host}", host, "{port}", strconv.Itoa(port)).Replace(text)
}

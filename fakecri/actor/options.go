package actor

import (
	"fmt"
	"strings"
	"time"
)

// Options are what a command line sets. Durations count from the program's
// start.
type Options struct {
	// Run.
	For         time.Duration // how long it runs
	Limited     bool          // that For was given
	Exit        []int         // the code it then exits with, by the run counted in Count
	Count       string        // the file in which runs are counted
	StopExit    int           // the code after a signal to stop
	StopAfter   time.Duration // how long it takes to stop
	Ignore      []int         // signals that it ignores
	WaitFor     []string      // files that must be there before anything else
	Print       []string      // what it prints at the start
	Write       [][2]string   // files and what they get
	Append      [][2]string
	AtExit      [][2]string // files written when it ends
	Child       []time.Duration
	Termination string
	TermSet     bool
	TermPath    string
	EchoStdin   bool
	StdinExit   bool

	// Logs.
	Log       []string
	LogAfter  time.Duration
	LogEvery  time.Duration
	LogCount  int
	LogBatch  int
	LogLength int64
	LogStream string

	// Servers.
	HTTP, TCP, GRPC []int
	Services        []string
	ListenAfter     time.Duration
	HealthyAfter    time.Duration
	UnhealthyAfter  time.Duration
	RecoverAfter    time.Duration
	HealthyFile     string
	LogRequests     bool

	// Resources.
	Memory      int64
	MemoryAfter time.Duration
	MemoryOver  time.Duration
	CPU         int

	// Of other commands.
	Timeout time.Duration
	Stderr  bool
	Length  int64
	Headers [][2]string
	Method  string
	Data    string
	Service string
}

// defaults sets what is not the zero value.
func (o *Options) defaults() {
	o.TermPath = "/dev/termination-log"
	o.LogBatch = 1
	o.Timeout = 10 * time.Second
	o.LogStream = "stdout"
}

// check tells which options contradict each other.
func (o *Options) check() error {
	fail := func(arg, text string) error { return &UsageError{Command: "run", Argument: "--" + arg, Text: text} }
	switch {
	case len(o.Exit) > 0 && !o.Limited:
		return fail("exit", "needs --for, which says when (--for=0s: at once)")
	case len(o.Exit) > 1 && o.Count == "":
		return fail("exit", "several codes need --count, the file in which runs are counted")
	case o.LogEvery == 0 && o.LogCount > 0:
		return fail("log-count", "needs --log-every")
	case o.UnhealthyAfter > 0 && o.UnhealthyAfter <= o.HealthyAfter:
		return fail("unhealthy-after", "is not after --healthy-after")
	case o.RecoverAfter > 0 && (o.UnhealthyAfter == 0 || o.RecoverAfter <= o.UnhealthyAfter):
		return fail("recover-after", "is not after --unhealthy-after")
	case len(o.Services) > 0 && len(o.GRPC) == 0:
		return fail("grpc-service", "needs --grpc")
	case o.MemoryOver > 0 && o.Memory == 0:
		return fail("memory-over", "needs --memory")
	}
	return nil
}

// option is one of the language's.
type option struct {
	name string
	// value names its value in help; "" means that it takes none.
	value string
	help  string
	set   func(o *Options, value string) error
}

// into makes a setter of a parser.
func into[T any](parse func(string) (T, error), field func(*Options) *T) func(*Options, string) error {
	return func(o *Options, value string) error {
		v, err := parse(value)
		if err == nil {
			*field(o) = v
		}
		return err
	}
}

// more makes a setter that adds to a list.
func more[T any](parse func(string) (T, error), field func(*Options) *[]T) func(*Options, string) error {
	return func(o *Options, value string) error {
		v, err := parse(value)
		if err == nil {
			f := field(o)
			*f = append(*f, v)
		}
		return err
	}
}

// commas makes a parser of lists.
func commas[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(s string) ([]T, error) {
		var out []T
		for _, part := range strings.Split(s, ",") {
			v, err := parse(part)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
}

// text takes any value.
func text(s string) (string, error) { return s, nil }

// fileName takes the name of a file, which may be relative to the working directory.
func fileName(s string) (string, error) {
	if s == "" {
		return "", fmt.Errorf("wants the name of a file")
	}
	return s, nil
}

// fileText takes FILE=TEXT.
func fileText(s string) ([2]string, error) {
	name, text, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return [2]string{}, fmt.Errorf("%q is not FILE=TEXT", s)
	}
	return [2]string{name, text}, nil
}

// header takes NAME:VALUE.
func header(s string) ([2]string, error) {
	name, value, ok := strings.Cut(s, ":")
	if !ok || name == "" || strings.ContainsAny(s, "\r\n") {
		return [2]string{}, fmt.Errorf("%q is not NAME:VALUE", s)
	}
	return [2]string{name, strings.TrimSpace(value)}, nil
}

// streamName takes a stream's name.
func streamName(s string) (string, error) {
	if s != "stdout" && s != "stderr" && s != "both" {
		return "", fmt.Errorf("%q is none of stdout, stderr and both", s)
	}
	return s, nil
}

// printable is what --print takes.
func printable(s string) (string, error) {
	switch s {
	case "args", "env", "id", "hostname", "pid", "pwd":
		return s, nil
	}
	if strings.HasPrefix(s, "/") {
		return s, nil
	}
	return "", fmt.Errorf("%q is none of args, env, id, hostname, pid, pwd and the path of a file", s)
}

// flag is an option without a value.
func flag(field func(*Options) *bool) func(*Options, string) error {
	return func(o *Options, _ string) error {
		*field(o) = true
		return nil
	}
}

// findOption finds an option by name, nil if there is none.
func findOption(name string) *option {
	for i := range options {
		if options[i].name == name {
			return &options[i]
		}
	}
	return nil
}

// options are all options, in the order of help.
var options = []option{
	{"for", "DURATION", "run so long, then exit (without it: until a signal)", func(o *Options, v string) (err error) {
		o.For, err = ParseDuration(v)
		o.Limited = true
		return err
	}},
	{"exit", "CODE[,CODE]...", "exit with that code; of several the one of this run, by --count, the last for all later ones", into(commas(parseCode), func(o *Options) *[]int { return &o.Exit })},
	{"count", "FILE", "count runs in a file", into(fileName, func(o *Options) *string { return &o.Count })},
	{"wait-for", "FILE", "do nothing until the file is there (repeatable)", more(fileName, func(o *Options) *[]string { return &o.WaitFor })},
	{"ignore", "SIGNAL[,SIGNAL]...", "ignore signals", into(commas(parseSignal), func(o *Options) *[]int { return &o.Ignore })},
	{"stop-exit", "CODE", "exit with that code when a signal stops it (default 0)", into(parseCode, func(o *Options) *int { return &o.StopExit })},
	{"stop-after", "DURATION", "take so long to stop", into(ParseDuration, func(o *Options) *time.Duration { return &o.StopAfter })},
	{"print", "WHAT", "print args, env, id, hostname, pid, pwd or a file at the start (repeatable)", more(printable, func(o *Options) *[]string { return &o.Print })},
	{"write", "FILE=TEXT", "write a file at the start (repeatable)", more(fileText, func(o *Options) *[][2]string { return &o.Write })},
	{"append", "FILE=TEXT", "add a line to a file at the start (repeatable)", more(fileText, func(o *Options) *[][2]string { return &o.Append })},
	{"at-exit", "FILE=TEXT", "add a line to a file before it exits (repeatable)", more(fileText, func(o *Options) *[][2]string { return &o.AtExit })},
	{"termination-message", "TEXT", "write a termination message before it exits", func(o *Options, v string) error { o.Termination, o.TermSet = v, true; return nil }},
	{"termination-path", "FILE", "where (default /dev/termination-log)", into(fileName, func(o *Options) *string { return &o.TermPath })},
	{"child", "DURATION", "start a child that lives so long (repeatable)", more(ParseDuration, func(o *Options) *[]time.Duration { return &o.Child })},
	{"stdin", "", "copy standard input to standard output", flag(func(o *Options) *bool { return &o.EchoStdin })},
	{"stdin-exit", "", "exit when standard input ends", flag(func(o *Options) *bool { return &o.StdinExit })},
	{"log", "TEXT", "write a line, in which {n} counts (repeatable: one after the other)", more(text, func(o *Options) *[]string { return &o.Log })},
	{"log-after", "DURATION", "begin to log then", into(ParseDuration, func(o *Options) *time.Duration { return &o.LogAfter })},
	{"log-every", "DURATION", "go on logging at that interval", into(ParseDuration, func(o *Options) *time.Duration { return &o.LogEvery })},
	{"log-count", "N", "so many times", into(parseCount, func(o *Options) *int { return &o.LogCount })},
	{"log-batch", "N", "so many lines each time", into(parseCount, func(o *Options) *int { return &o.LogBatch })},
	{"log-length", "SIZE", "fill lines up to that length", into(ParseSize, func(o *Options) *int64 { return &o.LogLength })},
	{"log-stream", "STREAM", "stdout, stderr or both (in turn)", into(streamName, func(o *Options) *string { return &o.LogStream })},
	{"http", "PORT", "serve HTTP (repeatable; see below)", more(parsePort, func(o *Options) *[]int { return &o.HTTP })},
	{"tcp", "PORT", "accept connections and echo what comes (repeatable)", more(parsePort, func(o *Options) *[]int { return &o.TCP })},
	{"grpc", "PORT", "serve gRPC health (repeatable)", more(parsePort, func(o *Options) *[]int { return &o.GRPC })},
	{"grpc-service", "NAME", "a service that gRPC health knows beside the empty one (repeatable)", more(text, func(o *Options) *[]string { return &o.Services })},
	{"listen-after", "DURATION", "open the ports then", into(ParseDuration, func(o *Options) *time.Duration { return &o.ListenAfter })},
	{"healthy-after", "DURATION", "be unhealthy until then", into(ParseDuration, func(o *Options) *time.Duration { return &o.HealthyAfter })},
	{"unhealthy-after", "DURATION", "be unhealthy from then on", into(ParseDuration, func(o *Options) *time.Duration { return &o.UnhealthyAfter })},
	{"recover-after", "DURATION", "and healthy again from then on", into(ParseDuration, func(o *Options) *time.Duration { return &o.RecoverAfter })},
	{"healthy-file", "FILE", "be healthy only while the file is there", into(fileName, func(o *Options) *string { return &o.HealthyFile })},
	{"log-requests", "", "log each request", flag(func(o *Options) *bool { return &o.LogRequests })},
	{"memory", "SIZE", "use memory", into(ParseSize, func(o *Options) *int64 { return &o.Memory })},
	{"memory-after", "DURATION", "take it then", into(ParseDuration, func(o *Options) *time.Duration { return &o.MemoryAfter })},
	{"memory-over", "DURATION", "and not at once but over that time", into(ParseDuration, func(o *Options) *time.Duration { return &o.MemoryOver })},
	{"cpu", "SHARE", "use processors: 200m, 1", into(parseMillis, func(o *Options) *int { return &o.CPU })},
	{"timeout", "DURATION", "give up then (default 10s)", into(ParseDuration, func(o *Options) *time.Duration { return &o.Timeout })},
	{"stderr", "", "write to standard error", flag(func(o *Options) *bool { return &o.Stderr })},
	{"length", "SIZE", "of each line", into(ParseSize, func(o *Options) *int64 { return &o.Length })},
	{"header", "NAME:VALUE", "send a header (repeatable)", more(header, func(o *Options) *[][2]string { return &o.Headers })},
	{"method", "METHOD", "of the request (default GET)", into(text, func(o *Options) *string { return &o.Method })},
	{"data", "TEXT", "send it", into(text, func(o *Options) *string { return &o.Data })},
	{"service", "NAME", "ask for that service", into(text, func(o *Options) *string { return &o.Service })},
}

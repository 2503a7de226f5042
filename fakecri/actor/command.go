package actor

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
)

// command is one of the program's.
// The table drives parsing and help alike, so help can't lag behind.
type command struct {
	name string
	// args names its arguments; min and max bound their number, max < 0 is any.
	args     string
	min, max int
	help     string
	options  []string
	// raw says that everything after its name is an argument.
	raw   bool
	check func(c *Call) error
	run   func(p *program, ctx context.Context) int
}

// usage is the command's line in help.
func (c *command) usage() string {
	out := c.name
	if len(c.options) > 0 {
		out += " [OPTION]..."
	}
	if c.args != "" {
		out += " " + c.args
	}
	return out
}

// find finds a command by name, nil if there is none.
func find(name string) *command {
	list := commands()
	for i := range list {
		if list[i].name == name {
			return &list[i]
		}
	}
	return nil
}

// runOptions are those of run: all up to --cpu.
// The list of options is in the order of help, and help breaks it at the same place.
func runOptions() []string {
	var out []string
	for _, o := range options {
		out = append(out, o.name)
		if o.name == "cpu" {
			break
		}
	}
	return out
}

// argument makes a check of one argument.
// An argument that is missing is not its business: min has been checked.
func argument[T any](i int, name string, parse func(string) (T, error)) func(*Call) error {
	return func(c *Call) error {
		if i >= len(c.Args) {
			return nil
		}
		if _, err := parse(c.Args[i]); err != nil {
			// The text is the parser's own, so that help and errors agree on the form.
			return &UsageError{Command: c.Command, Argument: name, Text: err.Error()}
		}
		return nil
	}
}

// commands lists all commands, in the order of help.
func commands() []command {
	// A check looks at one value, so the host is dropped here.
	hostPort := func(s string) (int, error) { _, n, err := parseHostPort(s); return n, err }
	return []command{
		{name: "run", max: 0, help: "run until a signal comes, or as the options say", options: runOptions(), run: (*program).run},
		{name: "pause", max: 0, help: "wait for a signal, and reap what is left behind", run: pause},
		{name: "exit", args: "CODE [TEXT]...", min: 1, max: -1, help: "print a line, if any, and exit", options: []string{"stderr"}, check: argument(0, "CODE", parseCode), run: (*program).exit},
		{name: "chain", args: "COMMAND [ARG]... [-- COMMAND [ARG]...]...", min: 1, max: -1, help: "one command after the other, up to the first that fails", raw: true, check: checkChain, run: (*program).chain},
		{name: "sleep", args: "DURATION", min: 1, max: 1, help: "wait", check: argument(0, "DURATION", ParseDuration), run: (*program).sleep},
		{name: "echo", args: "[TEXT]...", max: -1, help: "print a line", options: []string{"stderr"}, run: (*program).echo},
		{name: "lines", args: "N [TEXT]", min: 1, max: 2, help: "print N lines, in which {n} counts", options: []string{"stderr", "length"}, check: argument(0, "N", parseCount), run: (*program).lines},
		{name: "args", args: "[ARG]...", max: -1, raw: true, help: "print the arguments, quoted, one a line", run: (*program).args},
		{name: "env", args: "[NAME]", max: 1, help: "print the environment, sorted, or a variable (1 if it is not set)", run: (*program).env},
		{name: "id", max: 0, help: "print user, group and supplementary groups by number", run: (*program).id},
		{name: "hostname", max: 0, help: "print the host name", run: (*program).hostname},
		{name: "pwd", max: 0, help: "print the working directory", run: (*program).pwd},
		{name: "pid", max: 0, help: "print the numbers of this process and its parent", run: (*program).pid},
		{name: "ps", max: 0, help: "print the number, parent and command line of each process", run: (*program).ps},
		{name: "kill", args: "SIGNAL PID", min: 2, max: 2, help: "send a signal", check: argument(0, "SIGNAL", parseSignal), run: (*program).kill},
		{name: "child", args: "DURATION", min: 1, max: 1, help: "leave a child behind that lives so long and keeps standard output open", check: argument(0, "DURATION", ParseDuration), run: (*program).child},
		{name: "tty", max: 0, help: "tell whether standard input is a terminal (1 if not)", run: (*program).tty},
		{name: "cat", args: "[FILE]...", max: -1, help: "print files, or standard input", run: (*program).cat},
		{name: "write", args: "FILE TEXT", min: 2, max: 2, help: "write a file, a line", run: (*program).write},
		{name: "append", args: "FILE TEXT", min: 2, max: 2, help: "add a line to a file", run: (*program).add},
		{name: "touch", args: "FILE...", min: 1, max: -1, help: "make files, or set their time", run: (*program).touch},
		{name: "rm", args: "FILE...", min: 1, max: -1, help: "remove files or empty directories", run: (*program).rm},
		{name: "mkdir", args: "DIRECTORY...", min: 1, max: -1, help: "make directories", run: (*program).mkdir},
		{name: "mv", args: "FILE FILE", min: 2, max: 2, help: "rename", run: (*program).mv},
		{name: "ln", args: "TARGET FILE", min: 2, max: 2, help: "make a symbolic link", run: (*program).ln},
		{name: "chmod", args: "MODE FILE...", min: 2, max: -1, help: "set permissions (octal)", check: argument(0, "MODE", parseMode), run: (*program).chmod},
		{name: "fill", args: "FILE SIZE", min: 2, max: 2, help: "write a file of that size", check: argument(1, "SIZE", ParseSize), run: (*program).fill},
		{name: "ls", args: "[DIRECTORY]", max: 1, help: "list a directory", run: (*program).ls},
		{name: "stat", args: "FILE...", min: 1, max: -1, help: "print mode, owner, size (of regular files) and name", run: (*program).stat},
		{name: "readlink", args: "FILE", min: 1, max: 1, help: "print where a symbolic link leads", run: (*program).readlink},
		{name: "test-file", args: "FILE...", min: 1, max: -1, help: "exit 0 if all are there", run: (*program).testFile},
		{name: "wait-file", args: "FILE...", min: 1, max: -1, help: "wait until all are there", options: []string{"timeout"}, run: (*program).waitFile},
		{name: "mount", args: "PATH", min: 1, max: 1, help: "tell what is mounted there: type, rw or ro (1 if nothing)", run: (*program).mount},
		{name: "http", args: "URL", min: 1, max: 1, help: "print what a URL answers (1 unless it is 2xx or 3xx)", options: []string{"timeout", "method", "header", "data"}, check: argument(0, "URL", parseURL), run: (*program).httpGet},
		{name: "tcp", args: "HOST:PORT", min: 1, max: 1, help: "connect, send --data, if any, and print what comes back", options: []string{"timeout", "data"}, check: argument(0, "HOST:PORT", hostPort), run: (*program).tcpDial},
		{name: "grpc", args: "HOST:PORT", min: 1, max: 1, help: "print the health that a gRPC server tells (1 unless SERVING)", options: []string{"timeout", "service"}, check: argument(0, "HOST:PORT", hostPort), run: (*program).grpcCheck},
		{name: "help", max: 0, help: "print this", run: help},
	}
}

// program is one run of the program.
// Commands of a chain are runs of their own, which share the World.
type program struct {
	w     World
	start time.Time
	*Call
	ending bool
}

// Main is the program. It returns the exit code.
// No state is global, so many programs run in one process of a simulation.
func Main(ctx context.Context, w World) int {
	p := &program{w: w, start: w.Now()}
	call, err := Parse(w.Args())
	if err != nil {
		// The code of usage errors is 2, as that of shells' builtins is.
		p.write2(ctx, "actor: "+err.Error()+"\n")
		return 2
	}
	p.Call = call
	return call.command.run(p, ctx)
}

// print writes on standard output. If nobody takes it the program ends.
func (p *program) print(ctx context.Context, parts ...string) {
	if _, err := p.w.Stdout().Write(ctx, []byte(strings.Join(parts, ""))); err != nil {
		p.w.Exit(ctx, 1)
	}
}

// line writes a line on standard output, or with --stderr on the other.
func (p *program) line(ctx context.Context, text string) {
	if p.Options.Stderr {
		p.write2(ctx, text+"\n")
		return
	}
	p.print(ctx, text, "\n")
}

// write2 writes on standard error; nobody can be told if that fails.
func (p *program) write2(ctx context.Context, text string) {
	_, _ = p.w.Stderr().Write(ctx, []byte(text))
}

// fail says what went wrong with something, and returns 1.
// It goes to stderr, so that stdout has only what a command was asked for.
func (p *program) fail(ctx context.Context, what string, err error) int {
	p.write2(ctx, "actor: "+p.Command+": "+what+": "+reason(err)+"\n")
	return 1
}

// reason is an error without the names that the system's packages add.
// The names may differ between a real machine and the fake runtime; errno's texts don't.
func reason(err error) string {
	var errno linux.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	// Errors of fs may hold none, such as fs.ErrClosed.
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// checkChain parses every command of a chain.
// A mistake in a later command is found before the first one runs.
func checkChain(c *Call) error {
	for _, argv := range links(c.Args) {
		if _, err := Parse(append([]string{Program}, argv...)); err != nil {
			// The inner error is flattened to text, since its command is not the one that
			// was called.
			return &UsageError{Command: c.Command, Text: err.Error()}
		}
	}
	return nil
}

// links are the commands of a chain.
// "--" separates them, so no argument of a chain can be that.
func links(args []string) [][]string {
	out := [][]string{nil}
	for _, a := range args {
		if a == "--" {
			out = append(out, nil)
			continue
		}
		out[len(out)-1] = append(out[len(out)-1], a)
	}
	return out
}

// chain is the command of that name. Its commands share the process, and with it the
// memory and children of those before.
func (p *program) chain(ctx context.Context) int {
	for _, argv := range links(p.Args) {
		call, err := Parse(append([]string{Program}, argv...))
		if err != nil {
			// It was checked before the chain began.
			return 2
		}
		// Each has a start of its own: its durations count from then, not from the
		// chain's.
		sub := &program{w: p.w, start: p.w.Now(), Call: call}
		// exit ends the chain even with code 0, as it would end a script.
		if code := call.command.run(sub, ctx); code != 0 || call.Command == "exit" {
			return code
		}
	}
	return 0
}

// help prints the commands and the options.
func help(p *program, ctx context.Context) int {
	var b strings.Builder
	b.WriteString("actor COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n")
	for _, c := range commands() {
		b.WriteString("  " + c.usage() + "\n        " + c.help + "\n")
	}
	b.WriteString("\nOptions of run:\n")
	for _, o := range options {
		b.WriteString("  --" + o.name)
		if o.value != "" {
			b.WriteString("=" + o.value)
		}
		b.WriteString("\n        " + o.help + "\n")
		if o.name == "cpu" {
			b.WriteString("\nOptions of other commands:\n")
		}
	}
	b.WriteString(servedHelp)
	p.print(ctx, b.String())
	return 0
}

package actor

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/lists"
)

// Call is a command line that was understood.
type Call struct {
	// Command is the command's name, Args what it is about.
	Command string
	Args    []string
	// Options are what was set.
	Options Options

	command *command
}

// UsageError says what is wrong with a command line.
type UsageError struct {
	// Command is the command's name, "" if that is what is wrong.
	Command string
	// Argument is the option or argument that is wrong, as its help names it.
	Argument string
	Text     string
}

// Error names the command and the argument.
func (e *UsageError) Error() string {
	parts := lists.Filter([]string{e.Command, e.Argument, e.Text}, func(p string) bool { return p != "" })
	return strings.Join(parts, ": ")
}

// Parse reads a command line, with the program's name. The error is a
// *UsageError.
// Nothing is run and nothing outside is looked at, so a scenario can be checked early.
func Parse(argv []string) (*Call, error) {
	// Called by the pause program's name, the command is implied and arguments come after
	// it.
	if len(argv) > 0 && path.Base(argv[0]) == path.Base(PauseProgram) {
		argv = append([]string{argv[0], "pause"}, argv[1:]...)
	}
	if len(argv) < 2 {
		return nil, &UsageError{Text: "which command? \"actor help\" lists them"}
	}
	name := argv[1]
	cmd := find(name)
	if cmd == nil {
		return nil, &UsageError{Text: fmt.Sprintf("%q is not a command; \"actor help\" lists them", name)}
	}
	c := &Call{Command: name, command: cmd}
	c.Options.defaults()
	if cmd.raw {
		c.Args = argv[2:]
		return c, c.check()
	}
	for i, a := range argv[2:] {
		if a == "--" {
			c.Args = append(c.Args, argv[2+i+1:]...)
			break
		}
		// A lone dash, and what has just one, are arguments: no option is that short.
		if len(a) < 3 || !strings.HasPrefix(a, "--") {
			c.Args = append(c.Args, a)
			continue
		}
		if err := c.option(a); err != nil {
			return nil, err
		}
	}
	return c, c.check()
}

// option reads one "--name=value".
func (c *Call) option(a string) error {
	// Only the first "=" separates, so values may hold more of them.
	name, value, given := strings.Cut(a[2:], "=")
	o := findOption(name)
	fail := func(format string, args ...any) error {
		return &UsageError{Command: c.Command, Argument: "--" + name, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case o == nil || !slices.Contains(c.command.options, name):
		if list := c.command.options; len(list) > 0 {
			return fail("not an option of %s, which has --%s", c.Command, strings.Join(list, ", --"))
		}
		return fail("%s has no options", c.Command)
	case o.value == "" && given:
		return fail("takes no value")
	case o.value != "" && !given:
		return fail("wants a value: --%s=%s", name, o.value)
	}
	if err := o.set(&c.Options, value); err != nil {
		return fail("%v", err)
	}
	return nil
}

// check looks at what options and arguments make together.
func (c *Call) check() error {
	names := strings.Fields(c.command.args)
	switch n := len(c.Args); {
	case n < c.command.min:
		missing := "an argument"
		if n < len(names) {
			missing = strings.Trim(names[n], "[].")
		}
		return &UsageError{Command: c.Command, Text: "wants " + missing + ": actor " + c.command.usage()}
	case c.command.max >= 0 && n > c.command.max:
		return &UsageError{Command: c.Command, Text: fmt.Sprintf("%q is one argument too many: actor %s", c.Args[c.command.max], c.command.usage())}
	}
	if c.command.check != nil {
		if err := c.command.check(c); err != nil {
			return err
		}
	}
	if c.Command == "run" {
		return c.Options.check()
	}
	return nil
}

// ParseDuration reads a duration: Go's, not negative.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration such as 5s or 300ms", s)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", s)
	}
	return d, nil
}

// sizeUnits are in the order in which suffixes are tried.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"", 1},
}

// ParseSize reads a number of bytes: 64Mi, 1k, 12.
// The bound of 2^50 bytes keeps sums of sizes from overflowing.
func ParseSize(s string) (int64, error) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 40)
		if err != nil || n > (1<<50)/uint64(u.bytes) {
			break
		}
		return int64(n) * u.bytes, nil
	}
	return 0, fmt.Errorf("%q is not a size such as 64Mi, 1k or 512", s)
}

// parseMillis reads a share of processors: 500m, 2, 0.5.
func parseMillis(s string) (int, error) {
	if digits, ok := strings.CutSuffix(s, "m"); ok {
		if n, err := strconv.ParseUint(digits, 10, 20); err == nil {
			return int(n), nil
		}
	} else if f, err := strconv.ParseFloat(s, 64); err == nil && f >= 0 && f < 1000 {
		return int(f * 1000), nil
	}
	return 0, fmt.Errorf("%q is not a share of processors such as 200m or 1", s)
}

// parsePort takes a port's number, from 1 on.
func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", s)
	}
	return int(n), nil
}

// parseCode takes an exit code.
func parseCode(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%q is not an exit code from 0 to 255", s)
	}
	return int(n), nil
}

// parseCount takes a number that is not negative.
func parseCount(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number from 0 on", s)
	}
	return int(n), nil
}

// parseSignal reads TERM, SIGTERM or 15.
func parseSignal(s string) (int, error) {
	if n := signalNames[strings.TrimPrefix(s, "SIG")]; n != 0 {
		return n, nil
	}
	if n, err := strconv.ParseUint(s, 10, 8); err == nil && n <= 64 {
		return int(n), nil
	}
	return 0, fmt.Errorf("%q is not a signal such as TERM", s)
}

// parseHostPort reads HOST:PORT; the host may be empty, for this machine.
func parseHostPort(s string) (string, int, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", 0, fmt.Errorf("%q is not HOST:PORT", s)
	}
	port, err := parsePort(s[i+1:])
	if err != nil {
		return "", 0, err
	}
	// Brackets around an IPv6 address are of the notation, not of the address.
	host := cmp.Or(strings.TrimSuffix(strings.TrimPrefix(s[:i], "["), "]"), "127.0.0.1")
	return host, port, nil
}

// target is what a URL leads to.
type target struct {
	host string
	port int
	path string
}

// parseURL reads http://HOST[:PORT][/PATH].
func parseURL(s string) (target, error) {
	rest, ok := strings.CutPrefix(s, "http://")
	if !ok {
		return target{}, fmt.Errorf("%q does not begin with http://", s)
	}
	hostPort, file, _ := strings.Cut(rest, "/")
	// A colon within the brackets of an IPv6 address is no port's.
	if !strings.Contains(strings.TrimLeft(hostPort[strings.LastIndexByte(hostPort, ']')+1:], "]"), ":") {
		hostPort += ":80"
	}
	host, port, err := parseHostPort(hostPort)
	return target{host, port, "/" + file}, err
}

func itoa(n int) string { return strconv.Itoa(n) }

package value

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// Range is a span from which a time is drawn, both ends included. It is
// written as one time, "2s", or as two, "2s..4s".
type Range struct{ Min, Max time.Duration }

// DecodeYAML reads one time or two.
func (r *Range) DecodeYAML(at decode.Place) bool {
	text, ok := at.Scalar()
	if !ok {
		at.Mismatch("a time such as 2s, or a range such as 2s..4s")
		return true
	}
	lo, hi, two := strings.Cut(text, "..")
	from, ok := at.ParseDuration(strings.TrimSpace(lo))
	to := from
	if ok && two {
		to, ok = at.ParseDuration(strings.TrimSpace(hi))
	}
	switch {
	case !ok:
	case to < from:
		at.Refuse("%s: the range ends before it begins", text)
	default:
		*r = Range{from, to}
	}
	return true
}

// Runtime is the range as the runtime takes it; nil is none.
func (r *Range) Runtime() fakecri.Range {
	if r == nil {
		return fakecri.Range{}
	}
	return fakecri.Range{Min: r.Min, Max: r.Max}
}

// Time is a time after the start, or "end".
type Time struct {
	After time.Duration
	End   bool
}

// DecodeYAML reads a time or "end".
func (t *Time) DecodeYAML(at decode.Place) bool {
	if text, _ := at.Scalar(); text == "end" {
		t.End = true
	} else if after, ok := at.Duration(); ok {
		t.After = after
	}
	return true
}

// Signal is a signal's number, written as a name or as a number.
type Signal int

// DecodeYAML reads a name, with or without SIG, or a number.
func (s *Signal) DecodeYAML(at decode.Place) bool {
	text, ok := at.Scalar()
	if !ok {
		at.Mismatch("a signal such as SIGKILL")
		return true
	}
	i, err := strconv.Atoi(text)
	if err != nil {
		i = slices.Index(signals(), "SIG"+strings.TrimPrefix(strings.ToUpper(text), "SIG"))
	}
	if i < 1 || i > 64 {
		at.Refuse("%q is no signal such as SIGKILL%s", decode.Short(text), suggest.Suffix(text, signals()[1:]))
		return true
	}
	*s = Signal(i)
	return true
}

// signals are the names of Linux' signals, by number.
func signals() []string {
	return strings.Fields("- SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE SIGALRM SIGTERM " +
		"SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ SIGVTALRM SIGPROF SIGWINCH SIGIO SIGPWR SIGSYS")
}

// JSON is any value, as JSON.
type JSON []byte

// DecodeYAML takes any value that has a JSON.
func (j *JSON) DecodeYAML(at decode.Place) bool {
	b, err := json.Marshal(at.Plain())
	if err != nil {
		at.Refuse("has no JSON: %v", err)
	}
	*j = b
	return true
}

// Window checks an after and an until, of which 0 means for ever; at is the
// place of what has them.
func Window(at decode.Place, after, until time.Duration) {
	if until > 0 && until <= after {
		at.Field("until").Errorf("%s is not later than after, %s", until, after)
	}
}

// ExactlyOne reports whether one of several things is said.
func ExactlyOne(said ...bool) bool {
	n := 0
	for _, x := range said {
		if x {
			n++
		}
	}
	return n == 1
}

// OneOf reports a text that is none of those known, which it calls what they
// are: "there is no resource ...".
func OneOf(at decode.Place, what, text string, known []string) {
	if !slices.Contains(known, text) {
		at.Errorf("there is no %s %q%s", what, decode.Short(text), suggest.Suffix(text, known))
	}
}

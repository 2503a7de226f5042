package parity

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// placeholder is what stands in a recording for what no two runs have in common.
var placeholder = regexp.MustCompile(`<(?:time|microtime|time\+\d+|time:\w+|uid:\d+|rv|rv:\?|rv:\d+\+?|gen|gen:\d+|age|clusterIP:\d+|nodePort:\d+|continue|jwt)>`)

// The forms of what placeholders stand for.
const (
	stamp   = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	micro   = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z`
	anytime = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`
)

// form returns the expression for a placeholder.
func form(p string) string {
	kind, _, _ := strings.Cut(strings.Trim(p, "<>"), ":")
	switch kind {
	case "microtime":
		return micro
	case "time":
		if strings.Contains(p, ":") {
			return anytime
		}
		return stamp
	case "uid":
		return `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	case "rv", "nodePort":
		return `\d+`
	case "gen":
		return `[a-z0-9]{5}`
	case "age":
		return `(?:\d+[smhdy]){1,2}`
	case "clusterIP":
		return `\d+\.\d+\.\d+\.\d+|[0-9a-f:]+`
	case "continue":
		return `.+`
	case "jwt":
		return `eyJ[\w-]+\.[\w-]+\.[\w-]+`
	}
	return stamp // time+30
}

// bound are what placeholders have stood for in a case.
type bound struct {
	seen   *Seen
	at     int
	values map[string]string    // by placeholder
	names  map[string]string    // placeholders by kind and value
	births map[string]string    // creationTimestamps by UID
	ranks  map[int]rank         // versions by number
	lists  []rank               // those of lists
	forms  map[string]*compiled // by the recorded text
}

// rank is a version that was seen for a placeholder.
type rank struct {
	version   uint64
	n         int // the placeholder's number
	request   int
	path      string
	want, got string
}

// compiled is a recorded text with placeholders, as an expression.
type compiled struct {
	re    *regexp.Regexp
	names []string // of its groups
}

func newBound(seen *Seen) *bound {
	return &bound{seen: seen, values: map[string]string{}, names: map[string]string{}, births: map[string]string{}, ranks: map[int]rank{}, forms: map[string]*compiled{}}
}

func (b *bound) compiled(want string) *compiled {
	if c := b.forms[want]; c != nil {
		return c
	}
	c := &compiled{}
	var re strings.Builder
	re.WriteString(`(?s)^`)
	last := 0
	for _, at := range placeholder.FindAllStringIndex(want, -1) {
		name := want[at[0]:at[1]]
		re.WriteString(regexp.QuoteMeta(want[last:at[0]]) + "(" + form(name) + ")")
		c.names = append(c.names, name)
		last = at[1]
	}
	re.WriteString(regexp.QuoteMeta(want[last:]) + "$")
	c.re = regexp.MustCompile(re.String())
	b.forms[want] = c
	return c
}

// text reports whether a text is the recorded one, and remembers what placeholders stand for.
func (b *bound) text(want, got, path string) bool {
	if want == got {
		return true
	}
	c := b.compiled(want)
	m := c.re.FindStringSubmatch(got)
	if m == nil || len(c.names) == 0 {
		return false
	}
	for i, name := range c.names {
		if !b.bind(name, m[i+1], path) {
			return false
		}
	}
	return true
}

// bind reports whether a placeholder can stand for a value.
func (b *bound) bind(name, value, path string) bool {
	kind, number, _ := strings.Cut(strings.Trim(name, "<>"), ":")
	switch {
	case kind == "rv":
		return b.version(name, number, value, path)
	case kind == "time" && number != "":
		return true
	case strings.HasPrefix(kind, "time"), kind == "microtime":
		t, err := time.Parse(time.RFC3339, value)
		return err == nil && b.when(kind, t)
	case number == "": // any
		return true
	}
	if was, ok := b.values[name]; ok {
		return was == value
	}
	if other, ok := b.names[kind+value]; ok && other != name {
		return false
	}
	b.values[name], b.names[kind+value] = value, name
	return true
}

// when reports whether a time is about when the request was sent, or earlier in the case; of
// "time+30" whether it is 30 s after one of the requests. The slack is for whole seconds and for a
// server's own clock.
func (b *bound) when(kind string, t time.Time) bool {
	const slack = 2 * time.Second
	after, ok := strings.CutPrefix(kind, "time+")
	if !ok {
		return !t.Before(b.seen.Sent[0].Add(-slack-time.Second)) && !t.After(b.seen.Done[b.at].Add(slack))
	}
	n, err := strconv.Atoi(after)
	if err != nil {
		return false
	}
	for _, sent := range b.seen.Sent[:b.at+1] {
		if d := t.Sub(sent) - time.Duration(n)*time.Second; d.Abs() <= slack {
			return true
		}
	}
	return false
}

// version takes a resourceVersion; whether those of a case are in order is known at its end.
func (b *bound) version(name, number, value, path string) bool {
	if number == "" || number == "?" {
		return true
	}
	v, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(number, "+"))
	if err != nil {
		return false
	}
	r := rank{v, n, b.at, path, name, value}
	if strings.HasSuffix(number, "+") {
		b.lists = append(b.lists, r)
		return true
	}
	if was, ok := b.ranks[n]; ok {
		return was.version == v
	}
	b.ranks[n] = r
	return true
}

// versions returns those that are not in the order that their numbers say.
func (b *bound) versions() (wrong []rank) {
	ranks := slices.SortedFunc(maps.Values(b.ranks), func(x, y rank) int { return cmp.Compare(x.n, y.n) })
	for i := 1; i < len(ranks); i++ {
		if ranks[i].version <= ranks[i-1].version {
			wrong = append(wrong, ranks[i].not("after", ranks[i-1]))
		}
	}
	for _, l := range b.lists {
		for _, r := range ranks {
			switch {
			case r.n <= l.n && r.version > l.version:
				wrong = append(wrong, l.not("at or after", r))
			case r.n > l.n && r.version <= l.version:
				wrong = append(wrong, l.not("before", r))
			default:
				continue
			}
			break
		}
	}
	return wrong
}

// not is a version that is not where another wants it.
func (r rank) not(where string, other rank) rank {
	r.want = fmt.Sprintf("%s, %s %s, which is %s", r.want, where, other.want, other.got)
	return r
}

// born reports whether an object has the creationTimestamp that it had before.
func (b *bound) born(uid, stamp string) bool {
	if was, ok := b.births[uid]; ok {
		return was == stamp
	}
	b.births[uid] = stamp
	return true
}

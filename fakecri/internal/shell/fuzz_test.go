package shell

import (
	"errors"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// FuzzShell runs arbitrary scripts: no panic, and every step gives way.
func FuzzShell(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add(s)
	}
	for _, s := range []string{"f() { f | f & }; f", "while :; do :; done", "while true; do sleep 0.2; done", "x=aaaa; while :; do x=$x$x; done", "trap 'kill $$' TERM; kill $$", "until false; do sleep 0; done"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		x := newMachine(t, 0)
		defer x.l.Close()
		out := &capture{l: x.l}
		if _, err := x.c.Start(kernel.Spec{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/bin", "HOME=/root"}, Dir: "/tmp", FDs: []kernel.File{nil, out, out}}); err != nil {
			return
		}
		for end := loop.Epoch(); x.l.Steps() < 5_000 && end.Sub(loop.Epoch()) < time.Second/2; end = end.Add(5 * time.Millisecond) {
			err := x.l.RunUntil(end)
			var pe *loop.PanicError
			if errors.As(err, &pe) {
				t.Fatalf("%v\n%s", err, pe.Stack)
			}
		}
	})
}

// FuzzParse wants of every text that it is parsed, or an error in ash's form.
func FuzzParse(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		p := parse(script)
		if p.err != "" && len(p.err) < len("syntax error: x") {
			t.Errorf("%q: %q", script, p.err)
		}
	})
}

// FuzzArith evaluates arbitrary expressions.
func FuzzArith(f *testing.F) {
	for _, s := range []string{"1+2*3", "x=5,x++", "1?2:3", "2**70", "-9223372036854775808/-1", "((((1))))", "a=b=c=1", "08", "36#zz", "1<<65", "x||y&&z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		s := &shell{}
		s.vars.set("a", "b", 0)
		s.vars.set("b", "a+1", 0)
		_, _ = evalArith(expr, s)
	})
}

// FuzzMatch holds match against one that tries everything.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"a*b?c", "axxbyc"}, {"[a-c]*[!x]", "bzz"}, {"*[[:digit:]]", "ab3"}, {`\**`, "*a"}, {"[]a]", "]"}, {"[a", "[a"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, p, s string) {
		if len(p) > 12 || len(s) > 12 {
			return
		}
		if got, want := match(p, s), slowMatch(p, s); got != want {
			t.Errorf("match(%q, %q) = %v", p, s, got)
		}
	})
}

func slowMatch(p, s string) bool {
	if p == "" {
		return s == ""
	}
	if p[0] == '*' {
		for i := 0; i <= len(s); i++ {
			if slowMatch(p[1:], s[i:]) {
				return true
			}
		}
		return false
	}
	if s == "" {
		return false
	}
	pn, sn := matchOne(p, s)
	return pn > 0 && slowMatch(p[pn:], s[sn:])
}

// FuzzTrim holds the short ways of trimming against trying every place.
func FuzzTrim(f *testing.F) {
	f.Add("*/", "a/b/c", true)
	f.Add("/*", "a/b/c", false)
	f.Add("*", "abc", true)
	f.Add(`\**`, "a*b", false)
	f.Fuzz(func(t *testing.T, p, s string, longest bool) {
		if len(p) > 8 || len(s) > 16 {
			return
		}
		prefix, suffix := s, s
		for i := range len(s) + 1 {
			n := i
			if longest {
				n = len(s) - i
			}
			if prefix == s && match(p, s[:n]) && n > 0 {
				prefix = s[n:]
				break
			} else if match(p, s[:n]) {
				break
			}
		}
		for i := range len(s) + 1 {
			n := len(s) - i
			if longest {
				n = i
			}
			if match(p, s[n:]) {
				suffix = s[:n]
				break
			}
		}
		if got := trimPrefix(s, p, longest); got != prefix {
			t.Errorf("trimPrefix(%q, %q, %v) = %q, want %q", s, p, longest, got, prefix)
		}
		if got := trimSuffix(s, p, longest); got != suffix {
			t.Errorf("trimSuffix(%q, %q, %v) = %q, want %q", s, p, longest, got, suffix)
		}
	})
}

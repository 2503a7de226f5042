package shell

import (
	"errors"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/arith"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
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
	f.Fuzz(func(t *testing.T, text string) {
		p := script.Parse(text)
		if p.Err != "" && len(p.Err) < len("syntax error: x") {
			t.Errorf("%q: %q", text, p.Err)
		}
	})
}

// FuzzArith evaluates arbitrary expressions.
func FuzzArith(f *testing.F) {
	for _, s := range []string{"1+2*3", "x=5,x++", "1?2:3", "2**70", "-9223372036854775808/-1", "((((1))))", "a=b=c=1", "08", "36#zz", "1<<65", "x||y&&z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		s := &shell{process: &process{}}
		s.vars.set("a", "b", 0)
		s.vars.set("b", "a+1", 0)
		_, _ = arith.Eval(expr, arithVars{s})
	})
}

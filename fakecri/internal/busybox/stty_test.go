package busybox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func TestStty(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		args     []string
		want     string
		code     int
	}{
		{"size", true, []string{"size"}, "33 77\n", 0},
		{"modes", true, nil, "speed 38400 baud; line = 0;\n", 0},
		{"a mode", true, []string{"raw"}, "stty: invalid argument 'raw'\n", 1},
		{"no terminal", false, []string{"size"}, "stty: standard input: Not a tty\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			var in kernel.File = input{strings.NewReader("")}
			if c.terminal {
				tty := r.m.NewTTY(&output{})
				tty.Resize(77, 33)
				in = tty.Slave()
			}
			out := &output{}
			var exit *kernel.Exit
			_, err := r.c.Start(kernel.Spec{
				Argv: append([]string{"stty"}, c.args...), Env: []string{"PATH=/bin"},
				FDs: []kernel.File{in, out, out}, Done: func(e kernel.Exit) { exit = &e },
			})
			if err != nil {
				t.Fatal(err)
			}
			r.run(time.Second)
			if exit == nil || exit.Code != c.code || string(out.b) != c.want {
				t.Errorf("it ended with %v and wrote %q, want %d and %q", exit, out.b, c.code, c.want)
			}
		})
	}
}

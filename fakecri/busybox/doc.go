// Package busybox has the commands of a busybox 1.35 image as programs of the
// fake runtime's kernel: the same options, output, messages and exit codes, as
// Debian's build of it has them (which leaves out a few things that others
// have: the TIME column of ps, for one).
//
// An applet is plain blocking code on the node's loop. It waits only in the
// kernel's calls, and whatever could run for ever without waiting (yes, cat
// /dev/zero) gives way by [kernel.Process.Step] as it goes, so that virtual time
// passes and signals reach it. What is not built is not listed: the name is then
// not found, and the runtime warns.
//
// The shell is not here: it is package fakecri/internal/shell.
package busybox

import (
	"context"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Commands returns all applets, as programs by name. Each call makes a new map.
func Commands() kernel.Commands {
	list := applets()
	out := make(kernel.Commands, len(list))
	for _, a := range list {
		out[a.name] = a.command()
	}
	return out
}

// Applets lists the names of all applets, sorted.
func Applets() []string {
	var out []string
	for _, a := range applets() {
		out = append(out, a.name)
	}
	return out
}

// Debian tells whether a command of Commands is also in Debian's busybox 1.35.
func Debian(name string) bool {
	switch name {
	case "cksum", "nice", "nohup", "pgrep", "pkill", "printenv", "usemem":
		return false
	}
	return true
}

// Small lists the names of those in a small image: the ones whose recordings
// of the real kubelet the tests replay. "sh" is among them.
func Small() []string {
	return strings.Fields("cat date dd echo env false grep head hostname httpd id kill ls mkdir nc ps rm sh sleep sync tail test top touch true wget")
}

// applet is one command. usage is its synopsis, without the name.
type applet struct {
	name, usage string
	run         func(c *call) int
}

func (a applet) command() kernel.Command {
	return func(ctx context.Context, p *kernel.Process) (code int) {
		c := newCall(ctx, p, a)
		defer func() {
			switch r := recover().(type) {
			case nil:
			case exitStatus:
				code = int(r)
			default:
				panic(r)
			}
		}()
		if len(c.args) == 1 && c.args[0] == "--help" && a.name != "test" && a.name != "[" && a.name != "[[" && a.name != "true" && a.name != "false" && a.name != "echo" {
			c.showUsage()
			return 0
		}
		code = a.run(c)
		if !c.out.flush() {
			c.errorf("standard output: %s", strerror(c.out.err))
			return 1
		}
		return code
	}
}

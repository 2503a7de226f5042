// Package applet is what the commands of a busybox image are made of: the shape that all of them
// have ([Applet]), one run of such a command ([Call]) with its arguments, output and messages,
// and what several commands share. The commands themselves are package applets, one a file.
//
// call.go, getopt.go and stream.go are for every applet, and to be read first: how it is called,
// how it reads its options (as BusyBox's getopt32 does), how it reads and writes. exec.go starts
// programs. The other files are of a matter: copy.go, files.go, fileinfo.go and below.go of files
// and their modes, archive.go of packing, users.go of accounts, proc.go of processes, net.go of
// addresses, dump.go of dumps, date.go of dates, text.go, match.go and escape.go of text.
//
// A Call is not a context to pass around: it belongs to the task of one process. It ends an
// applet from any depth by a panic of its own ([Call.Die], [Call.Exit]), which Commands turns
// into the exit code; nobody else may recover it.
//
// Two things a real applet never thinks of are kept in mind here. Work takes virtual time only if
// somebody says so ([Call.Spend]), and memory counts only if somebody says so ([Call.Hold]). An
// applet that loops or collects without either would stop its node, or fill the simulator.
//
// Messages and statuses are BusyBox 1.35's, to the letter: logs of containers and tests show
// them.
package applet

import (
	"context"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Applet is a program and the names that it is called by. What it does may depend
// on the name, as grep's does. Run is called once for each process, on that one's task, and may
// be running many times at once.
type Applet struct {
	Names []Name
	// Run returns the exit status.
	Run func(c *Call) int
}

// Name is a name of an applet, and what its usage message shows after it.
type Name struct{ Name, Usage string }

// New returns an applet with its names, each followed by its usage. An empty usage means that
// only the name is shown.
func New(run func(c *Call) int, names ...string) Applet {
	a := Applet{Run: run}
	for i := 0; i < len(names); i += 2 {
		a.Names = append(a.Names, Name{names[i], names[i+1]})
	}
	return a
}

// AddTo puts the applet among the programs of an image, by each of its names.
func (a Applet) AddTo(programs kernel.Commands) {
	for _, n := range a.Names {
		programs[n.Name] = a.Program(n)
	}
}

// Program is the applet under one of its names. A failed output is found here at the latest, and
// makes the status 1.
func (a Applet) Program(n Name) kernel.Command {
	return func(ctx context.Context, p *kernel.Process) (code int) {
		c := newCall(ctx, p, n)
		defer func() {
			switch r := recover().(type) {
			case nil:
			case exitStatus:
				code = int(r)
			default:
				panic(r)
			}
		}()
		// BusyBox handles --help for all applets at once, before they run.
		if len(c.Args) == 1 && c.Args[0] == "--help" && n.helps() {
			c.ShowUsage()
			return 0
		}
		code = a.Run(c)
		if !c.Out.Flush() {
			c.Errorf("standard output: %s", Strerror(c.Out.Err))
			return 1
		}
		return code
	}
}

// helps reports whether --help is an option and no operand. These print or judge what they are
// given.
func (n Name) helps() bool {
	switch n.Name {
	case "test", "[", "[[", "true", "false", "echo":
		return false
	}
	return true
}

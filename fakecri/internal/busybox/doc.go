// Package busybox has the commands of a busybox 1.35 image as programs of the
// fake runtime's kernel: the same options, output, messages and exit codes, as
// Debian's build of it has them (which leaves out a few things that others
// have: the TIME column of ps, for one).
//
// Package applets is the catalogue, a file for each; package applet is what an
// applet is made of; awk and sed are languages of their own; posix has what the
// shell needs too.
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
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applets"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Commands returns all applets, as programs by name, and the others that are built. Each
// call makes a new map.
func Commands() kernel.Commands {
	out := kernel.Commands{}
	for _, a := range append(applets.All(), applets.Others()...) {
		a.AddTo(out)
	}
	return out
}

// Applets lists the names of all applets, sorted.
func Applets() []string { return applets.Names() }

// Others lists the programs that are none of BusyBox.
func Others() []string {
	var out []string
	for _, a := range applets.Others() {
		out = append(out, a.Names[0].Name)
	}
	return out
}

// Debian reports whether Debian's busybox 1.35 has an applet; the others are of other
// builds.
func Debian(name string) bool {
	switch name {
	case "cksum", "nice", "nohup", "pgrep", "pkill", "printenv", "usemem":
		return false
	}
	return true
}

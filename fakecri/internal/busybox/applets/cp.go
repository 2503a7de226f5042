package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Cp is cp, whose copying is applet.Copier's, as mv's across file systems is.
// -r keeps links as links unless -L. -i asks nobody and overwrites: what runs
// in containers has nobody to ask. Extended attributes and SELinux contexts do
// not exist here, so -c and --context are not built.
func Cp() applet.Applet {
	return applet.New(runCp, "cp", "[-arPLHpfilsTu] SOURCE DEST | SOURCE... { -t DIRECTORY | DIRECTORY }")
}

func runCp(c *applet.Call) int {
	o := c.Getopt("pdRfilsLHarPvuTt:n", "archive=a", "force=f", "interactive=i", "link=l", "dereference=L", "no-dereference=P",
		"recursive=R", "symbolic-link=s", "no-target-directory=T", "target-directory=t:", "verbose=v", "update=u", "preserve=p", "no-clobber=n")
	args := o.Args
	dest := ""
	// -t names the directory up front, so every operand is a source.
	if o.Has('t') {
		dest = o.Str('t')
	} else if len(args) >= 2 {
		dest = args[len(args)-1]
		args = args[:len(args)-1]
	}
	if len(args) == 0 || dest == "" && !o.Has('t') {
		c.Usage()
	}
	// -a is -dpR.
	p := &applet.Copier{
		C: c, Recursive: o.Has('R') || o.Has('r') || o.Has('a'), Preserve: o.Has('p') || o.Has('a'), Force: o.Has('f'),
		Update: o.Has('u'), NoClobber: o.Has('n'), Verbose: o.Has('v'), Symlink: o.Has('s'), Hardlink: o.Has('l'),
	}
	// Without recursion a link that is named is followed unless -d or -P say
	// otherwise.
	p.KeepLinks = o.Has('d') || o.Has('P') || o.Has('a') || p.Recursive
	if o.Has('L') {
		p.KeepLinks = false
	}
	// -H follows what is named on the command line; links met below stay links.
	p.FollowArgs = !p.KeepLinks || o.Has('H')
	// With -T the destination is never a directory to copy into.
	fi, err := c.View().Stat(dest)
	intoDir := err == nil && fi.IsDir() && !o.Has('T')
	if len(args) == 1 && !intoDir && !o.Has('t') {
		if p.Copy(args[0], dest, true) {
			return 0
		}
		return 1
	}
	code := 0
	for _, a := range args {
		// Slashes at the end of a source are no part of its name.
		if !p.Copy(a, applet.Join(dest, applet.Base(strings.TrimRight(a, "/"))), true) {
			code = 1
		}
	}
	return code
}

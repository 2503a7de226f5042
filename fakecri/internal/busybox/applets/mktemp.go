package applets

import (
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Mktemp is mktemp. A template must end with six X, as BusyBox has it (GNU
// takes three); names are drawn by the loop, from the template, the process and
// the time, so that they are the same in each run. -u makes nothing and so
// promises nothing.
func Mktemp() applet.Applet { return applet.New(runMktemp, "mktemp", "[-dqtu] [-p DIR] [TEMPLATE]") }

// env returns a variable of the environment.
func env(c *applet.Call, name string) string {
	// The last entry wins, in case the environment names the variable twice.
	for i := len(c.P.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(c.P.Env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// runMktemp draws names until one is free. The draw depends on nothing outside
// the run, so a seed decides the names that logs and traces show.
func runMktemp(c *applet.Call) int {
	o := c.Getopt("dqtp:u", "directory=d", "quiet=q")
	template := "tmp.XXXXXX"
	dir := ""
	if len(o.Args) > 1 {
		c.Usage()
	}
	if len(o.Args) == 1 {
		template = o.Args[0]
	}
	// A template that is given alone is relative to the working directory; only
	// these three cases look for a directory. An explicit -p overrides TMPDIR.
	if len(o.Args) == 0 || o.Has('t') || o.Has('p') {
		dir = "/tmp"
		if d := env(c, "TMPDIR"); d != "" {
			dir = d
		}
		if o.Has('p') {
			dir = o.Str('p')
		}
		template = applet.Join(dir, template)
	}
	fail := func(err error) int {
		if !o.Has('q') {
			// BusyBox prints the name that mkstemp(3) has left, which is none.
			c.Errorf("(null): %s", applet.Strerror(err))
		}
		return 1
	}
	stem, ok := strings.CutSuffix(template, "XXXXXX")
	if !ok {
		return fail(linux.EINVAL)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	// The bound keeps a directory full of such names from hanging the loop.
	// Running out of tries is EEXIST, as in mkstemp(3).
	for n := range uint64(1000) {
		// Six letters of one draw: 62^6 names fit in 64 bits.
		draw := c.P.Loop().Uint64("mktemp", template+" "+strconv.Itoa(c.P.PID()), n+uint64(c.P.Now().UnixNano()))
		name := stem
		for range 6 {
			name += string(rune(letters[draw%62]))
			draw /= 62
		}
		if _, err := c.View().Lstat(name); err == nil {
			continue
		}
		var err error
		switch {
		case o.Has('u'):
		// Nobody else may read what is temporary: 0700 for a directory, 0600
		// for a file, as mkdtemp(3) and mkstemp(3) have it.
		case o.Has('d'):
			err = c.View().Mkdir(name, 0o700)
		default:
			err = c.View().WriteFile(name, nil, 0o600)
		}
		if err != nil {
			return fail(err)
		}
		c.Print(name, "\n")
		return 0
	}
	return fail(linux.EEXIST)
}

package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Which is which: files in PATH, not builtins or functions, which a program
// can't know. -a is read, and shows the first one only.
func Which() applet.Applet { return applet.New(runWhich, "which", "[-a] COMMAND...") }

// lookIn finds an executable file in the directories of a search path.
func lookIn(c *applet.Call, name, search string) (string, error) {
	for _, dir := range strings.Split(search, ":") {
		file := applet.Join(dir, name)
		// Mode 1 is X_OK of access(2). A directory is executable too, and does
		// not count.
		if info, err := c.View().Stat(file); err == nil && info.Mode().IsRegular() && c.View().Access(file, 1) == nil {
			return file, nil
		}
	}
	return "", linux.ENOENT
}

func runWhich(c *applet.Call) int {
	o := c.Getopt("a")
	if len(o.Args) == 0 {
		c.Usage()
	}
	code := 0
	for _, name := range o.Args {
		path, err := c.Find(name, c.P.Env)
		if path == kernel.StandaloneApplet {
			// which(1) looks at files alone; a standalone busybox finds applets without
			// any.
			path, err = lookIn(c, name, applet.SearchPath(c.P.Env))
		}
		if err != nil {
			code = 1
			continue
		}
		c.Print(path, "\n")
	}
	return code
}

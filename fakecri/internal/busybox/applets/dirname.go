package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Dirname is dirname of exactly one name; GNU takes several. Slashes at the end
// do not count, and a name without any is in ".".
func Dirname() applet.Applet { return applet.New(runDirname, "dirname", "FILENAME") }

func runDirname(c *applet.Call) int {
	// Operands are not searched for options, of which there are none.
	if len(c.Args) != 1 {
		c.Usage()
	}
	s := strings.TrimRight(c.Args[0], "/")
	switch i := strings.LastIndexByte(s, '/'); {
	case s == "" && c.Args[0] != "":
		s = "/"
	case i < 0:
		s = "."
	default:
		// Several slashes may stand before the last name, and all go. If nothing is left,
		// they were the root's.
		if s = strings.TrimRight(s[:i], "/"); s == "" {
			s = "/"
		}
	}
	c.Print(s, "\n")
	return 0
}

package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Link is link: link(2) and nothing else, so a directory in the way is an error
// and not a place to link into.
func Link() applet.Applet { return applet.New(runLink, "link", "FILE LINK") }

func runLink(c *applet.Call) int {
	if len(c.Args) != 2 {
		c.Usage()
	}
	if err := c.View().Link(c.Args[0], c.Args[1]); err != nil {
		c.Die("can't create hardlink '%s' to '%s': %s", c.Args[1], c.Args[0], applet.Strerror(err))
	}
	return 0
}

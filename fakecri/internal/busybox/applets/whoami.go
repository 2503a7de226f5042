package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Whoami is whoami; a user without a name in the image is an error.
func Whoami() applet.Applet { return applet.New(runWhoami, "whoami", "") }

func runWhoami(c *applet.Call) int {
	// runAsUser may set any number, so an id without an entry in /etc/passwd is
	// common.
	name, ok := (&applet.Names{C: c}).KnownUser(c.P.Cred.UID)
	if !ok {
		c.Die("unknown uid %d", c.P.Cred.UID)
	}
	c.Print(name, "\n")
	return 0
}

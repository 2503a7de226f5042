package applets

import (
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Mount is mount. Without arguments it lists the container's mounts. A
// container with CAP_SYS_ADMIN can mount a tmpfs; anything else fails as it
// does where device and type are not permitted. Options are read and do
// nothing: -a and remounts are not built.
func Mount() applet.Applet { return applet.New(runMount, "mount", "[-t TYPE] [-o OPT] DEVICE DIR") }

// runMount checks the capability before the operands, so that an unprivileged
// container sees one message whatever it asks for.
func runMount(c *applet.Call) int {
	o := c.Getopt("art:o:fnwvO:T:")
	if len(o.Args) == 0 {
		for _, m := range c.View().Namespace().Mounts() {
			rw := "rw"
			if m.ReadOnly {
				rw = "ro"
			}
			c.Printf("%s on %s type %s (%s,%s)\n", m.Source, m.Path, m.Type, rw, m.Options)
		}
		return 0
	}
	if !c.P.Can(kernel.CapSysAdmin) || len(o.Args) < 2 {
		c.Die("permission denied (are you root?)")
	}
	// Size 0 sets no limit of the mount's own.
	if o.Str('t') == "tmpfs" {
		if err := c.View().Namespace().Tmpfs(o.Args[1], 0); err != nil {
			c.Errorf("mounting %s on %s failed: %s", o.Args[0], o.Args[1], applet.Strerror(err))
			return 255
		}
		return 0
	}
	// No device can be mounted: block devices and bind sources belong to the
	// runtime.
	c.Errorf("mounting %s on %s failed: Permission denied", o.Args[0], o.Args[1])
	return 255
}

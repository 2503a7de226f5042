package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// More is more and less. Neither pages, since nobody could turn the page: both
// are cat. Options of less are read and do nothing.
func More() applet.Applet {
	return applet.New(runMore, "less", "[-EFIMmNRSh~] [FILE]...", "more", "[FILE]...")
}

// runMore is more and less, which without a terminal are cat.
func runMore(c *applet.Call) int {
	o := c.Getopt("EFIMmNRSh~")
	if len(o.Args) == 0 && applet.IsTTY(c.P.FD(0)) {
		c.Usage()
	}
	args := o.Args
	if len(args) == 0 {
		args = []string{"-"}
	}
	code := 0
	for _, a := range args {
		if !c.CatFile(a) {
			code = 1
		}
	}
	return code
}

package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Rev is rev, by bytes: a character of several bytes is taken apart.
func Rev() applet.Applet { return applet.New(runRev, "rev", "[FILE]...") }

func runRev(c *applet.Call) int {
	return c.EachLine(c.Getopt("").Args, applet.PlainOpen, func(text string, ended bool) {
		b := []byte(text)
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
		c.Print(string(b), applet.NewlineIf(ended))
	})
}

package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Pwd is pwd.
func Pwd() applet.Applet { return applet.New(runPwd, "pwd", "") }

func runPwd(c *applet.Call) int {
	c.Print(c.P.Dir, "\n")
	return 0
}

package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Pwd is pwd. The kernel's name of the directory is printed, in which no link
// is left: the shell's pwd keeps the way there, not this one.
func Pwd() applet.Applet { return applet.New(runPwd, "pwd", "") }

// runPwd ignores PWD, which only the shell keeps up to date.
func runPwd(c *applet.Call) int {
	c.Print(c.P.Dir, "\n")
	return 0
}

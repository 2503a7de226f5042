package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Hostid is hostid: the number that a machine without /etc/hostid and without
// an address of its own name has.
func Hostid() applet.Applet { return applet.New(runHostid, "hostid", "") }

func runHostid(c *applet.Call) int { c.Print("00000000\n"); return 0 }

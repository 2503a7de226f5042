package applet

import "github.com/drydock-sim/drydock/fakecri/kernel"

func IsTTY(f kernel.File) bool { return f != nil && kernel.IsTTY(f) }

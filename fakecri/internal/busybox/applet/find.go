package applet

import "strconv"

func Itoa(n int) string { return strconv.Itoa(n) }

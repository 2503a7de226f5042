package applet

import "strconv"

func I64(n int64) string { return strconv.FormatInt(n, 10) }

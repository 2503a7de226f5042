package applets

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Xxd is xxd. The input is read first, from -s on and as far as -l. -r does not
// mind offsets: what it reads is written one after the other. -i, -b and -e are
// not built.
func Xxd() applet.Applet {
	return applet.New(runXxd, "xxd", "[-pr] [-g N] [-c N] [-l LEN] [-s OFS] [FILE]")
}

// runXxd shows rows of 16 bytes in groups of two, or of 30 without groups for
// -p: the defaults of the original xxd.
func runXxd(c *applet.Call) int {
	o := c.Getopt("l:s:c:g:pr")
	columns, group, skip, length := 16, 2, int64(0), int64(-1)
	if o.Has('p') {
		columns = 30
	}
	if o.Has('c') {
		columns = max(1, int(c.Number(o.Str('c'))))
	}
	if o.Has('g') {
		group = int(c.Number(o.Str('g')))
	}
	if o.Has('s') {
		skip = c.Sized(o.Str('s'), applet.SizeSuffixes())
	}
	if o.Has('l') {
		length = c.Number(o.Str('l'))
	}
	data, code := c.Dumped(o.Args[:min(1, len(o.Args))], skip, length)
	if o.Has('r') {
		unXxd(c, string(data), o.Has('p'))
		return code
	}
	// No groups: a row is one.
	group = cmp.Or(group, columns)
	for at := 0; at < len(data); at += columns {
		row := data[at:min(at+columns, len(data))]
		if o.Has('p') {
			c.Print(hex.EncodeToString(row), "\n")
			continue
		}
		text := ""
		for i := 0; i < columns; i++ {
			if i < len(row) {
				text += fmt.Sprintf("%02x", row[i])
			} else {
				text += "  "
			}
			if (i+1)%group == 0 {
				text += " "
			}
		}
		c.Printf("%08x: %s %s\n", int(skip)+at, text, applet.Printable(row))
	}
	return code
}

// unXxd turns a dump back into bytes.
func unXxd(c *applet.Call, text string, plain bool) {
	for _, line := range strings.Split(text, "\n") {
		if !plain {
			if _, rest, ok := strings.Cut(line, ": "); ok {
				line, _, _ = strings.Cut(rest, "  ")
			}
		}
		// What precedes the first invalid digit is still written.
		b, _ := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(line), " ", ""))
		_, _ = c.Out.Write(b)
	}
}

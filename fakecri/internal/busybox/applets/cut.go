package applets

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Cut is cut. Characters are bytes. Fields are printed in the order of the
// line, whatever the order of the list; a byte list takes no -d. -n is read and
// does nothing. Of a delimiter of several characters the first counts.
func Cut() applet.Applet {
	return applet.New(runCut, "cut", "{-b|c LIST | -f LIST [-d SEP] [-s]} [FILE]...")
}

// span is a range of fields or bytes, from 1; hi < 0 is open.
type span struct{ lo, hi int }

// spans reads a list such as 1,3-5,7-.
func spans(c *applet.Call, s string) []span {
	var out []span
	for _, part := range strings.Split(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		// A part such as "-3" begins at 1, one such as "3-" has no end.
		sp := span{1, -1}
		if lo != "" {
			// 1<<30 is beyond any line, and keeps the number an int everywhere.
			sp.lo = int(min(c.Number(lo), 1<<30))
		}
		// BusyBox takes 0 for 1, where GNU's cut refuses it.
		sp.lo = cmp.Or(sp.lo, 1)
		switch {
		case part == "" || part == "-":
			c.Die("invalid byte or field list")
		case !isRange:
			sp.hi = sp.lo
		case hi != "":
			sp.hi = int(min(c.Number(hi), 1<<30))
			if sp.hi < sp.lo {
				c.Die("invalid byte or field list")
			}
		}
		out = append(out, sp)
	}
	return out
}

// in reports whether a number is in one of the ranges.
func in(list []span, n int) bool {
	return slices.ContainsFunc(list, func(s span) bool { return n >= s.lo && (s.hi < 0 || n <= s.hi) })
}

func runCut(c *applet.Call) int {
	o := c.Getopt("b:c:f:d:sn", "bytes=b:", "characters=c:", "fields=f:", "delimiter=d:", "only-delimited=s")
	kinds := 0
	for _, f := range "bcf" {
		if o.Has(byte(f)) {
			kinds++
		}
	}
	if kinds == 0 {
		c.Die("expected a list of bytes, characters, or fields")
	}
	if kinds > 1 {
		c.Die("only one type of list may be specified")
	}
	delim := "\t"
	if o.Has('d') {
		delim = o.Str('d')
		// An empty delimiter is the NUL that ends it in C.
		delim = cmp.Or(delim, "\x00")
		if len(delim) > 1 {
			delim = delim[:1]
		}
	}
	if !o.Has('f') {
		if o.Has('d') {
			c.Die("cutting bytes requires -f")
		}
		list := spans(c, o.Str(o.Last("bc")))
		return c.EachLine(o.Args, applet.PlainOpen, func(text string, _ bool) {
			var b strings.Builder
			for i := 0; i < len(text); i++ {
				if in(list, i+1) {
					b.WriteByte(text[i])
				}
			}
			c.Print(b.String(), "\n")
		})
	}
	list := spans(c, o.Str('f'))
	return c.EachLine(o.Args, applet.PlainOpen, func(text string, _ bool) {
		// A line without the delimiter is printed whole unless -s; an empty one even
		// then.
		if !strings.Contains(text, delim) {
			if !o.Has('s') || text == "" {
				c.Print(text, "\n")
			}
			return
		}
		var kept []string
		for i, f := range strings.Split(text, delim) {
			if in(list, i+1) {
				kept = append(kept, f)
			}
		}
		c.Print(strings.Join(kept, delim), "\n")
	})
}

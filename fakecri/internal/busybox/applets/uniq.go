package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Uniq is uniq. Two lines are compared after -f, -s and -w have had their way;
// the first one is shown. -c pads to seven. -z is read and does nothing. An
// output file is emptied before the input is read.
func Uniq() applet.Applet { return applet.New(runUniq, "uniq", "[-cdui] [-f,s,w N] [FILE [OUTFILE]]") }

// runUniq compares neighbours only: input that is not sorted keeps its
// repetitions.
func runUniq(c *applet.Call) int {
	o := c.Getopt("cduf:s:w:iz", "count=c", "repeated=d", "unique=u", "skip-fields=f:", "skip-chars=s:", "check-chars=w:", "ignore-case=i")
	number := func(f byte) int {
		if !o.Has(f) {
			return 0
		}
		return int(c.Number(o.Str(f)))
	}
	skipFields, skipChars, width := number('f'), number('s'), number('w')
	key := func(s string) string {
		// A field takes the blanks before it along, so the key starts with
		// those of the next one.
		for range skipFields {
			s = strings.TrimLeft(s, " \t")
			if j := strings.IndexAny(s, " \t"); j >= 0 {
				s = s[j:]
			} else {
				s = ""
			}
		}
		s = s[min(skipChars, len(s)):]
		if o.Has('w') {
			s = s[:min(width, len(s))]
		}
		if o.Has('i') {
			s = strings.ToLower(s)
		}
		return s
	}
	if len(o.Args) > 2 {
		c.Usage()
	}
	input := o.Args[:min(1, len(o.Args))]
	if len(o.Args) == 2 && o.Args[1] != "-" {
		f, err := c.Create(o.Args[1], false)
		if err != nil {
			c.Die(applet.CantOpen, o.Args[1], applet.Strerror(err))
		}
		c.Out = c.Buffered(f.F)
	}
	// n counts the lines like last that have come in a row.
	n := 0
	var last string
	show := func() {
		if n == 0 || n == 1 && o.Has('d') || n > 1 && o.Has('u') {
			return
		}
		if o.Has('c') {
			c.Printf("%7d ", n)
		}
		c.Print(last, "\n")
	}
	code := c.EachLine(input, applet.CantOpen, func(text string, _ bool) {
		if n > 0 && key(text) == key(last) {
			n++
			return
		}
		show()
		last, n = text, 1
	})
	// The last run of equal lines has no line after it that would show it.
	show()
	return code
}

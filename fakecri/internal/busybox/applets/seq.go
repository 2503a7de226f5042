package applets

import (
	"math"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// Seq is seq. Values have as many decimals as the first two numbers show; the
// last one does not count, as in BusyBox. An increment of 0 never ends. -f is
// not built. The last number is met with a tolerance of a billionth of the
// increment, since sums of 0.1 do not meet it.
func Seq() applet.Applet { return applet.New(runSeq, "seq", "[-w] [-s SEP] [FIRST [INC]] LAST") }

// runSeq computes each value from the first one instead of adding up, so that
// rounding errors don't grow with the count.
func runSeq(c *applet.Call) int {
	o := c.Getopt("+ws:")
	nums, sep, wide := o.Args, "\n", o.Has('w')
	if o.Has('s') {
		sep = o.Str('s')
	}
	if len(nums) == 0 || len(nums) > 3 {
		c.Usage()
	}
	first, inc, last := 1.0, 1.0, 0.0
	precision, width := 0, 0
	values := make([]float64, len(nums))
	for i, n := range nums {
		f, err := strconv.ParseFloat(n, 64)
		// What is no number shows the usage, not a message of its own.
		if err != nil {
			c.Usage()
		}
		values[i] = f
		if _, frac, ok := strings.Cut(n, "."); ok && (i < len(nums)-1 || len(nums) == 1) {
			precision = max(precision, len(frac))
		}
	}
	last = values[len(values)-1]
	if len(values) > 1 {
		first = values[0]
	}
	if len(values) == 3 {
		inc = values[1]
	}
	// -0 would count as negative further down.
	if inc == 0 {
		inc = 0
	}
	format := func(f float64) string { return strconv.FormatFloat(f, 'f', precision, 64) }
	if wide {
		width = max(len(format(first)), len(format(last)))
	}
	for i := 0; ; i++ {
		v := first + float64(i)*inc
		if inc >= 0 && v > last+math.Abs(inc)*1e-9 || inc < 0 && v < last-math.Abs(inc)*1e-9 {
			if i > 0 {
				c.Print("\n")
			}
			return 0
		}
		if i > 0 {
			c.Print(sep)
		}
		// With -w numbers are padded with zeros to the wider of the first and
		// the last.
		text := format(v)
		if wide {
			spec := posix.Spec{Width: width, Zero: true, Prec: precision, Verb: 'f'}
			text = spec.Float(v)
		}
		c.Print(text)
		// About a million numbers a second.
		c.Spend(applet.WorkPerStep / 1024)
		if c.Out.Failed() {
			return 1
		}
	}
}

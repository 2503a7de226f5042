package applets

import (
	"fmt"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Hexdump is hexdump. -e and -f, which take a format, are read and do nothing:
// the output is then that of the default. Rows like the one before are shown as
// one asterisk, unless -v. The input is read to its end first, or as far as -n
// says.
func Hexdump() applet.Applet {
	return applet.New(runHexdump, "hexdump", "[-C] [-n LEN] [-s OFS] [-v] [FILE]...")
}

func runHexdump(c *applet.Call) int {
	o := c.Getopt("bcdoxCe:f:n:s:v")
	skip, length := int64(0), int64(-1)
	if o.Has('s') {
		skip = c.Sized(o.Str('s'), applet.SizeSuffixes())
	}
	if o.Has('n') {
		length = c.Number(o.Str('n'))
	}
	data, code := c.Dumped(o.Args, skip, length)
	// -C has a digit more in its offsets than the others.
	canonical := o.Has('C')
	offset := "%07x"
	if canonical {
		offset = "%08x"
	}
	applet.Rows(data, o.Has('v'), func(at int, row []byte) {
		c.Printf(offset, int(skip)+at)
		switch {
		case canonical:
			text := ""
			for i := range 16 {
				// A gap before each half of the row.
				if i%8 == 0 {
					text += " "
				}
				// A short last row is padded, so that the text keeps its column.
				if i < len(row) {
					text += fmt.Sprintf("%02x ", row[i])
				} else {
					text += "   "
				}
			}
			c.Print(" ", text, " |", applet.Printable(row), "|\n")
		case o.Has('b'):
			// These rows are padded on the right as well, the last one included.
			c.Printf("%-64s\n", applet.Words(row, 1, " %03o"))
		case o.Has('c'):
			c.Printf("%-64s\n", applet.CharRow(row))
		case o.Has('d'):
			c.Printf("%-64s\n", applet.Words(row, 2, "   %05d"))
		case o.Has('o'):
			c.Printf("%-64s\n", applet.Words(row, 2, "  %06o"))
		case o.Has('x'):
			c.Printf("%-64s\n", applet.Words(row, 2, "    %04x"))
		default:
			c.Printf("%-40s\n", applet.Words(row, 2, " %04x"))
		}
	}, func() { c.Print("*\n") })
	// The offset behind the last byte; an empty input has none.
	if len(data) > 0 {
		c.Printf(offset+"\n", int(skip)+len(data))
	}
	return code
}

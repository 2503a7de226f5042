package applets

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Od is od. Several formats are shown below each other, those of -t first;
// floating point (-f, -t f) is not built, nor are -S and -w, which are read.
// Characters of -t a are shown as -c shows them. The input is read to its end
// first.
func Od() applet.Applet {
	return applet.New(runOd, "od", "[-cdox] [-A RADIX] [-t TYPE] [-N LEN] [-j OFS] [-v] [FILE]...")
}

// runOd collects one formatter for each format asked for, then shows every row
// of 16 bytes with all of them.
func runOd(c *applet.Call) int {
	o := c.Getopt("A:N:abcdefhij:lot:vxsS:w::")
	skip, length := int64(0), int64(-1)
	if o.Has('j') {
		skip = c.Sized(o.Str('j'), applet.SizeSuffixes())
	}
	if o.Has('N') {
		length = c.Sized(o.Str('N'), applet.SizeSuffixes())
	}
	var shows []func(row []byte) string
	add := func(size int, format string) {
		shows = append(shows, func(row []byte) string { return applet.Words(row, size, format) })
	}
	// Each format makes a row of its own from the same 16 bytes.
	for _, t := range o.Value['t'] {
		odTypes(c, t, add, &shows)
	}
	for _, f := range o.Order {
		switch f {
		case 'b':
			add(1, " %03o")
		case 'c':
			shows = append(shows, applet.CharRow)
		case 'd':
			add(2, " %5d")
		case 'o':
			add(2, " %06o")
		case 'x', 'h':
			add(2, " %04x")
		case 'i':
			shows = append(shows, signedWords(4, 12))
		case 's':
			shows = append(shows, signedWords(2, 7))
		case 'l':
			shows = append(shows, signedWords(8, 21))
		}
	}
	// POSIX's default: octal words of two bytes.
	if len(shows) == 0 {
		add(2, " %06o")
	}
	// The radix is octal unless -A says otherwise. n leaves out the column, and
	// at the end the line that gives the length.
	address := func(at int) string {
		switch o.Str('A') {
		case "n":
			return ""
		case "d":
			return fmt.Sprintf("%07d", at)
		case "x":
			return fmt.Sprintf("%06x", at)
		}
		return fmt.Sprintf("%07o", at)
	}
	data, code := c.Dumped(o.Args, skip, length)
	applet.Rows(data, o.Has('v'), func(at int, row []byte) {
		for i, show := range shows {
			head := address(int(skip) + at)
			if i > 0 {
				// Only the first format of a row shows the offset.
				head = strings.Repeat(" ", len(head))
			}
			c.Print(head, show(row), "\n")
		}
	}, func() { c.Print("*\n") })
	if o.Str('A') != "n" {
		c.Print(address(int(skip)+len(data)), "\n")
	}
	return code
}

// odTypes reads the argument of od -t, such as x1z or d4.
func odTypes(c *applet.Call, t string, add func(int, string), shows *[]func([]byte) string) {
	// One argument may hold several types, as in -t x1c.
	for t != "" {
		kind := t[0]
		t = t[1:]
		size := 4
		if kind == 'c' || kind == 'a' {
			*shows = append(*shows, applet.CharRow)
			continue
		}
		if n := applet.LeadingDigits(t); n > 0 {
			size, _ = applet.ParseUint(t[:n])
			t = t[n:]
		} else if t != "" {
			// The letters stand for C's char, short, int and long.
			if i := strings.IndexByte("CSIL", t[0]); i >= 0 {
				size = []int{1, 2, 4, 8}[i]
				t = t[1:]
			}
		}
		// How many digits the greatest number of a size has.
		width := map[int]int{1: 2, 2: 4, 4: 8, 8: 16}[size]
		if width == 0 {
			c.Die("invalid type string '%c%d'", kind, size)
		}
		switch kind {
		case 'x':
			add(size, fmt.Sprintf(" %%0%dx", width))
		case 'o':
			add(size, fmt.Sprintf(" %%0%do", map[int]int{1: 3, 2: 6, 4: 11, 8: 22}[size]))
		case 'u':
			add(size, fmt.Sprintf(" %%%dd", map[int]int{1: 3, 2: 5, 4: 10, 8: 20}[size]))
		case 'd':
			*shows = append(*shows, signedWords(size, map[int]int{1: 5, 2: 7, 4: 12, 8: 21}[size]))
		default:
			c.Die("invalid character '%c' in type string '%c'", kind, kind)
		}
	}
}

// signedWords shows words of a size as signed decimal numbers, right-aligned; a
// word that the row cuts off is filled with zeros.
func signedWords(size, width int) func(row []byte) string {
	return func(row []byte) string {
		var b strings.Builder
		for i := 0; i < len(row); i += size {
			word := make([]byte, 8)
			copy(word, row[i:min(i+size, len(row))])
			// Shifting up as unsigned and down as signed extends the sign of
			// the word.
			shift := uint(64 - 8*size)
			fmt.Fprintf(&b, "%*d", width, int64(binary.LittleEndian.Uint64(word)<<shift)>>shift)
		}
		return b.String()
	}
}

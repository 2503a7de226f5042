package busybox

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// dumped reads what a dump is to show: all inputs one after the other, from an
// offset, up to a length.
func (c *call) dumped(files []string, skip, length int64) ([]byte, int) {
	var data []byte
	code := c.eachInput(files, plainOpen, func(_ string, r io.Reader) error {
		b, err := c.slurp(r)
		data = append(data, b...)
		return err
	})
	data = data[min(skip, int64(len(data))):]
	if length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return data, code
}

// rows calls show for each row of 16 bytes; rows like the one before become a
// star.
func rows(data []byte, verbose bool, show func(at int, row []byte), star func()) {
	var last []byte
	starred := false
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		if !verbose && last != nil && bytes.Equal(row, last) {
			if !starred {
				star()
				starred = true
			}
			continue
		}
		starred = false
		last = row
		show(at, row)
	}
}

func words(row []byte, size int, format string) string {
	var b strings.Builder
	for i := 0; i < len(row); i += size {
		word := make([]byte, 8)
		copy(word, row[i:min(i+size, len(row))])
		fmt.Fprintf(&b, format, binary.LittleEndian.Uint64(word))
	}
	return b.String()
}

func runHexdump(c *call) int {
	o := c.getopt("bcdoxCe:f:n:s:v")
	skip, length := int64(0), int64(-1)
	if o.has('s') {
		skip = c.sized(o.str('s'), sizeSuffixes())
	}
	if o.has('n') {
		length = c.number(o.str('n'))
	}
	data, code := c.dumped(o.args, skip, length)
	canonical := o.has('C')
	offset := "%07x"
	if canonical {
		offset = "%08x"
	}
	rows(data, o.has('v'), func(at int, row []byte) {
		c.printf(offset, int(skip)+at)
		switch {
		case canonical:
			text := ""
			for i := 0; i < 16; i++ {
				if i%8 == 0 {
					text += " "
				}
				if i < len(row) {
					text += fmt.Sprintf("%02x ", row[i])
				} else {
					text += "   "
				}
			}
			c.print(" ", text, " |", printable(row), "|\n")
		case o.has('b'):
			c.printf("%-64s\n", words(row, 1, " %03o"))
		case o.has('c'):
			c.printf("%-64s\n", charRow(row))
		case o.has('d'):
			c.printf("%-64s\n", words(row, 2, "   %05d"))
		case o.has('o'):
			c.printf("%-64s\n", words(row, 2, "  %06o"))
		case o.has('x'):
			c.printf("%-64s\n", words(row, 2, "    %04x"))
		default:
			c.printf("%-40s\n", words(row, 2, " %04x"))
		}
	}, func() { c.print("*\n") })
	if len(data) > 0 {
		c.printf(offset+"\n", int(skip)+len(data))
	}
	return code
}

func printable(row []byte) string {
	out := make([]byte, len(row))
	for i, b := range row {
		if out[i] = b; b < 32 || b > 126 {
			out[i] = '.'
		}
	}
	return string(out)
}

// charRow shows bytes as od -c does.
func charRow(row []byte) string {
	var b strings.Builder
	for _, ch := range row {
		i := strings.IndexByte("\x00\a\b\f\n\r\t\v", ch)
		switch {
		case i >= 0:
			b.WriteString(`  \` + "0abfnrtv"[i:i+1])
		case ch < 32 || ch > 126:
			fmt.Fprintf(&b, " %03o", ch)
		default:
			b.WriteString("   " + string(rune(ch)))
		}
	}
	return b.String()
}

func runOd(c *call) int {
	o := c.getopt("A:N:abcdefhij:lot:vxsS:w::")
	skip, length := int64(0), int64(-1)
	if o.has('j') {
		skip = c.sized(o.str('j'), sizeSuffixes())
	}
	if o.has('N') {
		length = c.sized(o.str('N'), sizeSuffixes())
	}
	var shows []func(row []byte) string
	add := func(size int, format string) {
		shows = append(shows, func(row []byte) string { return words(row, size, format) })
	}
	for _, t := range o.value['t'] {
		c.odTypes(t, add, &shows)
	}
	for _, f := range o.order {
		switch f {
		case 'b':
			add(1, " %03o")
		case 'c':
			shows = append(shows, charRow)
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
	if len(shows) == 0 {
		add(2, " %06o")
	}
	address := func(at int) string {
		switch o.str('A') {
		case "n":
			return ""
		case "d":
			return fmt.Sprintf("%07d", at)
		case "x":
			return fmt.Sprintf("%06x", at)
		}
		return fmt.Sprintf("%07o", at)
	}
	data, code := c.dumped(o.args, skip, length)
	rows(data, o.has('v'), func(at int, row []byte) {
		for i, show := range shows {
			head := address(int(skip) + at)
			if i > 0 {
				head = strings.Repeat(" ", len(head))
			}
			c.print(head, show(row), "\n")
		}
	}, func() { c.print("*\n") })
	if o.str('A') != "n" {
		c.print(address(int(skip)+len(data)), "\n")
	}
	return code
}

// odTypes reads the argument of od -t, such as x1z or d4.
func (c *call) odTypes(t string, add func(int, string), shows *[]func([]byte) string) {
	for t != "" {
		kind := t[0]
		t = t[1:]
		size := 4
		if kind == 'c' || kind == 'a' {
			*shows = append(*shows, charRow)
			continue
		}
		if n := leadingDigits(t); n > 0 {
			size, _ = parseUint(t[:n])
			t = t[n:]
		} else if t != "" {
			if i := strings.IndexByte("CSIL", t[0]); i >= 0 {
				size = []int{1, 2, 4, 8}[i]
				t = t[1:]
			}
		}
		width := map[int]int{1: 2, 2: 4, 4: 8, 8: 16}[size]
		if width == 0 {
			c.die("invalid type string '%c%d'", kind, size)
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
			c.die("invalid character '%c' in type string '%c'", kind, kind)
		}
	}
}

func signedWords(size, width int) func(row []byte) string {
	return func(row []byte) string {
		var b strings.Builder
		for i := 0; i < len(row); i += size {
			word := make([]byte, 8)
			copy(word, row[i:min(i+size, len(row))])
			shift := uint(64 - 8*size)
			fmt.Fprintf(&b, "%*d", width, int64(binary.LittleEndian.Uint64(word)<<shift)>>shift)
		}
		return b.String()
	}
}

func runXxd(c *call) int {
	o := c.getopt("l:s:c:g:pr")
	columns, group, skip, length := 16, 2, int64(0), int64(-1)
	if o.has('p') {
		columns = 30
	}
	if o.has('c') {
		columns = max(1, int(c.number(o.str('c'))))
	}
	if o.has('g') {
		group = int(c.number(o.str('g')))
	}
	if o.has('s') {
		skip = c.sized(o.str('s'), sizeSuffixes())
	}
	if o.has('l') {
		length = c.number(o.str('l'))
	}
	data, code := c.dumped(o.args[:min(1, len(o.args))], skip, length)
	if o.has('r') {
		c.unXxd(string(data), o.has('p'))
		return code
	}
	if group == 0 {
		group = columns
	}
	for at := 0; at < len(data); at += columns {
		row := data[at:min(at+columns, len(data))]
		if o.has('p') {
			c.print(hex.EncodeToString(row), "\n")
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
		c.printf("%08x: %s %s\n", int(skip)+at, text, printable(row))
	}
	return code
}

// unXxd turns a dump back into bytes.
func (c *call) unXxd(text string, plain bool) {
	for _, line := range strings.Split(text, "\n") {
		if !plain {
			if _, rest, ok := strings.Cut(line, ": "); ok {
				line, _, _ = strings.Cut(rest, "  ")
			}
		}
		b, _ := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(line), " ", ""))
		_, _ = c.out.Write(b)
	}
}

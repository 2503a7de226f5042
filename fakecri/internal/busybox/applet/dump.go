package applet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Dumped reads what a dump is to show: all inputs one after the other, from an
// offset, up to a length. hexdump, od and xxd read everything first, as their rows go across
// files.
func (c *Call) Dumped(files []string, skip, length int64) ([]byte, int) {
	var data []byte
	code := c.EachInput(files, PlainOpen, func(_ string, r io.Reader) error {
		b, err := c.Slurp(r)
		data = append(data, b...)
		return err
	})
	data = data[min(skip, int64(len(data))):]
	if length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return data, code
}

// Rows calls show for each row of 16 bytes; rows like the one before become a
// star. A star stands for any number of equal rows (hexdump without -v).
func Rows(data []byte, verbose bool, show func(at int, row []byte), star func()) {
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

// Words shows a row as little-endian numbers of a size; what a last one lacks
// is 0. size is 1, 2, 4 or 8.
func Words(row []byte, size int, format string) string {
	var b strings.Builder
	for i := 0; i < len(row); i += size {
		word := make([]byte, 8)
		copy(word, row[i:min(i+size, len(row))])
		fmt.Fprintf(&b, format, binary.LittleEndian.Uint64(word))
	}
	return b.String()
}

// Printable shows bytes as hexdump -C and xxd do, with dots for what is not
// ASCII.
func Printable(row []byte) string {
	out := make([]byte, len(row))
	for i, b := range row {
		if out[i] = b; b < 32 || b > 126 {
			out[i] = '.'
		}
	}
	return string(out)
}

// CharRow shows bytes as od -c does.
func CharRow(row []byte) string {
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

package applets

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Wc is wc. Characters are bytes. Columns come in the order of BusyBox,
// whatever the order of options: lines, words, characters, bytes, longest line.
// A word is a run of what is not white space; other control characters are
// neither word nor space, as isprint(3) sees them.
func Wc() applet.Applet { return applet.New(runWc, "wc", "[-cmlwL] [FILE]...") }

// runWc counts everything at once and shows what was asked for, so that each
// file is read one time.
func runWc(c *applet.Call) int {
	o := c.Getopt("clmwL", "bytes=c", "lines=l", "chars=m", "words=w", "max-line-length=L")
	which := ""
	for _, f := range "lwmcL" {
		if o.Has(byte(f)) {
			which += string(f)
		}
	}
	which = cmp.Or(which, "lwc")
	// One number of one file stands without padding, for scripts.
	format := "%9d "
	if len(which) == 1 && len(o.Args) <= 1 {
		format = "%d "
	}
	total := map[rune]int64{}
	show := func(n map[rune]int64, name string) {
		text := ""
		for _, f := range which {
			text += fmt.Sprintf(format, n[f])
		}
		if name == "" {
			text = strings.TrimSuffix(text, " ")
		}
		c.Print(text, name, "\n")
	}
	code := c.EachInput(o.Args, applet.PlainOpen, func(name string, r io.Reader) error {
		n, err := count(r)
		for _, f := range "lwmc" {
			total[f] += n[f]
		}
		// The total of longest lines is the longest of all, not their sum.
		total['L'] = max(total['L'], n['L'])
		if len(o.Args) == 0 {
			name = ""
		}
		show(n, name)
		return err
	})
	if len(o.Args) > 1 {
		show(total, "total")
	}
	return code
}

// count counts lines, words, bytes, and the longest line's length.
func count(r io.Reader) (map[rune]int64, error) {
	var lines, words, size, column, longest int64
	word := false
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		size += int64(n)
		for _, ch := range buf[:n] {
			switch {
			case ch > ' ' && ch < 127 || ch >= 128:
				word = true
				column++
				continue
			// Tabs stop at every eighth column, for -L.
			case ch == '\t':
				column = column&^7 + 8
			case ch == ' ':
				column++
			case ch == '\n', ch == '\f', ch == '\r':
				longest = max(longest, column)
				column = 0
				if ch == '\n' {
					lines++
				}
			case ch == '\v':
			default:
				continue
			}
			if word {
				words++
			}
			word = false
		}
		if err != nil {
			// The input may end without white space after its last word.
			if word {
				words++
			}
			if err == io.EOF {
				err = nil
			}
			return map[rune]int64{'l': lines, 'w': words, 'c': size, 'm': size, 'L': max(longest, column)}, err
		}
	}
}

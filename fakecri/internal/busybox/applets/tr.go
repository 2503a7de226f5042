package applets

import (
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Tr is tr, by bytes: characters of several bytes are taken apart. A second set
// that is too short is filled up with its last byte, as BusyBox and GNU do; -t
// ends the first one there instead. [x*n] is not built, nor -ds with two
// meanings beyond deleting and squeezing.
func Tr() applet.Applet { return applet.New(runTr, "tr", "[-cdst] STRING1 [STRING2]") }

// runTr turns the sets into tables over all 256 bytes, so that the cost of a
// byte does not depend on the sets. Input is read in pieces and never held as a whole, so tr can
// stand in an endless pipe.
func runTr(c *applet.Call) int {
	o := c.Getopt("+cCdst", "complement=c", "delete=d", "squeeze-repeats=s", "truncate-set1=t")
	if len(o.Args) == 0 || len(o.Args) > 2 {
		c.Usage()
	}
	from := trSet(c, o.Args[0])
	// The complement is in the order of byte values, which decides what each is
	// translated to.
	if o.Has('c') || o.Has('C') {
		var rest []byte
		for i := range 256 {
			if strings.IndexByte(string(from), byte(i)) < 0 {
				rest = append(rest, byte(i))
			}
		}
		from = rest
	}
	var to []byte
	if len(o.Args) == 2 {
		to = trSet(c, o.Args[1])
		if len(to) == 0 && !o.Has('d') {
			c.Die("STRING2 cannot be empty")
		}
	}
	var table [256]byte
	var drop, squeeze [256]bool
	for i := range table {
		table[i] = byte(i)
	}
	for i, b := range from {
		switch {
		case o.Has('d'):
			drop[b] = true
		// Of a byte that occurs twice in the first set, the last occurrence
		// counts.
		case len(to) > 0 && i < len(to):
			table[b] = to[i]
		case len(to) > 0 && !o.Has('t'):
			table[b] = to[len(to)-1]
		}
	}
	// Of two sets the second is squeezed, as it is what comes out.
	if o.Has('s') {
		set := to
		if len(o.Args) == 1 {
			set = from
		}
		for _, b := range set {
			squeeze[b] = true
		}
	}
	r := c.Stdin()
	buf := make([]byte, 16<<10)
	// last is what was printed last. It survives from one read to the next, or
	// a run that a buffer's end divides would not be squeezed.
	last, any := byte(0), false
	for {
		n, err := r.Read(buf)
		out := make([]byte, 0, n)
		for _, b := range buf[:n] {
			if drop[b] {
				continue
			}
			b = table[b]
			if any && squeeze[b] && b == last {
				continue
			}
			last, any = b, true
			out = append(out, b)
		}
		_, _ = c.Out.Write(out)
		if err == io.EOF || c.Out.Failed() {
			return 0
		}
		if err != nil {
			c.Die("read error: %s", applet.Strerror(err))
		}
	}
}

// trSet expands a set: escapes, ranges, classes. A range whose end comes before its beginning is
// taken for three characters.
func trSet(c *applet.Call, s string) []byte {
	var out []byte
	one := func(i int) (byte, int) {
		if s[i] != '\\' || i+1 >= len(s) {
			return s[i], 1
		}
		if j := strings.IndexByte(`abfnrtv\`, s[i+1]); j >= 0 {
			return "\a\b\f\n\r\t\v\\"[j], 2
		}
		v, n := 0, 1
		for n < 4 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' && v*8+int(s[i+n]-'0') < 256 {
			v = v*8 + int(s[i+n]-'0')
			n++
		}
		if n == 1 {
			return s[i+1], 2
		}
		return byte(v), n
	}
	for i := 0; i < len(s); {
		if strings.HasPrefix(s[i:], "[:") {
			if end := strings.Index(s[i:], ":]"); end > 0 {
				if class := applet.ClassBytes(s[i+2 : i+end]); class != nil {
					out = append(out, class...)
					i += end + 2
					continue
				}
			}
		}
		// An equivalence class holds its one character, as in the C locale.
		if strings.HasPrefix(s[i:], "[=") && len(s) >= i+5 && s[i+3:i+5] == "=]" {
			out = append(out, s[i+2])
			i += 5
			continue
		}
		// one reads a byte or an escape.
		lo, n := one(i)
		i += n
		if i+1 < len(s) && s[i] == '-' {
			hi, n := one(i + 1)
			if hi >= lo {
				for b := int(lo); b <= int(hi); b++ {
					out = append(out, byte(b))
				}
				i += 1 + n
				continue
			}
		}
		out = append(out, lo)
	}
	return out
}

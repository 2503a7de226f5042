package busybox

import (
	"io"
	"strings"
)

// span is a range of fields or bytes, from 1; hi < 0 is open.
type span struct{ lo, hi int }

// spans reads a list such as 1,3-5,7-.
func (c *call) spans(s string) []span {
	var out []span
	for _, part := range strings.Split(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		sp := span{1, -1}
		if lo != "" {
			sp.lo = int(min(c.number(lo), 1<<30))
		}
		if sp.lo == 0 { // is taken for 1
			sp.lo = 1
		}
		switch {
		case part == "" || part == "-":
			c.die("invalid byte or field list")
		case !isRange:
			sp.hi = sp.lo
		case hi != "":
			sp.hi = int(min(c.number(hi), 1<<30))
			if sp.hi < sp.lo {
				c.die("invalid byte or field list")
			}
		}
		out = append(out, sp)
	}
	return out
}

func in(list []span, n int) bool {
	for _, s := range list {
		if n >= s.lo && (s.hi < 0 || n <= s.hi) {
			return true
		}
	}
	return false
}

func runCut(c *call) int {
	o := c.getopt("b:c:f:d:sn", "bytes=b:", "characters=c:", "fields=f:", "delimiter=d:", "only-delimited=s")
	kinds := 0
	for _, f := range "bcf" {
		if o.has(byte(f)) {
			kinds++
		}
	}
	if kinds == 0 {
		c.die("expected a list of bytes, characters, or fields")
	}
	if kinds > 1 {
		c.die("only one type of list may be specified")
	}
	delim := "\t"
	if o.has('d') {
		delim = o.str('d')
		if delim == "" {
			delim = "\x00"
		}
		if len(delim) > 1 {
			delim = delim[:1]
		}
	}
	if !o.has('f') {
		if o.has('d') {
			c.die("cutting bytes requires -f")
		}
		list := c.spans(o.str(o.last("bc")))
		return c.eachLine(o.args, plainOpen, func(text string, _ bool) {
			var b strings.Builder
			for i := 0; i < len(text); i++ {
				if in(list, i+1) {
					b.WriteByte(text[i])
				}
			}
			c.print(b.String(), "\n")
		})
	}
	list := c.spans(o.str('f'))
	return c.eachLine(o.args, plainOpen, func(text string, _ bool) {
		if !strings.Contains(text, delim) {
			if !o.has('s') || text == "" {
				c.print(text, "\n")
			}
			return
		}
		var kept []string
		for i, f := range strings.Split(text, delim) {
			if in(list, i+1) {
				kept = append(kept, f)
			}
		}
		c.print(strings.Join(kept, delim), "\n")
	})
}

func runPaste(c *call) int {
	o := c.getopt("d:s", "delimiters=d:", "serial=s")
	delims := "\t"
	if o.has('d') {
		delims = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\0`, "\x00").Replace(o.str('d'))
	}
	delim := func(i int) string {
		if delims == "" || delims[i%len(delims)] == 0 {
			return ""
		}
		return delims[i%len(delims) : i%len(delims)+1]
	}
	files := o.args
	if len(files) == 0 {
		files = []string{"-"}
	}
	var ins []*lines
	for _, name := range files {
		if name == "-" && len(ins) > 0 {
			ins = append(ins, ins[len(ins)-1])
			continue
		}
		r, err := c.open(name)
		if err != nil {
			c.die(plainOpen, name, strerror(err))
		}
		defer r.Close()
		ins = append(ins, c.lines(r, '\n'))
	}
	if o.has('s') {
		for _, l := range ins {
			for i := 0; ; i++ {
				text, _, ok := l.next()
				if !ok {
					break
				}
				if i > 0 {
					c.print(delim(i - 1))
				}
				c.print(text)
			}
			c.print("\n")
		}
		return 0
	}
	for {
		parts := make([]string, len(ins))
		any := false
		for i, l := range ins {
			text, _, ok := l.next()
			parts[i] = text
			any = any || ok
		}
		if !any {
			return 0
		}
		for i, p := range parts {
			if i > 0 {
				c.print(delim(i - 1))
			}
			c.print(p)
		}
		c.print("\n")
	}
}

func runUniq(c *call) int {
	o := c.getopt("cduf:s:w:iz", "count=c", "repeated=d", "unique=u", "skip-fields=f:", "skip-chars=s:", "check-chars=w:", "ignore-case=i")
	number := func(f byte) int {
		if !o.has(f) {
			return 0
		}
		return int(c.number(o.str(f)))
	}
	skipFields, skipChars, width := number('f'), number('s'), number('w')
	key := func(s string) string {
		for i := 0; i < skipFields; i++ {
			s = strings.TrimLeft(s, " \t")
			if j := strings.IndexAny(s, " \t"); j >= 0 {
				s = s[j:]
			} else {
				s = ""
			}
		}
		s = s[min(skipChars, len(s)):]
		if o.has('w') {
			s = s[:min(width, len(s))]
		}
		if o.has('i') {
			s = strings.ToLower(s)
		}
		return s
	}
	if len(o.args) > 2 {
		c.usage()
	}
	input := o.args[:min(1, len(o.args))]
	if len(o.args) == 2 && o.args[1] != "-" {
		f, err := c.create(o.args[1], false)
		if err != nil {
			c.die(cantOpen, o.args[1], strerror(err))
		}
		c.out = &writer{c: c, f: f.f}
	}
	n := 0
	var last string
	show := func() {
		if n == 0 || n == 1 && o.has('d') || n > 1 && o.has('u') {
			return
		}
		if o.has('c') {
			c.printf("%7d ", n)
		}
		c.print(last, "\n")
	}
	code := c.eachLine(input, cantOpen, func(text string, _ bool) {
		if n > 0 && key(text) == key(last) {
			n++
			return
		}
		show()
		last, n = text, 1
	})
	show()
	return code
}

func runTr(c *call) int {
	o := c.getopt("+cCdst", "complement=c", "delete=d", "squeeze-repeats=s", "truncate-set1=t")
	if len(o.args) == 0 || len(o.args) > 2 {
		c.usage()
	}
	from := c.trSet(o.args[0])
	if o.has('c') || o.has('C') {
		var rest []byte
		for i := 0; i < 256; i++ {
			if strings.IndexByte(string(from), byte(i)) < 0 {
				rest = append(rest, byte(i))
			}
		}
		from = rest
	}
	var to []byte
	if len(o.args) == 2 {
		to = c.trSet(o.args[1])
		if len(to) == 0 && !o.has('d') {
			c.die("STRING2 cannot be empty")
		}
	}
	var table [256]byte
	var drop, squeeze [256]bool
	for i := range table {
		table[i] = byte(i)
	}
	for i, b := range from {
		switch {
		case o.has('d'):
			drop[b] = true
		case len(to) > 0 && i < len(to):
			table[b] = to[i]
		case len(to) > 0 && !o.has('t'):
			table[b] = to[len(to)-1]
		}
	}
	if o.has('s') {
		set := to
		if len(o.args) == 1 {
			set = from
		}
		for _, b := range set {
			squeeze[b] = true
		}
	}
	r := c.stdin()
	buf := make([]byte, 16<<10)
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
		_, _ = c.out.Write(out)
		if err == io.EOF || c.out.failed() {
			return 0
		}
		if err != nil {
			c.die("read error: %s", strerror(err))
		}
	}
}

// trSet expands a set: escapes, ranges, classes.
func (c *call) trSet(s string) []byte {
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
				if class := classBytes(s[i+2 : i+end]); class != nil {
					out = append(out, class...)
					i += end + 2
					continue
				}
			}
		}
		if strings.HasPrefix(s[i:], "[=") && len(s) >= i+5 && s[i+3:i+5] == "=]" {
			out = append(out, s[i+2])
			i += 5
			continue
		}
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

// classBytes lists the characters of a class, nil if there is no such class.
func classBytes(name string) []byte {
	var is func(b byte) bool
	digit := func(b byte) bool { return b >= '0' && b <= '9' }
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	lower := func(b byte) bool { return b >= 'a' && b <= 'z' }
	switch name {
	case "alpha":
		is = func(b byte) bool { return upper(b) || lower(b) }
	case "alnum":
		is = func(b byte) bool { return upper(b) || lower(b) || digit(b) }
	case "digit":
		is = digit
	case "upper":
		is = upper
	case "lower":
		is = lower
	case "space":
		is = func(b byte) bool { return b == ' ' || b >= 9 && b <= 13 }
	case "blank":
		is = func(b byte) bool { return b == ' ' || b == '\t' }
	case "punct":
		is = func(b byte) bool { return b > 32 && b < 127 && !upper(b) && !lower(b) && !digit(b) }
	case "cntrl":
		is = func(b byte) bool { return b < 32 || b == 127 }
	case "xdigit":
		is = func(b byte) bool { return digit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' }
	case "print":
		is = func(b byte) bool { return b >= 32 && b < 127 }
	case "graph":
		is = func(b byte) bool { return b > 32 && b < 127 }
	default:
		return nil
	}
	var out []byte
	for i := 0; i < 256; i++ {
		if is(byte(i)) {
			out = append(out, byte(i))
		}
	}
	return out
}

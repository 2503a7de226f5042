package busybox

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func runCat(c *call) int {
	o := c.getopt("nbvteAETu", "show-all=A", "number=n", "show-ends=E", "show-tabs=T")
	if o.has('n') || o.has('b') {
		n := 0
		fresh := true
		return c.eachInput(o.args, cantOpen, func(_ string, r io.Reader) error {
			l := c.lines(r, '\n')
			for {
				text, ended, ok := l.next()
				if !ok {
					return l.err
				}
				if fresh && !(o.has('b') && text == "") {
					n++
					c.printf("%6d\t", n)
				}
				c.print(text)
				if fresh = ended; ended {
					c.print("\n")
				}
			}
		})
	}
	show := o.has('v') || o.has('e') || o.has('t') || o.has('A')
	ends, tabs := o.has('e') || o.has('A') || o.has('E'), o.has('t') || o.has('A') || o.has('T')
	if show || ends || tabs {
		return c.eachInput(o.args, cantOpen, func(_ string, r io.Reader) error {
			data, err := c.slurp(r)
			c.print(visible(data, show, ends, tabs))
			return err
		})
	}
	code := 0
	args := o.args
	if len(args) == 0 {
		args = []string{"-"}
	}
	for _, name := range args {
		if !c.catFile(name) {
			code = 1
		}
	}
	return code
}

// catFile copies a file to the standard output as it comes.
func (c *call) catFile(name string) bool {
	r, err := c.open(name)
	if err != nil {
		c.errorf(cantOpen, name, strerror(err))
		return false
	}
	defer r.Close()
	in := c.p.FD(0)
	if s, ok := r.(stream); ok {
		in = s.f
	}
	out := c.p.FD(1)
	if out == nil || in == nil {
		c.errorf("write error: Bad file descriptor")
		return false
	}
	if err := c.pour(out, in, -1); err != nil {
		c.errorf("%s", err.Error())
		return false
	}
	return true
}

func visible(data []byte, show, ends, tabs bool) string {
	var b strings.Builder
	for _, ch := range data {
		switch {
		case ch == '\n':
			if ends {
				b.WriteByte('$')
			}
			b.WriteByte(ch)
		case ch == '\t' && !tabs:
			b.WriteByte(ch)
		case !show && ch != '\t':
			b.WriteByte(ch)
		default:
			if ch >= 128 {
				b.WriteString("M-")
				ch -= 128
			}
			switch {
			case ch < 32:
				b.WriteString("^" + string(rune(ch+64)))
			case ch == 127:
				b.WriteString("^?")
			default:
				b.WriteByte(ch)
			}
		}
	}
	return b.String()
}

// legacyCount turns "-5" into "-n 5" for head and tail.
func (c *call) legacyCount(also string) {
	for i, a := range c.args {
		if a == "--" || len(a) < 2 || i > 0 && (c.args[i-1] == "-n" || c.args[i-1] == "-c") {
			continue
		}
		if a[0] == '-' && a[1] >= '0' && a[1] <= '9' {
			c.args = append(append(append([]string{}, c.args[:i]...), "-n", a[1:]), c.args[i+1:]...)
			return
		}
		if also != "" && i == 0 && a[0] == '+' && strings.Trim(a[1:], "0123456789") == "" {
			c.args = append([]string{"-n", a}, c.args[1:]...)
			return
		}
	}
}

func runHead(c *call) int {
	c.legacyCount("")
	o := c.getopt("n:c:qv", "lines=n:", "bytes=c:", "quiet=q", "silent=q", "verbose=v")
	unit := o.last("nc")
	spec := "10"
	if unit != 0 {
		spec = o.str(unit)
	}
	fromEnd := strings.HasPrefix(spec, "-")
	n := c.sized(strings.TrimPrefix(spec, "-"), sizeSuffixes())
	header := headerOf(c, o)
	return c.eachInput(o.args, plainOpen, func(name string, r io.Reader) error {
		header(name)
		switch {
		case unit == 'c' && fromEnd:
			data, err := c.slurp(r)
			c.print(string(data[:max(0, int64(len(data))-n)]))
			return err
		case unit == 'c':
			return c.headBytes(r, n)
		}
		l := c.lines(r, '\n')
		var kept []string
		for i := int64(0); fromEnd || i < n; i++ {
			text, ended, ok := l.next()
			if !ok {
				break
			}
			if ended {
				text += "\n"
			}
			if !fromEnd {
				c.print(text)
				continue
			}
			if kept = append(kept, text); int64(len(kept)) > n {
				c.print(kept[0])
				kept = kept[1:]
			}
		}
		return l.err
	})
}

// headBytes copies n bytes; zeros as such.
func (c *call) headBytes(r io.Reader, n int64) error {
	if s, ok := r.(stream); ok && kernel.ReadsZeros(s.f) && c.p.FD(1) != nil {
		c.out.flush()
		if _, ok := c.p.FD(1).(kernel.ZeroWriter); ok {
			return c.pour(c.p.FD(1), s.f, n)
		}
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{c.out}, io.LimitReader(r, n), make([]byte, 4096))
	return err
}

// headerOf returns what introduces each of several files.
func headerOf(c *call, o *options) func(name string) {
	shown := 0
	want := (len(o.args) > 1 || o.has('v')) && !o.has('q')
	return func(name string) {
		if !want {
			return
		}
		if shown++; shown > 1 {
			c.print("\n")
		}
		if name == "-" {
			name = "standard input"
		}
		c.print("==> ", name, " <==\n")
	}
}

func runTail(c *call) int {
	c.legacyCount("+")
	o := c.getopt("fc:n:qvs:F", "lines=n:", "bytes=c:", "quiet=q", "silent=q", "verbose=v", "follow=f", "retry=F")
	unit := o.last("nc")
	spec := "10"
	if unit != 0 {
		spec = o.str(unit)
	}
	fromStart := strings.HasPrefix(spec, "+")
	n := c.sized(strings.TrimLeft(spec, "+-"), sizeSuffixes())
	follow := o.has('f') || o.has('F')
	type followed struct {
		name string
		r    io.ReadCloser
	}
	var open []followed
	args := o.args
	if len(args) == 0 {
		args = []string{"-"}
	}
	code := 0
	for _, name := range args {
		r, err := c.open(name)
		if err != nil {
			c.errorf(cantOpen, name, strerror(err))
			code = 1
			continue
		}
		open = append(open, followed{name, r})
	}
	// Only those that could be opened count for the headers.
	o.args = o.args[:min(len(o.args), len(open))]
	header := headerOf(c, o)
	for _, f := range open {
		header(f.name)
		if err := c.tail(f.r, n, unit == 'c', fromStart); err != nil {
			c.errorf("%s: %s", f.name, strerror(err))
			code = 1
		}
	}
	if !follow || len(open) == 0 {
		return code
	}
	period := time.Second
	if o.has('s') {
		if d, ok := duration(o.str('s')); ok {
			period = d
		}
	}
	last := open[len(open)-1].name
	for {
		c.out.flush()
		if c.p.Sleep(c.ctx, period) != nil && c.ctx.Err() != nil {
			return 1
		}
		for _, f := range open {
			data, _ := c.slurp(f.r)
			if len(data) == 0 {
				continue
			}
			if f.name != last && len(open) > 1 {
				header(f.name)
				last = f.name
			}
			c.print(string(data))
		}
		if c.out.failed() {
			return 1
		}
	}
}

func runTac(c *call) int {
	return c.eachInput(c.getopt("").args, plainOpen, func(_ string, r io.Reader) error {
		data, err := c.slurp(r)
		list := strings.SplitAfter(string(data), "\n")
		for i := len(list) - 1; i >= 0; i-- {
			c.print(list[i])
		}
		return err
	})
}

// eachLine calls fn for each line of the files, or of the standard input.
func (c *call) eachLine(files []string, openError string, fn func(text string, ended bool)) int {
	return c.eachInput(files, openError, func(_ string, r io.Reader) error {
		l := c.lines(r, '\n')
		for {
			text, ended, ok := l.next()
			if !ok || c.out.failed() {
				return l.err
			}
			fn(text, ended)
		}
	})
}

func newlineIf(ended bool) string {
	if ended {
		return "\n"
	}
	return ""
}

func runRev(c *call) int {
	return c.eachLine(c.getopt("").args, plainOpen, func(text string, ended bool) {
		b := []byte(text)
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
		c.print(string(b), newlineIf(ended))
	})
}

func runNl(c *call) int {
	o := c.getopt("pb:i:l:n:s:v:w:", "body-numbering=b:", "line-increment=i:", "number-format=n:", "number-separator=s:", "starting-line-number=v:", "number-width=w:")
	style, sep, width, n, step := "t", "\t", 6, int64(1), int64(1)
	if o.has('b') {
		style = o.str('b')
	}
	if o.has('s') {
		sep = o.str('s')
	}
	if o.has('w') {
		width = int(c.number(o.str('w')))
	}
	if o.has('v') {
		n, _ = strconv.ParseInt(o.str('v'), 10, 64)
	}
	if o.has('i') {
		step = c.number(o.str('i'))
	}
	format := map[string]string{"ln": "%-*d", "rz": "%0*d"}[o.str('n')]
	if format == "" {
		format = "%*d"
	}
	return c.eachLine(o.args, plainOpen, func(text string, _ bool) {
		if style == "n" || style == "t" && text == "" {
			c.printf("%*s%s\n", width+len(sep), "", text)
			return
		}
		c.printf(format+"%s%s\n", width, n, sep, text)
		n += step
	})
}

func runFold(c *call) int {
	o := c.getopt("bsw:", "bytes=b", "spaces=s", "width=w:")
	width := 80
	if o.has('w') {
		width = max(1, int(c.number(o.str('w'))))
	}
	return c.eachLine(o.args, plainOpen, func(text string, ended bool) {
		for len(text) > width {
			at := width
			if o.has('s') {
				if i := strings.LastIndexAny(text[:width], " \t"); i > 0 {
					at = i + 1
				}
			}
			c.print(text[:at], "\n")
			text = text[at:]
		}
		c.print(text, newlineIf(ended))
	})
}

func runExpand(c *call) int {
	o := c.getopt("it:", "initial=i", "tabs=t:")
	tab := 8
	if o.has('t') {
		tab = max(1, int(c.number(o.str('t'))))
	}
	return c.eachLine(o.args, plainOpen, func(text string, ended bool) {
		column, leading := 0, true
		for i := 0; i < len(text); i++ {
			ch := text[i]
			leading = leading && (ch == ' ' || ch == '\t')
			if ch == '\t' && (leading || !o.has('i')) {
				n := tab - column%tab
				c.print(strings.Repeat(" ", n))
				column += n
				continue
			}
			c.print(text[i : i+1])
			column++
		}
		c.print(newlineIf(ended))
	})
}

func runWc(c *call) int {
	o := c.getopt("clmwL", "bytes=c", "lines=l", "chars=m", "words=w", "max-line-length=L")
	which := ""
	for _, f := range "lwmcL" {
		if o.has(byte(f)) {
			which += string(f)
		}
	}
	if which == "" {
		which = "lwc"
	}
	format := "%9d "
	if len(which) == 1 && len(o.args) <= 1 {
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
		c.print(text, name, "\n")
	}
	code := c.eachInput(o.args, plainOpen, func(name string, r io.Reader) error {
		n, err := count(r)
		for _, f := range "lwmc" {
			total[f] += n[f]
		}
		total['L'] = max(total['L'], n['L'])
		if len(o.args) == 0 {
			name = ""
		}
		show(n, name)
		return err
	})
	if len(o.args) > 1 {
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

func runTee(c *call) int {
	o := c.getopt("ai", "append=a", "ignore-interrupts=i")
	outs := []io.Writer{}
	names := []string{}
	if f := c.p.FD(1); f != nil {
		outs = append(outs, stream{c, f})
		names = append(names, "standard output")
	}
	code := 0
	for _, name := range o.args {
		f, err := c.create(name, o.has('a'))
		if err != nil {
			c.errorf("%s: %s", name, strerror(err))
			code = 1
			continue
		}
		outs = append(outs, f)
		names = append(names, name)
	}
	buf := make([]byte, 4096)
	in := c.stdin()
	for {
		n, err := in.Read(buf)
		for i, w := range outs {
			if w == nil || n == 0 {
				continue
			}
			if _, werr := w.Write(buf[:n]); werr != nil {
				c.errorf("%s: %s", names[i], strerror(werr))
				outs[i] = nil
				code = 1
			}
		}
		if err != nil {
			return code
		}
	}
}

func runYes(c *call) int {
	text := "y"
	if args := c.args; len(args) > 0 {
		if args[0] == "--" {
			args = args[1:]
		}
		text = strings.Join(args, " ")
	}
	line := text + "\n"
	block := strings.Repeat(line, max(1, writerSize/len(line)))
	for {
		c.print(block)
		if c.out.failed() {
			return 1
		}
	}
}

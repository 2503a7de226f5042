package busybox

import (
	"io"
	"io/fs"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/busybox/posix"
)

// grepper is one run of grep.
type grepper struct {
	c        *call
	o        *options
	fixed    []string
	regexes  []*posix.Regexp
	fold     bool
	names    bool // show file names
	before   int
	after    int
	limit    int64
	matched  bool
	broken   bool // a file could not be read
	sep      byte
	separate bool // a "--" is due before the next context
}

const grepOptions = "HhnlLoqvsrRiwxFEGm:A:B:C:e:f:caz"

func runGrep(c *call) int {
	o := c.getoptStatus(2, grepOptions, "color=1::", "count=c", "ignore-case=i", "invert-match=v", "quiet=q", "line-number=n",
		"extended-regexp=E", "fixed-strings=F", "only-matching=o", "recursive=r", "files-with-matches=l", "files-without-match=L",
		"word-regexp=w", "line-regexp=x", "regexp=e:", "file=f:", "no-messages=s", "max-count=m:", "after-context=A:",
		"before-context=B:", "context=C:", "no-filename=h", "with-filename=H", "null-data=z")
	g := &grepper{c: c, o: o, limit: -1, sep: '\n', fold: o.has('i')}
	if o.has('z') {
		g.sep = 0
	}
	files := o.args
	var patterns []string
	for _, p := range o.value['e'] {
		patterns = append(patterns, strings.Split(p, "\n")...)
	}
	for _, f := range o.value['f'] {
		data, err := c.readAll(f)
		if err != nil {
			c.errorf(cantOpen, f, strerror(err))
			return 2
		}
		if text := strings.TrimSuffix(string(data), "\n"); len(data) > 0 {
			patterns = append(patterns, strings.Split(text, "\n")...)
		}
	}
	if !o.has('e') && !o.has('f') {
		if len(files) == 0 {
			c.showUsage()
			return 2
		}
		patterns = strings.Split(files[0], "\n")
		files = files[1:]
	}
	for _, n := range []struct {
		f  byte
		to *int
	}{{'A', &g.after}, {'B', &g.before}} {
		if o.has(n.f) {
			*n.to = int(c.number(o.str(n.f)))
		}
	}
	if o.has('C') {
		n := int(c.number(o.str('C')))
		g.before, g.after = max(g.before, n), max(g.after, n)
	}
	if o.has('m') {
		g.limit = c.number(o.str('m'))
	}
	if !g.compile(patterns) {
		return 2
	}
	recursive := o.has('r') || o.has('R')
	if len(files) == 0 {
		files = []string{"-"}
		if recursive {
			files = []string{"."}
		}
	}
	g.names = (len(files) > 1 || recursive) && !o.has('h') || o.has('H')
	for _, f := range files {
		g.path(f, recursive, true)
	}
	switch {
	case g.broken && !(o.has('q') && g.matched):
		if o.has('s') && g.matched {
			return 0
		}
		return 2
	case g.matched:
		return 0
	}
	return 1
}

// getoptStatus is getopt for applets whose usage errors have another status.
func (c *call) getoptStatus(status int, spec string, long ...string) (o *options) {
	defer func() {
		if r := recover(); r != nil {
			if r == exitStatus(1) {
				r = exitStatus(status)
			}
			panic(r)
		}
	}()
	return c.getopt(spec, long...)
}

func (g *grepper) compile(patterns []string) bool {
	fixed := g.c.name == "fgrep" || g.o.has('F')
	flags := posix.Flags(0)
	if g.c.name == "egrep" || g.o.has('E') {
		flags |= posix.Extended
	}
	if g.fold {
		flags |= posix.Fold
	}
	for _, p := range patterns {
		if fixed {
			if g.fold {
				p = strings.ToLower(p)
			}
			g.fixed = append(g.fixed, p)
			continue
		}
		re, err := posix.Compile(p, flags)
		if err != nil {
			g.c.errorf("bad regex '%s'", p)
			return false
		}
		g.regexes = append(g.regexes, re)
	}
	return true
}

// find returns the first match at or after from, of those that -w and -x allow;
// -1 if there is none.
func (g *grepper) find(line string, from int) (start, end int) {
	start, end = -1, -1
	better := func(s, e int) {
		if start < 0 || s < start || s == start && e > end {
			start, end = s, e
		}
	}
	for _, f := range g.fixed {
		text := line
		if g.fold {
			text = strings.ToLower(line)
		}
		for at := from; at <= len(text); {
			i := strings.Index(text[at:], f)
			if i < 0 {
				break
			}
			if s := at + i; g.allowed(line, s, s+len(f)) {
				better(s, s+len(f))
				break
			}
			at += i + 1
		}
	}
	for _, re := range g.regexes {
		for _, loc := range re.FindAll(line) {
			if loc[0] >= from && g.allowed(line, loc[0], loc[1]) {
				better(loc[0], loc[1])
				break
			}
		}
	}
	return start, end
}

func (g *grepper) allowed(line string, start, end int) bool {
	if g.o.has('x') && (start != 0 || end != len(line)) {
		return false
	}
	if g.o.has('w') {
		return !(start > 0 && isWord(line[start-1])) && !(end < len(line) && isWord(line[end]))
	}
	return true
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (g *grepper) path(name string, recursive, top bool) {
	c := g.c
	if recursive && name != "-" {
		stat := c.view().Lstat
		if top {
			stat = c.view().Stat
		}
		fi, err := stat(name)
		if err == nil && fi.IsDir() {
			list, err := c.view().ReadDir(name)
			if err != nil {
				g.complain(name, err)
				return
			}
			for _, e := range list {
				g.path(join(name, e.Name()), true, false)
			}
			return
		}
		if err == nil && !top && fi.Mode()&fs.ModeSymlink != 0 {
			if target, err := c.view().Stat(name); err == nil && target.IsDir() {
				return
			}
		} else if err == nil && !top && !fi.Mode().IsRegular() {
			return
		}
	}
	r, err := c.open(name)
	if err != nil {
		g.complain(name, err)
		return
	}
	defer r.Close()
	if name == "-" {
		name = "(standard input)"
	}
	g.file(name, r)
}

func (g *grepper) complain(name string, err error) {
	g.broken = true
	if !g.o.has('s') {
		g.c.errorf("%s: %s", name, strerror(err))
	}
}

// file searches one file.
func (g *grepper) file(name string, r io.Reader) {
	c, o := g.c, g.o
	l := c.lines(r, g.sep)
	var earlier []string // lines that may become context, the last one first in number n-1
	var n, hits int64
	pending, lastShown := 0, int64(0)
	for hits != g.limit {
		line, _, ok := l.next()
		if !ok {
			break
		}
		n++
		start, end := g.find(line, 0)
		if (start >= 0) == o.has('v') {
			if pending > 0 {
				pending--
				g.show(name, n, '-', line)
				lastShown = n
			} else if g.before > 0 {
				if earlier = append(earlier, line); len(earlier) > g.before {
					earlier = earlier[1:]
				}
			}
			continue
		}
		hits++
		g.matched = true
		if o.has('q') {
			c.exit(0)
		}
		if o.has('l') || o.has('L') {
			break
		}
		if o.has('c') {
			continue
		}
		if g.before+g.after > 0 && !o.has('o') {
			if first := n - int64(len(earlier)); g.separate && first > lastShown+1 {
				c.print("--\n")
			}
			for i, e := range earlier {
				g.show(name, n-int64(len(earlier)-i), '-', e)
			}
			earlier = earlier[:0]
			g.separate = true
			pending = g.after
			lastShown = n
		}
		if !o.has('o') {
			g.show(name, n, ':', line)
			continue
		}
		for at := 0; start >= 0 && !o.has('v'); {
			if end > start {
				g.show(name, n, ':', line[start:end])
			}
			if at = max(end, at+1); at > len(line) {
				break
			}
			start, end = g.find(line, at)
		}
	}
	for ; pending > 0 && hits == g.limit && !o.has('c'); pending-- {
		line, _, ok := l.next()
		if !ok {
			break
		}
		n++
		g.show(name, n, '-', line)
	}
	switch {
	case o.has('c') && !o.has('q') && !o.has('l') && !o.has('L'):
		if g.names {
			c.print(name, ":")
		}
		c.printf("%d\n", hits)
	case o.has('l') && hits > 0, o.has('L') && hits == 0:
		c.print(name, "\n")
	}
}

func (g *grepper) show(name string, n int64, mark byte, text string) {
	if g.names {
		g.c.printf("%s%c", name, mark)
	}
	if g.o.has('n') {
		g.c.printf("%d%c", n, mark)
	}
	g.c.print(text, string(rune(g.sep)))
	if g.c.out.failed() {
		g.c.exit(2)
	}
}

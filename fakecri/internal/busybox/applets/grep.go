package applets

import (
	"io"
	"io/fs"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Grep is grep, egrep and fgrep. Regular expressions are package posix's: POSIX
// syntax with GNU's \w, \b and the like, leftmost and longest. -G, -a and
// --color are read and do nothing: nothing is taken for binary. Status 1 means
// no match, 2 trouble, even if something matched, unless -s or -q.
//
// With -r links below a directory are followed to files, not to directories;
// other special files are passed over, as a FIFO would be waited for.
func Grep() applet.Applet {
	return applet.New(runGrep,
		"egrep", "[-HhnlLoqvsriwx] [-m N] [-A|B|C N] { PATTERN | -e PATTERN... | -f FILE... } [FILE]...",
		"fgrep", "[-HhnlLoqvsriwx] [-m N] [-A|B|C N] { PATTERN | -e PATTERN... | -f FILE... } [FILE]...",
		"grep", "[-HhnlLoqvsriwxFE] [-m N] [-A|B|C N] { PATTERN | -e PATTERN... | -f FILE... } [FILE]...")
}

// grepOptions are those of all three names: egrep and fgrep take -E and -F as well.
const grepOptions = "HhnlLoqvsrRiwxFEGm:A:B:C:e:f:caz"

// grepper is one run of grep. names is whether lines show their file, broken
// whether a file could not be read, and separate whether a "--" is due before
// the next context.
type grepper struct {
	*applet.Matcher
	c        *applet.Call
	o        *applet.Options
	names    bool
	before   int
	after    int
	limit    int64
	matched  bool
	broken   bool
	sep      byte
	separate bool
}

func runGrep(c *applet.Call) int {
	o := c.GetoptStatus(2, grepOptions, "color=1::", "count=c", "ignore-case=i", "invert-match=v", "quiet=q", "line-number=n",
		"extended-regexp=E", "fixed-strings=F", "only-matching=o", "recursive=r", "files-with-matches=l", "files-without-match=L",
		"word-regexp=w", "line-regexp=x", "regexp=e:", "file=f:", "no-messages=s", "max-count=m:", "after-context=A:",
		"before-context=B:", "context=C:", "no-filename=h", "with-filename=H", "null-data=z")
	g := &grepper{Matcher: c.Matcher(o), c: c, o: o, limit: -1, sep: '\n'}
	if o.Has('z') {
		g.sep = 0
	}
	files := o.Args
	var patterns []string
	for _, p := range o.Value['e'] {
		patterns = append(patterns, strings.Split(p, "\n")...)
	}
	for _, f := range o.Value['f'] {
		data, err := c.ReadAll(f)
		if err != nil {
			c.Errorf(applet.CantOpen, f, applet.Strerror(err))
			return 2
		}
		// An empty file has no pattern and matches nothing; one with a newline alone has
		// an empty pattern, which matches all.
		if text := strings.TrimSuffix(string(data), "\n"); len(data) > 0 {
			patterns = append(patterns, strings.Split(text, "\n")...)
		}
	}
	if !o.Has('e') && !o.Has('f') {
		if len(files) == 0 {
			c.ShowUsage()
			return 2
		}
		// Lines of a pattern are patterns of their own, any of which may match.
		patterns = strings.Split(files[0], "\n")
		files = files[1:]
	}
	for _, n := range []struct {
		f  byte
		to *int
	}{{'A', &g.after}, {'B', &g.before}} {
		if o.Has(n.f) {
			*n.to = int(c.Number(o.Str(n.f)))
		}
	}
	if o.Has('C') {
		n := int(c.Number(o.Str('C')))
		// -C takes nothing away from a larger -A or -B.
		g.before, g.after = max(g.before, n), max(g.after, n)
	}
	if o.Has('m') {
		g.limit = c.Number(o.Str('m'))
	}
	if !g.Compile(patterns) {
		return 2
	}
	recursive := o.Has('r') || o.Has('R')
	if len(files) == 0 {
		files = []string{"-"}
		if recursive {
			files = []string{"."}
		}
	}
	g.names = (len(files) > 1 || recursive) && !o.Has('h') || o.Has('H')
	for _, f := range files {
		g.path(f, recursive, true)
	}
	switch {
	// As POSIX has it, a match with -q is success even if there was an error.
	case g.broken && !(o.Has('q') && g.matched):
		if o.Has('s') && g.matched {
			return 0
		}
		return 2
	case g.matched:
		return 0
	}
	return 1
}

// path searches a file, or what is below a directory in the order of names. top
// says that it was named on the command line, where links are followed.
func (g *grepper) path(name string, recursive, top bool) {
	c := g.c
	if recursive && name != "-" {
		stat := c.View().Lstat
		if top {
			stat = c.View().Stat
		}
		fi, err := stat(name)
		if err == nil && fi.IsDir() {
			list, err := c.View().ReadDir(name)
			if err != nil {
				g.complain(name, err)
				return
			}
			for _, e := range list {
				g.path(applet.Join(name, e.Name()), true, false)
			}
			return
		}
		// A link to a directory could lead round in circles.
		if err == nil && !top && fi.Mode()&fs.ModeSymlink != 0 {
			if target, err := c.View().Stat(name); err == nil && target.IsDir() {
				return
			}
		} else if err == nil && !top && !fi.Mode().IsRegular() {
			return
		}
	}
	r, err := c.Open(name)
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

// complain reports a file that can't be read, unless -s; the status is 2 then.
func (g *grepper) complain(name string, err error) {
	g.broken = true
	if !g.o.Has('s') {
		g.c.Errorf("%s: %s", name, applet.Strerror(err))
	}
}

// file searches one file.
func (g *grepper) file(name string, r io.Reader) {
	c, o := g.c, g.o
	l := c.Lines(r, g.sep)
	// earlier are the lines up to n that may yet become context, the oldest first.
	var earlier []string
	var n, hits int64
	// pending is how many lines of context the last match is still owed, lastShown the
	// number of the line shown last.
	pending, lastShown := 0, int64(0)
	// Without -m the limit is -1, which no count reaches.
	for hits != g.limit {
		line, _, ok := l.Next()
		if !ok {
			break
		}
		n++
		start, end := g.Find(line, 0)
		// The line isn't selected; with -v that is one which matches.
		if (start >= 0) == o.Has('v') {
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
		// One match is enough to know the status.
		if o.Has('q') {
			c.Exit(0)
		}
		// The first match decides whether the file is listed.
		if o.Has('l') || o.Has('L') {
			break
		}
		if o.Has('c') {
			continue
		}
		if g.before+g.after > 0 && !o.Has('o') {
			// Groups of context that touch have nothing between them.
			if first := n - int64(len(earlier)); g.separate && first > lastShown+1 {
				c.Print("--\n")
			}
			for i, e := range earlier {
				g.show(name, n-int64(len(earlier)-i), '-', e)
			}
			earlier = earlier[:0]
			g.separate = true
			pending = g.after
			lastShown = n
		}
		if !o.Has('o') {
			g.show(name, n, ':', line)
			continue
		}
		// The parts that match, one a line; lines that -v selects have none.
		for at := 0; start >= 0 && !o.Has('v'); {
			if end > start {
				g.show(name, n, ':', line[start:end])
			}
			// An empty match is passed over by one byte, or it would be found
			// for ever.
			if at = max(end, at+1); at > len(line) {
				break
			}
			start, end = g.Find(line, at)
		}
	}
	// After the last match that -m allows its context is still shown.
	for ; pending > 0 && hits == g.limit && !o.Has('c'); pending-- {
		line, _, ok := l.Next()
		if !ok {
			break
		}
		n++
		g.show(name, n, '-', line)
	}
	switch {
	case o.Has('c') && !o.Has('q') && !o.Has('l') && !o.Has('L'):
		if g.names {
			c.Print(name, ":")
		}
		c.Printf("%d\n", hits)
	case o.Has('l') && hits > 0, o.Has('L') && hits == 0:
		c.Print(name, "\n")
	}
}

// show prints a line with its file and number; mark is : for a match and - for
// context. Nobody reads any more if printing fails: then it ends.
func (g *grepper) show(name string, n int64, mark byte, text string) {
	if g.names {
		g.c.Printf("%s%c", name, mark)
	}
	if g.o.Has('n') {
		g.c.Printf("%d%c", n, mark)
	}
	g.c.Print(text, string(rune(g.sep)))
	if g.c.Out.Failed() {
		g.c.Exit(2)
	}
}

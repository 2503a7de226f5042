package pattern

import (
	"cmp"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Glob returns the names of the files of a view that a pattern matches, sorted; none if
// there are none. The order is that of the path's elements, each sorted by bytes, as ReadDir
// returns them: ash sorts by bytes, too, as it has no locale. Names come without escapes.
func Glob(view *kernel.View, p string) []string {
	dir := ""
	// Slashes at the start are kept as they were written: //etc/* gives //etc/passwd.
	if strings.HasPrefix(p, "/") {
		n := 1
		for n < len(p) && p[n] == '/' {
			n++
		}
		dir, p = p[:n], p[n:]
	}
	return globber{view}.in(nil, dir, p)
}

// globber walks down the directories that a pattern's elements match. A pattern is cut at its
// slashes, and an element never matches one: POSIX 2.13.3.
type globber struct{ view *kernel.View }

// in adds the matches of a pattern below a directory, which is empty or
// ends with a slash. head is the first element, slashes what follows it, rest the pattern after
// them. Elements without wildcards are appended without reading the directory, which may not be
// readable.
func (g globber) in(names []string, dir, p string) []string {
	head, rest := p, ""
	slashes := ""
	if i := strings.IndexByte(p, '/'); i >= 0 {
		head, rest = p[:i], p[i:]
		n := 1
		for n < len(rest) && rest[n] == '/' {
			n++
		}
		slashes, rest = rest[:n], rest[n:]
	}
	if !HasMeta(head) {
		name := dir + Unescape(head)
		switch {
		case slashes == "":
			// The last element: a link counts even if it leads nowhere.
			if _, err := g.view.Lstat(name); err != nil {
				return names
			}
			return append(names, name)
		case rest == "":
			// A slash at the end asks for a directory.
			if fi, err := g.view.Stat(name); err != nil || !fi.IsDir() {
				return names
			}
			return append(names, name+slashes)
		}
		return g.in(names, name+slashes, rest)
	}
	at := cmp.Or(dir, ".")
	entries, err := g.view.ReadDir(at)
	if err != nil {
		// What can't be read has no matches; no message, as in ash.
		return names
	}
	// A dot at the start of a name is matched by a dot alone, not by a wildcard.
	hidden := strings.HasPrefix(head, ".") || strings.HasPrefix(head, `\.`)
	if hidden {
		// ReadDir leaves these two out, and the real one does not: .* matches them.
		for _, name := range [...]string{".", ".."} {
			if Match(head, name) {
				names = g.match(names, dir+name, slashes, rest)
			}
		}
	}
	for _, e := range entries {
		if name := e.Name(); (name[0] != '.' || hidden) && Match(head, name) {
			names = g.match(names, dir+name, slashes, rest)
		}
	}
	return names
}

// match adds a name that the last element looked at matched, or goes on below it.
func (g globber) match(names []string, name, slashes, rest string) []string {
	if slashes == "" {
		return append(names, name)
	}
	// Only directories have something below them; links to directories do, too.
	if fi, err := g.view.Stat(name); err != nil || !fi.IsDir() {
		return names
	}
	if rest == "" {
		return append(names, name+slashes)
	}
	return g.in(names, name+slashes, rest)
}

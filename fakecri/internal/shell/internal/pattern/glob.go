package pattern

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Glob returns the names of the files of a view that a pattern matches, sorted; none if
// there are none.
func Glob(view *kernel.View, p string) []string {
	dir := ""
	if strings.HasPrefix(p, "/") {
		n := 1
		for n < len(p) && p[n] == '/' {
			n++
		}
		dir, p = p[:n], p[n:]
	}
	return globber{view}.in(nil, dir, p)
}

// globber walks down the directories that a pattern's elements match.
type globber struct{ view *kernel.View }

// in adds the matches of a pattern below a directory, which is empty or
// ends with a slash.
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
			if _, err := g.view.Lstat(name); err != nil {
				return names
			}
			return append(names, name)
		case rest == "":
			if fi, err := g.view.Stat(name); err != nil || !fi.IsDir() {
				return names
			}
			return append(names, name+slashes)
		}
		return g.in(names, name+slashes, rest)
	}
	at := dir
	if at == "" {
		at = "."
	}
	entries, err := g.view.ReadDir(at)
	if err != nil {
		return names
	}
	hidden := strings.HasPrefix(head, ".") || strings.HasPrefix(head, `\.`)
	if hidden {
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
	if fi, err := g.view.Stat(name); err != nil || !fi.IsDir() {
		return names
	}
	if rest == "" {
		return append(names, name+slashes)
	}
	return g.in(names, name+slashes, rest)
}

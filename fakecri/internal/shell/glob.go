package shell

import "strings"

// glob returns the names of the files that a pattern matches, sorted; none if
// there are none.
func (s *shell) glob(p string) []string {
	dir := ""
	if strings.HasPrefix(p, "/") {
		n := 1
		for n < len(p) && p[n] == '/' {
			n++
		}
		dir, p = p[:n], p[n:]
	}
	return s.globIn(nil, dir, p)
}

// globIn adds the matches of a pattern below a directory, which is empty or
// ends with a slash.
func (s *shell) globIn(names []string, dir, p string) []string {
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
	view := s.p.View()
	if !hasMeta(head) {
		name := dir + unescape(head)
		switch {
		case slashes == "":
			if _, err := view.Lstat(name); err != nil {
				return names
			}
			return append(names, name)
		case rest == "":
			if fi, err := view.Stat(name); err != nil || !fi.IsDir() {
				return names
			}
			return append(names, name+slashes)
		}
		return s.globIn(names, name+slashes, rest)
	}
	at := dir
	if at == "" {
		at = "."
	}
	entries, err := view.ReadDir(at)
	if err != nil {
		return names
	}
	hidden := strings.HasPrefix(head, ".") || strings.HasPrefix(head, `\.`)
	if hidden {
		for _, name := range [...]string{".", ".."} {
			if match(head, name) {
				names = s.globMatch(names, dir+name, slashes, rest)
			}
		}
	}
	for _, e := range entries {
		if name := e.Name(); (name[0] != '.' || hidden) && match(head, name) {
			names = s.globMatch(names, dir+name, slashes, rest)
		}
	}
	return names
}

func (s *shell) globMatch(names []string, name, slashes, rest string) []string {
	if slashes == "" {
		return append(names, name)
	}
	if fi, err := s.p.View().Stat(name); err != nil || !fi.IsDir() {
		return names
	}
	if rest == "" {
		return append(names, name+slashes)
	}
	return s.globIn(names, name+slashes, rest)
}

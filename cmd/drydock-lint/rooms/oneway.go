package rooms

import (
	"maps"
	"slices"
	"strings"
)

// edges are the imports between the children of one folder: from, to, and one
// import as an example.
type edges map[string]map[string]string

// oneWay judges every folder. Go keeps packages from importing each other in a
// circle, but not folders: a/x may import b while b/y imports a, and then
// neither can be read, or moved, without the other.
func (c *check) oneWay() {
	folders := map[string]edges{".": {}}
	for _, r := range c.rooms {
		for path := range r.Imports { // collected into maps, read in order below
			to, ok := strings.CutPrefix(path, module+"/")
			if !ok {
				continue
			}
			for _, folder := range foldersOf(r.dir) {
				if folder != "." && !within(to, folder) {
					break
				}
				a, b := child(folder, r.dir), child(folder, to)
				if a == b {
					continue
				}
				if folders[folder] == nil {
					folders[folder] = edges{}
				}
				if folders[folder][a] == nil {
					folders[folder][a] = map[string]string{}
				}
				example := r.dir + " imports " + to
				if old := folders[folder][a][b]; old == "" || example < old {
					folders[folder][a][b] = example
				}
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		e := folders[folder]
		for _, a := range slices.Sorted(maps.Keys(e)) {
			for _, b := range slices.Sorted(maps.Keys(e[a])) {
				if a < b && e.leads(b, a, map[string]bool{}) {
					c.reportRule(OneWay, a+" -> "+b, "imports run both ways: %s, and back: %s", e[a][b], e.back(b, a))
				}
			}
		}
	}
}

// foldersOf returns the folders that dir lies in, outermost first, and dir
// itself. An internal folder is a wall and no room: what it holds counts as its
// parent's.
func foldersOf(dir string) []string {
	out := []string{"."}
	for i, c := range dir + "/" {
		if c == '/' && !strings.HasSuffix(dir[:i], "/internal") {
			out = append(out, dir[:i])
		}
	}
	return out
}

// child returns the child of folder that dir is or lies in; folder itself if
// dir is folder.
func child(folder, dir string) string {
	rest := dir
	if folder != "." {
		rest = strings.TrimPrefix(strings.TrimPrefix(dir, folder), "/")
	}
	if rest == "" {
		return folder
	}
	end := len(dir) - len(rest)
	for part := range strings.SplitSeq(rest, "/") {
		end += len(part)
		if part != "internal" || end == len(dir) {
			break
		}
		end++ // the slash
	}
	return dir[:end]
}

// leads reports whether imports lead from one child to the other.
func (e edges) leads(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for next := range e[from] {
		if e.leads(next, to, seen) {
			return true
		}
	}
	return false
}

// back returns the first import of a way from one child to the other.
func (e edges) back(from, to string) string {
	for _, next := range slices.Sorted(maps.Keys(e[from])) {
		if e.leads(next, to, map[string]bool{from: true}) {
			return e[from][next]
		}
	}
	return ""
}

// Package rooms checks how the module is divided: that types and packages stay
// small enough to be read at once, that imports inside a folder run one way, and
// that the kubelet's core files know nothing of elision.
//
// Unlike determinism it judges the module as a whole, since a row of a table can
// only be called stale by who has seen every package. tables.go has the tables,
// limits.go the sizes, oneway.go the imports, core.go the core files.
package rooms

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/drydock-sim/drydock"

// Finding is something that breaks a rule.
type Finding struct {
	// Place is a folder, a file or file:line, relative to the module.
	Place string
	// Text says what is wrong and what to do about it.
	Text string
}

func (f Finding) String() string { return f.Place + ": " + f.Text }

// Rules are what a module is held to; the zero Rules have no core files and no
// exceptions.
type Rules struct {
	// Catalogues are the packages that may have more files than a room.
	Catalogues []Catalogue
	// Pending are the rules that a package or type does not keep yet.
	Pending []Pending
	// Stale also reports rows of Catalogues and Pending that say nothing any
	// more.
	Stale bool
	// Core are the files that must not know of elision; Layer is what elides.
	Core  []string
	Layer Layer
}

// Catalogue is a package of many files that still reads as one: an entry each,
// all of one exported shape.
type Catalogue struct {
	Dir, Shape string
}

// Pending is a rule that does not hold yet. It must go once it does, so that
// what has been put right can't slip back.
type Pending struct {
	Rule    Rule
	Subject string
}

// Rule names what Pending can put off.
type Rule string

const (
	Methods Rule = "methods" // of a type, as dir.Type
	Files   Rule = "files"   // of a package, as dir
	OneWay  Rule = "one way" // of two folders, as "from -> to"
)

// Layer is the code that leaves out what nothing changed.
type Layer struct {
	// Packages are import paths relative to the module, with those below them.
	Packages []string
	// Files are files, relative to the module, of packages that have other files
	// as well: nothing that they declare may be used.
	Files []string
	// Names are objects of other packages, as "dir.Name", "dir.Type.Method" or
	// "dir.Type.Field".
	Names []string
}

// Check judges the packages, which must be the whole module as packages.Load
// returns it with syntax and types; test variants are ignored. Findings are
// sorted.
func Check(loaded []*packages.Package, rules Rules) []Finding {
	c := &check{rules: rules, broken: map[Pending]bool{}}
	for _, p := range loaded {
		if rel, ok := strings.CutPrefix(p.PkgPath, module+"/"); ok && p.ID == p.PkgPath && len(p.GoFiles) > 0 {
			c.rooms = append(c.rooms, room{dir: rel, Package: p})
		}
	}
	for _, r := range c.rooms {
		c.methods(r)
		c.files(r)
	}
	c.oneWay()
	c.core()
	if rules.Stale {
		c.stale()
	}
	slices.SortFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(c.findings)
}

// room is a package of the module, without its tests.
type room struct {
	dir string // relative to the module
	*packages.Package
}

type check struct {
	rules    Rules
	rooms    []room
	findings []Finding
	// broken are the rules that were found broken, pending or not.
	broken map[Pending]bool
}

func (c *check) report(place, format string, args ...any) {
	c.findings = append(c.findings, Finding{place, fmt.Sprintf(format, args...)})
}

// reportRule reports a broken rule unless it is pending.
func (c *check) reportRule(rule Rule, subject, format string, args ...any) {
	p := Pending{rule, subject}
	c.broken[p] = true
	if !slices.Contains(c.rules.Pending, p) {
		c.report(subject, format, args...)
	}
}

// stale reports the rows of tables that no longer say anything.
func (c *check) stale() {
	for _, p := range c.rules.Pending {
		if !c.broken[p] {
			c.report(p.Subject, "the rule %q holds here: remove its row of pending in cmd/drydock-lint/rooms/tables.go", p.Rule)
		}
	}
	for _, k := range c.rules.Catalogues {
		i := slices.IndexFunc(c.rooms, func(r room) bool { return r.dir == k.Dir })
		if i < 0 || sources(c.rooms[i].Package) <= mostFiles {
			c.report(k.Dir, "no room of over %d files: remove its row of catalogues in cmd/drydock-lint/rooms/tables.go", mostFiles)
		}
	}
}

// within reports whether the folder dir is or lies below root.
func within(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }

// fileOf returns the room's name of one of its files, relative to the module.
func (r room) fileOf(name string) string { return r.dir + "/" + filepath.Base(name) }

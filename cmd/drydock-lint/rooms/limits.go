package rooms

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// The sizes beyond which a reader no longer holds a thing in the head. The
// largest type of etcd's raft has 43 methods, controller-runtime's largest
// package 18 files; the standard library's net/http shows what lies beyond.
const (
	mostMethods = 60
	mostFiles   = 30
)

// methods judges each type by the methods declared for it. Promoted ones don't
// count: a type that is put together of smaller ones is what the rule wants.
func (c *check) methods(r room) {
	scope := r.Types.Scope()
	for _, name := range scope.Names() {
		t, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		named, ok := t.Type().(*types.Named)
		if !ok {
			continue
		}
		n := named.NumMethods()
		if i, ok := named.Underlying().(*types.Interface); ok {
			n = i.NumExplicitMethods()
		}
		if n > mostMethods {
			c.reportRule(Methods, r.dir+"."+name, "%d methods, at most %d are allowed: split the type", n, mostMethods)
		}
	}
}

// files judges a package by its files, of every system.
func (c *check) files(r room) {
	n := sources(r.Package)
	if n <= mostFiles {
		return
	}
	if slices.ContainsFunc(c.rules.Catalogues, func(k Catalogue) bool { return k.Dir == r.dir }) {
		return
	}
	c.reportRule(Files, r.dir, "%d files, at most %d are allowed: split the package, or give it a row of catalogues if it is one", n, mostFiles)
}

// sources counts a package's Go files without tests.
func sources(p *packages.Package) int {
	n := len(p.GoFiles)
	for _, name := range p.IgnoredFiles {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			n++
		}
	}
	return n
}

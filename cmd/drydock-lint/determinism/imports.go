package determinism

import (
	"go/ast"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// kubernetes is a program, not a library: it is never imported.
const kubernetes = "k8s.io/kubernetes"

// importPath returns the path that an import names.
func importPath(s *ast.ImportSpec) string {
	path, _ := strconv.Unquote(s.Path.Value) // the parser has checked it
	return path
}

// checkBanned reports what even tests don't import.
func checkBanned(pass *analysis.Pass, f *ast.File) {
	for _, s := range f.Imports {
		if under(importPath(s), kubernetes) {
			pass.Reportf(s.Pos(), "import of %s: it is no library", importPath(s))
		}
	}
}

// imports judges a file's imports: what is refused as a whole, and floors.
func (c *checker) imports(f *ast.File) {
	checkBanned(c.pass, f)
	for _, s := range f.Imports {
		path := importPath(s)
		if b, ok := bannedPackages[path]; ok {
			c.report(b.class, s.Pos(), s.Pos(), "import of %s: %s", path, b.instead)
		}
		if to, ok := relative(path); ok {
			c.floor(s, to)
		}
	}
}

// floor reports an import that does not point down.
func (c *checker) floor(s *ast.ImportSpec, to string) {
	mine, ok1 := floorOf(c.pkg)
	other, ok2 := floorOf(to)
	if !ok1 || !ok2 {
		return // reported for the package itself
	}
	if other < mine {
		c.pass.Reportf(s.Pos(), "%s imports %s, which stands higher: floors, from the top, are %s", c.pkg, to, strings.Join(floors, ", "))
		return
	}
	for _, p := range strangers {
		if under(c.pkg, p.from) && under(to, p.to) {
			c.pass.Reportf(s.Pos(), "%s imports %s: %s and %s meet through interfaces only", c.pkg, to, p.from, p.to)
			return
		}
	}
	if isSealed(to) && !isSealed(c.pkg) {
		c.pass.Reportf(s.Pos(), "%s, which is deterministic, imports %s, which is an edge", c.pkg, to)
	}
}

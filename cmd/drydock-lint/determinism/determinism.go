// Package determinism is an analyzer that keeps Drydock repeatable. Everything
// in the module that is not an edge (see the table in policy.go) is a
// deterministic package: what it does is decided by the scenario, the seed and
// the version alone. There the analyzer refuses goroutines, channels and locks,
// the wall clock, randomness that is not drawn from the seed, the order of maps,
// the machine's files and sockets, state in package variables, library helpers
// that bring any of those along, and imports of a higher floor.
//
// The order of a map may be used where it cannot be observed; the line, or a
// comment alone on the line above, then says so:
//
//	for k, v := range m { //drydock:unordered copies a map
//
// A reason is required, and an escape that escapes nothing is an error as well.
// Test files are exempt, but for the ban of k8s.io/kubernetes.
package determinism

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer refuses in deterministic packages what would make two runs of one
// scenario differ. Its result is the package's escapes, a []Escape.
var Analyzer = &analysis.Analyzer{
	Name:       "determinism",
	Doc:        "refuse what would make two runs of one scenario differ",
	Run:        run,
	ResultType: reflect.TypeFor[[]Escape](),
}

// The files: this one walks a package and finds what the syntax shows; forbidden.go
// has the tables of names; imports.go judges imports by the floors; escapes.go reads
// the comments that allow a map's order; policy.go says which package is what.

// class is a kind of thing that deterministic packages do without. Classes are
// bits, so that an edge can be exempt from some.
type class uint16

const (
	concurrency class = 1 << iota // goroutines, channels, locks
	clock                         // the wall clock and the machine's time zone
	randomness                    // randomness that is not drawn from the seed
	order                         // the order of maps
	contexts                      // contexts that end on the wall clock or by a goroutine
	library                       // helpers of libraries that do any of the above
	machine                       // files, sockets, processes, environment
	globals                       // init functions, writes to package variables

	everything = ^class(0)
)

// checker looks at one file of one package.
type checker struct {
	pass    *analysis.Pass
	pkg     string // relative to the module
	exempt  class
	escapes []*Escape // of this file
	// unused are the channel types of parameters without a name: an interface
	// of a library wants them, and nothing can be done with them.
	unused map[*ast.ChanType]bool
}

func run(pass *analysis.Pass) (any, error) {
	pkg, ok := relative(strings.TrimSuffix(pass.Pkg.Path(), "_test"))
	if !ok || strings.HasSuffix(pass.Pkg.Path(), ".test") {
		return []Escape(nil), nil
	}
	// A package that nobody placed would be judged by no table.
	if _, known := floorOf(pkg); !known && len(pass.Files) > 0 {
		pass.Reportf(pass.Files[0].Name.Pos(), "package %s stands on no floor: add it to the table in cmd/drydock-lint/determinism/policy.go", pkg)
		return []Escape(nil), nil
	}
	// Tests may do as they like: what they are run with, the go command, is no
	// more repeatable than they.
	var found []Escape
	for _, f := range pass.Files {
		name := pass.Fset.Position(f.FileStart).Filename
		if strings.HasSuffix(name, "_test.go") {
			checkBanned(pass, f)
			continue
		}
		c := &checker{pass: pass, pkg: pkg, exempt: exemption(pkg, filepath.Base(name))}
		c.escapes = c.readEscapes(f, name)
		c.imports(f)
		ast.Inspect(f, c.node)
		found = append(found, c.closeEscapes()...)
	}
	return found, nil
}

// report reports what n does, unless the file is exempt from its class or, for
// the order of maps, an escape on one of the lines of [n, end) says otherwise.
func (c *checker) report(k class, pos, end token.Pos, format string, args ...any) {
	if c.exempt&k != 0 || k == order && c.escaped(pos, end) {
		return
	}
	c.pass.Report(analysis.Diagnostic{Pos: pos, Category: k.String(), Message: fmt.Sprintf(format, args...)})
}

func (k class) String() string {
	switch k {
	case concurrency:
		return "concurrency"
	case clock:
		return "clock"
	case randomness:
		return "randomness"
	case order:
		return "order"
	case contexts:
		return "contexts"
	case library:
		return "library"
	case machine:
		return "machine"
	case globals:
		return "globals"
	}
	return "several"
}

// node judges one node of a file's syntax. It goes on into all of them: what is
// refused may stand in what is allowed.
func (c *checker) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(concurrency, n.Pos(), n.Pos(), "a go statement: start a task with Group.Go of ground/loop")
	case *ast.ChanType:
		if c.unused[n] {
			break
		}
		c.report(concurrency, n.Pos(), n.Pos(), "a channel: use Queue, Signal or Event of ground/loop")
	case *ast.SendStmt:
		c.report(concurrency, n.Arrow, n.Arrow, "a channel send: use Queue, Signal or Event of ground/loop")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.report(concurrency, n.Pos(), n.Pos(), "a channel receive: wait with the primitives of ground/loop")
		}
	case *ast.SelectStmt:
		c.report(concurrency, n.Pos(), n.Pos(), "a select statement: use WaitAny of ground/loop")
	case *ast.RangeStmt:
		c.rangeOver(n)
	case *ast.CallExpr:
		c.builtin(n)
	case *ast.Ident:
		c.use(n)
	case *ast.FuncDecl:
		c.parameters(n.Type)
		if n.Recv == nil && n.Name.Name == "init" {
			c.report(globals, n.Pos(), n.Pos(), "an init function: do the work in a constructor")
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, x := range n.Lhs {
				c.write(x)
			}
		}
	case *ast.IncDecStmt:
		c.write(n.X)
	}
	return true
}

// parameters notes the channel types of parameters that can't be used.
func (c *checker) parameters(f *ast.FuncType) {
	for _, p := range f.Params.List {
		t, ok := ast.Unparen(p.Type).(*ast.ChanType)
		if !ok || slices.ContainsFunc(p.Names, func(id *ast.Ident) bool { return id.Name != "_" }) {
			continue
		}
		if c.unused == nil {
			c.unused = map[*ast.ChanType]bool{}
		}
		c.unused[t] = true
	}
}

// rangeOver refuses the order of maps. Go draws it anew for each range, so that
// it differs even between two runs on one machine.
func (c *checker) rangeOver(n *ast.RangeStmt) {
	switch kindOf(c.pass.TypesInfo.TypeOf(n.X)) {
	case isMap:
		c.report(order, n.Pos(), n.Body.Lbrace, "range over a map: keep a slice or sorted keys beside it, or say //drydock:unordered <reason>")
	case isChan:
		c.report(concurrency, n.Pos(), n.Pos(), "range over a channel: use Queue of ground/loop")
	}
	if n.Tok == token.ASSIGN {
		for _, x := range []ast.Expr{n.Key, n.Value} {
			if x != nil {
				c.write(x)
			}
		}
	}
}

// builtin refuses calls of built-in functions on channels, and on what package
// variables hold.
func (c *checker) builtin(n *ast.CallExpr) {
	id, ok := ast.Unparen(n.Fun).(*ast.Ident)
	if !ok || len(n.Args) == 0 {
		return
	}
	b, ok := c.pass.TypesInfo.Uses[id].(*types.Builtin)
	if !ok {
		return
	}
	switch b.Name() {
	case "close":
		c.report(concurrency, n.Pos(), n.Pos(), "close of a channel: use Event of ground/loop")
	case "make":
		// A chan in the syntax is reported where it stands.
		if _, literal := ast.Unparen(n.Args[0]).(*ast.ChanType); !literal && kindOf(c.pass.TypesInfo.TypeOf(n.Args[0])) == isChan {
			c.report(concurrency, n.Pos(), n.Pos(), "a channel is made: use Queue, Signal or Event of ground/loop")
		}
	case "delete", "clear", "copy":
		c.write(n.Args[0])
	}
}

// write reports an assignment whose target is, or is reached through, a
// package variable: loops on other cores share it.
func (c *checker) write(x ast.Expr) {
	for {
		switch e := ast.Unparen(x).(type) {
		case *ast.IndexExpr:
			x = e.X
		case *ast.SliceExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.SelectorExpr:
			if c.isPackageVar(e.Sel) {
				c.reportWrite(e.Sel)
				return
			}
			x = e.X
		case *ast.Ident:
			if c.isPackageVar(e) {
				c.reportWrite(e)
			}
			return
		default:
			return
		}
	}
}

func (c *checker) reportWrite(id *ast.Ident) {
	c.report(globals, id.Pos(), id.Pos(), "a write to the package variable %s: all loops of a process share it", id.Name)
}

// isPackageVar reports whether the name is a variable of a package, of this one or
// of another.
func (c *checker) isPackageVar(id *ast.Ident) bool {
	v, ok := c.pass.TypesInfo.Uses[id].(*types.Var)
	return ok && !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

type typeKind int

const (
	isOther typeKind = iota
	isMap
	isChan
)

// kindOf tells a map or a channel, also behind a name or a type parameter.
func kindOf(t types.Type) typeKind {
	if t == nil {
		return isOther
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return constraintKind(p.Constraint())
	}
	switch t.Underlying().(type) {
	case *types.Map:
		return isMap
	case *types.Chan:
		return isChan
	}
	return isOther
}

// constraintKind looks through a constraint: a type parameter that may be a map is
// ranged over like one.
func constraintKind(t types.Type) typeKind {
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return isOther
	}
	for e := range i.EmbeddedTypes() {
		u, ok := e.(*types.Union)
		if !ok {
			if k := kindOf(e); k != isOther {
				return k
			}
			if k := constraintKind(e); k != isOther {
				return k
			}
			continue
		}
		for term := range u.Terms() {
			if k := kindOf(term.Type()); k != isOther {
				return k
			}
		}
	}
	return isOther
}

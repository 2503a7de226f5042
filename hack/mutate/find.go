package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mutant is one mistake.
type mutant struct {
	// key names the mutant whatever stands around it: path, function, what is
	// done, the text it is done to, and its number among those alike in the function.
	key   string
	id    int // its number in this run, from 1
	order int // when it was found, among those of its file
	path  string
	pkg   string // its package's path
	line  int
	// The bytes of the file that it takes the place of.
	from, to int
	// weave returns what stands there with the mutant in it. part returns the text of
	// a part of the file with the mutants in that part.
	weave func(id int, part func(from, to int) string) string
}

// swaps are the operators that take each other's place.
var swaps = map[token.Token]token.Token{
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// finder collects the mutants of a file.
type finder struct {
	fset     *token.FileSet
	info     *types.Info
	src      []byte
	path     string
	pkg      string
	function string
	keys     map[string]int
	found    []*mutant
}

// find returns the mutants of the files below the module's root whose paths begin
// with one of the prefixes.
func find(prefixes []string) ([]*mutant, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var patterns []string
	for _, p := range prefixes {
		dir := p
		if !strings.HasSuffix(p, "/") {
			dir = filepath.Dir(p)
		}
		patterns = append(patterns, "./"+filepath.Clean(dir)+"/...")
	}
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, patterns...)
	if err != nil {
		return nil, err
	}
	var all []*mutant
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		for _, file := range p.Syntax {
			path, err := filepath.Rel(root, p.Fset.Position(file.Pos()).Filename)
			if err != nil {
				return nil, err
			}
			path = filepath.ToSlash(path)
			begins := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
			if !slices.ContainsFunc(prefixes, begins) || slices.ContainsFunc(leftOut, begins) || ast.IsGenerated(file) {
				continue
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			f := finder{fset: p.Fset, info: p.TypesInfo, src: src, path: path, pkg: p.PkgPath, keys: map[string]int{}}
			for _, d := range file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					f.function = nameOf(fn)
					ast.Inspect(fn.Body, f.visit)
				}
			}
			all = append(all, f.found...)
		}
	}
	return all, nil
}

// nameOf returns a function's name, with its receiver's type.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.negate(n.Cond)
		}
	case *ast.BinaryExpr:
		f.swap(n)
	case *ast.BlockStmt:
		f.drop(n.List)
	case *ast.CaseClause:
		f.drop(n.Body)
	case *ast.CommClause:
		f.drop(n.Body)
	}
	return true
}

func (f *finder) at(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) add(n ast.Node, what string, weave func(id int, part func(from, to int) string) string) {
	text := strings.Join(strings.Fields(string(f.src[f.at(n.Pos()):f.at(n.End())])), " ")
	if runes := []rune(text); len(runes) > 120 {
		text = string(runes[:120]) + "..."
	}
	key := fmt.Sprintf("%s %s: %s: %s", f.path, f.function, what, text)
	f.keys[key]++
	if k := f.keys[key]; k > 1 {
		key += fmt.Sprintf(" (%d)", k)
	}
	f.found = append(f.found, &mutant{key: key, order: len(f.found), path: f.path, pkg: f.pkg, line: f.fset.Position(n.Pos()).Line, from: f.at(n.Pos()), to: f.at(n.End()), weave: weave})
}

// isBool reports whether an expression is of type bool, and no constant.
func (f *finder) isBool(e ast.Expr) bool {
	t := f.info.Types[e]
	b, ok := t.Type.(*types.Basic)
	return ok && t.Value == nil && b.Info()&types.IsBoolean != 0
}

// negate adds the negation of a condition, unless the swap of its operator is the same.
func (f *finder) negate(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) || !f.isBool(cond) {
		return
	}
	from, to := f.at(cond.Pos()), f.at(cond.End())
	f.add(cond, "negated", func(id int, part func(from, to int) string) string {
		return fmt.Sprintf("drydockmutant.On(%d) != (%s)", id, part(from, to))
	})
}

func (f *finder) swap(e *ast.BinaryExpr) {
	op, ok := swaps[e.Op]
	if !ok {
		return
	}
	x0, x1, y0, y1 := f.at(e.X.Pos()), f.at(e.X.End()), f.at(e.Y.Pos()), f.at(e.Y.End())
	what := fmt.Sprintf("%s for %s", op, e.Op)
	if f.isBool(e) {
		f.add(e, what, func(id int, part func(from, to int) string) string {
			x, y := part(x0, x1), part(y0, y1)
			return fmt.Sprintf("(drydockmutant.On(%d) && ((%s) %s (%s)) || !drydockmutant.On(%d) && ((%s) %s (%s)))", id, x, op, y, id, x, e.Op, y)
		})
		return
	}
	t := f.info.Types[e]
	if b, ok := t.Type.Underlying().(*types.Basic); !ok || t.Value != nil || b.Info()&types.IsNumeric == 0 || b.Info()&types.IsUntyped != 0 || f.acts(e) {
		return
	}
	f.add(e, what, func(id int, part func(from, to int) string) string {
		x, y := part(x0, x1), part(y0, y1)
		instead := fmt.Sprintf("(%s) %s (%s)", x, op, y)
		if op == token.QUO {
			instead = fmt.Sprintf("drydockmutant.Quo(%s, %s)", x, y)
		}
		return fmt.Sprintf("drydockmutant.Pick(%d, %s, (%s) %s (%s))", id, instead, x, e.Op, y)
	})
}

// acts reports whether an expression calls anything that may do something: both
// sides of a swapped sum are evaluated.
func (f *finder) acts(e ast.Expr) bool {
	acts := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if t := f.info.Types[n.Fun]; !t.IsType() && !t.IsBuiltin() {
				acts = true
			}
		case *ast.UnaryExpr:
			acts = acts || n.Op == token.ARROW
		}
		return !acts
	})
	return acts
}

// drop adds the calls and assignments of a list of statements.
func (f *finder) drop(list []ast.Stmt) {
	for _, s := range list {
		what := "call dropped"
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok {
				continue
			}
			// What follows a panic need not return.
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
				continue
			}
			if logs(call) {
				continue
			}
		case *ast.DeferStmt, *ast.GoStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s.Lhs) {
				continue
			}
			what = "assignment dropped"
		case *ast.IncDecStmt:
			what = "assignment dropped"
		default:
			continue
		}
		from, to := f.at(s.Pos()), f.at(s.End())
		f.add(s, what, func(id int, part func(from, to int) string) string {
			return fmt.Sprintf("if !drydockmutant.On(%d) { %s }", id, part(from, to))
		})
	}
}

// logs reports whether a call writes a line of a log: those are for people, and a test of each
// would do no more than repeat its words.
func logs(call *ast.CallExpr) bool {
	name := ""
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	}
	return strings.EqualFold(name, "log") || strings.EqualFold(name, "logf")
}

// blank reports whether all that is assigned to is _.
func blank(lhs []ast.Expr) bool {
	return !slices.ContainsFunc(lhs, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}

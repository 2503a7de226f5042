package rooms

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// core judges the core files: they import nothing of the layer, use nothing that
// it declares, and have no field that it alone uses. A file that is missing is
// a finding too, lest a renamed one go unjudged.
func (c *check) core() {
	missing := map[string]bool{}
	for _, name := range append(slices.Clone(c.rules.Core), c.rules.Layer.Files...) {
		missing[name] = true
	}
	for _, r := range c.rooms {
		for _, f := range r.Syntax {
			name := r.fileOf(r.Fset.Position(f.FileStart).Filename)
			delete(missing, name)
			if slices.Contains(c.rules.Core, name) {
				c.coreFile(r, f, name)
			}
		}
	}
	for name := range missing { // findings are sorted
		c.report(name, "no such file: say in cmd/drydock-lint/rooms/tables.go what became of it")
	}
}

func (c *check) coreFile(r room, f *ast.File, name string) {
	for _, s := range f.Imports {
		path, _ := strconv.Unquote(s.Path.Value) // the parser has checked it
		if rel, ok := strings.CutPrefix(path, module+"/"); ok && c.elides(rel) {
			c.report(place(r, s, name), "a core file imports %s, which is about elision", rel)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		if obj := r.TypesInfo.Uses[id]; obj != nil && c.declares(r, obj) {
			c.report(place(r, id, name), "a core file uses %s, which is about elision", id.Name)
		}
		if v, ok := r.TypesInfo.Defs[id].(*types.Var); ok && v.IsField() && !v.Exported() && c.aloneUses(r, v) {
			c.report(place(r, id, name), "only the elision layer uses the field %s of a core file", id.Name)
		}
		return true
	})
}

// elides reports whether a package belongs to the layer.
func (c *check) elides(dir string) bool {
	return slices.ContainsFunc(c.rules.Layer.Packages, func(p string) bool { return within(dir, p) })
}

// declares reports whether the layer declares the object, as seen from r.
func (c *check) declares(r room, obj types.Object) bool {
	if obj.Pkg() == nil {
		return false
	}
	dir, ok := strings.CutPrefix(obj.Pkg().Path(), module+"/")
	if !ok {
		return false
	}
	if _, isPackage := obj.(*types.PkgName); isPackage {
		return false // told of its import
	}
	if c.elides(dir) || slices.Contains(c.rules.Layer.Names, dir+"."+qualified(obj)) {
		return true
	}
	// Positions are known in the own package for sure; what other packages
	// declare comes from export data, and has the file's name.
	declared := room{dir: dir}.fileOf(r.Fset.Position(obj.Pos()).Filename)
	return slices.Contains(c.rules.Layer.Files, declared)
}

// qualified returns Type.Method for a method and Name for what else a package
// declares; fields are Type.Field only for the types of the package's scope.
func qualified(obj types.Object) string {
	if f, ok := obj.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			t := recv.Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			if n, ok := types.Unalias(t).(*types.Named); ok {
				return n.Obj().Name() + "." + f.Name()
			}
		}
	}
	if v, ok := obj.(*types.Var); ok && v.IsField() {
		scope := v.Pkg().Scope()
		for _, name := range scope.Names() {
			s, ok := scope.Lookup(name).Type().Underlying().(*types.Struct)
			if !ok {
				continue
			}
			for f := range s.Fields() {
				if f == v {
					return name + "." + v.Name()
				}
			}
		}
	}
	return obj.Name()
}

// aloneUses reports whether the layer's files use the field and no others do.
func (c *check) aloneUses(r room, field *types.Var) bool {
	used := false
	for _, f := range r.Syntax {
		layer := slices.Contains(c.rules.Layer.Files, r.fileOf(r.Fset.Position(f.FileStart).Filename))
		elsewhere := false
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && r.TypesInfo.Uses[id] == field {
				used, elsewhere = used || layer, elsewhere || !layer
			}
			return !elsewhere
		})
		if elsewhere {
			return false
		}
	}
	return used
}

func place(r room, n ast.Node, name string) string {
	return fmt.Sprintf("%s:%d", name, r.Fset.Position(n.Pos()).Line)
}

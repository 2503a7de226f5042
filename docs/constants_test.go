package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// constantRow is a row of the table of constants: package and name, value.
var constantRow = regexp.MustCompile("^\\| `([a-z/]+)\\.([A-Za-z]+)` \\| ([^ ]+) \\|")

// TestConstants holds the page of the control plane's facts to the code.
func TestConstants(t *testing.T) {
	t.Chdir(root)
	rows := 0
	for _, line := range strings.Split(readPage(t, "docs/CONTROL-PLANE.md").text, "\n") {
		m := constantRow.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "| `") {
				t.Errorf("no row of a constant: %s", line)
			}
			continue
		}
		rows++
		got, err := constant(filepath.Join("sim/controlplane", m[1]), m[2])
		if err != nil {
			t.Error(err)
			continue
		}
		want, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			d, err := time.ParseDuration(m[3])
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			want = float64(d)
		}
		if got != want {
			t.Errorf("%s.%s is %v, the page says %s", m[1], m[2], got, m[3])
		}
	}
	if rows < 40 {
		t.Errorf("%d rows of constants", rows)
	}
}

// constant is the value of a package's constant, in ns if it is a duration.
func constant(dir, name string) (float64, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, n := range v.Names {
					if n.Name == name && i < len(v.Values) {
						return evaluate(v.Values[i])
					}
				}
			}
		}
	}
	return 0, fmt.Errorf("%s has no constant %s", dir, name)
}

// units are those of package time.
var units = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// evaluate is what an expression of numbers and units of time comes to.
func evaluate(e ast.Expr) (float64, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.ParseFloat(e.Value, 64)
	case *ast.SelectorExpr:
		if d, ok := units[e.Sel.Name]; ok {
			return float64(d), nil
		}
	case *ast.BinaryExpr:
		x, err := evaluate(e.X)
		if err != nil {
			return 0, err
		}
		y, err := evaluate(e.Y)
		switch {
		case err != nil:
			return 0, err
		case e.Op == token.MUL:
			return x * y, nil
		case e.Op == token.ADD:
			return x + y, nil
		}
	}
	return 0, fmt.Errorf("an expression that is no number of units: %T", e)
}

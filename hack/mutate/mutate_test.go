package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"testing"
)

const sample = `package p

func f(a, b int, s string) (n int) {
	if a < b && s != "" { // both
		n = a + b
	}
	for ; a > 0; a-- {
		g(n)
		n++
	}
	switch {
	case a == 0:
		defer g(a * 2)
	}
	logf(s)
	_ = s + s
	const c = 1 + 2
	return n
}

func g(int) {}

func logf(string) {}
`

// mutantsOf returns the mutants of a source.
func mutantsOf(t *testing.T, src string) []*mutant {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	if _, err := (&types.Config{Importer: importer.Default()}).Check("p", fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	f := finder{fset: fset, info: info, src: []byte(src), path: "p.go", pkg: "p", keys: map[string]int{}}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			f.function = nameOf(fn)
			ast.Inspect(fn.Body, f.visit)
		}
	}
	return f.found
}

func TestFind(t *testing.T) {
	var got []string
	for _, m := range draw(mutantsOf(t, sample), 100, 1) {
		got = append(got, strings.TrimPrefix(m.key, "p.go f: "))
	}
	want := []string{
		`negated: a < b && s != ""`, `|| for &&: a < b && s != ""`, `<= for <: a < b`, `== for !=: s != ""`,
		"assignment dropped: n = a + b", "- for +: a + b",
		"negated: a > 0", ">= for >: a > 0", "call dropped: g(n)", "assignment dropped: n++",
		"!= for ==: a == 0", "call dropped: defer g(a * 2)", "/ for *: a * 2",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s", strings.Join(got, "\n"))
	}
}

// TestWeave: whatever is within what, the result is Go, says each mutant, and has its lines where
// they were.
func TestWeave(t *testing.T) {
	mutants := draw(mutantsOf(t, sample), 100, 1)
	out, err := weave("p.go", []byte(sample), mutants)
	if err != nil {
		t.Fatal(err)
	}
	text := string(out)
	// The package that mutants call is another's here.
	checked := strings.NewReplacer(`; import drydockmutant "`+mutantPackage+`"`, "", "drydockmutant.", "").Replace(text) +
		"\nfunc On(int) bool { return false }\nfunc Pick(_, a, b int) int { return b }\nfunc Quo(a, b int) int { return 0 }\n"
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", checked, 0)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if _, err := (&types.Config{Importer: importer.Default()}).Check("p", fset, []*ast.File{file}, nil); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, m := range mutants {
		if !strings.Contains(text, "On("+strconv.Itoa(m.id)+")") && !strings.Contains(text, "Pick("+strconv.Itoa(m.id)+",") {
			t.Errorf("%s is missing", m.key)
		}
	}
	if at := strings.Count(text[:strings.Index(text, "func g")], "\n"); at != strings.Count(sample[:strings.Index(sample, "func g")], "\n") {
		t.Error("lines moved")
	}
}

func TestDraw(t *testing.T) {
	all := mutantsOf(t, sample)
	one, other := draw(all, 5, 1), draw(all, 5, 2)
	if len(one) != 5 || len(other) != 5 {
		t.Fatal(len(one), len(other))
	}
	same := 0
	for i := range one {
		if one[i].key == other[i].key {
			same++
		}
	}
	if same == 5 {
		t.Error("seeds draw the same")
	}
}

func TestEquivalents(t *testing.T) {
	if keys, err := readEquivalents("# why\n\na.go f: x\n\tit only logs\n"); err != nil || !keys["a.go f: x"] || len(keys) != 1 {
		t.Error(keys, err)
	}
	for _, bad := range []string{"a.go f: x\n", "a.go f: x\nb.go f: y\n\twhy\n", "\twhy\n"} {
		if _, err := readEquivalents(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if _, err := readEquivalents(equivalents); err != nil {
		t.Error(err)
	}
}

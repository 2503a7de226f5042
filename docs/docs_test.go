// Package docs_test holds the documents to the code: what they link to and name
// is there, lines and pages keep their length, and comments keep to the glossary.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drydock-sim/drydock/cmd/drydock-lint/rooms"
)

// The module's root, where every test runs.
const root = ".."

const (
	longestLine = 100 // runes
	longestPage = 105 // lines: two screens
)

// page is a document, by its path from the root.
type page struct {
	path string
	text string
}

func readPage(t *testing.T, name string) page {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return page{name, string(data)}
}

// pages returns every document; strict ones are those for people who carry the
// work on, in which each name must be a name of the code.
func pages(t *testing.T) (all, strict []page) {
	t.Helper()
	t.Chdir(root)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "scenarios/library/README.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, names, err)
		}
		for _, name := range names {
			p := readPage(t, name)
			all = append(all, p)
			if strings.HasPrefix(name, "docs/architecture") || strings.HasPrefix(name, "docs/decisions/") ||
				slices.Contains([]string{"docs/README.md", "docs/where.md", "docs/glossary.md", "CONTRIBUTING.md", "CHANGELOG.md"}, name) {
				strict = append(strict, p)
			}
		}
	}
	return all, strict
}

// prose is the page with its blocks of code emptied, line by line.
func (p page) prose() []string {
	lines := strings.Split(p.text, "\n")
	code := false
	for i, l := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(l), "```")
		if fence || code {
			lines[i] = ""
		}
		code = code != fence
	}
	return lines
}

func TestLength(t *testing.T) {
	_, strict := pages(t)
	for _, p := range strict {
		lines := strings.Split(strings.TrimSuffix(p.text, "\n"), "\n")
		if strings.HasPrefix(p.path, "docs/architecture") && len(lines) > longestPage {
			t.Errorf("%s has %d lines: a page fits on two screens, %d lines", p.path, len(lines), longestPage)
		}
		for i, l := range lines {
			if n := utf8.RuneCountInString(l); n > longestLine {
				t.Errorf("%s:%d: %d characters, at most %d", p.path, i+1, n, longestLine)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ +(.*)$`)
	span    = regexp.MustCompile("`([^`]+)`")
)

// anchors are what links within a page can lead to, as GitHub makes them.
func anchors(p page) []string {
	var out []string
	for _, l := range p.prose() {
		m := heading.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		var s strings.Builder
		for _, c := range strings.ToLower(m[1]) {
			switch {
			case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c > 127:
				s.WriteRune(c)
			case c == ' ':
				s.WriteRune('-')
			}
		}
		out = append(out, s.String())
	}
	return out
}

func TestLinks(t *testing.T) {
	all, _ := pages(t)
	for _, p := range all {
		for i, l := range p.prose() {
			for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(l, ""), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				file, anchor, _ := strings.Cut(m[1], "#")
				target := p.path
				if file != "" {
					target = path.Join(path.Dir(p.path), file)
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s:%d: %s: %v", p.path, i+1, m[1], err)
				} else if anchor != "" && !slices.Contains(anchors(readPage(t, target)), anchor) {
					t.Errorf("%s:%d: %s has no heading for #%s", p.path, i+1, target, anchor)
				}
			}
		}
	}
}

// code is what the module's Go files declare.
type code struct {
	// names are, by folder, the names of its package: Name, Type.Member.
	names map[string]map[string]bool
	// tests are the names of all functions of test files.
	tests map[string]bool
	files []*ast.File
	fset  *token.FileSet
}

func readCode(t *testing.T) *code {
	t.Helper()
	c := &code{names: map[string]map[string]bool{}, tests: map[string]bool{}, fset: token.NewFileSet()}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(c.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		c.files = append(c.files, f)
		if strings.HasSuffix(name, "_test.go") {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
					c.tests[fn.Name.Name] = true
				}
			}
			return nil
		}
		dir := path.Dir(filepath.ToSlash(name))
		if c.names[dir] == nil {
			c.names[dir] = map[string]bool{}
		}
		declare(f, c.names[dir])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// declare adds what a file declares to names, members under their type's name
// and by themselves.
func declare(f *ast.File, names map[string]bool) {
	member := func(typ, name string) { names[typ+"."+name] = true; names["."+name] = true }
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[d.Name.Name] = true
				continue
			}
			recv := d.Recv.List[0].Type
			for {
				if s, ok := recv.(*ast.StarExpr); ok {
					recv = s.X
				} else if g, ok := recv.(*ast.IndexExpr); ok {
					recv = g.X
				} else if g, ok := recv.(*ast.IndexListExpr); ok {
					recv = g.X
				} else {
					break
				}
			}
			if id, ok := recv.(*ast.Ident); ok {
				member(id.Name, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, id := range s.Names {
						names[id.Name] = true
					}
				case *ast.TypeSpec:
					names[s.Name.Name] = true
					var fields *ast.FieldList
					switch u := s.Type.(type) {
					case *ast.StructType:
						fields = u.Fields
					case *ast.InterfaceType:
						fields = u.Methods
					}
					if fields != nil {
						for _, fl := range fields.List {
							for _, id := range fl.Names {
								member(s.Name.Name, id.Name)
							}
						}
					}
				}
			}
		}
	}
}

// declared reports whether a folder that fits declares the name.
func (c *code) declared(fits func(dir string) bool, name string) bool {
	for dir, names := range c.names {
		if fits(dir) && names[name] {
			return true
		}
	}
	return false
}

func (c *code) isPackage(base string) bool {
	for dir := range c.names {
		if path.Base(dir) == base {
			return true
		}
	}
	return false
}

var (
	pathLike   = regexp.MustCompile(`^\.?[A-Za-z0-9_*-]+(/[A-Za-z0-9_.*-]+)+/?$`)
	testLike   = regexp.MustCompile(`^(Test|Benchmark|Fuzz)[A-Z]\w*$`)
	dotted     = regexp.MustCompile(`^([A-Za-z]\w*)\.([A-Z]\w*(?:\.\w+)?)$`)
	identifier = regexp.MustCompile(`^([A-Za-z_]\w*\.)?[A-Za-z_]\w*$`)
	makeTarget = regexp.MustCompile(`^make ([a-z0-9-]+)`)
)

// TestNames wants whatever a document names in `code` to be there: paths from
// the module's root (package.Name at their end included), pkg.Name, Type.Member,
// tests, targets of make. On docs/where.md identifiers must also be declared in
// the folder that the last path before them names.
func TestNames(t *testing.T) {
	all, strict := pages(t)
	c := readCode(t)
	makefile := readPage(t, "Makefile").text
	for _, p := range all {
		if p.path == "CHANGELOG.md" {
			continue // names what was, too
		}
		carries := slices.ContainsFunc(strict, func(s page) bool { return s.path == p.path })
		last := ""
		for i, l := range p.prose() {
			if strings.HasPrefix(l, "- ") || l == "" {
				last = ""
			}
			for _, m := range span.FindAllStringSubmatch(l, -1) {
				name := strings.TrimSuffix(m[1], "()")
				complain := func(format string, args ...any) {
					t.Errorf("%s:%d: `%s`: %s", p.path, i+1, m[1], fmt.Sprintf(format, args...))
				}
				if k := makeTarget.FindStringSubmatch(name); k != nil && !strings.Contains(makefile, "\n"+k[1]+":") {
					complain("no such target")
				}
				if testLike.MatchString(name) && !c.tests[name] {
					complain("no such test")
				}
				if pathLike.MatchString(name) {
					if dir, ok := c.findPath(name, complain); ok {
						last = dir
					}
					continue
				}
				if p.path == "docs/where.md" && last != "" && identifier.MatchString(name) {
					if !c.names[last][name] && !c.names[last]["."+name] {
						complain("not declared in %s", last)
					}
					continue
				}
				if k := dotted.FindStringSubmatch(name); k != nil && carries {
					switch {
					case c.isPackage(k[1]):
						if !c.declared(func(dir string) bool { return path.Base(dir) == k[1] }, k[2]) {
							complain("no package %s declares it", k[1])
						}
					case k[1][0] >= 'A' && k[1][0] <= 'Z' && !c.declared(func(string) bool { return true }, name):
						complain("no package declares it")
					}
				}
			}
		}
	}
}

// findPath wants a path from the root to be there, perhaps with a name of its
// package at the end, and returns its folder; ok is false if it is no such path.
func (c *code) findPath(name string, complain func(string, ...any)) (dir string, ok bool) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "/"), "/...")
	top, _, _ := strings.Cut(name, "/")
	if _, err := os.Stat(top); err != nil || top == "bin" {
		return "", false // of another module, of a machine, or made by make
	}
	if found, err := filepath.Glob(name); err == nil && len(found) > 0 {
		if info, err := os.Stat(found[0]); err == nil && info.IsDir() {
			return name, true
		}
		return path.Dir(name), true
	}
	base := path.Base(name)
	if pkg, id, dot := strings.Cut(base, "."); dot {
		dir := path.Join(path.Dir(name), pkg)
		if c.names[dir] != nil {
			if !c.names[dir][id] {
				complain("%s does not declare %s", dir, id)
			}
			return dir, true
		}
	}
	complain("no such file")
	return "", false
}

// TestCatalogues wants the packages that may be large to be listed.
func TestCatalogues(t *testing.T) {
	t.Chdir(root)
	text := readPage(t, "docs/architecture/rooms.md").text
	_, text, _ = strings.Cut(text, "<!-- catalogues -->\n")
	text, _, ok := strings.Cut(text, "<!-- end of catalogues -->")
	if !ok {
		t.Fatal("docs/architecture/rooms.md has no list of catalogues")
	}
	var want strings.Builder
	for _, k := range rooms.Drydock().Catalogues {
		fmt.Fprintf(&want, "- `%s`: %s\n", k.Dir, k.Shape)
	}
	if text != want.String() {
		t.Errorf("docs/architecture/rooms.md lists\n%sthe analyzer's table has\n%s", text, &want)
	}
}

// TestGlossary refuses in comments the words that the glossary replaces.
func TestGlossary(t *testing.T) {
	t.Chdir(root)
	_, table, ok := strings.Cut(readPage(t, "docs/glossary.md").text, "\n| not | but |\n")
	if !ok {
		t.Fatal("docs/glossary.md has no table of words that lost")
	}
	var words []string
	for _, row := range strings.Split(table, "\n") {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, m := range span.FindAllStringSubmatch(cells[1], -1) {
				words = append(words, strings.ReplaceAll(regexp.QuoteMeta(m[1]), " ", `\s+`))
			}
		}
	}
	lost := regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
	c := readCode(t)
	for _, f := range c.files {
		for _, g := range f.Comments {
			text := g.Text()
			if at := lost.FindStringIndex(text); at != nil {
				line := c.fset.Position(g.Pos()).Line + strings.Count(text[:at[0]], "\n")
				t.Errorf("%s:%d: %q: docs/glossary.md says what to write", c.fset.Position(g.Pos()).Filename, line, text[at[0]:at[1]])
			}
		}
	}
}

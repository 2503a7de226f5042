package rooms

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/txtar"
)

// load writes the archive as a module of our name and loads it.
func load(t *testing.T, archive string) []*packages.Package {
	t.Helper()
	dir := t.TempDir()
	a := txtar.Parse([]byte("-- go.mod --\nmodule " + module + "\n\ngo 1.26\n" + archive))
	for _, f := range a.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: dir, Tests: true}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
	}
	return all
}

// wantFindings compares findings, each cut off where its want ends.
func wantFindings(t *testing.T, have []Finding, want ...string) {
	t.Helper()
	for i := range max(len(have), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("not wanted: %s", have[i])
		case i >= len(have):
			t.Errorf("missing: %s", want[i])
		case !strings.HasPrefix(have[i].String(), want[i]):
			t.Errorf("have %s, want %s", have[i], want[i])
		}
	}
}

// methods declares a type with n methods, half of them of its pointer.
func methods(name string, n int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "type %s struct{}\n", name)
	for i := range n {
		fmt.Fprintf(&s, "func (%s%s) M%d() {}\n", []string{"", "*"}[i%2], name, i)
	}
	return s.String()
}

func files(dir string, n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "-- %s/f%d.go --\npackage p\n", dir, i)
	}
	return s.String()
}

func TestLimits(t *testing.T) {
	all := load(t, "-- sizes/a.go --\npackage sizes\n"+methods("Fits", mostMethods)+methods("Large", mostMethods+1)+methods("later", mostMethods+1)+
		"type Promoted struct{ *Large }\nfunc (Promoted) One() {}\n"+
		"type Same = Large\n"+
		"-- sizes/a_test.go --\npackage sizes\nfunc (Fits) OfTests() {}\n"+
		files("fits", mostFiles)+"-- fits/f_test.go --\npackage p\n"+
		files("large", mostFiles)+"-- large/f_windows.go --\npackage p\n"+
		files("many", mostFiles+1)+files("catalogue", mostFiles+1))
	wantFindings(t, Check(all, Rules{
		Stale:      true,
		Catalogues: []Catalogue{{"catalogue", "an entry"}, {"fits", "no longer"}, {"gone", "never was"}},
		Pending:    []Pending{{Methods, "sizes.later"}, {Files, "many"}, {Methods, "sizes.Fits"}, {Files, "fits"}},
	}),
		`fits: no room of over 30 files: remove its row of catalogues`,
		`fits: the rule "files" holds here: remove its row of pending`,
		`gone: no room of over 30 files`,
		`large: 31 files, at most 30 are allowed`,
		`sizes.Fits: the rule "methods" holds here: remove its row of pending`,
		`sizes.Large: 61 methods, at most 60 are allowed`,
	)
}

func TestOneWay(t *testing.T) {
	const module = `import _ "github.com/drydock-sim/drydock/`
	source := func(dir string, imports ...string) string {
		s := "-- " + dir + "/a.go --\npackage p\n"
		for _, i := range imports {
			s += module + i + "\"\n"
		}
		return s
	}
	all := load(t, ""+
		// Down, up to the parent, and beside: all one way.
		source("a", "a/internal/low")+source("a/internal/low", "b")+source("a/high", "a")+source("b")+
		// Children of one folder, one of them behind the wall, in a circle.
		source("c/x", "c/internal/y/deep")+source("c/internal/y", "c/x/leaf")+source("c/internal/y/deep")+source("c/x/leaf")+
		// A circle of three folders at the top.
		source("d/one", "e/one")+source("e/one")+source("e/two", "f/one")+source("f/one")+source("f/two", "d/two")+source("d/two")+
		// A parent and its child.
		source("g", "g/h/low")+source("g/h/low")+source("g/h/high", "g"))
	wantFindings(t, Check(all, Rules{Stale: true, Pending: []Pending{{OneWay, "g -> g/h"}, {OneWay, "a -> b"}}}),
		`a -> b: the rule "one way" holds here`,
		`c/internal/y -> c/x: imports run both ways: c/internal/y imports c/x/leaf, and back: c/x imports c/internal/y/deep`,
		`d -> e: imports run both ways: d/one imports e/one, and back: e/two imports f/one`,
		`e -> f: imports run both ways`,
	)
}

const coreModule = `
-- ground/loop/loop.go --
package loop

// Version is of the layer, Loop is not.
type Version struct{ n int }

func (v *Version) Grow() { v.n++ }

type Loop struct {
	NoElide bool
	Name    string
}

func (l *Loop) Park() {}
func (l *Loop) Run()  {}
-- kubelet/internal/elide/elide.go --
package elide

func Memo() {}
-- kubelet/elision.go --
package kubelet

type remembered struct{ passes int }

func (k *Kubelet) skip() bool { k.skipped++; return k.synced > 0 }
-- kubelet/sync_loop.go --
package kubelet

import (
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/elide"
)

type Kubelet struct {
	loop    *loop.Loop
	synced  int
	skipped int
	unused  int
}

func (k *Kubelet) sync(v *loop.Version) {
	elide.Memo()
	k.synced++
	k.loop.Run()
	k.loop.Park()
	_ = k.loop.NoElide
	_ = k.loop.Name
	if k.skip() {
		return
	}
	var r remembered
	r.passes++
}
-- kubelet/wiring.go --
package kubelet

import "github.com/drydock-sim/drydock/kubelet/internal/elide"

func New() *Kubelet { elide.Memo(); k := &Kubelet{}; k.skip(); return k }
-- kubelet/internal/pleg/generic.go --
package pleg

func Relist() {}
`

func TestCore(t *testing.T) {
	all := load(t, coreModule[1:])
	rules := Rules{
		Core: []string{"kubelet/sync_loop.go", "kubelet/internal/pleg/generic.go", "kubelet/pod_workers.go"},
		Layer: Layer{
			Packages: []string{"kubelet/internal/elide"},
			Files:    []string{"kubelet/elision.go", "kubelet/resync.go"},
			Names:    []string{"ground/loop.Version", "ground/loop.Loop.Park", "ground/loop.Loop.NoElide"},
		},
	}
	have := Check(all, rules)
	wantFindings(t, have,
		`kubelet/pod_workers.go: no such file`,
		`kubelet/resync.go: no such file`,
		`kubelet/sync_loop.go:11: only the elision layer uses the field skipped`,
		`kubelet/sync_loop.go:15: a core file uses Version`,
		`kubelet/sync_loop.go:16: a core file uses Memo`,
		`kubelet/sync_loop.go:19: a core file uses Park`,
		`kubelet/sync_loop.go:20: a core file uses NoElide`,
		`kubelet/sync_loop.go:22: a core file uses skip`,
		`kubelet/sync_loop.go:25: a core file uses remembered`,
		`kubelet/sync_loop.go:26: a core file uses passes`,
		`kubelet/sync_loop.go:5: a core file imports kubelet/internal/elide`,
	)
}

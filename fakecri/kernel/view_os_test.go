//go:build linux

package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// twin does the same to a View and to a real directory.
type twin struct {
	t    *testing.T
	v    *kernel.View
	root string
	r    *rand.Rand
	log  []string
}

func (w *twin) path() string {
	out := ""
	for range 1 + w.r.IntN(3) {
		out += "/" + string("abc"[w.r.IntN(3)])
	}
	if w.r.IntN(12) == 0 {
		out += "/"
	}
	return out
}

func number(err error) linux.Errno {
	var errno linux.Errno
	if err != nil && !errors.As(err, &errno) {
		return 9999
	}
	return errno
}

func (w *twin) same(what string, a, b error) {
	w.t.Helper()
	w.log = append(w.log, what)
	if x, y := number(a), number(b); x != y {
		w.t.Fatalf("%v, the OS says %v; after\n%s", a, b, strings.Join(w.log[max(0, len(w.log)-40):], "\n"))
	}
}

func (w *twin) step() {
	a, b := w.path(), w.path()
	ra, rb := w.root+a, w.root+b
	switch op := w.r.IntN(14); op {
	case 0, 1:
		w.open(a, ra)
	case 2:
		w.same("mkdir "+a, w.v.Mkdir(a, 0o755), syscall.Mkdir(ra, 0o755))
	case 3:
		w.same("mkdirall "+a, w.v.MkdirAll(a, 0o755), os.MkdirAll(ra, 0o755))
	case 4:
		w.same("remove "+a, w.v.Remove(strings.TrimRight(a, "/")), os.Remove(strings.TrimRight(ra, "/")))
	case 5, 6, 7:
		w.same("rename "+a+" "+b, w.v.Rename(a, b), syscall.Rename(ra, rb))
	case 8, 9:
		target := strings.TrimRight(a, "/")
		real := w.root + target
		if w.r.IntN(2) == 0 {
			target = target[1:]
			real = target
		}
		b, rb = strings.TrimRight(b, "/"), strings.TrimRight(rb, "/")
		w.same("symlink "+target+" "+b, w.v.Symlink(target, b), os.Symlink(real, rb))
	case 10:
		a, b = strings.TrimRight(a, "/"), strings.TrimRight(b, "/")
		w.same("link "+a+" "+b, w.v.Link(a, b), os.Link(w.root+a, w.root+b))
	case 11:
		size := int64(w.r.IntN(3) * 5000)
		w.same("truncate "+a, w.v.Truncate(a, size), os.Truncate(ra, size))
	case 12:
		w.list(a, ra)
	case 13:
		i, err := w.v.Stat(a)
		j, err2 := os.Stat(ra)
		w.same("stat "+a, err, err2)
		if err == nil && (i.Mode() != j.Mode() || i.Mode().IsRegular() && (i.Size() != j.Size() || uint64(i.Sys().(*memfs.Sys).Nlink) != uint64(j.Sys().(*syscall.Stat_t).Nlink))) {
			w.t.Fatalf("%s: %v, the OS says %v; after\n%s", a, i, j, strings.Join(w.log, "\n"))
		}
	}
}

func (w *twin) open(a, ra string) {
	flag := []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREATE, os.O_WRONLY | os.O_CREATE | os.O_EXCL, os.O_RDWR | os.O_CREATE | os.O_TRUNC,
		os.O_WRONLY | os.O_CREATE | os.O_APPEND}[w.r.IntN(6)]
	f, err := w.v.Open(a, flag, 0o640)
	g, err2 := os.OpenFile(ra, flag, 0o640)
	w.same(fmt.Sprintf("open %s %x", a, flag), err, err2)
	if err != nil {
		return
	}
	defer func() { _ = g.Close() }()
	data := []byte("0123456789")[:w.r.IntN(10)]
	n, err := f.Write(context.Background(), data)
	m, err2 := g.Write(data)
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		w.same("write", err, err2)
		if n != m {
			w.t.Fatal(n, m)
		}
	}
	_ = f.Close()
}

func (w *twin) list(a, ra string) {
	x, err := w.v.ReadDir(a)
	y, err2 := os.ReadDir(ra)
	w.same("readdir "+a, err, err2)
	if len(x) != len(y) {
		w.t.Fatalf("%s: %v, the OS says %v", a, x, y)
	}
	for i := range x {
		if x[i].Name() != y[i].Name() || x[i].Type() != y[i].Type() {
			w.t.Fatalf("%s: %v, the OS says %v", a, x, y)
		}
		if x[i].Type() != 0 {
			continue
		}
		p := strings.TrimRight(a, "/") + "/" + x[i].Name()
		d, err := w.v.ReadFile(p)
		e, err2 := os.ReadFile(w.root + p)
		w.same("read "+p, err, err2)
		if string(d) != string(e) {
			w.t.Fatalf("%s: %.40q, the OS says %.40q; after\n%s", p, d, e, strings.Join(w.log, "\n"))
		}
	}
}

// TestViewAgainstOS compares a view's own walk with the kernel's.
func TestViewAgainstOS(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for seed := range uint64(100) {
		r := newRig(t)
		empty := memfs.New(memfs.Options{Tmpfs: []string{}})
		v := r.m.NewView(kernel.ViewOptions{Image: empty.Freeze()})
		must(t, v.Namespace().Tmpfs("/tmp", 0))
		if seed%2 == 0 { // or through a bind of the node's files
			must(t, r.fs.MkdirAll("/some/where", 0o755))
			v = r.m.NewView(kernel.ViewOptions{Image: empty.Freeze()})
			must(t, v.Namespace().Bind("/abs", r.fs, "/some/where", false))
		}
		w := &twin{t: t, v: v, root: t.TempDir(), r: rand.New(rand.NewPCG(seed, 7))}
		for range 150 {
			w.step()
		}
		for _, dir := range []string{"/a", "/b", "/c"} {
			if _, err := v.Stat(dir); err == nil {
				w.list(dir, w.root+dir)
			}
		}
	}
}

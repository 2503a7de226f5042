//go:build linux

package memfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// pair does everything to a memfs and to a real directory and compares.
type pair struct {
	t    *testing.T
	mem  *memfs.FS
	root string
	log  []string
	in   []byte
	// images were made on the way; none may change afterwards.
	images []image
	linked bool
}

type image struct {
	img *memfs.Image
	was string
}

func newPair(t *testing.T, in []byte) *pair {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	return &pair{t: t, mem: memfs.New(memfs.Options{Loop: l, Tmpfs: []string{}}), root: t.TempDir(), in: in}
}

// byte takes one byte of the input; at its end all are 0.
func (p *pair) byte() int {
	if len(p.in) == 0 {
		return 0
	}
	b := p.in[0]
	p.in = p.in[1:]
	return int(b)
}

func (p *pair) name() string { return string("abc"[p.byte()%3]) }

func (p *pair) path() string {
	out := "/" + p.name()
	for range p.byte() % 3 {
		out += "/" + p.name()
	}
	return out
}

// same compares two errors: the kind, the operation, the number.
func (p *pair) same(mem, real error) {
	p.t.Helper()
	if got, want := p.describe(mem), p.describe(real); got != want {
		p.t.Fatalf("memfs: %s\nos:    %s\nafter:\n%s", got, want, strings.Join(p.log, "\n"))
	}
}

func (p *pair) describe(err error) string {
	var pe *fs.PathError
	var le *os.LinkError
	var errno linux.Errno
	switch {
	case err == nil:
		return "no error"
	case !errors.As(err, &errno):
		return fmt.Sprintf("%v, without an errno", err)
	case errors.As(err, &pe):
		op := pe.Op
		if strings.HasPrefix(op, "unlinkat") || strings.HasPrefix(op, "openfdat") {
			op, pe.Path = "unlinkat", "" // RemoveAll names any step of its own
		}
		return fmt.Sprintf("PathError %s %s: %v", op, strings.TrimPrefix(pe.Path, p.root), errno)
	case errors.As(err, &le):
		return fmt.Sprintf("LinkError %s: %v", le.Op, errno)
	}
	return fmt.Sprintf("%T: %v", err, err)
}

func (p *pair) step() {
	a := p.path()
	real := p.root + a
	op := p.byte() % 21
	p.log = append(p.log, fmt.Sprint(op, " ", a))
	switch op {
	case 0, 1:
		data := bytes.Repeat([]byte{byte('0' + p.byte()%10)}, p.byte()%5)
		p.same(p.mem.WriteFile(a, data, 0o644), os.WriteFile(real, data, 0o644))
	case 2:
		p.append(a, []byte("+"))
	case 3:
		p.same(p.mem.Mkdir(a, 0o755), os.Mkdir(real, 0o755))
	case 4, 5:
		p.same(p.mem.MkdirAll(a, 0o755), os.MkdirAll(real, 0o755))
	case 6:
		p.same(p.mem.Remove(a), os.Remove(real))
	case 7:
		p.same(p.mem.RemoveAll(a), os.RemoveAll(real))
	case 8, 9:
		b := p.path()
		p.log = append(p.log, "  to "+b)
		p.same(p.mem.Rename(a, b), os.Rename(real, p.root+b))
	case 10:
		p.symlink(a)
	case 11:
		m, err1 := p.mem.ReadFile(a)
		r, err2 := os.ReadFile(real)
		p.same(err1, err2)
		if !bytes.Equal(m, r) {
			p.t.Fatalf("%s holds %.40q (%d), os %.40q (%d)", a, m, len(m), r, len(r))
		}
	case 12:
		m, err1 := p.mem.ReadDir(a)
		r, err2 := os.ReadDir(real)
		p.same(err1, err2)
		p.entries(a, m, r)
	case 13:
		m, err1 := p.mem.Stat(a)
		r, err2 := os.Stat(real)
		p.same(err1, err2)
		if err1 == nil {
			p.info(a, m, r)
		}
	default:
		p.stepFile(op, a, real)
	}
}

// stepFile is the steps that work on open files, and on more than a name.
func (p *pair) stepFile(op int, a, real string) {
	switch op {
	case 14:
		size := int64(p.byte()%5) * int64(p.byte()) * 20
		p.same(p.mem.Truncate(a, size), os.Truncate(real, size))
	case 15, 16:
		b := p.path()
		if len(p.images) > 0 {
			return // names of a file in an image part when it is written to
		}
		p.log = append(p.log, "  to "+b)
		p.linked = true
		p.same(p.mem.Link(a, b), os.Link(real, p.root+b))
	case 17, 18:
		p.handle(a, real)
	case 19:
		mode := fs.FileMode(0o600 + p.byte()%0o100)
		if p.byte()%3 == 0 {
			mode |= fs.ModeSticky
		}
		if i, err := os.Lstat(real); err != nil || i.Mode()&fs.ModeSymlink == 0 {
			p.same(p.mem.Chmod(a, mode), os.Chmod(real, mode))
		}
	case 20:
		if p.linked {
			return
		}
		img := p.mem.Freeze()
		p.images = append(p.images, image{img, dump(memfs.NewFrom(memfs.Options{}, img), "/")})
	}
}

// handle writes somewhere into an open file, which is removed meanwhile.
func (p *pair) handle(a, real string) {
	flag := []int{os.O_RDWR, os.O_WRONLY | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY}[p.byte()%5]
	m, err1 := p.mem.Open(a, flag, 0o644)
	r, err2 := os.OpenFile(real, flag, 0o644)
	p.same(err1, err2)
	if err1 != nil {
		return
	}
	defer func() { _ = r.Close() }()
	off := int64(p.byte()%4) * int64(p.byte()) * 40
	data := bytes.Repeat([]byte{byte(p.byte() % 2)}, p.byte()%3*3000+p.byte()%5)
	p.log = append(p.log, fmt.Sprintf("  flag %x, %d bytes at %d", flag, len(data), off))
	n1, err1 := m.WriteAt(data, off)
	n2, err2 := r.WriteAt(data, off)
	p.same(err1, err2)
	if n1 != n2 {
		p.t.Fatalf("wrote %d, os %d", n1, n2)
	}
	buf1, buf2 := make([]byte, 5000), make([]byte, 5000)
	n1, err1 = m.ReadAt(buf1, off/2)
	n2, err2 = r.ReadAt(buf2, off/2)
	if n1 != n2 || (err1 == nil) != (err2 == nil) || !bytes.Equal(buf1, buf2) {
		p.t.Fatalf("read %d %v, os %d %v\n%s", n1, err1, n2, err2, strings.Join(p.log, "\n"))
	}
}

// dump shows a whole tree.
func dump(f *memfs.FS, dir string) string {
	out := ""
	list, _ := f.ReadDir(dir)
	for _, e := range list {
		at := path.Join(dir, e.Name())
		i, _ := e.Info()
		out += fmt.Sprintln(at, i.Mode(), i.ModTime())
		switch e.Type() {
		case fs.ModeDir:
			out += dump(f, at)
		case 0:
			d, _ := f.ReadFile(at)
			out += fmt.Sprintf("%q\n", d)
		}
	}
	return out
}

func (p *pair) append(a string, data []byte) {
	f, err := os.OpenFile(p.root+a, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.Write(data)
		_ = f.Close()
	}
	p.same(p.mem.Append(a, data, 0o644), err)
}

func (p *pair) symlink(a string) {
	target := p.path()
	real := p.root + target
	if p.byte()%2 == 0 {
		target = target[1:]
		real = target
	}
	p.log = append(p.log, "  -> "+target)
	p.same(p.mem.Symlink(target, a), os.Symlink(real, p.root+a))
}

func (p *pair) entries(a string, m, r []fs.DirEntry) {
	if len(m) != len(r) {
		p.t.Fatalf("%s: %v, os %v\n%s", a, m, r, strings.Join(p.log, "\n"))
	}
	for i := range m {
		if m[i].Name() != r[i].Name() || m[i].Type() != r[i].Type() || m[i].IsDir() != r[i].IsDir() {
			p.t.Fatalf("%s[%d]: %v, os %v\n%s", a, i, m[i], r[i], strings.Join(p.log, "\n"))
		}
	}
}

func (p *pair) info(a string, m, r fs.FileInfo) {
	if m.Name() != r.Name() || m.Mode().Type() != r.Mode().Type() || m.Mode().IsRegular() && m.Size() != r.Size() {
		p.t.Fatalf("%s: %v, os %v\n%s", a, m, r, strings.Join(p.log, "\n"))
	}
	if m.Mode().IsRegular() && (m.Mode() != r.Mode() || len(p.images) == 0 && m.Sys().(*memfs.Sys).Nlink != int(r.Sys().(*syscall.Stat_t).Nlink)) {
		p.t.Fatalf("%s: %v, os %v\n%s", a, m, r, strings.Join(p.log, "\n"))
	}
}

// tree compares everything below dir.
func (p *pair) tree(dir string) {
	m, err1 := p.mem.ReadDir(dir)
	r, err2 := os.ReadDir(p.root + dir)
	p.same(err1, err2)
	p.entries(dir, m, r)
	for _, e := range m {
		at := path.Join(dir, e.Name())
		switch e.Type() {
		case fs.ModeDir:
			p.tree(at)
		case fs.ModeSymlink:
			t1, err1 := p.mem.Readlink(at)
			t2, err2 := os.Readlink(p.root + at)
			p.same(err1, err2)
			if t1 != strings.TrimPrefix(t2, p.root) {
				p.t.Fatalf("%s -> %s, os %s", at, t1, t2)
			}
		default:
			d1, err1 := p.mem.ReadFile(at)
			d2, err2 := os.ReadFile(p.root + at)
			p.same(err1, err2)
			if !bytes.Equal(d1, d2) {
				p.t.Fatalf("%s holds %.40q, os %.40q\n%s", at, d1, d2, strings.Join(p.log, "\n"))
			}
		}
	}
}

func (p *pair) run() {
	for len(p.in) > 0 {
		p.step()
	}
	p.tree("/")
	for _, im := range p.images {
		if now := dump(memfs.NewFrom(memfs.Options{}, im.img), "/"); now != im.was {
			p.t.Fatalf("an image changed:\n%s\nwas\n%s\n%s", now, im.was, strings.Join(p.log, "\n"))
		}
	}
}

func TestAgainstOS(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			in := make([]byte, 600)
			for i := range in {
				in[i] = byte(r.Uint32())
			}
			newPair(t, in).run()
		})
	}
}

func FuzzAgainstOS(f *testing.F) {
	f.Add([]byte("mkdir and write, then rename"))
	f.Add([]byte{0, 0, 4, 0, 1, 1, 0, 3, 2})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 2000 {
			t.Skip("long inputs find no more")
		}
		newPair(t, in).run()
	})
}

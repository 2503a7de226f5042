package memfs

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/usage"
)

// scan counts what a file system has of its own, from nothing but the tree.
func scan(f *FS) Space {
	var sum Space
	seen := map[*body]bool{}
	var add func(n *node)
	add = func(n *node) {
		if n.frozen {
			return
		}
		if e := n.exts(); e != nil && len(e.names) > 0 {
			if seen[n.body] {
				return
			}
			seen[n.body] = true
		}
		sum.Inodes++
		sum.Bytes += n.allocated()
		for _, g := range n.ghosts() {
			sum = sum.plus(g.used)
		}
		for _, k := range n.kids { // what is mounted over k is not in k
			add(k)
		}
	}
	add(f.root)
	return sum
}

func seededImage(l *loop.Loop) *Image {
	f := New(Options{Loop: l, Tmpfs: []string{}})
	for _, d := range []string{"/a/b", "/c"} {
		_ = f.MkdirAll(d, 0o755)
		for i := range 4 {
			_ = f.WriteFile(fmt.Sprintf("%s/%d", d, i), make([]byte, i*3000+1), 0o644)
		}
	}
	_ = f.Link("/a/b/1", "/a/b/0x")
	return f.Freeze()
}

// TestDiskAddsUp changes two file systems of one disk at random and compares
// what they say with what they hold after each change.
func TestDiskAddsUp(t *testing.T) {
	full := 0
	for seed := range int64(60) {
		l := loop.New(loop.Options{})
		d := NewDisk(DiskOptions{Loop: l, Size: Space{600 * block, 120}})
		files := New(Options{Loop: l, Share: d.Share()})
		layers := d.Share()
		layer := NewFrom(Options{Loop: l, Share: layers}, seededImage(l))
		other := d.Share()
		r := &randomOps{Rand: rand.New(rand.NewSource(seed)), l: l}
		for step := range 600 {
			f := files
			if r.Intn(2) == 0 {
				f = layer
			}
			what, err := r.one(f)
			if errors.Is(err, linux.ENOSPC) {
				full++
			}
			if r.Intn(40) == 0 {
				other.Take(Space{int64(r.Intn(50)) * block, 3})
			} else if r.Intn(30) == 0 {
				other.Add(Space{}.minus(other.Used()))
			}
			_ = l.RunUntil(l.Now().Add(time.Duration(r.Intn(3)) * time.Second))
			all := files.Used().plus(layer.Used()).plus(other.Used())
			switch {
			case scan(files) != files.Used():
				t.Fatalf("seed %d, step %d, %s: files say %v, and hold %v", seed, step, what, files.Used(), scan(files))
			case scan(layer) != layer.Used() || layers.Used() != layer.Used():
				t.Fatalf("seed %d, step %d, %s: the layer says %v, and holds %v", seed, step, what, layer.Used(), scan(layer))
			case d.Used() != all:
				t.Fatalf("seed %d, step %d, %s: the disk says %v, and holds %v", seed, step, what, d.Used(), all)
			case !all.fits(d.Size()):
				t.Fatalf("seed %d, step %d, %s (%v): %v is more than the disk has", seed, step, what, err, all)
			}
			if b, i := files.Usage("/"); len(files.Mounts()) == 1 && (Space{b, i}) != files.Used() {
				t.Fatalf("seed %d, step %d, %s: du says %d, %d, the disk %v", seed, step, what, b, i, files.Used())
			}
		}
		layers.Clear()
		if layers.Used() != (Space{}) || files.Used().plus(other.Used()) != d.Used() {
			t.Errorf("seed %d: %v is left of a layer that has gone", seed, layers.Used())
		}
		l.Close()
	}
	if full < 100 {
		t.Errorf("the disk was full %d times only", full)
	}
}

// randomOps changes a file system.
type randomOps struct {
	*rand.Rand
	l    *loop.Loop
	open []*File
	subs int
}

func (r *randomOps) path() string {
	dirs := []string{"/", "/a", "/a/b", "/c", "/c/d", "/c/d/e", "/run"}
	return dirs[r.Intn(len(dirs))] + "/" + fmt.Sprint(r.Intn(5))
}

func (r *randomOps) data() []byte {
	b := make([]byte, r.Intn(20000))
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func (r *randomOps) one(f *FS) (string, error) {
	p, q := r.path(), r.path()
	switch r.Intn(20) {
	case 0, 1:
		return "write " + p, f.WriteFile(p, r.data(), 0o644)
	case 2, 3:
		return "append " + p, f.Append(p, r.data(), 0o644)
	case 4:
		return "truncate " + p, f.Truncate(p, int64(r.Intn(40000)))
	case 5:
		return "rename " + p + " " + q, f.Rename(p, q)
	case 6:
		return "remove " + p, f.Remove(p)
	case 7:
		dir := []string{"/a/b", "/c/d", "/c", "/a"}[r.Intn(4)]
		return "remove all " + dir, f.RemoveAll(dir)
	case 8:
		return "link " + p + " " + q, f.Link(p, q)
	case 9:
		return "symlink " + p, f.Symlink("x", p)
	case 10, 11:
		dir := []string{"/a/b", "/c/d/e", "/c/0", "/run/1"}[r.Intn(4)]
		return "mkdir " + dir, f.MkdirAll(dir, 0o755)
	case 12:
		return "chown " + p, f.Chown(p, r.Intn(3), 0)
	case 13:
		dir := []string{"/c/d", "/a/b"}[r.Intn(2)]
		if f.Mounted(dir) {
			return "unmount " + dir, f.Unmount(dir)
		}
		return "mount " + dir, f.MountTmpfsSize(dir, 40000)
	case 14:
		h, err := f.Open(p, []int{os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY}[r.Intn(3)], 0o644)
		if err == nil {
			r.open = append(r.open, h)
		}
		return "open " + p, err
	case 15, 16:
		if len(r.open) == 0 {
			return "nothing", nil
		}
		h := r.open[r.Intn(len(r.open))]
		switch r.Intn(3) {
		case 0:
			_, err := h.Append(r.data())
			return "append to open " + h.name, err
		case 1:
			_, err := h.WriteZerosAt(h.Size(), int64(r.Intn(60000)))
			return "zeros to open " + h.name, err
		}
		return "truncate open " + h.name, h.Truncate(int64(r.Intn(20000)))
	case 17:
		sub, err := f.Sub([]string{"/a", "/c", "/"}[r.Intn(3)])
		if err != nil {
			return "part", err
		}
		return "in a part " + p, sub.WriteFile(p, r.data(), 0o644)
	case 18:
		r.subs++
		now := time.Duration(r.l.UnixNano())
		dir := []string{"/a", "/c", "/c/d"}[r.Intn(3)]
		_, err := f.Grow(dir, fmt.Sprint(r.Intn(3)), usage.User{Curve: usage.Ramp(0, int64(r.Intn(300000)), time.Minute), Start: now}, usage.User{Curve: usage.Constant(int64(r.Intn(8))), Start: now})
		return "grow " + dir, err
	}
	f.GrowFile(p, usage.User{Curve: usage.Ramp(0, int64(r.Intn(100000)), 30*time.Second), Start: time.Duration(r.l.UnixNano())})
	return "grow " + p, nil
}

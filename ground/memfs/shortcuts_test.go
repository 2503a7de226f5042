package memfs_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/drydock-sim/drydock/ground/memfs"
)

// anyByLists is AnyFile by lists, which follow links.
func anyByLists(f *memfs.FS, dir string, levels int, match func(name string, size int64) bool) bool {
	list, _ := f.ReadDir(dir)
	return slices.ContainsFunc(list, func(e fs.DirEntry) bool {
		if levels == 0 {
			i, err := e.Info()
			return err == nil && match(e.Name(), i.Size())
		}
		return anyByLists(f, dir+"/"+e.Name(), levels-1, match)
	})
}

// What spares lists and walks does what they do, on trees of any kind: with links,
// mounts, files in the way, and directories that went.
func TestRandomShortCuts(t *testing.T) {
	known, made, failed := 0, 0, 0
	for seed := range uint64(60) {
		_, short := newFS(t)
		_, long := newFS(t)
		r := rand.New(rand.NewPCG(seed, 5))
		name := func() string {
			p := ""
			for range 1 + r.IntN(4) {
				p += "/" + string("abc"[r.IntN(3)])
			}
			return p
		}
		links := r.IntN(2) == 0
		for i := range 60 {
			p, q, what, size := name(), name(), r.IntN(10), r.IntN(50)
			act := func(f *memfs.FS) error {
				switch what {
				case 0, 1, 8:
					return f.WriteFile(p, make([]byte, size), 0o644)
				case 2:
					return f.RemoveAll(p)
				case 3:
					if links {
						_ = f.RemoveAll(p)
						return f.Symlink(q, p)
					}
				case 4:
					return f.Rename(p, q)
				case 5:
					if size < 5 {
						return f.MountTmpfs(p)
					}
				case 6:
					if i == 30 && size < 10 {
						f.Freeze()
					}
				case 7:
					return f.Link(p, q)
				}
				return f.MkdirAll(p, 0o755)
			}
			if a, b := fmt.Sprint(act(short)), fmt.Sprint(act(long)); a != b {
				t.Fatalf("seed %d: %s, and %s", seed, a, b)
			}
			dir, names := string("abc"[r.IntN(3)]), []string{"a", "c"}
			err := short.MkdirAllIn(p, dir, 0o750, names)
			want := long.MkdirAll(p+"/"+dir, 0o750)
			for _, n := range names {
				if want == nil {
					want = long.MkdirAll(p+"/"+dir+"/"+n, 0o750)
				}
			}
			if (err == nil) != (want == nil) {
				t.Fatalf("seed %d, %d: %s/%s: %v, not %v", seed, i, p, dir, err, want)
			}
			if err == nil {
				made++
			} else {
				failed++
			}
			if a, b := tree(short, "/"), tree(long, "/"); a != b {
				t.Fatalf("seed %d, %d: %s/%s:\n%s\nnot\n%s", seed, i, p, dir, a, b)
			}
			var listed []string
			list, _ := short.ReadDir(q)
			for _, e := range list {
				listed = append(listed, e.Name())
			}
			if got := slices.Collect(short.Names(q)); !slices.Equal(got, listed) {
				t.Fatalf("seed %d, %d: %s: %q, not %q", seed, i, q, got, listed)
			}
			match := func(n string, s int64) bool { return n == dir && s > 0 }
			if found, ok := short.AnyFile(q, 2, match); ok {
				known++
				if found != anyByLists(short, q, 2, match) {
					t.Fatalf("seed %d, %d: below %s: %t\n%s", seed, i, q, found, tree(short, "/"))
				}
			}
		}
	}
	if known < 500 || made < 500 || failed < 300 {
		t.Errorf("%d searches, %d made, %d failed", known, made, failed)
	}
}

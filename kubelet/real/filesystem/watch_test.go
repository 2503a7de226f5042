//go:build linux

package filesystem

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drydock-sim/drydock/ground/loop"
)

// patience is how long a change may take to be told of, and quietTime how long a
// test waits for what should not come.
const (
	patience  = 10 * time.Second
	quietTime = 150 * time.Millisecond
)

// told counts the calls of a watch, on its loop.
type told struct {
	t    *testing.T
	l    *loop.Loop
	n    int
	more loop.Signal
}

// expect runs change and waits until it is told of.
func (w *told) expect(ctx context.Context, what string, change func() error) {
	w.t.Helper()
	w.settle(ctx)
	w.n = 0
	if err := change(); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	ctx, cancel := loop.WithTimeout(ctx, patience)
	defer cancel()
	for w.n == 0 {
		if w.more.Wait(ctx) != nil {
			w.t.Errorf("%s was not told of", what)
			return
		}
	}
}

// settle waits until nothing comes any more.
func (w *told) settle(ctx context.Context) {
	for n := -1; n != w.n; {
		n = w.n
		_ = w.l.Sleep(ctx, quietTime)
	}
}

func TestWatch(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	top := t.TempDir()
	dir := filepath.Join(top, "a", "manifests")
	file := filepath.Join(dir, "pod.yaml")
	write := func(name, text string) func() error {
		return func() error { return os.WriteFile(name, []byte(text), 0o600) }
	}
	onLoop(t, func(ctx context.Context, l *loop.Loop) {
		w := &told{t: t, l: l}
		stop := New(l).Watch(dir, func() { w.n++; w.more.Notify() })
		w.expect(ctx, "the folder's coming", func() error { return os.MkdirAll(dir, 0o700) })
		w.expect(ctx, "a new file", write(file, "1"))
		w.expect(ctx, "a write", write(file, "2"))
		w.expect(ctx, "a rename into the place", func() error {
			return errors.Join(os.WriteFile(filepath.Join(top, "tmp"), nil, 0o600), os.Rename(filepath.Join(top, "tmp"), file))
		})
		w.expect(ctx, "a folder in it", func() error { return os.Mkdir(filepath.Join(dir, "sub"), 0o700) })
		w.expect(ctx, "a file below it", write(filepath.Join(dir, "sub", "x"), ""))
		w.expect(ctx, "a removal", func() error { return os.Remove(file) })
		w.expect(ctx, "the folder's going", func() error { return os.RemoveAll(dir) })
		w.expect(ctx, "the folder's return", func() error { return os.MkdirAll(dir, 0o700) })
		w.expect(ctx, "a file in the new one", write(file, "3"))
		w.settle(ctx)
		w.n = 0
		if err := write(filepath.Join(top, "a", "other"), "")(); err != nil {
			t.Fatal(err)
		}
		_ = l.Sleep(ctx, quietTime)
		if w.n != 0 {
			t.Error("a change beside it was told of")
		}
		stop()
		stop()
		if err := write(file, "4")(); err != nil {
			t.Fatal(err)
		}
		_ = l.Sleep(ctx, quietTime)
		if w.n != 0 {
			t.Error("a change after the end was told of")
		}
	})
}

func TestWatchFileAndLink(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	top := t.TempDir()
	one, two, link := filepath.Join(top, "1"), filepath.Join(top, "2"), filepath.Join(top, "link")
	if err := errors.Join(os.Mkdir(one, 0o700), os.Mkdir(two, 0o700), os.Symlink(one, link)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(top, "pod.yaml")
	onLoop(t, func(ctx context.Context, l *loop.Loop) {
		w := &told{t: t, l: l}
		stop := New(l).Watch(link, func() { w.n++; w.more.Notify() })
		w.expect(ctx, "a file behind a link", func() error { return os.WriteFile(filepath.Join(one, "x"), nil, 0o600) })
		w.expect(ctx, "a link's change", func() error {
			return errors.Join(os.Symlink(two, link+"2"), os.Rename(link+"2", link))
		})
		stop()
		stop = New(l).Watch(file, func() { w.n++; w.more.Notify() })
		w.expect(ctx, "a file's coming", func() error { return os.WriteFile(file, nil, 0o600) })
		w.expect(ctx, "a file's change", func() error { return os.WriteFile(file, []byte("x"), 0o600) })
		stop()
	})
}

package memfs

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/usage"
)

// diskRig is a disk with one file system.
type diskRig struct {
	t *testing.T
	l *loop.Loop
	d *Disk
	f *FS
}

func newDiskRig(t *testing.T, size Space) *diskRig {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	d := NewDisk(DiskOptions{Loop: l, Size: size})
	return &diskRig{t, l, d, New(Options{Loop: l, Share: d.Share()})}
}

func (r *diskRig) run(d time.Duration) { r.ok(r.l.RunUntil(r.l.Now().Add(d))) }

func (r *diskRig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *diskRig) user(c *usage.Curve) usage.User {
	return usage.User{Curve: c, Start: time.Duration(r.l.UnixNano())}
}

func (r *diskRig) want(what string, got, want int64) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

const mib = 1 << 20

func TestGrowth(t *testing.T) {
	r := newDiskRig(t, Space{100 * mib, 1000})
	r.ok(r.f.MkdirAll("/v", 0o755))
	before := r.d.Used()
	g, err := r.f.Grow("/v", "a", r.user(usage.Ramp(0, 60*mib, time.Minute)), r.user(usage.Constant(5)))
	r.ok(err)
	r.run(20 * time.Second)
	r.want("bytes on the disk", r.d.Used().Bytes-before.Bytes, 20*mib)
	bytes, inodes := r.f.Usage("/v")
	r.want("bytes that du sees", bytes, block+20*mib)
	r.want("inodes that du sees", inodes, 1+5)
	r.ok(r.f.Rename("/v", "/w"))
	r.run(20 * time.Second)
	bytes, _ = r.f.Usage("/w")
	r.want("bytes after a rename", bytes, block+40*mib)

	// Another run begins with what there is, and goes on by its own curve.
	g.Stop()
	r.run(time.Hour)
	r.want("bytes after the end", r.d.Used().Bytes-before.Bytes, 40*mib)
	_, err = r.f.Grow("/w", "a", r.user(usage.Constant(7*mib)), usage.User{})
	r.ok(err)
	r.want("bytes of the next run", r.d.Used().Bytes-before.Bytes, 7*mib)
	r.ok(r.f.RemoveAll("/w"))
	r.want("bytes without the directory", r.d.Used().Bytes, before.Bytes-block)
	r.want("growths that are left", int64(len(r.d.growths)), 0)
}

// TestFullDisk has growths fill a disk: what they want then is there when there
// is room, but for a log's, which is lost.
func TestFullDisk(t *testing.T) {
	r := newDiskRig(t, Space{80 * mib, 100})
	r.ok(r.f.WriteFile("/0.log", nil, 0o644))
	ballast := r.d.Share()
	ballast.Add(Space{Bytes: 40*mib - r.d.Used().Bytes})
	w := r.d.Share().Grow(r.user(usage.Ramp(0, 60*mib, time.Minute)), usage.User{})
	g := r.f.GrowFile("/0.log", r.user(usage.Ramp(0, 60*mib, time.Minute)))
	r.run(30 * time.Second) // full at 20 s
	r.want("free on a full disk", r.d.Free().Bytes/block, 0)
	r.want("what the program has", w.Used().Bytes/mib, 20)
	i, err := r.f.Stat("/0.log")
	r.ok(err)
	if got := i.Size() / mib; got < 19 || got > 20 {
		t.Errorf("the log has %d MiB", got)
	}
	if err := r.f.WriteFile("/f", []byte("x"), 0o644); !errors.Is(err, linux.ENOSPC) {
		t.Errorf("writing to a full disk: %v", err)
	}
	if err := r.f.Mkdir("/d", 0o755); !errors.Is(err, linux.ENOSPC) {
		t.Errorf("a directory on a full disk: %v", err)
	}
	ballast.Clear()
	was := r.d.share.used.Bytes
	r.run(time.Millisecond)
	if got := (r.d.share.used.Bytes - was) / mib; got != 10 {
		t.Errorf("when there was room the program took %d MiB", got)
	}
	r.run(10 * time.Second)
	r.want("what the program has with room", w.Used().Bytes/mib, 40)
	i, _ = r.f.Stat("/0.log")
	if got := i.Size() / mib; got < 29 || got > 30 {
		t.Errorf("the log has %d MiB, which is not what came since there is room", got)
	}
	r.ok(r.f.WriteFile("/g", []byte("x"), 0o644))
	r.want("what was written and lost", g.Used().Bytes/mib, 40)
}

// TestDiskWatch is told when curves, or others, leave less than the floor, and
// not before: nobody looks at the disk meanwhile.
func TestDiskWatch(t *testing.T) {
	tests := []struct {
		name  string
		curve func() *usage.Curve
		add   int64 // every 100 ms, by others; below 0: once, after a second
		at    time.Duration
	}{
		{"a ramp", func() *usage.Curve { return usage.Ramp(0, 100*mib, 100*time.Second) }, 0, 50 * time.Second},
		{"a ramp and others", func() *usage.Curve { return usage.Ramp(0, 100*mib, 100*time.Second) }, mib / 10, 25 * time.Second},
		{"a ramp and something at once", func() *usage.Curve { return usage.Ramp(0, 100*mib, 100*time.Second) }, -35 * mib, 15 * time.Second},
		{"others only", func() *usage.Curve { return nil }, mib / 10, 50 * time.Second},
		{"others beside what stays", func() *usage.Curve { return usage.Constant(10 * mib) }, mib / 10, 40 * time.Second},
		{"a step", func() *usage.Curve {
			c, _ := usage.Steps([]usage.Point{{At: 0, Value: 1}, {At: time.Hour, Value: 70 * mib}})
			return c
		}, 0, time.Hour},
		{"a curve that stays below", func() *usage.Curve { return usage.Ramp(0, 49*mib, 10*time.Second) }, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newDiskRig(t, Space{100 * mib, 0})
			start := r.l.Now()
			other := r.d.Share()
			other.Add(Space{Bytes: -r.d.Used().Bytes})
			told := time.Duration(0)
			if !r.d.Watch(Space{Bytes: 50 * mib}, func() { told = r.l.Now().Sub(start) }) {
				t.Fatal("there is less already")
			}
			r.d.Share().Grow(r.user(tt.curve()), usage.User{})
			if tt.add < 0 {
				r.l.Root().After(time.Second, func() { other.Add(Space{Bytes: -tt.add}) })
			}
			if tt.add > 0 {
				r.l.Root().Every("others", 100*time.Millisecond, 0, func() { other.Add(Space{Bytes: tt.add}) })
			}
			r.run(2 * time.Hour)
			if d := told - tt.at; d < -10*time.Millisecond || d > 200*time.Millisecond {
				t.Errorf("told after %v, want %v", told, tt.at)
			}
			if tt.at > 0 && r.d.Watch(Space{Bytes: 50 * mib}, func() {}) {
				t.Error("a watch of what is low already")
			}
		})
	}
}

// TestCopiesTakeSpace: whoever changes what an image has needs room for copies of
// the directories above it, and of the file.
func TestCopiesTakeSpace(t *testing.T) {
	for _, tt := range []struct {
		what string
		do   func(f *FS) error
		need Space
	}{
		{"a file", func(f *FS) error { return f.WriteFile("/a/b/new", nil, 0o644) }, Space{3 * block, 4}},
		{"a directory", func(f *FS) error { return f.Mkdir("/c/new", 0o755) }, Space{3 * block, 3}},
		{"a mode", func(f *FS) error { return f.Chmod("/c/3", 0o600) }, Space{2*block + 3*block, 3}},
		{"an owner", func(f *FS) error { return f.Chown("/c/1", 1, 1) }, Space{2*block + block, 3}},
		{"a rename", func(f *FS) error { return f.Rename("/c/1", "/c/5") }, Space{2*block + block, 3}},
		{"an open file", func(f *FS) error { return second(f.Open("/c/2", os.O_WRONLY, 0)) }, Space{2*block + 2*block, 3}},
	} {
		for _, size := range []Space{tt.need, tt.need.minus(Space{1, 0}), tt.need.minus(Space{0, 1})} {
			l := loop.New(loop.Options{})
			d := NewDisk(DiskOptions{Loop: l, Size: size})
			f := NewFrom(Options{Loop: l, Share: d.Share()}, seededImage(l))
			err := tt.do(f)
			if full := size != tt.need; errors.Is(err, linux.ENOSPC) != full || !full && err != nil {
				t.Errorf("%s on a disk of %v: %v", tt.what, size, err)
			}
			if want := tt.need; err == nil && d.Used() != want || err != nil && d.Used() != (Space{}) {
				t.Errorf("%s on a disk of %v took %v", tt.what, size, d.Used())
			}
			l.Close()
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestLogGrowthIsSeen: whoever watches the file is told that it begins to grow.
func TestLogGrowthIsSeen(t *testing.T) {
	r := newDiskRig(t, Space{})
	r.ok(r.f.WriteFile("/0.log", nil, 0o644))
	curve, err := usage.Lines([]usage.Point{{At: 0, Value: 0}, {At: time.Hour, Value: 0}, {At: 2 * time.Hour, Value: mib}})
	r.ok(err)
	r.f.GrowFile("/0.log", r.user(curve))
	r.run(time.Minute)
	start, seen := r.l.Now(), time.Duration(0)
	r.f.Watch("/", func() { seen = r.l.Now().Sub(start) })
	r.run(90 * time.Minute)
	if seen < 59*time.Minute-time.Second || seen > 59*time.Minute+time.Second {
		t.Errorf("seen after %v", seen)
	}
}

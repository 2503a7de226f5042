package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// gcFake is a runtime and its disk.
type gcFake struct {
	l      *loop.Loop
	images []*runtimeapi.Image
	used   []string // images of containers
	mounts []string // images mounted in each container

	capacity, available          uint64
	listErr, statusErr, statsErr error
	removeErr                    map[string]error
	beforeRemove                 func(id string)

	did        []string // calls that change something, and what is told
	reads      int
	generation uint64
}

func (f *gcFake) say(format string, args ...any) { f.did = append(f.did, fmt.Sprintf(format, args...)) }

func (f *gcFake) ListImages(context.Context) ([]*runtimeapi.Image, error) {
	f.reads++
	return f.images, f.listErr
}

func (f *gcFake) GetPods(context.Context) ([]*kubecontainer.Pod, error) {
	p := &kubecontainer.Pod{}
	for i, id := range f.used {
		p.Containers = append(p.Containers, &kubecontainer.Container{ID: fmt.Sprint("c", i), ImageID: id, State: kubecontainer.StateExited})
	}
	return []*kubecontainer.Pod{p}, nil
}

func (f *gcFake) ImageMounts(context.Context, string) ([]string, error) { return f.mounts, f.statusErr }

func (f *gcFake) RemoveImage(_ context.Context, id string) error {
	if f.beforeRemove != nil {
		f.beforeRemove(id)
	}
	if err := f.removeErr[id]; err != nil {
		return err
	}
	f.say("-%s", id)
	f.remove(id)
	return nil
}

func (f *gcFake) remove(id string) {
	f.generation++
	f.images = slices.DeleteFunc(slices.Clone(f.images), func(i *runtimeapi.Image) bool {
		if i.Id == id {
			f.available += i.Size
		}
		return i.Id == id
	})
}

func (f *gcFake) add(id string, size uint64) {
	f.generation++
	f.images = append(slices.Clone(f.images), &runtimeapi.Image{Id: id, Size: size})
	f.available -= size
}

func (f *gcFake) use(ids ...string) {
	f.generation++
	f.used = ids
}

func (f *gcFake) stats(context.Context) (*statsapi.FsStats, error) {
	f.reads++
	return &statsapi.FsStats{CapacityBytes: ptr.To(f.capacity), AvailableBytes: ptr.To(f.available)}, f.statsErr
}

func (f *gcFake) Event(_ *v1.ObjectReference, eventtype, reason, message string) {
	f.say("%s %s %s", eventtype, reason, message)
}

// gcRig runs a GCManager over a fake.
type gcRig struct {
	*gcFake
	m *GCManager
}

func newGCRig(t *testing.T, policy GCPolicy) *gcRig {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	f := &gcFake{l: l, capacity: 1000, available: 1000, removeErr: map[string]error{}, generation: 1}
	return &gcRig{f, NewGC(GCOptions{
		Loop: l, Runtime: f, Recorder: f, Policy: policy, FsStats: f.stats,
		Collected: func(left []string, since time.Time) { f.say("left %v at %v", left, l.Since(since) == 0) },
	})}
}

// at runs the loop until d after its start, and then fn, and returns what was
// done meanwhile.
func (r *gcRig) at(t *testing.T, d time.Duration, fn func(ctx context.Context)) string {
	t.Helper()
	r.did = nil
	r.l.Root().At(loop.Epoch().Add(d), func() { r.l.Root().Go("test", fn) })
	if err := r.l.RunUntil(loop.Epoch().Add(d + time.Second)); err != nil {
		t.Fatal(err)
	}
	return strings.Join(r.did, "; ")
}

var plain = GCPolicy{HighThresholdPercent: 90, LowThresholdPercent: 80, MinAge: 2 * time.Minute}

func collectError(m *GCManager, err *error) func(ctx context.Context) {
	return func(ctx context.Context) { *err = m.garbageCollect(ctx) }
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s\n got %s\nwant %s", what, got, want)
	}
}

func TestGCOrder(t *testing.T) {
	r := newGCRig(t, plain)
	// c is seen first, a and b later; b was used for a while, d still is.
	r.add("c", 100)
	r.at(t, 0, r.m.Detect)
	r.add("b", 100)
	r.add("a", 100)
	r.add("d", 100)
	r.use("b", "d")
	r.at(t, time.Minute, r.m.Detect)
	r.use("d")
	r.images[0].Pinned = false
	r.available = 50
	var err error
	// 95% used; to be freed are 150: never used first, of those the longest known.
	want(t, "first", r.at(t, 4*time.Minute, collectError(r.m, &err)), "-c; -a; left [] at true")
	if err != nil {
		t.Error(err)
	}
	r.available = 0
	want(t, "then what was used", r.at(t, 5*time.Minute, collectError(r.m, &err)),
		"-b; left [] at true; Warning FreeDiskSpaceFailed "+insufficient(100, 100))
	want(t, "error", err.Error(), insufficient(100, 100))
}

func insufficient(percent, freed int) string {
	return fmt.Sprintf("Insufficient free disk space on the node's image filesystem (%d%% of 1000 B used). Failed to free sufficient space by deleting unused images (freed %d bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.", percent, freed)
}

func TestGCThresholds(t *testing.T) {
	for _, tt := range []struct {
		name                string
		available, capacity uint64
		policy              GCPolicy
		want                string
	}{
		{"just below", 101, 1000, plain, "-x"},
		{"available 10.9% is 90% used", 109, 1000, plain, "-x"},
		{"available 11% is 89% used", 110, 1000, plain, ""},
		{"none asked for up to 100", 10, 1000, GCPolicy{HighThresholdPercent: 100, LowThresholdPercent: 80}, ""},
		{"1% rounds down", 9, 1000, GCPolicy{HighThresholdPercent: 100, LowThresholdPercent: 80}, "-x"},
		{"more available than there is", 2000, 1000, GCPolicy{LowThresholdPercent: 0}, "-x"},
		{"huge", 1 << 61, 1 << 62, GCPolicy{HighThresholdPercent: 50, LowThresholdPercent: 40}, "-x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newGCRig(t, tt.policy)
			r.add("x", 1)
			r.at(t, 0, r.m.Detect)
			r.capacity, r.available = tt.capacity, tt.available
			got := strings.Split(r.at(t, time.Hour, r.m.Collect), ";")[0]
			want(t, tt.name, got, tt.want)
			// The floor that is watched says the same.
			if below := int64(min(tt.available, tt.capacity)) < r.m.floor; below != (tt.want != "") {
				t.Errorf("floor %d of %d: below is %v", r.m.floor, tt.available, below)
			}
		})
	}
}

func TestGCLeaves(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   time.Duration
		prep func(r *gcRig)
		want string
	}{
		{"too young", 119 * time.Second, func(*gcRig) {}, "left [x] at true; Warning FreeDiskSpaceFailed " + insufficient(100, 0)},
		{"old enough", 2*time.Minute + time.Second, func(*gcRig) {}, "-x; left [] at true; Warning FreeDiskSpaceFailed " + insufficient(100, 100)},
		{"used by a dead container", time.Hour, func(r *gcRig) { r.used = []string{"x"} }, "left [] at true; Warning FreeDiskSpaceFailed " + insufficient(100, 0)},
		{"mounted", time.Hour, func(r *gcRig) { r.used, r.mounts = []string{"y"}, []string{"x"} }, "left [] at true; Warning FreeDiskSpaceFailed " + insufficient(100, 0)},
		{"pinned", time.Hour, func(r *gcRig) { r.images[0].Pinned = true }, "left [] at true; Warning FreeDiskSpaceFailed " + insufficient(100, 0)},
		{"no such disk", time.Hour, func(r *gcRig) { r.capacity = 0 }, "Warning InvalidDiskCapacity invalid capacity 0 on image filesystem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newGCRig(t, plain)
			r.add("x", 100)
			r.at(t, 0, r.m.Detect)
			r.available = 0
			tt.prep(r)
			want(t, tt.name, r.at(t, tt.at, r.m.Collect), tt.want)
		})
	}
}

// TestGCVanished: an image that was away is a new one.
func TestGCVanished(t *testing.T) {
	r := newGCRig(t, plain)
	r.add("x", 100)
	r.at(t, 0, r.m.Detect)
	r.remove("x")
	r.at(t, time.Minute, r.m.Detect)
	r.add("x", 100)
	r.at(t, 2*time.Minute, r.m.Detect)
	r.available = 0
	want(t, "a minute old", r.at(t, 3*time.Minute, r.m.Collect), "left [x] at true; Warning FreeDiskSpaceFailed "+insufficient(100, 0))
}

func TestGCMaxAge(t *testing.T) {
	policy := plain
	policy.MaxAge = time.Hour
	r := newGCRig(t, policy)
	for _, id := range []string{"never", "used", "lately", "stuck"} {
		r.add(id, 1)
	}
	r.use("used", "lately")
	r.at(t, 0, r.m.Detect)
	want(t, "before maxAge has passed nothing is too old", r.at(t, time.Hour-time.Second, r.m.Collect), "")
	r.use("lately")
	r.at(t, 61*time.Minute, r.m.Detect)
	r.use()
	r.removeErr["stuck"] = errors.New("in use")
	var err error
	want(t, "after it", r.at(t, 2*time.Hour+time.Second, collectError(r.m, &err)), "-never; -used")
	want(t, "error", err.Error(), "wanted to free images older than 1h0m0s, encountered errors in image deletion: in use")
	delete(r.removeErr, "stuck")
	want(t, "lately, to the hour", r.at(t, 121*time.Minute-time.Second, collectError(r.m, &err)), "-stuck")
	want(t, "lately, over it", r.at(t, 121*time.Minute+2*time.Second, collectError(r.m, &err)), "-lately")
}

func TestGCErrors(t *testing.T) {
	oops := errors.New("oops")
	for _, tt := range []struct {
		name, err, did string
		prep           func(r *gcRig)
	}{
		{"list", "oops", "", func(r *gcRig) { r.listErr = oops }},
		{"status", "get container status: oops", "", func(r *gcRig) { r.used, r.statusErr = []string{"y"}, oops }},
		{"stats", "oops", "", func(r *gcRig) { r.statsErr = oops }},
		{
			"removal", "wanted to free 200 bytes, but freed 100 bytes space with errors in image deletion: [busy, in use]", "-b",
			func(r *gcRig) {
				r.removeErr["a"], r.removeErr["c"] = errors.New("busy"), errors.New("in use")
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newGCRig(t, plain)
			for _, id := range []string{"a", "b", "c"} {
				r.add(id, 100)
			}
			r.at(t, 0, r.m.Detect)
			r.available = 0
			tt.prep(r)
			var err error
			want(t, "did", r.at(t, time.Hour, collectError(r.m, &err)), tt.did)
			if err == nil || err.Error() != tt.err {
				t.Errorf("got %v, want %s", err, tt.err)
			}
		})
	}
}

// TestGCFailedEvent: only a failure after a failure is told.
func TestGCFailedEvent(t *testing.T) {
	r := newGCRig(t, plain)
	r.listErr = errors.New("oops")
	want(t, "first", r.at(t, 0, r.m.Collect), "")
	want(t, "second", r.at(t, 5*time.Minute, r.m.Collect), "Warning ImageGCFailed oops")
	want(t, "third", r.at(t, 10*time.Minute, r.m.Collect), "Warning ImageGCFailed oops")
	r.listErr = nil
	want(t, "well", r.at(t, 15*time.Minute, r.m.Collect), "")
	r.listErr = errors.New("oops")
	want(t, "first again", r.at(t, 20*time.Minute, r.m.Collect), "")
}

func TestDeleteUnusedImages(t *testing.T) {
	r := newGCRig(t, plain)
	for _, id := range []string{"a", "b", "c"} {
		r.add(id, 100)
	}
	r.use("b")
	r.at(t, 0, r.m.Detect)
	r.add("new", 100)
	del := func(ctx context.Context) {
		if err := r.m.DeleteUnusedImages(ctx); err != nil {
			r.say("%v", err)
		}
	}
	want(t, "with much space", r.at(t, time.Hour, del), "-a; -c; left [new] at true")
	r.removeErr["new"] = errors.New("in use")
	want(t, "error", r.at(t, 2*time.Hour, del), "wanted to free 9223372036854775807 bytes, but freed 0 bytes space with errors in image deletion: in use")
}

// TestGCUsedMeanwhile: what a detection that comes between learns does not
// change a pass that has begun, and what was not used before its own look has
// gone.
func TestGCUsedMeanwhile(t *testing.T) {
	r := newGCRig(t, plain)
	r.add("a", 10)
	r.add("b", 10)
	r.at(t, 0, r.m.Detect)
	r.available = 0
	r.beforeRemove = func(id string) {
		if id == "a" {
			r.use("b")
			if err := r.m.detect(r.l.Root().Background(), r.l.Now()); err != nil {
				t.Error(err)
			}
		}
	}
	want(t, "did", r.at(t, time.Hour, r.m.Collect), "-a; -b; left [] at true; Warning FreeDiskSpaceFailed "+insufficient(100, 20))
}

// TestGCIdle: with a runtime and a machine that can tell, passes over nothing
// new are not made, and what is removed, when and with what events is the same.
func TestGCIdle(t *testing.T) {
	run := func(elide bool, age time.Duration) (acts string, reads int) {
		policy := plain
		policy.MaxAge = age
		r := newGCRig(t, policy)
		if elide {
			r.m.o.UseGeneration = func() uint64 { return r.generation }
			r.m.o.Below = func(floor int64) bool { return int64(r.available) < floor }
		}
		root, start := r.l.Root(), r.l.Now()
		at := func(d time.Duration, fn func()) { root.At(start.Add(d), fn) }
		told := 0
		note := func(ctx context.Context) {
			r.m.Collect(ctx)
			for ; told < len(r.did); told++ {
				r.did[told] = fmt.Sprint(r.l.Since(start).Truncate(time.Second), " ", r.did[told])
			}
		}
		root.Until("gc", 5*time.Minute, 0, note).Elide(loop.Skip(r.m.Idle))
		root.Until("detect", 5*time.Minute, 0, r.m.Detect).Elide(loop.Skip(r.m.Unchanged))
		r.add("a", 100)
		r.add("b", 100)
		r.use("a", "b")
		at(7*time.Hour+time.Minute, func() { r.use("b") })
		at(9*time.Hour+time.Minute, func() { r.use("c") })
		at(11*time.Hour+time.Minute, func() { r.available = 90 })
		at(12*time.Hour+time.Minute, func() { r.add("c", 20) })
		at(13*time.Hour+time.Minute, func() { r.available = 50 })
		at(14*time.Hour+time.Minute, func() { r.available = 500 })
		at(15*time.Hour+time.Minute, func() { r.use("d"); r.available = 100 })
		if err := r.l.RunUntil(start.Add(24 * time.Hour)); err != nil {
			t.Fatal(err)
		}
		return strings.Join(r.did, "\n"), r.reads
	}
	for _, age := range []time.Duration{0, 90 * time.Minute, 5 * time.Hour} {
		all, many := run(false, age)
		few, little := run(true, age)
		want(t, fmt.Sprint("maxAge ", age), few, all)
		if !strings.Contains(all, "-a") || age == 0 && !strings.Contains(all, "ImageGCFailed") {
			t.Errorf("nothing happened: %s", all)
		}
		if little > many/3 {
			t.Errorf("%d reads, %d without leaving passes out", little, many)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for bytes, text := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 264212084 << 10: "252.0 GiB", 5 << 49: "2560.0 TiB",
	} {
		want(t, fmt.Sprint(bytes), formatSize(bytes), text)
	}
}

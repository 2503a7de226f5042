package kubelet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// imageDisk is a machine with one disk of 100 GB, which has the images and what
// a test puts there.
type imageDisk struct {
	stats.Machine
	w     *world
	other int64
	asked int
}

const diskSize = 100e9

// available is without a call.
func (d *imageDisk) available() int64 {
	g := d.w.l.NewGroup("look")
	defer g.Kill()
	images, err := d.w.rt.Client(g).Prompt().ListImages(g.Background(), nil)
	if err != nil {
		d.w.t.Fatal(err)
	}
	free := int64(diskSize) - d.other
	for _, i := range images {
		free -= int64(i.Size)
	}
	return free
}

func (d *imageDisk) Filesystem(_ context.Context, path string) (*stats.Filesystem, error) {
	if !strings.HasPrefix(path, "/var/lib/containerd/") {
		return nil, errors.New("no such file or directory")
	}
	d.asked++
	return &stats.Filesystem{FsStats: statsapi.FsStats{CapacityBytes: ptr.To[uint64](diskSize), AvailableBytes: ptr.To(uint64(d.available()))}}, nil
}

func (d *imageDisk) Below(floor stats.Floor) bool { return d.available() < floor.ImageBytes }

// withDisk starts a kubelet on a machine whose disk is known, with old images.
func withDisk(t *testing.T, noElide bool, change func(o *kubelet.Options, c *kubeletconfig.KubeletConfiguration)) (*world, *imageDisk) {
	w := newWorld(t, noElide)
	old := func(name string, gb int64, pinned bool) fakecri.Image {
		return fakecri.Image{Name: name, Present: true, Size: gb * 1e9, Pinned: pinned}
	}
	w.rt = fakecri.New(fakecri.Options{Loop: w.l, Recorder: w.rec, Logs: nodeLogs{w.fs}, SandboxImage: "pause:1",
		Images: []fakecri.Image{old("app:1", 1, false), old("old:1", 5, false), old("old:2", 6, false), old("pinned:1", 7, true)}})
	w.rt.StartDaemon()
	d := &imageDisk{w: w}
	w.startWith(func(o *kubelet.Options) {
		c := o.Config.DeepCopy()
		o.Config, o.MachineStats = c, d
		if change != nil {
			change(o, c)
		}
	})
	return w, d
}

// gcLogs are the lines about images, without what a garbage collection that
// finds enough room says.
func (w *world) gcLogs() []string {
	var out []string
	for _, line := range w.logs {
		if strings.Contains(line, "mage garbage") || strings.Contains(line, "Event") || strings.Contains(line, "FreeDisk") || strings.Contains(line, "InvalidDisk") {
			out = append(out, line)
		}
	}
	return out
}

// TestImageGC: the images of pods and those that are pinned stay, others go when
// the disk is full, as many as are needed.
func TestImageGC(t *testing.T) {
	w, d := withDisk(t, false, nil)
	w.write("web", "", "app:1", 1)
	w.run(700)
	w.expect("with a disk that is nearly empty", w.calls(0, "RemoveImage"))
	d.other = 86e9 - 19e9 // 86% with the images
	w.run(1000)
	got := w.calls(700, "RemoveImage")
	if len(got) != 2 || !strings.HasPrefix(got[0], "900 ") { // 5 GB, or 6 first, are not enough for 80%
		t.Errorf("removed %v", got)
	}
	d.other += 20e9
	w.run(1300)
	if got := w.calls(1000, "RemoveImage"); len(got) != 0 {
		t.Errorf("pinned or used, and removed: %v", got)
	}
	if said := strings.Join(w.logs, "\n"); !strings.Contains(said, "Insufficient free disk space on the node's image filesystem (96% of 93.1 GiB used). Failed to free sufficient space by deleting unused images (freed 0 bytes).") {
		t.Errorf("nobody said that it is full:\n%s", strings.Join(w.gcLogs(), "\n"))
	}
}

// TestImageGCAtTheStart: the size of the disk is not known yet at the first pass
// on a node without containers; the second succeeds, so no event tells of a
// failed garbage collection.
func TestImageGCAtTheStart(t *testing.T) {
	w, d := withDisk(t, false, nil)
	w.run(10)
	if d.asked != 0 || !strings.Contains(strings.Join(w.logs, "\n"), "invalid capacity 0 on image filesystem") {
		t.Errorf("asked %d times:\n%s", d.asked, strings.Join(w.logs, "\n"))
	}
	w.write("web", "", "app:1", 1)
	w.run(400)
	if d.asked != 1 {
		t.Errorf("asked %d times", d.asked)
	}
	w.group.Kill()
	w.logs = nil
	w.startWith(func(o *kubelet.Options) { o.MachineStats = d })
	w.run(410)
	if d.asked != 2 || strings.Contains(strings.Join(w.logs, "\n"), "invalid capacity") {
		t.Errorf("restarted with a container: asked %d times:\n%s", d.asked, strings.Join(w.logs, "\n"))
	}
}

func TestImageGCOff(t *testing.T) {
	w, d := withDisk(t, true, func(_ *kubelet.Options, c *kubeletconfig.KubeletConfiguration) {
		c.ImageGCHighThresholdPercent = ptr.To[int32](100)
	})
	d.other = diskSize
	w.run(1000)
	w.expect("switched off", w.calls(0, "RemoveImage"))
	if d.asked != 0 {
		t.Errorf("asked %d times", d.asked)
	}
	w.group.Go("eviction", func(ctx context.Context) {
		if err := w.kl.DeleteUnusedImages(ctx); err != nil {
			t.Error(err)
		}
	})
	w.run(1001)
	if got := w.calls(1000, "RemoveImage"); len(got) != 3 {
		t.Errorf("for eviction: %v", got)
	}
}

// TestElisionIsInvisibleWithImageGC: passes over nothing new are left out, and
// nothing else changes.
func TestElisionIsInvisibleWithImageGC(t *testing.T) {
	for _, maxAge := range []time.Duration{0, 20 * time.Minute} {
		t.Run(fmt.Sprint(maxAge), func(t *testing.T) {
			var worlds [2]*world
			var asked [2]int
			for i := range worlds {
				w, d := withDisk(t, i == 1, func(_ *kubelet.Options, c *kubeletconfig.KubeletConfiguration) {
					c.ImageMaximumGCAge.Duration = maxAge
				})
				w.write("web", "", "app:1", 1)
				w.write("old", "", "old:1", 1)
				at := func(s int, fn func()) { w.l.Root().At(loop.Epoch().Add(time.Duration(s)*time.Second), fn) }
				at(1000, func() { w.remove("old") })
				at(5000, func() { d.other = 90e9 - 19e9 })
				at(5700, func() { w.write("old", "", "old:2", 1) }) // pulled again
				at(6400, func() { w.remove("old") })
				at(7300, func() { d.other = 60e9 })
				at(9000, func() { d.other = 90e9 })
				w.run(12000)
				worlds[i], asked[i] = w, d.asked
			}
			verbs := []string{"RunPodSandbox", "StartContainer", "RemoveContainer", "RemovePodSandbox", "PullImage", "RemoveImage"}
			worlds[0].expect("with elision, wanted are those without", worlds[0].calls(0, verbs...), worlds[1].calls(0, verbs...)...)
			a, b := worlds[0].gcLogs(), worlds[1].gcLogs()
			if !slices.Equal(a, b) || len(a) < 3 {
				t.Errorf("with elision\n%s\nwithout\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
			}
			if len(worlds[0].calls(0, "RemoveImage")) < 3 || asked[0] > asked[1]*2/3 {
				t.Errorf("removed %v; asked %d times, without elision %d", worlds[0].calls(0, "RemoveImage"), asked[0], asked[1])
			}
		})
	}
}

// TestContainerGCPolicy: the flags for dead containers are followed.
func TestContainerGCPolicy(t *testing.T) {
	for _, tt := range []struct {
		policy *kuberuntime.GCPolicy
		at     float64
		want   int
	}{
		{nil, 130, 1},
		{&kuberuntime.GCPolicy{MaxPerPodContainer: 3, MaxContainers: -1}, 170, 3},
		{&kuberuntime.GCPolicy{MinAge: time.Hour, MaxPerPodContainer: 0, MaxContainers: -1}, 130, 1}, // the deletor leaves the newest
		{&kuberuntime.GCPolicy{MaxPerPodContainer: 5, MaxContainers: 2}, 181, 2},
	} {
		w := newWorld(t, false)
		w.startWith(func(o *kubelet.Options) { o.GC = tt.policy })
		w.write("fails", "", "fails:1", 1)
		w.run(tt.at)
		dead := 0
		for _, c := range w.rt.Containers() {
			if !c.Alive {
				dead++
			}
		}
		if dead != tt.want {
			t.Errorf("%+v: %d dead containers, want %d", tt.policy, dead, tt.want)
		}
	}
	if _, err := kubelet.New(badGC(t)); err == nil || err.Error() != "invalid minimum garbage collection age: -1s" {
		t.Errorf("a negative age: %v", err)
	}
}

func badGC(t *testing.T) kubelet.Options {
	w, out := newWorld(t, false), kubelet.Options{}
	w.startWith(func(o *kubelet.Options) { out = *o })
	out.GC = &kuberuntime.GCPolicy{MinAge: -time.Second}
	return out
}

// TestDeadLogLinks: a link to a log that is not there stays while its container
// has not exited, since the log may just be rotated.
func TestDeadLogLinks(t *testing.T) {
	w := newWorld(t, true)
	const dir = "/var/log/containers"
	w.onMachine(&cgroups{w: w, pods: map[types.UID]bool{}}, nil)
	w.run(2)
	w.write("web", "fixed", "app:1", 1)
	w.run(10)
	var id string
	for _, c := range w.rt.Containers() {
		id = c.ID
	}
	for _, name := range []string{"alive-" + id, "gone-" + strings.Repeat("0", 64), "short-abcde"} {
		if err := w.fs.Symlink("/nowhere", dir+"/"+name+".log"); err != nil {
			t.Fatal(err)
		}
	}
	w.run(90)
	entries, err := w.fs.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "alive-"+id+".log" {
		t.Errorf("links: %v, %v", entries, err)
	}
}

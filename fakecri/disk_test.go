package fakecri

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/disk"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/usage"
)

// fsLogs keeps logs in the node's files.
type fsLogs struct{ fs *memfs.FS }

func (l fsLogs) OpenLog(file string)               { _ = l.fs.Append(file, nil, 0o640) }
func (l fsLogs) WriteLog(file string, line []byte) { _ = l.fs.Append(file, line, 0o640) }

// node is a runtime on one disk with the node's files.
type node struct {
	*env
	disk *memfs.Disk
	fs   *memfs.FS
}

// onDisk is run with a disk; the body is for two hours.
func onDisk(t *testing.T, size memfs.Space, opts Options, body func(n *node)) {
	t.Helper()
	n := &node{env: &env{TB: t}}
	n.l = loop.New(loop.Options{Name: "node", Seed: 1})
	defer n.l.Close()
	n.disk = memfs.NewDisk(memfs.DiskOptions{Loop: n.l, Size: size})
	n.fs = memfs.New(memfs.Options{Loop: n.l, Share: n.disk.Share()})
	opts.Loop, opts.FS, opts.Logs = n.l, n.fs, fsLogs{n.fs}
	opts.ImageDisk, opts.LayerDisk = n.disk.Share(), n.disk.Share()
	n.rt = New(opts)
	n.rt.StartDaemon()
	n.g = n.l.NewGroup("caller")
	n.c = n.rt.Client(n.g)
	done := false
	n.g.Go("body", func(ctx context.Context) {
		n.ctx = ctx
		body(n)
		done = true
	})
	if err := n.l.RunUntil(n.l.Now().Add(2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !done {
		t.Fatal("the body did not end")
	}
}

// addUp compares what the disk says with the sum of what is on it.
func (n *node) addUp(when string) {
	n.Helper()
	sum := memfs.Space{}
	add := func(bytes, inodes int64) { sum.Bytes, sum.Inodes = sum.Bytes+bytes, sum.Inodes+inodes }
	add(n.fs.Usage("/"))
	seen := map[*images.Source]bool{}
	image := func(src *images.Source) {
		if !seen[src] {
			seen[src] = true
			add(src.Space().Bytes, src.Space().Inodes)
		}
	}
	for _, im := range n.rt.images.Images {
		image(im.Source)
	}
	layers := memfs.Space{}
	for _, c := range n.rt.recs.Containers {
		image(c.Image.Source)
		used := n.rt.disks.Used(c)
		add(used.Bytes, used.Inodes)
		layers.Bytes, layers.Inodes = layers.Bytes+used.Bytes, layers.Inodes+used.Inodes
		if p := c.Process; p != nil && p.Interpreted != nil && len(p.Behaviour.Writes) == 0 {
			if b, i := p.Interpreted.View.Namespace().LayerUsage(); b != used.Bytes || i != used.Inodes {
				n.Errorf("%s: the layer of %s is %v, its files are %d, %d", when, c.Config.Metadata.Name, used, b, i)
			}
		}
	}
	if got := n.disk.Used(); got != sum {
		n.Errorf("%s: the disk says %v, and holds %v", when, got, sum)
	}
	if got := n.rt.disks.Share.Used(); got != layers {
		n.Errorf("%s: all layers are %v, their sum is %v", when, got, layers)
	}
	if len(n.rt.disks.Written) > len(n.rt.recs.Containers) {
		n.Errorf("%s: %d layers of %d containers", when, len(n.rt.disks.Written), len(n.rt.recs.Containers))
	}
}

func (n *node) free(mib int64) memfs.Space {
	s := n.disk.Free()
	return memfs.Space{Bytes: s.Bytes - mib<<20}
}

const mib = 1 << 20

func TestShellOnFullDisk(t *testing.T) {
	onDisk(t, memfs.Space{Bytes: 200 * mib}, Options{Images: []Image{busyboxImage}}, func(n *node) {
		n.ok(n.fs.MkdirAll("/var/log/pods/web/main", 0o755))
		id, err := n.startCommand(n.sandbox("web", 0), "web", "main", "busybox", "sh", "-c", `
			dd if=/dev/zero of=/big bs=1M count=500 2>&1
			echo more >/tmp/more || echo "echo: $?"
			mkdir /dir 2>&1
			cat /bin/sh >/copy; echo "cat: $?"
			while [ ! -e /tmp/room ]; do sleep 1; done; sleep 1
			echo again >/tmp/more && cat /tmp/more; sleep 1000`)
		n.ok(err)
		n.sleep(5 * time.Second)
		n.addUp("full")
		if free := n.disk.Free().Bytes; free >= disk.PageSize {
			t.Errorf("%d bytes are free", free)
		}
		log, err := n.fs.ReadFile("/var/log/pods/web/main/0.log")
		n.ok(err)
		if len(log) > 0 {
			t.Errorf("a full disk has taken the log %q", log)
		}
		n.disk.Share().Add(memfs.Space{Bytes: -10 * mib}) // somebody else gives way
		_, stderr, err := n.c.ExecSync(n.ctx, id, []string{"sh", "-c", "echo x >/tmp/room && rm /big"}, 0)
		if err != nil || len(stderr) > 0 {
			t.Errorf("making room: %v, %s", err, stderr)
		}
		n.sleep(5 * time.Second)
		log, err = n.fs.ReadFile("/var/log/pods/web/main/0.log")
		n.ok(err)
		if !strings.Contains(string(log), "again") {
			t.Errorf("with room the log is %q", log)
		}
		before := n.rt.disks.Used(n.rt.recs.Containers[0])
		n.ok(n.c.StopContainer(n.ctx, id, 0))
		n.disk.Share().Add(memfs.Space{Bytes: 10 * mib})
		n.addUp("stopped")
		if used := n.rt.disks.Used(n.rt.recs.Containers[0]); used != before || used.Inodes < 4 {
			t.Errorf("the layer of a dead container is %v, and was %v", used, before)
		}
		n.ok(n.c.RemoveContainer(n.ctx, id))
		n.addUp("removed")
	})
}

// TestShellErrors: what programs say when there is no room.
func TestShellErrors(t *testing.T) {
	onDisk(t, memfs.Space{Bytes: 64 * mib, Inodes: 0}, Options{Images: []Image{{Name: "busybox", Present: true, Size: mib}}}, func(n *node) {
		id, err := n.startCommand(n.sandbox("web", 0), "web", "main", "busybox", "sh", "-c", "sleep 10000")
		n.ok(err)
		for _, tt := range []struct{ cmd, want string }{
			{"dd if=/dev/zero of=/big bs=1M count=100", "dd: error writing '/big': No space left on device"},
			{"echo more >/more", "sh: write error: No space left on device"},
			{"mkdir /d", "mkdir: can't create directory '/d': No space left on device"},
			{"echo more >>/big", "sh: write error: No space left on device"},
			{"cp /bin/sh /copy", "No space left on device"},
			{"df -P / | tail -1 | awk '{print $5}'", "100%"},
			{"rm /big && echo more >/more && cat /more", "more"},
		} {
			stdout, stderr, err := n.c.ExecSync(n.ctx, id, []string{"sh", "-c", tt.cmd}, 0)
			if status.Code(err) != codes.OK && err != nil && len(stderr) == 0 {
				n.ok(err)
			}
			if out := string(stdout) + string(stderr); !strings.Contains(out, tt.want) {
				t.Errorf("%s: %q, want %q", tt.cmd, out, tt.want)
			}
			n.addUp(tt.cmd)
		}
	})
}

func TestPullsOnFullDisk(t *testing.T) {
	images := []Image{{Name: "big:1", Size: 60 * mib}, {Name: "wide:1", Size: 10 * mib, Unpacked: 70 * mib}, {Name: "many:1", Size: mib, Inodes: 5000}, {Name: "small:1", Size: 20 * mib}}
	onDisk(t, memfs.Space{Bytes: 64 * mib, Inodes: 1000}, Options{Images: images}, func(n *node) {
		pull := func(name string) error {
			_, err := n.c.PullImage(n.ctx, &runtimeapi.ImageSpec{Image: name}, nil, nil)
			return err
		}
		n.ok(pull("small:1"))
		for name, want := range map[string]string{
			"big:1":  `failed to pull and unpack image "docker.io/library/big:1": failed to copy: write /var/lib/containerd/io.containerd.content.v1.content/ingest/`,
			"wide:1": `failed to pull and unpack image "docker.io/library/wide:1": failed to extract layer sha256:`,
			"many:1": `failed to pull and unpack image "docker.io/library/many:1": failed to extract layer sha256:`,
		} {
			err := pull(name)
			if s := status.Convert(err); s.Code() != codes.Unknown || !strings.HasPrefix(s.Message(), want) || !strings.HasSuffix(s.Message(), ": no space left on device") {
				t.Errorf("%s: %v", name, err)
			}
		}
		n.addUp("after pulls that failed")
		sb := n.sandbox("web", 0)
		cfg := containerConfig("web", "main", 0)
		cfg.Image.Image = "small:1"
		id, err := n.c.CreateContainer(n.ctx, sb, cfg, podConfig("web", 0))
		n.ok(err)
		n.ok(n.c.RemoveImage(n.ctx, cfg.Image))
		n.addUp("the image of a container was removed")
		if n.disk.Used().Bytes < 20*mib {
			t.Error("the files of a container have gone with its image")
		}
		n.code(pull("big:1"), codes.Unknown)
		n.ok(n.c.RemoveContainer(n.ctx, id))
		n.addUp("its container too")
		n.ok(pull("big:1"))
		n.addUp("and there is room")

		rest := n.disk.Share()
		rest.Add(n.free(0))
		_, err = n.c.RunPodSandbox(n.ctx, podConfig("late", 0), "")
		if s := status.Convert(err); !strings.HasSuffix(s.Message(), ": no space left on device") || !strings.HasPrefix(s.Message(), `failed to start sandbox "`) {
			t.Errorf("a sandbox on a full disk: %v", err)
		}
		cfg.Image.Image = "big:1"
		_, err = n.c.CreateContainer(n.ctx, sb, cfg, podConfig("web", 0))
		if s := status.Convert(err); !strings.HasPrefix(s.Message(), `failed to create container root directory "/var/lib/containerd/io.containerd.grpc.v1.cri/containers/`) {
			t.Errorf("a container on a full disk: %v", err)
		}
		rest.Clear()
		n.sandbox("late", 0)
	})
}

// TestStatedWrites: curves count for the writable layer, the mounted directory
// and the log, and end with the process; what was written stays as long as where
// it is.
func TestStatedWrites(t *testing.T) {
	b := Behaviour{
		Writes: []Write{
			{Path: "/tmp/x", Bytes: usage.Ramp(0, 10*mib, 10*time.Second)},
			{Path: "/data", Bytes: usage.Constant(3 * mib), Inodes: usage.Constant(40)},
			{Path: "/data/deep", Bytes: usage.Constant(mib)},
			{Path: "/config/x", Bytes: usage.Constant(mib)}, // read-only: nothing
		},
		LogBytes: usage.Ramp(0, 20*mib, 10*time.Second),
	}
	onDisk(t, memfs.Space{Bytes: 1 << 30}, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: b}}}, func(n *node) {
		n.ok(n.fs.MkdirAll("/var/log/pods/web/main", 0o755))
		n.ok(n.fs.MkdirAll("/vol", 0o755))
		sb := n.sandbox("web", 0)
		start := func(attempt uint32) string {
			cfg := containerConfig("web", "main", attempt)
			cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: "/vol"}, {ContainerPath: "/config", HostPath: "/cfg", Readonly: true}}
			id, err := n.c.CreateContainer(n.ctx, sb, cfg, podConfig("web", 0))
			n.ok(err)
			n.ok(n.c.StartContainer(n.ctx, id))
			return id
		}
		id := start(0)
		n.sleep(5 * time.Second)
		n.addUp("running")
		st, err := n.c.ContainerStats(n.ctx, id)
		n.ok(err)
		if b := st.WritableLayer.UsedBytes.Value; b < 4900*1024 || b > 5400*1024 || st.WritableLayer.InodesUsed.Value != 1 {
			t.Errorf("the layer is %v", st.WritableLayer)
		}
		if b, i := n.fs.Usage("/vol"); b != 2*disk.PageSize+4*mib || i != 1+40+1+1 {
			t.Errorf("the volume has %d bytes, %d inodes", b, i)
		}
		if b, _ := n.fs.Usage("/cfg"); b > disk.PageSize {
			t.Error("a read-only mount was written to")
		}
		info, err := n.fs.Stat("/var/log/pods/web/main/0.log")
		n.ok(err)
		if s := info.Size(); s < 9*mib || s > 11*mib {
			t.Errorf("the log has %d bytes", s)
		}
		n.ok(n.c.StopContainer(n.ctx, id, 0))
		before := n.disk.Used()
		n.sleep(time.Minute)
		if n.disk.Used() != before {
			t.Error("the dead write")
		}
		n.addUp("stopped")
		id2 := start(1)
		n.sleep(time.Minute)
		n.addUp("started again")
		if b, i := n.fs.Usage("/vol"); b != 2*disk.PageSize+4*mib || i != 1+40+1+1 {
			t.Errorf("the volume has %d bytes, %d inodes after a restart", b, i)
		}
		n.rt.PowerCut()
		n.rt.StartDaemon()
		n.addUp("after a power cut")
		n.ok(n.c.RemoveContainer(n.ctx, id))
		n.addUp("the first removed")
		n.ok(n.c.RemoveContainer(n.ctx, id2))
		n.ok(n.fs.RemoveAll("/vol"))
		n.addUp("all removed")
		if l := n.rt.disks.Share.Used(); l != (memfs.Space{}) {
			t.Errorf("layers have %v left", l)
		}
	})
}

// TestRandomDisk has containers, images and files come and go.
func TestRandomDisk(t *testing.T) {
	images := []Image{busyboxImage, {Name: "a:1", Size: 30 * mib}, {Name: "b:1", Size: 70 * mib, Unpacked: 90 * mib, Inodes: 50}}
	programs := []Program{{Match: Match{Pod: "stated*"}, Behaviour: Behaviour{
		Writes:   []Write{{Path: "/x", Bytes: usage.Ramp(0, 30*mib, time.Minute)}, {Path: "/data/y", Bytes: usage.Ramp(0, 30*mib, time.Minute)}},
		LogBytes: usage.Ramp(0, 10*mib, time.Minute),
	}}}
	full := 0
	for seed := range uint64(12) {
		onDisk(t, memfs.Space{Bytes: 400 * mib, Inodes: 500}, Options{Images: images, Programs: programs}, func(n *node) {
			draw := func(i, of int) int { return int(n.l.Uint64("test", fmt.Sprint(seed), uint64(i)) % uint64(of)) }
			var ids []string
			for i := range 120 {
				pod := fmt.Sprintf("%s%d", []string{"stated", "shell"}[draw(i*4+1, 2)], i)
				switch what := draw(i*4, 8); {
				case what < 3:
					_ = n.fs.MkdirAll("/var/log/pods/"+pod+"/main", 0o755)
					_ = n.fs.MkdirAll("/vol/"+pod, 0o755)
					sb, err := n.c.RunPodSandbox(n.ctx, podConfig(pod, 0), "")
					if err != nil {
						continue
					}
					cfg := containerConfig(pod, "main", 0)
					cfg.Image.Image = "busybox"
					cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: "/vol/" + pod}}
					cfg.Command = []string{"sh", "-c", "while sleep 1; do dd if=/dev/zero bs=64k count=20 >>/data/f; dd if=/dev/zero bs=64k count=10 >>/tmp/f; mkdir -p /d/$RANDOM; done"}
					if id, err := n.c.CreateContainer(n.ctx, sb, cfg, podConfig(pod, 0)); err == nil {
						_ = n.c.StartContainer(n.ctx, id)
						ids = append(ids, id)
					}
				case what == 3 && len(ids) > 0:
					n.ok(n.c.StopContainer(n.ctx, ids[draw(i*4+2, len(ids))], 0))
				case what == 4 && len(ids) > 0:
					k := draw(i*4+2, len(ids))
					n.ok(n.c.RemoveContainer(n.ctx, ids[k]))
					ids = append(ids[:k], ids[k+1:]...)
				case what == 5:
					_, _ = n.c.PullImage(n.ctx, &runtimeapi.ImageSpec{Image: []string{"a:1", "b:1"}[draw(i*4+2, 2)]}, nil, nil)
				case what == 6:
					n.ok(n.c.RemoveImage(n.ctx, &runtimeapi.ImageSpec{Image: []string{"a:1", "b:1"}[draw(i*4+2, 2)]}))
				case what == 7:
					list, _ := n.fs.ReadDir("/vol")
					if len(list) > 0 {
						n.ok(n.fs.RemoveAll("/vol/" + list[draw(i*4+2, len(list))].Name()))
					}
				}
				n.sleep(time.Duration(draw(i*4+3, 5000)) * time.Millisecond)
				n.addUp(fmt.Sprintf("seed %d, act %d", seed, i))
				if n.Failed() {
					return
				}
				if n.disk.Free().Bytes < disk.PageSize {
					full++
				}
			}
			for _, id := range ids {
				n.ok(n.c.RemoveContainer(n.ctx, id))
			}
			n.addUp("the end")
			if l := n.rt.disks.Share.Used(); l != (memfs.Space{}) {
				t.Errorf("seed %d: layers have %v left", seed, l)
			}
		})
	}
	if full < 20 {
		t.Errorf("the disk was full after %d acts only", full)
	}
}

// TestLayerPeriod: statistics tell of a layer as it was measured last.
func TestLayerPeriod(t *testing.T) {
	l := loop.New(loop.Options{Name: "n"})
	defer l.Close()
	start := l.Now()
	r := New(Options{Loop: l, LayerPeriod: 10 * time.Second, LayerFirst: 4 * time.Second})
	c := &records.Container{}
	layer := r.disks.Of(c)
	layer.Share.Add(memfs.Space{Bytes: 100})
	for _, tc := range []struct {
		at    time.Duration
		add   int64
		bytes int64
	}{{time.Second, 0, 0}, {5 * time.Second, 50, 100}, {13 * time.Second, 0, 100}, {15 * time.Second, 0, 150}} {
		if err := l.RunUntil(start.Add(tc.at)); err != nil {
			t.Fatal(err)
		}
		if got := r.disks.Measured(c).Bytes; got != tc.bytes {
			t.Errorf("after %v: %d bytes, want %d", tc.at, got, tc.bytes)
		}
		layer.Share.Add(memfs.Space{Bytes: tc.add})
	}
}

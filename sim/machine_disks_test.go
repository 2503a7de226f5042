package sim

import (
	"context"
	"fmt"
	"github.com/drydock-sim/drydock/ground/loop"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/kubelet/stats"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// diskNode is a cluster of one node that evicts nobody.
func diskNode(t *testing.T, cluster Options, opts NodeOptions, pods ...*v1.Pod) (*Cluster, *Node) {
	t.Helper()
	c, err := New(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	opts.Name = "w"
	if opts.Kubelet == nil {
		opts.Kubelet = &kubeletconfig.KubeletConfiguration{}
	}
	opts.Kubelet.EvictionHard = map[string]string{"memory.available": "0%"}
	n, err := c.AddNode(opts)
	if err != nil {
		t.Fatal(err)
	}
	for i, pod := range pods {
		c.At(time.Duration(i+1)*time.Second, func() {
			if _, err := c.API().Create(pod); err != nil {
				panic(err)
			}
		})
	}
	return c, n
}

func diskPod(name, image string, command ...string) *v1.Pod {
	grace := int64(0)
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{
		NodeName: "w", TerminationGracePeriodSeconds: &grace,
		Volumes:    []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		Containers: []v1.Container{{Name: "app", Image: image, Command: command, VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
	}}
}

func until(t *testing.T, c *Cluster, at time.Duration) {
	t.Helper()
	if err := c.RunUntil(at); err != nil {
		t.Fatal(err)
	}
}

func (n *Node) used(t *testing.T, path string) (device string, mebi int64) {
	t.Helper()
	fs, err := machineStats{n: n}.Filesystem(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if *fs.UsedBytes+*fs.AvailableBytes != *fs.CapacityBytes || *fs.InodesUsed+*fs.InodesFree != *fs.Inodes {
		t.Errorf("%s: %v does not add up", path, fs)
	}
	return fs.Device, int64(*fs.UsedBytes) / mib
}

func TestDiskLayouts(t *testing.T) {
	// Bytes differ in their digits: the image 1000 MiB, the layer 100, the volume
	// 20, the log 4, the machine's own 3000 and, on a disk of images, 7000.
	program := fakecri.Program{Behaviour: fakecri.Behaviour{
		Writes:   []fakecri.Write{{Path: "/x", Bytes: usage.Ramp(0, 100*mib, time.Minute)}, {Path: "/data", Bytes: usage.Constant(20 * mib)}},
		LogBytes: usage.Constant(4 * mib),
	}}
	own := MachineUsage{Disk: usage.Constant(3000 * mib)}
	images := own
	images.ImageDisk = usage.Constant(7000 * mib)
	for _, tt := range []struct {
		name                 string
		disks                Filesystems
		usage                MachineUsage
		image, layer         string
		root, images, layers int64
		split                bool
	}{
		{"one", Filesystems{}, own, fakecri.DefaultImageFilesystem, fakecri.DefaultImageFilesystem, 4124, 4124, 4124, false},
		{"dedicated", Filesystems{Image: &Filesystem{Capacity: 50 * gib}}, images, fakecri.DefaultImageFilesystem, fakecri.DefaultImageFilesystem, 3024, 8100, 8100, false},
		{"split", Filesystems{Image: &Filesystem{Capacity: 50 * gib}, Container: &Filesystem{}}, images, crioImages, crioContainers, 3124, 8000, 3124, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := NodeOptions{Filesystems: tt.disks, Usage: tt.usage}
			opts.Runtime.Programs = []fakecri.Program{program}
			opts.Runtime.Images = []fakecri.Image{{Name: "app:1", Size: 1000 * mib, Inodes: 777}}
			c, n := diskNode(t, Options{}, opts, diskPod("a", "app:1"))
			until(t, c, 3*time.Minute)
			rootDevice, root := n.used(t, "/var/lib/kubelet")
			imageDevice, images := n.used(t, tt.image)
			layerDevice, layers := n.used(t, tt.layer)
			if root != tt.root || images != tt.images || layers != tt.layers {
				t.Errorf("MiB on the root disk %d, the images' %d, the layers' %d; want %d, %d, %d", root, images, layers, tt.root, tt.images, tt.layers)
			}
			if (rootDevice == imageDevice) != (tt.disks.Image == nil) || (rootDevice == layerDevice) != (tt.disks.Image == nil || tt.split) {
				t.Errorf("devices %s, %s, %s", rootDevice, imageDevice, layerDevice)
			}
			if images := n.machine.disks.image.Used().Inodes; images < 777 {
				t.Errorf("the images' disk has %d inodes in use", images)
			}
			if _, err := (machineStats{n: n}).Filesystem(context.Background(), "/none"); err == nil {
				t.Error("a path that is not there has a file system")
			}
			if fs, err := (machineStats{n: n}).Filesystem(context.Background(), "/run"); err != nil || fs.Device != "tmpfs" {
				t.Errorf("the file system of /run is %v, %v", fs, err)
			}
			n.SetUsage(MachineUsage{Disk: usage.Constant(2000 * mib)})
			if _, now := n.used(t, "/var/lib/kubelet"); now != tt.root-1000 {
				t.Errorf("the machine's own use has changed, the disk has %d MiB", now)
			}
		})
	}
}

func TestDiskOptions(t *testing.T) {
	for _, tt := range []struct {
		fs   Filesystems
		want string
	}{
		{Filesystems{Root: &Filesystem{Capacity: -1}}, "node w: filesystems.root: negative"},
		{Filesystems{Container: &Filesystem{}}, "node w: filesystems.container: there is no image file system to be split"},
	} {
		c, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.AddNode(NodeOptions{Name: "w", Filesystems: tt.fs}); err == nil || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
		c.Close()
	}
	c, n := diskNode(t, Options{}, NodeOptions{Filesystems: Filesystems{Root: &Filesystem{Capacity: 10 * gib}}})
	until(t, c, time.Minute)
	node := c.API().Node("w")
	if got := node.Status.Capacity[v1.ResourceEphemeralStorage]; got.Value() != 10*gib {
		t.Errorf("the node's capacity is %s", got.String())
	}
	if size := n.fs.Disk().Size(); size.Inodes != 10*gib/(16*kib) {
		t.Errorf("%d inodes", size.Inodes)
	}
}

// TestNodeOnFullDisk fills a node's disk from a pod, sees what fails, and that it
// works again when the pod has gone.
func TestNodeOnFullDisk(t *testing.T) {
	opts := NodeOptions{Capacity: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")}}
	opts.Runtime.Images = []fakecri.Image{{Name: "busybox", Size: 4 * mib}, {Name: "big:1", Size: 200 * mib}}
	fill := diskPod("fill", "busybox", "sh", "-c", "dd if=/dev/zero of=/data/f bs=1M count=2000; echo $?; sleep 10000")
	late := diskPod("late", "busybox", "sh", "-c", "echo hello; sleep 10000")
	pull := diskPod("pull", "big:1", "/bin/server")
	c, n := diskNode(t, Options{}, opts, fill)
	for _, pod := range []*v1.Pod{late, pull} {
		c.At(30*time.Second, func() { _, _ = c.API().Create(pod) })
	}
	c.At(2*time.Minute, func() { _ = c.API().Delete(apiserver.KindPod, "default", "fill", metav1.DeleteOptions{}) })
	adds := func() {
		t.Helper()
		bytes, inodes := n.fs.Usage("/")
		if got := n.fs.Used(); got.Bytes != bytes || got.Inodes != inodes {
			t.Errorf("the files take %v, their sum is %d, %d", got, bytes, inodes)
		}
	}
	until(t, c, 110*time.Second)
	adds()
	if free := n.fs.Disk().Free().Bytes; free >= 4*kib {
		t.Errorf("%d bytes are free", free)
	}
	if pod := c.API().Pod("default", "pull"); pod.Status.Phase != v1.PodPending {
		t.Errorf("a pod that can't be made is %s", pod.Status.Phase)
	}
	until(t, c, 10*time.Minute)
	adds()
	for _, name := range []string{"late", "pull"} {
		if pod := c.API().Pod("default", name); pod.Status.Phase != v1.PodRunning {
			t.Errorf("with room pod %s is %s", name, pod.Status.Phase)
		}
	}
	full := 0
	for _, ev := range c.API().Events() {
		if strings.Contains(ev.Message, "no space left on device") {
			full++
		}
	}
	if full == 0 {
		t.Error("no event tells of the full disk")
	}
	if used := n.fs.Disk().Used().Bytes / mib; used != 204 {
		t.Errorf("%d MiB are in use in the end", used)
	}
}

// TestDiskWatch is told of the disk that runs low, once.
func TestDiskWatch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		floor stats.Floor
		at    time.Duration
	}{
		{"the root's bytes", stats.Floor{RootBytes: 60 * gib}, 40 * time.Minute},
		{"the images' bytes", stats.Floor{ImageBytes: 60 * gib}, 20 * time.Minute},
		{"the layers' bytes", stats.Floor{ContainerBytes: 60 * gib}, 20 * time.Minute},
		{"the images' inodes", stats.Floor{ImageInodes: 6000000}, 0},
		{"the first of all", stats.Floor{RootBytes: 60 * gib, ImageBytes: 70 * gib}, 15 * time.Minute},
		{"nothing", stats.Floor{Memory: 1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, n := diskNode(t, Options{}, NodeOptions{
				Filesystems: Filesystems{Image: &Filesystem{}},
				Usage:       MachineUsage{Disk: usage.Ramp(0, 90*gib, 90*time.Minute), ImageDisk: usage.Ramp(0, 80*gib, 40*time.Minute), ImageInodes: usage.Constant(1000)},
			})
			n.StopKubelet() // which watches itself
			var told []time.Duration
			n.watchDisks(tt.floor, func() { told = append(told, n.l.Since(c.start)); n.watchDisks(stats.Floor{}, nil) })
			if n.disksBelow(tt.floor) {
				t.Error("it is low from the start")
			}
			until(t, c, 2*time.Hour)
			want := 1
			if tt.at == 0 {
				want = 0
			}
			if len(told) != want || want > 0 && (told[0] < tt.at-time.Second || told[0] > tt.at+time.Second) {
				t.Errorf("told at %v, want %v", told, tt.at)
			}
			if n.disksBelow(tt.floor) != (want > 0) {
				t.Error("it is not what was told")
			}
		})
	}
}

// TestGrowingLogsRotate: a log that only a curve says of is rotated when a real
// one would be, whether or not the kubelet looks in every pass.
func TestGrowingLogsRotate(t *testing.T) {
	files := func(noElide bool) string {
		steps, err := usage.Steps([]usage.Point{{Value: 0}, {At: 7 * time.Minute, Value: 3 * mib}, {At: 20 * time.Minute, Value: 4 * mib}})
		if err != nil {
			t.Fatal(err)
		}
		opts := NodeOptions{Kubelet: &kubeletconfig.KubeletConfiguration{ContainerLogMaxSize: "2Mi"}}
		opts.Runtime.Programs = []fakecri.Program{
			{Match: fakecri.Match{Pod: "ramp"}, Behaviour: fakecri.Behaviour{LogBytes: usage.Ramp(0, 10*mib, 30*time.Minute)}},
			{Match: fakecri.Match{Pod: "steps"}, Behaviour: fakecri.Behaviour{LogBytes: steps}},
		}
		c, n := diskNode(t, Options{Elision: map[bool]loop.ElisionMode{true: loop.NoElide}[noElide]}, opts, diskPod("ramp", "app:1"), diskPod("steps", "app:1"))
		until(t, c, 40*time.Minute)
		var out []string
		pods, _ := n.fs.ReadDir("/var/log/pods")
		for _, p := range pods {
			logs, _ := n.fs.ReadDir("/var/log/pods/" + p.Name() + "/app")
			for _, f := range logs {
				out = append(out, fmt.Sprintf("%s/%s", strings.Split(p.Name(), "_")[1], f.Name()))
			}
		}
		return strings.Join(out, " ")
	}
	got, want := files(false), files(true)
	if got != want || strings.Count(got, "ramp/0.log.") != 4 || strings.Count(got, "steps/0.log.") != 1 {
		t.Errorf("with elision %s\nwithout      %s", got, want)
	}
}

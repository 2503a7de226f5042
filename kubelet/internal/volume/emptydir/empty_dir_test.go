package emptydir

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

func memory(q string) v1.ResourceList {
	if q == "" {
		return nil
	}
	return v1.ResourceList{v1.ResourceMemory: resource.MustParse(q)}
}

func pod(limits ...string) *v1.Pod {
	p := &v1.Pod{}
	p.UID = "u"
	for _, q := range limits {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Resources: v1.ResourceRequirements{Limits: memory(q)}})
	}
	return p
}

func TestMemorySize(t *testing.T) {
	const mi = 1 << 20
	for _, tc := range []struct {
		node, limit string
		containers  []string
		want        int64
	}{
		{"8Gi", "", []string{""}, 8 << 30},
		{"8Gi", "5Mi", []string{""}, 5 * mi},
		{"8Gi", "", []string{"64Mi", "32Mi"}, 96 * mi},
		{"8Gi", "", []string{"64Mi", ""}, 8 << 30},
		{"8Gi", "16Mi", []string{"64Mi"}, 16 * mi},
		{"8Gi", "0", []string{"64Mi"}, 64 * mi},
		{"8Mi", "", []string{"64Mi"}, 8 * mi},
		{"", "", []string{""}, 0},
	} {
		source := &v1.EmptyDirVolumeSource{}
		if tc.limit != "" {
			q := resource.MustParse(tc.limit)
			source.SizeLimit = &q
		}
		if got := memorySize(memory(tc.node), source, pod(tc.containers...)); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// mounter notes the size of a tmpfs.
type mounter struct {
	*memfs.FS
	size int64
}

func (m *mounter) MountTmpfs(path string, size int64) error {
	m.size = size
	return m.FS.MountTmpfs(path)
}
func (m *mounter) IsMountPoint(path string) bool { return m.Mounted(path) }

func TestMedia(t *testing.T) {
	for _, tc := range []struct {
		medium v1.StorageMedium
		err    string
		tmpfs  bool
	}{
		{v1.StorageMediumDefault, "", false},
		{v1.StorageMediumMemory, "", true},
		{v1.StorageMediumHugePages, "medium HugePages: hugePages storage requested, but there is no resource request for huge pages", false},
		{"Tape", `unknown storage medium "Tape"`, false},
	} {
		l := loop.New(loop.Options{})
		files := memfs.New(memfs.Options{Loop: l})
		m := &mounter{FS: files}
		host := &volume.Host{FS: files, Mounter: m, PodsDir: "/pods", NodeAllocatable: func() v1.ResourceList { return memory("1Gi") }}
		p := New(host)
		v := &v1.Volume{Name: "d", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: tc.medium}}}
		r := &volume.Request{Pod: pod(""), Volume: v, Dir: p.Path("u", v)}
		err := p.SetUp(context.Background(), r)
		if tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("%s: %v", tc.medium, err)
			}
			continue
		}
		if err != nil || files.Mounted(r.Dir) != tc.tmpfs || tc.tmpfs && m.size != 1<<30 {
			t.Errorf("%s: %v, %+v", tc.medium, err, m)
		}
		if err := files.WriteFile(r.Dir+"/f", []byte("x"), 0o644); err != nil {
			t.Error(err)
		}
		if err := p.SetUp(context.Background(), r); err != nil { // again: nothing is lost
			t.Error(err)
		}
		if _, err := files.Stat(r.Dir + "/f"); err != nil {
			t.Error(err)
		}
		if err := p.TearDown(context.Background(), "u", "d"); err != nil || files.Mounted(r.Dir) {
			t.Error(err)
		}
		if _, err := files.Stat(r.Dir); err == nil {
			t.Error("the directory is there")
		}
		if err := p.TearDown(context.Background(), "u", "d"); err != nil {
			t.Error(err)
		}
		l.Close()
	}
}

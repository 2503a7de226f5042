package nfs

import (
	"context"
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// mounter mounts tmpfs for whatever it is asked for.
type mounter struct {
	fs     *memfs.FS
	err    error
	asked  []string
	forced bool
}

func (m *mounter) MountTmpfs(path string, _ int64) error { return m.fs.MountTmpfs(path) }
func (m *mounter) Unmount(string) error                  { return errors.New("not for what is elsewhere") }
func (m *mounter) IsMountPoint(string) bool              { panic("asks the other machine") }
func (m *mounter) IsRemoteMountPoint(path string) bool   { return m.fs.Mounted(path) }

func (m *mounter) MountRemote(_ context.Context, source, target, fstype string, options []string) error {
	m.asked = append([]string{source, fstype}, options...)
	if m.err != nil {
		return m.err
	}
	return m.fs.MountTmpfs(target)
}

func (m *mounter) UnmountRemote(_ context.Context, target string) error {
	m.forced = true
	return m.fs.Unmount(target)
}

func newPlugin() (*Plugin, *mounter) {
	files := memfs.New(memfs.Options{})
	m := &mounter{fs: files}
	return New(&volume.Host{FS: files, Mounter: m, PodsDir: "/pods", Log: func(string, ...any) {}}), m
}

func TestSetUp(t *testing.T) {
	broken := errors.New("mount failed: exit status 32")
	for _, tc := range []struct {
		name   string
		source v1.NFSVolumeSource
		pv     []string // its mount options
		err    error
		want   []string
	}{
		{"as it is", v1.NFSVolumeSource{Server: "a", Path: "/x"}, nil, nil, []string{"a:/x", "nfs"}},
		{"read-only", v1.NFSVolumeSource{Server: "a", Path: "/x", ReadOnly: true}, nil, nil, []string{"a:/x", "nfs", "ro"}},
		{"IPv6", v1.NFSVolumeSource{Server: "fd00::1", Path: "/x"}, nil, nil, []string{"[fd00::1]:/x", "nfs"}},
		{"options, each once", v1.NFSVolumeSource{Server: "a", Path: "/", ReadOnly: true}, []string{"soft", "ro", "nfsvers=4.1"}, nil, []string{"a:/", "nfs", "nfsvers=4.1", "ro", "soft"}},
		{"options in their order", v1.NFSVolumeSource{Server: "a", Path: "/"}, []string{"soft", "nfsvers=4.1"}, nil, []string{"a:/", "nfs", "nfsvers=4.1", "soft"}},
		{"fails", v1.NFSVolumeSource{Server: "a", Path: "/x"}, nil, broken, []string{"a:/x", "nfs"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, m := newPlugin()
			m.err = tc.err
			v := &v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{NFS: &tc.source}}
			r := &volume.Request{Pod: &v1.Pod{}, Volume: v, Dir: p.Path("uid", v)}
			options := slices.Clone(tc.pv)
			if tc.pv != nil {
				r.PV = &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{MountOptions: tc.pv}}
			}
			if err := p.SetUp(t.Context(), r); !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			if !slices.Equal(m.asked, tc.want) {
				t.Errorf("mounted %q, want %q", m.asked, tc.want)
			}
			if r.Dir != "/pods/uid/volumes/kubernetes.io~nfs/data" {
				t.Error(r.Dir)
			}
			_, err := m.fs.Stat(r.Dir)
			if (err == nil) != (tc.err == nil) {
				t.Errorf("its directory: %v", err)
			}
			if !slices.Equal(tc.pv, options) {
				t.Error("the volume's options were changed")
			}
			m.asked = nil
			if err := p.SetUp(t.Context(), r); tc.err == nil && (err != nil || m.asked != nil) {
				t.Errorf("again: %v, mounted %q", err, m.asked)
			}
		})
	}
}

func TestTearDown(t *testing.T) {
	p, m := newPlugin()
	v := &v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: "a", Path: "/x"}}}
	dir := p.Path("uid", v)
	if err := p.SetUp(t.Context(), &volume.Request{Pod: &v1.Pod{}, Volume: v, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it may be repeated
		if err := p.TearDown(t.Context(), "uid", "data"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.fs.Stat(dir); err == nil || !m.forced {
		t.Errorf("the directory: %v", err)
	}
}

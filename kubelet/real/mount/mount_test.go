//go:build linux

package mount

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

func TestTmpfs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m := New()
	if m.IsMountPoint(dir) || m.IsMountPoint(dir+"-none") || !m.IsMountPoint("/proc") {
		t.Error("mount points are not told from others")
	}
	if err := m.MountTmpfs(dir, 1<<20); err != nil {
		if os.Geteuid() != 0 {
			t.Skipf("mounting needs root: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if !m.IsMountPoint(dir) || !m.IsMountPoint(dir+"/") || m.IsMountPoint(link) {
		t.Error("the tmpfs is no mount point, or its link is one")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || int64(st.Blocks)*st.Bsize != 1<<20 {
		t.Errorf("size %d, %v", int64(st.Blocks)*st.Bsize, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := m.Unmount(dir); err != nil || m.IsMountPoint(dir) {
		t.Errorf("unmount: %v", err)
	}
	if err := m.Unmount(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("unmount of what is not mounted: %v", err)
	}
}

func TestShared(t *testing.T) {
	mounts := []mount.MountInfo{
		{MountPoint: "/", OptionalFields: []string{"shared:1"}},
		{MountPoint: "/data"},
		{MountPoint: "/data/kubelet", OptionalFields: []string{"master:2", "shared:7"}},
		{MountPoint: "/mnt", OptionalFields: []string{"shared:3"}},
		{MountPoint: "/mnt"}, // over the other
	}
	for path, want := range map[string]bool{
		"/var/lib/kubelet": true, "/data": false, "/data/x": false, "/database": true, "/data/kubelet": true,
		"/data/kubelet/pods": true, "/mnt/x": false,
	} {
		if got := shared(mounts, path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

func TestHint(t *testing.T) {
	if hint(unix.EPERM) == "" || hint(unix.ENOENT) != "" {
		t.Error("the hint is for missing permission alone")
	}
}

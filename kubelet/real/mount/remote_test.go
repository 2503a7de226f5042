//go:build linux

package mount

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/ground/loop"
)

// TestRemote mounts a tmpfs as what another machine exports would be.
func TestRemote(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m, l := New(), loop.NewReal(loop.Options{Name: t.Name()})
	ctx, cancel := context.WithCancel(t.Context())
	l.Root().Go("mount", func(ctx context.Context) {
		defer cancel()
		err := m.MountRemote(ctx, "tmpfs", dir, "tmpfs", []string{"ro", "size=1m"})
		if err != nil {
			if os.Geteuid() == 0 {
				t.Error(err)
			}
			return
		}
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || int64(st.Blocks)*st.Bsize != 1<<20 || st.Flags&unix.MS_RDONLY == 0 {
			t.Errorf("size %d, flags %x, %v", int64(st.Blocks)*st.Bsize, st.Flags, err)
		}
		if !m.IsRemoteMountPoint(dir) || m.IsRemoteMountPoint(filepath.Dir(dir)) {
			t.Error("mount points are not told from others")
		}
		if err := m.UnmountRemote(ctx, dir); err != nil || m.IsRemoteMountPoint(dir) {
			t.Errorf("unmount: %v", err)
		}
		err = m.MountRemote(ctx, "nowhere.invalid:/x", dir, "none-such", nil)
		if err == nil || !strings.HasPrefix(err.Error(), "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t none-such nowhere.invalid:/x "+dir+"\nOutput: ") {
			t.Errorf("of no such kind: %v", err)
		}
	})
	if err := l.RunReal(ctx); err != nil {
		t.Fatal(err)
	}
}

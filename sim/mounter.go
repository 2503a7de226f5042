package sim

import (
	"io/fs"

	"github.com/drydock-sim/drydock/ground/memfs"
)

// mounter mounts the kubelet's volumes in the node's files.
type mounter struct{ fs *memfs.FS }

// tmpfsMode is the mode of a new tmpfs.
const tmpfsMode = fs.ModeSticky | 0o777

// MountTmpfs implements filesystem.Mounter.
func (m mounter) MountTmpfs(path string, size int64) error {
	if err := m.fs.MountTmpfsSize(path, size); err != nil {
		return err
	}
	return m.fs.Chmod(path, tmpfsMode)
}

// Unmount implements filesystem.Mounter.
func (m mounter) Unmount(path string) error { return m.fs.Unmount(path) }

// IsMountPoint implements filesystem.Mounter.
func (m mounter) IsMountPoint(path string) bool { return m.fs.Mounted(path) }

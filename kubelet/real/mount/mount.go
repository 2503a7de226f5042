//go:build linux

// Package mount mounts what the volumes of pods need, on Linux. It mirrors
// the part of upstream's k8s.io/mount-utils and pkg/volume/util/hostutil that
// the volume plugins in the tree use. It makes the system calls itself, since
// mount(8) would hold the loop up by some milliseconds.
package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// mountInfo has all mounts of the kubelet's mount namespace.
const mountInfo = "/proc/self/mountinfo"

// Mounter mounts on this machine.
type Mounter struct{}

var _ filesystem.Mounter = Mounter{}

// New returns a Mounter.
func New() Mounter { return Mounter{} }

// MountTmpfs implements filesystem.Mounter. Its pages are not swapped out, where
// the kernel can have that (6.4).
func (Mounter) MountTmpfs(path string, size int64) error {
	data := "mode=1777"
	if size > 0 {
		data += ",size=" + strconv.FormatInt(size, 10)
	}
	err := unix.Mount("tmpfs", path, "tmpfs", 0, data+",noswap")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", path, "tmpfs", 0, data)
	}
	if err != nil {
		return fmt.Errorf("mount a tmpfs at %s: %w%s", path, err, hint(err))
	}
	return nil
}

// Unmount implements filesystem.Mounter.
func (Mounter) Unmount(path string) error {
	if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount %s: %w%s", path, err, hint(err))
	}
	return nil
}

// IsMountPoint implements filesystem.Mounter. A path about which nothing can be
// found out is none.
func (Mounter) IsMountPoint(path string) bool {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return false
	}
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st); err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	all, err := mount.ParseMountInfo(mountInfo) // a kernel before 5.8
	if err != nil {
		return false
	}
	path = filepath.Clean(path)
	for i := range all {
		if all[i].MountPoint == path {
			return true
		}
	}
	return false
}

// MakeRShared has mounts below a directory seen by the containers in which it is
// mounted, and the other way round, as mounts with propagation need: unless it
// lies on a shared mount already, it becomes one (upstream
// hostutil.MakeRShared).
func (Mounter) MakeRShared(path string) error {
	all, err := mount.ParseMountInfo(mountInfo)
	if err != nil {
		return fmt.Errorf("read the mounts: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	if shared(all, path) {
		return nil
	}
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to itself: %w%s", path, err, hint(err))
	}
	if err := unix.Mount("", path, "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make %s rshared: %w%s", path, err, hint(err))
	}
	return nil
}

// shared reports whether the mount that a path is on is shared.
func shared(all []mount.MountInfo, path string) bool {
	var best *mount.MountInfo
	for i := range all {
		m := &all[i]
		if m.MountPoint != path && m.MountPoint != "/" && !strings.HasPrefix(path, m.MountPoint+"/") {
			continue
		}
		if best == nil || len(m.MountPoint) >= len(best.MountPoint) { // the later covers the earlier
			best = m
		}
	}
	if best == nil {
		return false
	}
	return slices.ContainsFunc(best.OptionalFields, func(o string) bool { return strings.HasPrefix(o, "shared:") })
}

// hint says what is missing where the kernel refuses.
func hint(err error) string {
	if errors.Is(err, unix.EPERM) {
		return " (mounting needs root: CAP_SYS_ADMIN)"
	}
	return ""
}

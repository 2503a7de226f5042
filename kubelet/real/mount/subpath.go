//go:build linux

package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

var _ filesystem.SubPather = Mounter{}

// MakeSubPath implements filesystem.SubPather.
func (Mounter) MakeSubPath(volume, sub string, perm fs.FileMode) error {
	fd, err := unix.Open(volume, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: volume, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	for part := range strings.SplitSeq(sub, "/") {
		made := unix.Mkdirat(fd, part, uint32(perm.Perm()))
		if made != nil && !errors.Is(made, unix.EEXIST) {
			return &fs.PathError{Op: "mkdir", Path: filepath.Join(volume, sub), Err: made}
		}
		next, err := unix.Openat(fd, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: filepath.Join(volume, sub), Err: err}
		}
		_ = unix.Close(fd)
		fd = next
		if made == nil {
			if err := unix.Fchmod(fd, uint32(perm.Perm())); err != nil { // the umask may have taken something
				return &fs.PathError{Op: "chmod", Path: filepath.Join(volume, sub), Err: err}
			}
		}
	}
	return nil
}

// BindSubPath implements filesystem.SubPather: each part of the path is opened
// below the one before and none may be a symbolic link, so whoever writes to the
// volume meanwhile can't lead the mount out of it (upstream
// pkg/volume/util/subpath, doSafeOpen and bindMount).
func (m Mounter) BindSubPath(volume, sub, target string) error {
	fd, err := openBeneath(volume, sub)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: filepath.Join(volume, sub), Err: err}
	}
	if m.IsMountPoint(target) {
		var have unix.Stat_t
		if err := unix.Lstat(target, &have); err == nil && have.Dev == st.Dev && have.Ino == st.Ino {
			return nil // of an earlier container
		}
		if err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w%s", target, err, hint(err))
		}
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = os.Mkdir(target, 0o750)
	} else {
		err = os.WriteFile(target, nil, 0o640)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w%s", filepath.Join(volume, sub), target, err, hint(err))
	}
	return nil
}

// openBeneath opens what a path in a volume leads to, over no symbolic link.
func openBeneath(volume, sub string) (int, error) {
	fd, err := unix.Open(volume, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: volume, Err: err}
	}
	for part := range strings.SplitSeq(sub, "/") {
		if part == "" || part == "." {
			continue
		}
		next, err := unix.Openat(fd, part, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		_ = unix.Close(fd)
		if part == ".." || err == nil && isLink(next) {
			if err == nil {
				_ = unix.Close(next)
			}
			err = unix.ELOOP
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: filepath.Join(volume, sub), Err: err}
		}
		fd = next
	}
	return fd, nil
}

// isLink reports whether an open file is a symbolic link.
func isLink(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// CleanSubPaths implements filesystem.SubPather.
func (m Mounter) CleanSubPaths(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		for m.IsMountPoint(name) {
			if err := m.Unmount(name); err != nil {
				return err
			}
		}
		if info, err := os.Lstat(name); err == nil && info.IsDir() {
			if err := m.CleanSubPaths(name); err != nil {
				return err
			}
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Remove(dir)
}

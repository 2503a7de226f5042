//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// command runs a tool; its words are in the error.
func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// mounted reports whether something is mounted on a path.
func mounted(path string) (bool, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if fields := strings.Fields(s.Text()); len(fields) > 4 && fields[4] == path {
			return true, nil
		}
	}
	return false, s.Err()
}

// bind mounts a path on another, unless something is there.
func bind(from, to string, readonly bool) error {
	if is, err := mounted(to); is || err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", from, to, err)
	}
	if readonly {
		if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return errors.Join(fmt.Errorf("make %s read-only: %w", to, err), unmount(to))
		}
	}
	return nil
}

// unmount undoes the mounts on a path.
func unmount(path string) error {
	for {
		if is, err := mounted(path); !is || err != nil {
			return err
		}
		if err := unix.Unmount(path, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
}

// loops are the loop devices of a file.
func loops(image string) ([]string, error) {
	out, err := command("losetup", "--noheadings", "--output", "NAME", "--associated", image)
	return strings.Fields(out), err
}

// attachLoop returns a file's loop device, a new one if it has none.
func attachLoop(image string) (string, error) {
	if list, err := loops(image); len(list) > 0 || err != nil {
		return strings.Join(list[:min(len(list), 1)], ""), err
	}
	return command("losetup", "--find", "--show", image)
}

func detachLoop(image string) error {
	list, err := loops(image)
	for _, device := range list {
		_, failed := command("losetup", "--detach", device)
		err = errors.Join(err, failed)
	}
	return err
}

// fileSystem is one that volumes can have.
type fileSystem struct {
	mkfs []string
	// grow has it fill its device, which is mounted at a path.
	grow func(device, path string) error
}

// fileSystemOf knows ext4, which is the default, and xfs.
func fileSystemOf(kind string) (string, fileSystem, error) {
	switch kind {
	case "", "ext4":
		return "ext4", fileSystem{[]string{"mkfs.ext4", "-q", "-m", "0"}, func(device, _ string) error {
			_, err := command("resize2fs", device)
			return err
		}}, nil
	case "xfs":
		return kind, fileSystem{[]string{"mkfs.xfs", "-q"}, func(_, path string) error {
			_, err := command("xfs_growfs", path)
			return err
		}}, nil
	}
	return "", fileSystem{}, fmt.Errorf("no file system %q: ext4 and xfs are known", kind)
}

// mountImage mounts the file system of a kind that is in a file, making it if there is none.
func mountImage(image, target, kind string, flags []string) error {
	kind, fs, err := fileSystemOf(kind)
	if err != nil {
		return err
	}
	if is, err := mounted(target); is || err != nil {
		return err
	}
	device, err := attachLoop(image)
	if err != nil {
		return err
	}
	// blkid exits with 2 where it finds nothing.
	if found, err := command("blkid", "--probe", "--output", "value", "--match-tag", "TYPE", device); found == "" {
		if failed := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 2) {
			return err
		}
		if _, err := command(fs.mkfs[0], append(slices.Clone(fs.mkfs[1:]), device)...); err != nil {
			return err
		}
	}
	args := []string{"-t", kind, device, target}
	if len(flags) > 0 {
		args = slices.Insert(args, 0, "-o", strings.Join(flags, ","))
	}
	_, err = command("mount", args...)
	return err
}

// growLoop has a loop device be as great as its file, and so the file system on it that is
// mounted at a path, if there is one.
func growLoop(image, path string) error {
	device, err := attachLoop(image)
	if err != nil {
		return err
	}
	if _, err := command("losetup", "--set-capacity", device); err != nil || path == "" {
		return err
	}
	kind, err := command("findmnt", "--noheadings", "--output", "FSTYPE", "--mountpoint", path)
	if err != nil {
		return err
	}
	_, fs, err := fileSystemOf(kind)
	if err != nil {
		return err
	}
	return fs.grow(device, path)
}

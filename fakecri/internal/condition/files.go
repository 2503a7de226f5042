package condition

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// IsUnary reports whether op stands before one operand. -G -L -N -O -S are beyond POSIX.
func IsUnary(op string) bool {
	return len(op) == 2 && op[0] == '-' && strings.IndexByte("bcdefghknprstuwxzGLNOS", op[1]) >= 0
}

// Unary answers a condition of one operand. Every question about a file that is not there is
// answered no, without a message.
func (t *Test) Unary(op, a string) bool {
	switch op[1] {
	case 'z':
		return a == ""
	case 'n':
		return a != ""
	case 't':
		// A number that is no descriptor is no terminal.
		n, ok := t.number(a)
		if !ok || int64(int32(n)) != n || n < 0 {
			return false
		}
		f := t.Process.FD(int(n))
		return f != nil && kernel.IsTTY(f)
	}
	if a == "" {
		return false
	}
	view := t.Process.View()
	// Only these two look at the link itself.
	switch op[1] {
	case 'h', 'L':
		fi, err := view.Lstat(a)
		return err == nil && fi.Mode()&fs.ModeSymlink != 0
	}
	fi, err := view.Stat(a)
	return err == nil && fileIs(op[1], fi, t.Process)
}

// fileIs answers what is asked of a file that exists, by the letter. For -N a file's times would
// have to be compared, which are one here.
func fileIs(op byte, fi fs.FileInfo, p *kernel.Process) bool {
	m := fi.Mode()
	switch op {
	case 'r':
		return permitted(fi, p, 4)
	case 'w':
		return permitted(fi, p, 2)
	case 'x':
		return permitted(fi, p, 1)
	case 'e', 'N':
		return true
	case 'f':
		return m.IsRegular()
	case 'd':
		return m.IsDir()
	case 's':
		return fi.Size() > 0
	case 'p':
		return m&fs.ModeNamedPipe != 0
	case 'S':
		return m&fs.ModeSocket != 0
	case 'c':
		return m&fs.ModeCharDevice != 0
	case 'b':
		return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0
	case 'u':
		return m&fs.ModeSetuid != 0
	case 'g':
		return m&fs.ModeSetgid != 0
	case 'k':
		return m&fs.ModeSticky != 0
	}
	sys, ok := fi.Sys().(*memfs.Sys)
	if !ok {
		// A file without an owner is root's.
		return p.Cred.UID == 0
	}
	switch op {
	case 'O':
		return int(sys.UID) == p.Cred.UID
	case 'G':
		return int(sys.GID) == p.Cred.GID
	}
	return false
}

// files compares two files: which is newer, and whether they are one. A file
// that is missing is neither. -ef asks whether both are the same file, by inode: all files of a
// node have one number space.
func (t *Test) files(a, op, b string) bool {
	view := t.Process.View()
	x, errX := view.Stat(a)
	y, errY := view.Stat(b)
	if errX != nil || errY != nil {
		return false
	}
	// Whole seconds count.
	switch op {
	case "-nt":
		return x.ModTime().Unix() > y.ModTime().Unix()
	case "-ot":
		return x.ModTime().Unix() < y.ModTime().Unix()
	}
	xs, okX := x.Sys().(*memfs.Sys)
	ys, okY := y.Sys().(*memfs.Sys)
	if okX && okY {
		// Mount points of different file systems may share a number; it counts as the same all
		// the same.
		return xs.Ino == ys.Ino
	}
	return a == b
}

// permitted reports whether the mode lets a process in, as busybox has it: from
// the bits alone. It knows neither capabilities nor read-only mounts, and takes
// root to read and write everything. access(2) would know better, and is what the shell's own
// builtins for files do not use.
func permitted(fi fs.FileInfo, p *kernel.Process, bit fs.FileMode) bool {
	mode := fi.Mode().Perm()
	if p.Cred.UID == 0 {
		return bit != 1 || mode&0o111 != 0
	}
	if sys, ok := fi.Sys().(*memfs.Sys); ok {
		switch {
		case sys.UID == p.Cred.UID:
			bit <<= 6
		case sys.GID == p.Cred.GID || slices.Contains(p.Cred.Groups, sys.GID):
			bit <<= 3
		}
	}
	return mode&bit != 0
}

package applet

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/drydock-sim/drydock/ground/memfs"
)

// Sign is -1, 0 or 1, for comparing sizes and times.
func Sign(n int64) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// CompareVersions compares names with numbers in them by value, as
// strverscmp(3) does in ls -v and sort -V: file9 comes before file10. Zeros
// before a number don't count, where glibc gives them a meaning. The result is negative, 0 or
// positive.
func CompareVersions(a, b string) int {
	for a != "" && b != "" {
		na, nb := LeadingDigits(a), LeadingDigits(b)
		if na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if x != y {
				return strings.Compare(x, y)
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// LeadingDigits counts the digits that a text begins with.
func LeadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Links returns what ls shows as a file's number of links: for a directory, as
// most file systems have it, one for itself, one in its parent, and one in each
// directory it holds. memfs does not keep the number for directories.
func (c *Call) Links(path string, fi fs.FileInfo) int {
	if !fi.IsDir() {
		return max(1, SysOf(fi).Nlink)
	}
	n := 2
	list, err := c.View().ReadDir(path)
	if err != nil {
		return n
	}
	for _, e := range list {
		if e.IsDir() {
			n++
		}
	}
	return n
}

// SysOf returns owner, inode and so on; of what the file system knows nothing
// of, one link. It is a copy, so callers need not care for nil.
func SysOf(fi fs.FileInfo) memfs.Sys {
	if s, ok := fi.Sys().(*memfs.Sys); ok && s != nil {
		return *s
	}
	return memfs.Sys{Nlink: 1}
}

// DiskBlocks returns what a file takes, in units of 512 bytes. A directory
// takes one block, whatever is in it. 512 bytes is stat(2)'s unit, whatever the disk's blocks
// are.
func DiskBlocks(fi fs.FileInfo) int64 {
	if fi.IsDir() {
		return 8
	}
	if s, ok := fi.Sys().(*memfs.Sys); ok && s != nil {
		return s.Blocks
	}
	if !fi.Mode().IsRegular() {
		return 0
	}
	return (fi.Size() + 4095) / 4096 * 8
}

// DeviceNumbers returns the numbers of a device by its name, Linux's for those
// that containers have; 0 for others. They are those of Documentation/admin-guide/devices.txt.
func DeviceNumbers(name string) (major, minor int) {
	switch name, _, _ = strings.Cut(name, ":"); name {
	case "disk":
		return 7, 0 // as /dev/loop0
	case "null":
		return 1, 3
	case "zero":
		return 1, 5
	case "full":
		return 1, 7
	case "random":
		return 1, 8
	case "urandom":
		return 1, 9
	case "tty":
		return 5, 0
	}
	return 0, 0
}

// ModeString is a mode as ls shows it: -rwxr-xr-x.
func ModeString(m fs.FileMode) string {
	b := []byte("-rwxrwxrwx")
	switch {
	case m.IsDir():
		b[0] = 'd'
	case m&fs.ModeSymlink != 0:
		b[0] = 'l'
	case m&fs.ModeCharDevice != 0:
		b[0] = 'c'
	case m&fs.ModeDevice != 0:
		b[0] = 'b'
	case m&fs.ModeNamedPipe != 0:
		b[0] = 'p'
	case m&fs.ModeSocket != 0:
		b[0] = 's'
	}
	for i := range 9 {
		if m&(1<<(8-i)) == 0 {
			b[i+1] = '-'
		}
	}
	// Without the x bit the letter is a capital.
	for _, x := range []struct {
		bit      fs.FileMode
		at       int
		on, with byte
	}{{fs.ModeSetuid, 3, 'S', 's'}, {fs.ModeSetgid, 6, 'S', 's'}, {fs.ModeSticky, 9, 'T', 't'}} {
		if m&x.bit != 0 {
			if b[x.at] == 'x' {
				b[x.at] = x.with
			} else {
				b[x.at] = x.on
			}
		}
	}
	return string(b)
}

// OctalMode is the permission bits as stat -c %a has them.
func OctalMode(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	if m&fs.ModeSetuid != 0 {
		n |= 0o4000
	}
	if m&fs.ModeSetgid != 0 {
		n |= 0o2000
	}
	if m&fs.ModeSticky != 0 {
		n |= 0o1000
	}
	return n
}

// FileMode is OctalMode's inverse. Go's modes have the three special bits elsewhere.
func FileMode(n uint32) fs.FileMode {
	m := fs.FileMode(n & 0o777)
	if n&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if n&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if n&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// HumanSize is a number of bytes as -h shows it: 2.0K, 15.3M; below 1 KiB the
// plain number.
func HumanSize(n int64) string { return human(n, 0) }

// HumanKiB is the same of a number of KiB, which has no fraction below 1 MiB. df and free count
// in KiB.
func HumanKiB(n int64) string {
	if n == 0 {
		return "0"
	}
	return human(n, 1)
}

// human scales a number that is in units of 1024^unit. One decimal is rounded
// to the nearest, as busybox's make_human_readable_str does; GNU rounds up. Six units above bytes
// cover 64 bits.
func human(n int64, unit int) string {
	const units = " KMGTPE"
	frac, scaled := int64(0), false
	for unit < len(units)-1 && n >= 1024 {
		frac = (n%1024*10 + 512) / 1024
		n /= 1024
		unit++
		scaled = true
	}
	// Rounding may carry: 1.97 becomes 2.0.
	if frac >= 10 {
		n++
		frac = 0
	}
	switch {
	case unit == 0:
		return fmt.Sprint(n)
	case !scaled:
		return fmt.Sprintf("%d%c", n, units[unit])
	}
	return fmt.Sprintf("%d.%d%c", n, frac, units[unit])
}

package applets

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Stat is stat. What the file system does not keep is made up: access, change
// and birth times are the modification time or 0, the device is one. -f
// describes the file system by what df knows. Formats are those of -c; GNU's
// --printf is not built. Names without an entry in /etc/passwd are UNKNOWN.
func Stat() applet.Applet { return applet.New(runStat, "stat", "[-Lft] [-c FMT] FILE...") }

// runStat goes on after a file that is missing, with status 1 at the end. The format's
// conversions go through fmt, whose flags and widths agree with printf's for the verbs that are
// used.
func runStat(c *applet.Call) int {
	o := c.Getopt("ftLc:", "format=c:", "dereference=L", "file-system=f", "terse=t")
	if len(o.Args) == 0 {
		c.Usage()
	}
	n := &applet.Names{C: c}
	code := 0
	for _, name := range o.Args {
		if o.Has('f') {
			if !statFS(c, name) {
				code = 1
			}
			continue
		}
		stat := c.View().Lstat
		if o.Has('L') {
			stat = c.View().Stat
		}
		fi, err := stat(name)
		if err != nil {
			c.Errorf("can't stat '%s': %s", name, applet.Strerror(err))
			code = 1
			continue
		}
		// BusyBox's own layout, written in the letters of -c.
		format := "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Dh/%dd\tInode: %-10i  Links: %h\n" +
			"Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z"
		switch {
		case o.Has('c'):
			format = o.Str('c')
		case o.Has('t'):
			format = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %o"
		default:
			// The default format shows where a link leads.
			link := name
			if fi.Mode()&fs.ModeSymlink != 0 {
				if to, err := c.View().Readlink(name); err == nil {
					link = "'" + name + "' -> '" + to + "'"
				}
			}
			// A percent sign in the name must not be taken for a conversion.
			format = strings.Replace(format, "%N", strings.ReplaceAll(link, "%", "%%"), 1)
			if fi.Mode()&fs.ModeDevice == 0 {
				break
			}
			format = strings.Replace(format, "Links: %h", "Links: %-5h Device type: %t,%T", 1)
		}
		c.Print(statFormat(c, format, name, fi, n), "\n")
	}
	return code
}

// statFormat fills a format in. A conversion that is not known prints its
// letter. It is for one file. A percent sign at the end of the format is printed as one.
func statFormat(c *applet.Call, format, name string, fi fs.FileInfo, n *applet.Names) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		start := i
		for i++; i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0; i++ {
		}
		if i >= len(format) {
			b.WriteByte('%')
			break
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		// Flags and width mean in Go what they mean in C, for these verbs.
		spec := format[start:i]
		if v := statField(c, format[i], name, fi, n); v == nil {
			b.WriteByte(format[i])
		} else {
			b.WriteString(fmt.Sprintf(spec+verbOf(v), v))
		}
	}
	return b.String()
}

// octal and hexadecimal are numbers shown as such.
type (
	octal       uint32
	hexadecimal uint64
)

// verbOf is the conversion of Go's for a field's value. Names and types are texts, modes octal,
// the rest decimal.
func verbOf(v any) string {
	switch v.(type) {
	case string:
		return "s"
	case octal:
		return "o"
	case hexadecimal:
		return "x"
	}
	return "d"
}

// statField returns what a letter of the format stands for, nil if nothing. The letters are those
// of BusyBox' print_stat (coreutils/stat.c).
func statField(c *applet.Call, f byte, name string, fi fs.FileInfo, n *applet.Names) any {
	sys := applet.SysOf(fi)
	at := fi.ModTime().UTC()
	switch f {
	case 'n':
		return name
	case 'N':
		if fi.Mode()&fs.ModeSymlink != 0 {
			to, _ := c.View().Readlink(name)
			return "'" + name + "' -> '" + to + "'"
		}
		return name
	// The simulated file systems share one made-up device number.
	case 'd':
		return 64
	case 'D':
		return hexadecimal(64)
	case 'i':
		return sys.Ino
	case 'a':
		return octal(applet.OctalMode(fi.Mode()))
	case 'A':
		return applet.ModeString(fi.Mode())
	case 'f':
		return hexadecimal(uint64(applet.OctalMode(fi.Mode())) | typeBits(fi.Mode()))
	case 'F':
		return typeName(fi)
	case 'h':
		return c.Links(name, fi)
	case 'u':
		return sys.UID
	case 'U':
		return statName(n.KnownUser(sys.UID))
	case 'g':
		return sys.GID
	case 'G':
		return statName(n.KnownGroup(sys.GID))
	case 't', 'T':
		major, minor := applet.DeviceNumbers(applet.Base(name))
		if fi.Mode()&fs.ModeDevice == 0 {
			return hexadecimal(0)
		}
		if f == 't' {
			return hexadecimal(major)
		}
		return hexadecimal(minor)
	case 's':
		return fi.Size()
	// st_blocks counts units of 512 bytes, whatever the block size.
	case 'B':
		return 512
	case 'b':
		return applet.DiskBlocks(fi)
	case 'o':
		return 4096
	case 'x', 'y', 'z':
		return at.Format("2006-01-02 15:04:05.000000000 -0700")
	case 'X', 'Y', 'Z':
		return at.Unix()
	}
	return nil
}

// statName is the name of an account for stat, which says UNKNOWN. Numbers are shown beside it,
// so nothing is lost.
func statName(name string, ok bool) string {
	if !ok {
		return "UNKNOWN"
	}
	return name
}

// typeBits is the file type in st_mode. %f shows them with the permissions, in hexadecimal.
func typeBits(m fs.FileMode) uint64 {
	// ModeCharDevice comes with ModeDevice in Go, so it has to be looked at
	// first. The values are those of S_IFMT in stat(2).
	switch {
	case m.IsDir():
		return 0o040000
	case m&fs.ModeSymlink != 0:
		return 0o120000
	case m&fs.ModeCharDevice != 0:
		return 0o020000
	case m&fs.ModeDevice != 0:
		return 0o060000
	case m&fs.ModeNamedPipe != 0:
		return 0o010000
	case m&fs.ModeSocket != 0:
		return 0o140000
	}
	return 0o100000
}

// typeName is the file type in words, as %F has it. The words are GNU's and BusyBox' alike;
// scripts compare them.
func typeName(fi fs.FileInfo) string {
	switch m := fi.Mode(); {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeCharDevice != 0:
		return "character special file"
	case m&fs.ModeDevice != 0:
		return "block special file"
	case m&fs.ModeNamedPipe != 0:
		return "fifo"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	// coreutils and BusyBox both tell an empty file apart.
	if fi.Size() == 0 {
		return "regular empty file"
	}
	return "regular file"
}

// statFS is stat -f, of which the identifier is 0 and the block 4 KiB for all. It returns false
// after a message, for the status.
func statFS(c *applet.Call, name string) bool {
	s, err := c.View().Statfs(name)
	if err != nil {
		c.Errorf("can't read file system information for '%s': %s", name, applet.Strerror(err))
		return false
	}
	c.Printf("  File: \"%s\"\n    ID: 0 Namelen: 255     Type: %s\nBlock size: 4096      \n", name, s.Type)
	// statfs(2) counts in blocks, the simulation in bytes.
	c.Printf("Blocks: Total: %-10d Free: %-10d Available: %d\n", s.Size/4096, (s.Size-s.Used)/4096, s.Avail/4096)
	c.Printf("Inodes: Total: %-10d Free: %d\n", s.Files, s.FreeFiles)
	return true
}

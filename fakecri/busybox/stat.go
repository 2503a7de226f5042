package busybox

import (
	"fmt"
	"io/fs"
	"strings"
	"time"
)

func runStat(c *call) int {
	o := c.getopt("ftLc:", "format=c:", "dereference=L", "file-system=f", "terse=t")
	if len(o.args) == 0 {
		c.usage()
	}
	n := &names{c: c}
	code := 0
	for _, name := range o.args {
		if o.has('f') {
			if !c.statFS(name) {
				code = 1
			}
			continue
		}
		stat := c.view().Lstat
		if o.has('L') {
			stat = c.view().Stat
		}
		fi, err := stat(name)
		if err != nil {
			c.errorf("can't stat '%s': %s", name, strerror(err))
			code = 1
			continue
		}
		format := "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Dh/%dd\tInode: %-10i  Links: %h\n" +
			"Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z"
		switch {
		case o.has('c'):
			format = o.str('c')
		case o.has('t'):
			format = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %o"
		default:
			link := name
			if fi.Mode()&fs.ModeSymlink != 0 {
				if to, err := c.view().Readlink(name); err == nil {
					link = "'" + name + "' -> '" + to + "'"
				}
			}
			format = strings.Replace(format, "%N", strings.ReplaceAll(link, "%", "%%"), 1)
			if fi.Mode()&fs.ModeDevice == 0 {
				break
			}
			format = strings.Replace(format, "Links: %h", "Links: %-5h Device type: %t,%T", 1)
		}
		c.print(c.statFormat(format, name, fi, n), "\n")
	}
	return code
}

func (c *call) statFormat(format, name string, fi fs.FileInfo, n *names) string {
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
		spec := format[start:i]
		if v := c.statField(format[i], name, fi, n); v == nil {
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

func (c *call) statField(f byte, name string, fi fs.FileInfo, n *names) any {
	sys := sysOf(fi)
	at := fi.ModTime().UTC()
	switch f {
	case 'n':
		return name
	case 'N':
		if fi.Mode()&fs.ModeSymlink != 0 {
			to, _ := c.view().Readlink(name)
			return "'" + name + "' -> '" + to + "'"
		}
		return name
	case 'd':
		return 64
	case 'D':
		return hexadecimal(64)
	case 'i':
		return sys.Ino
	case 'a':
		return octal(octalMode(fi.Mode()))
	case 'A':
		return modeString(fi.Mode())
	case 'f':
		return hexadecimal(uint64(octalMode(fi.Mode())) | typeBits(fi.Mode()))
	case 'F':
		return typeName(fi)
	case 'h':
		return c.links(name, fi)
	case 'u':
		return sys.UID
	case 'U':
		return n.statName(n.knownUser(sys.UID))
	case 'g':
		return sys.GID
	case 'G':
		return n.statName(n.knownGroup(sys.GID))
	case 't', 'T':
		major, minor := deviceNumbers(base(name))
		if fi.Mode()&fs.ModeDevice == 0 {
			return hexadecimal(0)
		}
		if f == 't' {
			return hexadecimal(major)
		}
		return hexadecimal(minor)
	case 's':
		return fi.Size()
	case 'B':
		return 512
	case 'b':
		return diskBlocks(fi)
	case 'o':
		return 4096
	case 'x', 'y', 'z':
		return at.Format("2006-01-02 15:04:05.000000000 -0700")
	case 'X', 'Y', 'Z':
		return at.Unix()
	}
	return nil
}

// statName is the name of an account for stat, which says UNKNOWN.
func (n *names) statName(name string, ok bool) string {
	if !ok {
		return "UNKNOWN"
	}
	return name
}

func typeBits(m fs.FileMode) uint64 {
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
	if fi.Size() == 0 {
		return "regular empty file"
	}
	return "regular file"
}

func (c *call) statFS(name string) bool {
	s, err := c.view().Statfs(name)
	if err != nil {
		c.errorf("can't read file system information for '%s': %s", name, strerror(err))
		return false
	}
	c.printf("  File: \"%s\"\n    ID: 0 Namelen: 255     Type: %s\nBlock size: 4096      \n", name, s.Type)
	c.printf("Blocks: Total: %-10d Free: %-10d Available: %d\n", s.Size/4096, (s.Size-s.Used)/4096, s.Avail/4096)
	c.printf("Inodes: Total: %-10d Free: %d\n", s.Files, s.FreeFiles)
	return true
}

// parseDate reads a date as date -d and touch -d do.
func parseDate(s string, now time.Time) (time.Time, bool) {
	now = now.UTC()
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		var n int64
		if _, err := fmt.Sscan(rest, &n); err != nil || rest != fmt.Sprint(n) {
			return now, false
		}
		return time.Unix(n, 0).UTC(), true
	}
	for _, layout := range []string{
		"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006.01.02-15:04:05", "2006.01.02-15:04",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC), true
		}
	}
	for _, layout := range []string{"01.02-15:04:05", "01.02-15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return time.Date(now.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC), true
		}
	}
	if t, ok := overflowing(s); ok {
		return t, true
	}
	return parseStamp(s, now)
}

// overflowing reads a date whose day the month has not, such as 2020-02-30: it
// is one of the next month.
func overflowing(s string) (time.Time, bool) {
	date, clock, _ := strings.Cut(s, " ")
	var n [6]int
	parts := append(strings.Split(date, "-"), strings.Split(clock, ":")...)
	if strings.Count(date, "-") != 2 || len(parts) > 6 {
		return time.Time{}, false
	}
	for i, p := range parts {
		if p == "" && clock == "" {
			continue
		}
		v, ok := parseUint(p)
		if !ok || i == 1 && (v < 1 || v > 12) || i == 2 && (v < 1 || v > 31) || i > 2 && v > 60 {
			return time.Time{}, false
		}
		n[i] = v
	}
	return time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, time.UTC), true
}

// parseStamp reads [[[CC]YY]MM]DDhhmm[.ss], also with the year at the end as
// date takes it.
func parseStamp(s string, now time.Time) (time.Time, bool) {
	digits, secs, hasSecs := strings.Cut(s, ".")
	if strings.Trim(digits+secs, "0123456789") != "" || hasSecs && len(secs) != 2 {
		return now, false
	}
	n := func(from int) int { return int(digits[from]-'0')*10 + int(digits[from+1]-'0') }
	year, at := now.Year(), 0
	switch len(digits) {
	case 12:
		year, at = n(0)*100+n(2), 4
	case 10:
		year, at = 2000+n(0), 2
		if n(0) >= 69 {
			year -= 100
		}
	case 8:
	default:
		return now, false
	}
	sec := 0
	if hasSecs {
		sec = int(secs[0]-'0')*10 + int(secs[1]-'0')
	}
	month, day, hour, minute := n(at), n(at+2), n(at+4), n(at+6)
	if month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || sec > 60 {
		return now, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, sec, 0, time.UTC), true
}

// parseWith reads a date by a strptime format.
func parseWith(format, s string, now time.Time) (time.Time, bool) {
	layout := strings.NewReplacer("%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%y", "06", "%b", "Jan", "%B", "January",
		"%a", "Mon", "%A", "Monday", "%T", "15:04:05", "%R", "15:04", "%F", "2006-01-02", "%D", "01/02/06", "%e", "_2", "%z", "-0700", "%Z", "MST", "%%", "%").Replace(format)
	if format == "%s" {
		return parseDate("@"+s, now)
	}
	t, err := time.Parse(layout, s)
	if err != nil {
		return now, false
	}
	now = now.UTC()
	if !strings.Contains(layout, "06") {
		t = t.AddDate(now.Year(), 0, 0)
	}
	if !strings.Contains(layout, "01") && !strings.Contains(layout, "Jan") {
		t = time.Date(t.Year(), now.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	if !strings.Contains(layout, "02") && !strings.Contains(layout, "_2") {
		t = t.AddDate(0, 0, now.Day()-1)
	}
	return t.UTC(), true
}

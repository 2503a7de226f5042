package busybox

import (
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/memfs"
)

// lsEntry is a name to list.
type lsEntry struct {
	shown, path string
	fi          fs.FileInfo
	link        string // where a symbolic link leads
	target      fs.FileInfo
}

// lister is one run of ls.
type lister struct {
	c     *call
	o     *options
	names names
	// header says that directories are introduced by their names.
	header bool
	// shownAny says that something was listed already.
	shownAny bool
	code     int
	width    int
	now      time.Time
}

func runLs(c *call) int {
	o := c.getopt("AaCxdLHRFpl1ginshrSXvctuTw:k",
		"full-time=1", "group-directories-first=2", "color=3::", "all=a")
	l := &lister{c: c, o: o, names: names{c: c}, width: 80, now: c.p.Now()}
	if o.has('w') {
		l.width = int(c.number(o.str('w')))
	}
	l.tty()
	args := o.args
	if len(args) == 0 {
		args = []string{"."}
	}
	var files, dirs []*lsEntry
	for _, a := range args {
		// A link named on the command line is followed unless -l, -i, -F or -d
		// asks about itself.
		follow := o.has('L') || o.has('H') || !(o.has('l') || o.has('n') || o.has('g') || o.has('1') && o.count['1'] > 1 || o.has('i') || o.has('s') || o.has('F'))
		e, ok := l.entry(a, a, follow)
		if !ok {
			continue
		}
		if e.fi.IsDir() && !o.has('d') {
			dirs = append(dirs, e)
		} else {
			files = append(files, e)
		}
	}
	l.header = len(args) > 1 || o.has('R')
	if len(files) > 0 {
		l.sort(files)
		l.show(files)
		l.shownAny = true
	}
	l.sort(dirs)
	for _, d := range dirs {
		l.dir(d)
	}
	return l.code
}

// tty sets columns where the standard output is a terminal.
func (l *lister) tty() {
	if l.o.last("1C") == 0 && isTTY(l.c.p.FD(1)) && !l.long() {
		l.o.count['C']++
	}
}

func (l *lister) long() bool {
	return l.o.has('l') || l.o.has('n') || l.o.has('g') || l.fullTime()
}

// fullTime tells whether --full-time was given; its letter is that of -1.
func (l *lister) fullTime() bool {
	for _, a := range l.c.args {
		if a == "--full-time" {
			return true
		}
	}
	return false
}

// entry describes a name; what can't be described is reported.
func (l *lister) entry(shown, path string, follow bool) (*lsEntry, bool) {
	v := l.c.view()
	stat := v.Lstat
	if follow {
		stat = v.Stat
	}
	fi, err := stat(path)
	if err != nil {
		l.c.errorf("%s: %s", shown, strerror(err))
		l.code = 1
		return nil, false
	}
	e := &lsEntry{shown: shown, path: path, fi: fi}
	if fi.Mode()&fs.ModeSymlink != 0 {
		e.link, _ = v.Readlink(path)
		if l.o.has('F') || l.o.has('p') || l.o.has('2') {
			e.target, _ = v.Stat(path)
		}
	}
	return e, true
}

func (l *lister) dir(d *lsEntry) {
	v := l.c.view()
	list, err := v.ReadDir(d.path)
	if err != nil {
		l.c.errorf(cantOpen, d.path, strerror(err))
		l.code = 1
		return
	}
	if l.header {
		if l.shownAny {
			l.c.print("\n")
		}
		l.c.print(d.shown, ":\n")
	}
	l.shownAny = true
	var names []string
	if l.o.has('a') {
		names = append(names, ".", "..")
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), ".") && !l.o.has('a') && !l.o.has('A') {
			continue
		}
		names = append(names, e.Name())
	}
	var entries []*lsEntry
	for _, n := range names {
		if e, ok := l.entry(n, join(d.path, n), l.o.has('L')); ok {
			e.path = join(d.path, n)
			entries = append(entries, e)
		}
		l.c.spend(4096)
	}
	l.sort(entries)
	if l.long() || l.o.has('s') {
		var blocks int64
		for _, e := range entries {
			blocks += diskBlocks(e.fi)
		}
		if l.o.has('h') {
			l.c.printf("total %-7s\n", humanKiB((blocks+1)/2))
		} else {
			l.c.printf("total %d\n", (blocks+1)/2)
		}
	}
	l.show(entries)
	if l.o.has('R') {
		for _, e := range entries {
			if e.fi.IsDir() && e.shown != "." && e.shown != ".." {
				l.dir(&lsEntry{shown: join(d.shown, e.shown), path: e.path, fi: e.fi})
			}
		}
	}
}

func (l *lister) sort(list []*lsEntry) {
	less := func(a, b *lsEntry) int { return strings.Compare(a.shown, b.shown) }
	switch l.o.last("StXvcu") {
	case 'S':
		byName := less
		less = func(a, b *lsEntry) int {
			if a.fi.Size() != b.fi.Size() {
				return sign(b.fi.Size() - a.fi.Size())
			}
			return byName(a, b)
		}
	case 't', 'c', 'u':
		if !l.o.has('t') {
			break
		}
		byName := less
		less = func(a, b *lsEntry) int {
			if d := b.fi.ModTime().Unix() - a.fi.ModTime().Unix(); d != 0 {
				return sign(d)
			}
			return byName(a, b)
		}
	case 'X':
		byName := less
		less = func(a, b *lsEntry) int {
			x, y := a.shown[strings.LastIndexByte(a.shown, '.')+1:], b.shown[strings.LastIndexByte(b.shown, '.')+1:]
			if x != y {
				return strings.Compare(x, y)
			}
			return byName(a, b)
		}
	case 'v':
		less = func(a, b *lsEntry) int { return compareVersions(a.shown, b.shown) }
	}
	sort.SliceStable(list, func(i, j int) bool {
		if l.o.has('2') {
			if di, dj := isDir(list[i]), isDir(list[j]); di != dj {
				return di
			}
		}
		d := less(list[i], list[j])
		if l.o.has('r') {
			d = -d
		}
		return d < 0
	})
}

func isDir(e *lsEntry) bool { return e.fi.IsDir() || e.target != nil && e.target.IsDir() }

func sign(n int64) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// compareVersions compares names with numbers in them by value.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		na, nb := leadingDigits(a), leadingDigits(b)
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

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func (l *lister) show(list []*lsEntry) {
	if l.long() {
		for _, e := range list {
			l.c.print(l.line(e), "\n")
		}
		return
	}
	if l.o.last("1Cx") != '1' && (l.o.has('C') || l.o.has('x')) {
		l.columns(list)
		return
	}
	for _, e := range list {
		l.c.print(l.prefix(e), e.shown, l.suffix(e), "\n")
	}
}

func (l *lister) columns(list []*lsEntry) {
	texts := make([]string, len(list))
	widest := 0
	for i, e := range list {
		texts[i] = l.prefix(e) + e.shown + l.suffix(e)
		widest = max(widest, len(texts[i]))
	}
	column := widest + 2
	perLine := max(1, l.width/column)
	rows := (len(list) + perLine - 1) / perLine
	for row := 0; row < rows; row++ {
		for col := 0; col < perLine; col++ {
			i := col*rows + row
			if l.o.last("Cx") == 'x' {
				i = row*perLine + col
			}
			if i >= len(list) {
				break
			}
			last := col == perLine-1 || l.o.last("Cx") != 'x' && i+rows >= len(list) || l.o.last("Cx") == 'x' && i+1 >= len(list)
			if last {
				l.c.print(texts[i])
			} else {
				l.c.printf("%-*s", column, texts[i])
			}
		}
		l.c.print("\n")
	}
}

// prefix is what stands before the name, or the mode of a long line.
func (l *lister) prefix(e *lsEntry) string {
	s := ""
	if l.o.has('i') {
		s += fmt.Sprintf("%7d ", sysOf(e.fi).Ino)
	}
	if l.o.has('s') {
		s += fmt.Sprintf("%6d ", (diskBlocks(e.fi)+1)/2)
	}
	return s
}

func (l *lister) suffix(e *lsEntry) string {
	fi := e.fi
	if e.target != nil && l.long() {
		fi = e.target
	}
	switch {
	case !l.o.has('F') && !l.o.has('p'):
	case fi.IsDir():
		return "/"
	case !l.o.has('F'):
	case fi.Mode()&fs.ModeSymlink != 0:
		return "@"
	case fi.Mode()&fs.ModeNamedPipe != 0:
		return "|"
	case fi.Mode()&fs.ModeSocket != 0:
		return "="
	case fi.Mode().IsRegular() && fi.Mode()&0o111 != 0:
		return "*"
	}
	return ""
}

// line is an entry in long format.
func (l *lister) line(e *lsEntry) string {
	sys := sysOf(e.fi)
	var b strings.Builder
	b.WriteString(l.prefix(e))
	fmt.Fprintf(&b, "%-10s %4d ", modeString(e.fi.Mode()), l.c.links(e.path, e.fi))
	owner, group := l.names.user(sys.UID), l.names.group(sys.GID)
	if l.o.has('n') {
		owner, group = fmt.Sprint(sys.UID), fmt.Sprint(sys.GID)
	}
	switch {
	case l.o.has('g'):
		fmt.Fprintf(&b, "%-8.8s ", group)
	default:
		fmt.Fprintf(&b, "%-8.8s %-8.8s ", owner, group)
	}
	switch {
	case e.fi.Mode()&fs.ModeDevice != 0:
		major, minor := deviceNumbers(base(e.path))
		fmt.Fprintf(&b, "%4d, %3d ", major, minor)
	case l.o.has('h'):
		fmt.Fprintf(&b, "%7s ", humanSize(e.fi.Size()))
	default:
		fmt.Fprintf(&b, "%9d ", e.fi.Size())
	}
	b.WriteString(l.when(e.fi.ModTime().UTC()))
	b.WriteString(e.shown)
	if e.link != "" {
		b.WriteString(" -> " + e.link)
	}
	b.WriteString(l.suffix(e))
	return b.String()
}

func (l *lister) when(t time.Time) string {
	if l.fullTime() {
		return t.Format("2006-01-02 15:04:05 -0700 ")
	}
	age := l.now.Unix() - t.Unix()
	if age < 3600*24*365/2 && age > -15*60 {
		return t.Format("Jan _2 15:04 ")
	}
	return t.Format("Jan _2  2006 ")
}

// links returns what ls shows as a file's number of links: for a directory, as
// most file systems have it, one for itself, one in its parent, and one in each
// directory it holds.
func (c *call) links(path string, fi fs.FileInfo) int {
	if !fi.IsDir() {
		return max(1, sysOf(fi).Nlink)
	}
	n := 2
	list, err := c.view().ReadDir(path)
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

// sysOf returns owner, inode and so on.
func sysOf(fi fs.FileInfo) memfs.Sys {
	if s, ok := fi.Sys().(*memfs.Sys); ok && s != nil {
		return *s
	}
	return memfs.Sys{Nlink: 1}
}

// diskBlocks returns what a file takes, in units of 512 bytes.
func diskBlocks(fi fs.FileInfo) int64 {
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

// deviceNumbers returns the numbers of a device by its name.
func deviceNumbers(name string) (major, minor int) {
	switch name {
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

// modeString is a mode as ls shows it: -rwxr-xr-x.
func modeString(m fs.FileMode) string {
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
	for i := 0; i < 9; i++ {
		if m&(1<<(8-i)) == 0 {
			b[i+1] = '-'
		}
	}
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

// octalMode is the permission bits as stat -c %a has them.
func octalMode(m fs.FileMode) uint32 {
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

// fileMode is octalMode's inverse.
func fileMode(n uint32) fs.FileMode {
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

// humanSize is a number of bytes as -h shows it: 2.0K, 15.3M; below 1 KiB the
// plain number.
func humanSize(n int64) string { return human(n, 0) }

// humanKiB is the same of a number of KiB, which has no fraction below 1 MiB.
func humanKiB(n int64) string {
	if n == 0 {
		return "0"
	}
	return human(n, 1)
}

func human(n int64, unit int) string {
	const units = " KMGTPE"
	frac, scaled := int64(0), false
	for unit < len(units)-1 && n >= 1024 {
		frac = (n%1024*10 + 512) / 1024
		n /= 1024
		unit++
		scaled = true
	}
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

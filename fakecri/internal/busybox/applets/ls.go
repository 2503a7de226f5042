package applets

import (
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/ground/lists"
)

// Ls is ls. To a terminal it prints columns, else a name a line. Names are
// sorted by their bytes, as no locale is set. -c and -u sort by the
// modification time, as the file system keeps no other; -k does nothing.
// Colors, which the real one has with --color, are not built: the option is
// read.
//
// A long line has BusyBox's widths: 4 for links, 8 for names, 9 for sizes,
// which stay whole when they are longer. A time that is older than half a year,
// or in the future, is shown with its year.
func Ls() applet.Applet {
	return applet.New(runLs, "ls", "[-1AaCxdLHRFplinshrSXvctug] [-w WIDTH] [FILE]...")
}

// lsEntry is a name to list. link is where a symbolic link leads.
type lsEntry struct {
	shown, path string
	fi          fs.FileInfo
	link        string
	target      fs.FileInfo
}

// lister is one run of ls.
type lister struct {
	c     *applet.Call
	o     *applet.Options
	names applet.Names
	// header says that directories are introduced by their names.
	header bool
	// shownAny says that something was listed already.
	shownAny bool
	code     int
	width    int
	now      time.Time
}

func runLs(c *applet.Call) int {
	o := c.Getopt("AaCxdLHRFpl1ginshrSXvctuTw:k",
		"full-time=1", "group-directories-first=2", "color=3::", "all=a")
	l := &lister{c: c, o: o, names: applet.Names{C: c}, width: 80, now: c.P.Now()}
	if o.Has('w') {
		l.width = int(c.Number(o.Str('w')))
	}
	// What the output is decides only where no option does.
	l.tty()
	args := o.Args
	if len(args) == 0 {
		args = []string{"."}
	}
	var files, dirs []*lsEntry
	for _, a := range args {
		// A link named on the command line is followed unless -l, -i, -F or -d
		// asks about itself: what a long line shows of a link is the link.
		follow := o.Has('L') || o.Has('H') || !(o.Has('l') || o.Has('n') || o.Has('g') || o.Has('1') && o.Count['1'] > 1 || o.Has('i') || o.Has('s') || o.Has('F'))
		e, ok := l.entry(a, a, follow)
		if !ok {
			continue
		}
		if e.fi.IsDir() && !o.Has('d') {
			dirs = append(dirs, e)
		} else {
			files = append(files, e)
		}
	}
	l.header = len(args) > 1 || o.Has('R')
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
	// The real one asks isatty(3) in the same way, before the options.
	if l.o.Last("1C") == 0 && applet.IsTTY(l.c.P.FD(1)) && !l.long() {
		l.o.Count['C']++
	}
}

// long reports whether lines are in long format; -n and -g bring it along.
func (l *lister) long() bool {
	return l.o.Has('l') || l.o.Has('n') || l.o.Has('g') || l.fullTime()
}

// fullTime reports whether --full-time was given; its letter is that of -1.
func (l *lister) fullTime() bool {
	return slices.Contains(l.c.Args, "--full-time")
}

// entry describes a name; what can't be described is reported.
func (l *lister) entry(shown, path string, follow bool) (*lsEntry, bool) {
	v := l.c.View()
	stat := v.Lstat
	if follow {
		stat = v.Stat
	}
	fi, err := stat(path)
	if err != nil {
		l.c.Errorf("%s: %s", shown, applet.Strerror(err))
		l.code = 1
		return nil, false
	}
	e := &lsEntry{shown: shown, path: path, fi: fi}
	if fi.Mode()&fs.ModeSymlink != 0 {
		e.link, _ = v.Readlink(path)
		// Only these options ask what the link leads to. The target stays nil if that is
		// nothing.
		if l.o.Has('F') || l.o.Has('p') || l.o.Has('2') {
			e.target, _ = v.Stat(path)
		}
	}
	return e, true
}

// dir lists a directory, and with -R those below it, each after its own list.
func (l *lister) dir(d *lsEntry) {
	v := l.c.View()
	list, err := v.ReadDir(d.path)
	if err != nil {
		l.c.Errorf(applet.CantOpen, d.path, applet.Strerror(err))
		l.code = 1
		return
	}
	if l.header {
		if l.shownAny {
			l.c.Print("\n")
		}
		l.c.Print(d.shown, ":\n")
	}
	l.shownAny = true
	var names []string
	if l.o.Has('a') {
		names = append(names, ".", "..")
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), ".") && !l.o.Has('a') && !l.o.Has('A') {
			continue
		}
		names = append(names, e.Name())
	}
	var entries []*lsEntry
	for _, n := range names {
		if e, ok := l.entry(n, applet.Join(d.path, n), l.o.Has('L')); ok {
			e.path = applet.Join(d.path, n)
			entries = append(entries, e)
		}
		// A name is charged like 4 KiB of data, in short listings, too.
		l.c.Spend(4096)
	}
	l.sort(entries)
	if l.long() || l.o.Has('s') {
		blocks := lists.Sum(entries, func(e *lsEntry) int64 { return applet.DiskBlocks(e.fi) })
		// BusyBox pads the total, where nothing follows it.
		if l.o.Has('h') {
			l.c.Printf("total %-7s\n", applet.HumanKiB((blocks+1)/2))
		} else {
			l.c.Printf("total %d\n", (blocks+1)/2)
		}
	}
	l.show(entries)
	if l.o.Has('R') {
		for _, e := range entries {
			// -a lists the two, and -R must not go down them.
			if e.fi.IsDir() && e.shown != "." && e.shown != ".." {
				l.dir(&lsEntry{shown: applet.Join(d.shown, e.shown), path: e.path, fi: e.fi})
			}
		}
	}
}

// sort orders entries by the last of the options that ask for an order; what is
// equal is by name. Directories come first if --group-directories-first says
// so, even with -r.
func (l *lister) sort(list []*lsEntry) {
	less := func(a, b *lsEntry) int { return strings.Compare(a.shown, b.shown) }
	switch l.o.Last("StXvcu") {
	case 'S':
		byName := less
		less = func(a, b *lsEntry) int {
			if a.fi.Size() != b.fi.Size() {
				return applet.Sign(b.fi.Size() - a.fi.Size())
			}
			return byName(a, b)
		}
	case 't', 'c', 'u':
		// -c and -u only say which time counts; the order needs -t.
		if !l.o.Has('t') {
			break
		}
		byName := less
		less = func(a, b *lsEntry) int {
			// Whole seconds are compared, as BusyBox does.
			if d := b.fi.ModTime().Unix() - a.fi.ModTime().Unix(); d != 0 {
				return applet.Sign(d)
			}
			return byName(a, b)
		}
	case 'X':
		byName := less
		less = func(a, b *lsEntry) int {
			// A name without a dot is an extension as a whole, since its index is -1.
			x, y := a.shown[strings.LastIndexByte(a.shown, '.')+1:], b.shown[strings.LastIndexByte(b.shown, '.')+1:]
			if x != y {
				return strings.Compare(x, y)
			}
			return byName(a, b)
		}
	case 'v':
		less = func(a, b *lsEntry) int { return applet.CompareVersions(a.shown, b.shown) }
	}
	sort.SliceStable(list, func(i, j int) bool {
		if l.o.Has('2') {
			if di, dj := isDir(list[i]), isDir(list[j]); di != dj {
				return di
			}
		}
		d := less(list[i], list[j])
		// -r turns the order of names as well, which decides ties.
		if l.o.Has('r') {
			d = -d
		}
		return d < 0
	})
}

// isDir reports whether an entry is a directory, or a link to one whose target
// was asked for.
func isDir(e *lsEntry) bool { return e.fi.IsDir() || e.target != nil && e.target.IsDir() }

// show prints entries in the format that the options ask for.
func (l *lister) show(list []*lsEntry) {
	if l.long() {
		for _, e := range list {
			l.c.Print(l.line(e), "\n")
		}
		return
	}
	if l.o.Last("1Cx") != '1' && (l.o.Has('C') || l.o.Has('x')) {
		l.columns(list)
		return
	}
	for _, e := range list {
		l.c.Print(l.prefix(e), e.shown, l.suffix(e), "\n")
	}
}

// columns prints entries in as many columns as fit, all as wide as the widest:
// down, or with -x across.
func (l *lister) columns(list []*lsEntry) {
	texts := make([]string, len(list))
	widest := 0
	for i, e := range list {
		texts[i] = l.prefix(e) + e.shown + l.suffix(e)
		widest = max(widest, len(texts[i]))
	}
	// Two spaces keep columns apart.
	column := widest + 2
	// A name that is wider than the line still gets one.
	perLine := max(1, l.width/column)
	rows := (len(list) + perLine - 1) / perLine
	for row := range rows {
		for col := range perLine {
			i := col*rows + row
			if l.o.Last("Cx") == 'x' {
				i = row*perLine + col
			}
			if i >= len(list) {
				break
			}
			// The last name of a line is not padded, so that no line ends with
			// spaces.
			last := col == perLine-1 || l.o.Last("Cx") != 'x' && i+rows >= len(list) || l.o.Last("Cx") == 'x' && i+1 >= len(list)
			if last {
				l.c.Print(texts[i])
			} else {
				l.c.Printf("%-*s", column, texts[i])
			}
		}
		l.c.Print("\n")
	}
}

// prefix is what stands before the name, or the mode of a long line.
func (l *lister) prefix(e *lsEntry) string {
	s := ""
	if l.o.Has('i') {
		s += fmt.Sprintf("%7d ", applet.SysOf(e.fi).Ino)
	}
	if l.o.Has('s') {
		s += fmt.Sprintf("%6d ", (applet.DiskBlocks(e.fi)+1)/2)
	}
	return s
}

// suffix is what -F or -p puts after a name; a long line shows that of a link's
// target.
func (l *lister) suffix(e *lsEntry) string {
	fi := e.fi
	if e.target != nil && l.long() {
		fi = e.target
	}
	switch {
	// -p marks directories only.
	case !l.o.Has('F') && !l.o.Has('p'):
	case fi.IsDir():
		return "/"
	case !l.o.Has('F'):
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
	sys := applet.SysOf(e.fi)
	var b strings.Builder
	b.WriteString(l.prefix(e))
	fmt.Fprintf(&b, "%-10s %4d ", applet.ModeString(e.fi.Mode()), l.c.Links(e.path, e.fi))
	owner, group := l.names.User(sys.UID), l.names.Group(sys.GID)
	if l.o.Has('n') {
		owner, group = fmt.Sprint(sys.UID), fmt.Sprint(sys.GID)
	}
	switch {
	case l.o.Has('g'):
		fmt.Fprintf(&b, "%-8.8s ", group)
	default:
		// Longer names are cut, so that the columns stay.
		fmt.Fprintf(&b, "%-8.8s %-8.8s ", owner, group)
	}
	switch {
	case e.fi.Mode()&fs.ModeDevice != 0:
		// A device shows its numbers in place of a size.
		major, minor := applet.DeviceNumbers(applet.Base(e.path))
		fmt.Fprintf(&b, "%4d, %3d ", major, minor)
	case l.o.Has('h'):
		fmt.Fprintf(&b, "%7s ", applet.HumanSize(e.fi.Size()))
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

// when is a time in a long line.
func (l *lister) when(t time.Time) string {
	if l.fullTime() {
		return t.Format("2006-01-02 15:04:05 -0700 ")
	}
	// A quarter of an hour in the future still counts as now, for clocks that
	// differ.
	age := l.now.Unix() - t.Unix()
	// Half a year of 365 days, in seconds.
	if age < 3600*24*365/2 && age > -15*60 {
		return t.Format("Jan _2 15:04 ")
	}
	return t.Format("Jan _2  2006 ")
}

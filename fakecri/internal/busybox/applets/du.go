package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Du is du. Sizes are those of blocks, in KiB; files with several names count
// once unless -l. -x is read and does nothing: what is mounted below is
// counted.
func Du() applet.Applet { return applet.New(runDu, "du", "[-aHLschmk] [-d N] [FILE]...") }

// duRun is one run of du; sizes are in units of 512 bytes.
// maxDepth bounds what is shown, not what is added up; seen has the inode numbers of
// files with several names that were counted.
type duRun struct {
	c        *applet.Call
	o        *applet.Options
	maxDepth int
	seen     map[uint64]bool
	code     int
}

func runDu(c *applet.Call) int {
	o := c.Getopt("aHkLsxd:lchm", "max-depth=d:", "summarize=s", "human-readable=h", "all=a", "total=c")
	d := &duRun{c: c, o: o, maxDepth: 1 << 30, seen: map[uint64]bool{}}
	if o.Has('d') {
		d.maxDepth = int(c.Number(o.Str('d')))
	}
	// -s is -d 0.
	if o.Has('s') {
		d.maxDepth = 0
	}
	args := o.Args
	if len(args) == 0 {
		args = []string{"."}
	}
	total := int64(0)
	for _, a := range args {
		total += d.sum(a, 0)
	}
	if o.Has('c') {
		d.show("total", total)
	}
	return d.code
}

// show prints a line. Half a KiB is rounded up; with -m to the nearest.
func (d *duRun) show(name string, blocks int64) {
	text := applet.I64((blocks + 1) / 2)
	switch d.o.Last("kmh") {
	case 'm':
		text = applet.I64((blocks*512 + 1<<19) >> 20)
	case 'h':
		text = applet.HumanSize(blocks * 512)
	}
	d.c.Print(text, "\t", name, "\n")
}

// sum returns what is below a name, and prints what is to be shown on the way
// back up, so that directories come after what is in them.
func (d *duRun) sum(name string, depth int) int64 {
	c := d.c
	// Visiting a name is charged like 4 KiB of data.
	c.Spend(4096)
	stat := c.View().Lstat
	// -L follows every link, -H those that are operands.
	if d.o.Has('L') || d.o.Has('H') && depth == 0 {
		stat = c.View().Stat
	}
	fi, err := stat(name)
	if err != nil {
		c.Errorf("%s: %s", name, applet.Strerror(err))
		d.code = 1
		return 0
	}
	blocks := applet.DiskBlocks(fi)
	if !fi.IsDir() {
		// The first name of a file pays for it.
		if sys := applet.SysOf(fi); sys.Nlink > 1 && !d.o.Has('l') {
			if d.seen[sys.Ino] {
				return 0
			}
			d.seen[sys.Ino] = true
		}
		// An operand is shown even if it is a file, others only with -a.
		if depth == 0 || d.o.Has('a') && depth <= d.maxDepth {
			d.show(name, blocks)
		}
		return blocks
	}
	list, err := c.View().ReadDir(name)
	if err != nil {
		c.Errorf(applet.CantOpen, name, applet.Strerror(err))
		d.code = 1
	}
	// A directory that can't be read still has its own block to count.
	for _, e := range list {
		blocks += d.sum(applet.Join(name, e.Name()), depth+1)
	}
	if depth <= d.maxDepth {
		d.show(name, blocks)
	}
	return blocks
}

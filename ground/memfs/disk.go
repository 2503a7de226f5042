package memfs

import (
	"math"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Space is room on a disk. Both kinds can run out, as df -i shows.
type Space struct{ Bytes, Inodes int64 }

// plus and minus are by kind.
func (s Space) plus(o Space) Space  { return Space{s.Bytes + o.Bytes, s.Inodes + o.Inodes} }
func (s Space) minus(o Space) Space { return Space{s.Bytes - o.Bytes, s.Inodes - o.Inodes} }

// fits reports whether s is no more than free in either way.
func (s Space) fits(free Space) bool { return s.Bytes <= free.Bytes && s.Inodes <= free.Inodes }

// DiskOptions say what a Disk is.
type DiskOptions struct {
	// Loop gives the time to what grows by itself. Required for Grow and Watch.
	Loop *loop.Loop
	// Device tells disks apart, as "/dev/vda1".
	Device string
	// Size is what the disk has; where it is 0 there is no end.
	Size Space
}

// Disk is the space that file systems take from, and whatever else says so
// ([Share]). All totals are kept by change: nobody counts files. Most changes only move the
// totals. The timer is there for growths alone: it wakes when one may reach a limit, and not
// before.
type Disk struct {
	opts  DiskOptions
	share Share

	// growths are of curves that rise or fall by themselves.
	growths []*Growth // those that still change, oldest first
	settled int64     // when they were last brought up to date
	busy    bool      // they are just now
	behind  bool      // one got less than it wanted
	timer   *loop.Timer
	// How much may be taken, growths aside, until the timer has to be set
	// anew, and how much has been since it was. See arm, which sets both.
	slack, drift Space

	// floor and low are what Watch asked for.
	floor Space
	low   func() // of Watch
}

// NewDisk returns an empty disk.
func NewDisk(opts DiskOptions) *Disk {
	d := &Disk{opts: opts}
	d.share.d = d
	return d
}

// Device returns what the disk is called.
func (d *Disk) Device() string { return d.opts.Device }

// Size returns what the disk has; 0 where there is no end.
func (d *Disk) Size() Space { return d.opts.Size }

// Used returns what is taken.
func (d *Disk) Used() Space {
	d.settle()
	return d.share.used
}

// Free returns what can be taken: never below 0, and a great deal where there is
// no end. "A great deal" is half of the largest number, so that sums of it don't overflow.
func (d *Disk) Free() Space {
	d.settle()
	return d.free()
}

// free is Free without bringing growths up to date, for who has done so.
func (d *Disk) free() Space {
	return Space{left(d.opts.Size.Bytes, d.share.used.Bytes), left(d.opts.Size.Inodes, d.share.used.Inodes)}
}

// left is what is free of a size; a great deal of none.
func left(size, used int64) int64 {
	if size == 0 {
		return math.MaxInt64 / 2
	}
	return max(size-used, 0)
}

// Share returns a new part of the disk's space.
func (d *Disk) Share() *Share { return d.share.Share() }

// Share is what somebody takes of a disk. The zero Share is of none, and only
// counts. Shares form a tree whose root is the disk's own: what one takes counts in all above it.
// So a container's layer, the pod and the disk agree.
type Share struct {
	up   *Share
	d    *Disk
	used Space
}

// join makes s a part of up.
func (s *Share) join(up *Share) {
	if up != nil {
		s.up, s.d = up, up.d
	}
}

// Share returns a new part of the share, which counts in it.
func (s *Share) Share() *Share { return &Share{up: s, d: s.d} }

// Disk returns that which the share is of, or nil.
func (s *Share) Disk() *Disk { return s.d }

// Used returns what is taken, by its parts too.
func (s *Share) Used() Space {
	if s.d != nil {
		s.d.settle()
	}
	return s.used
}

// Add takes so much more, full or not; below 0 it gives back. It is for what can't be refused,
// such as what was there before.
func (s *Share) Add(by Space) {
	for p := s; p != nil; p = p.up {
		p.used = p.used.plus(by)
	}
	if s.d != nil {
		s.d.moved(by)
	}
}

// Clear gives back all that is taken. Parts must be of no use any more.
func (s *Share) Clear() { s.Add(Space{}.minus(s.used)) }

// Take takes space if there is as much. Nothing is taken if it does not fit.
func (s *Share) Take(need Space) bool {
	if s.d != nil && !need.fits(s.d.Free()) {
		return false
	}
	s.Add(need)
	return true
}

// moved is called after each change of what is taken. Its order matters: low comes first, so that
// whoever watches hears of it in the step that crossed the floor.
func (d *Disk) moved(by Space) {
	if d.low != nil && d.isLow() {
		low := d.low
		d.low = nil
		low()
	}
	if len(d.growths) == 0 || d.busy {
		return
	}
	// Somebody gave back while a growth waits for room.
	if d.behind && (by.Bytes < 0 || by.Inodes < 0) {
		d.wakeIn(0)
		return
	}
	d.drift = d.drift.plus(by)
	// Others have taken more than arm had allowed for.
	if !d.drift.fits(d.slack) {
		d.arm()
	}
}

// Below reports whether less than floor is free.
func (d *Disk) Below(floor Space) bool { return !floor.fits(d.Free()) }

// isLow reports whether less than the floor is free.
func (d *Disk) isLow() bool { return !d.floor.fits(d.free()) }

// Watch has low called once, when less than floor is free from now on, in the
// step that takes it, and forgets any earlier Watch. It returns false, and calls
// nothing, if less is free already. low must not wait; nil only forgets. The kubelet's eviction
// asks for it, to elide its polls of the disk while nothing is short.
func (d *Disk) Watch(floor Space, low func()) bool {
	d.settle()
	d.floor, d.low = floor, nil
	if low == nil {
		return true // the timer may be early now, which does no harm
	}
	if d.isLow() {
		return false
	}
	d.low = low
	d.arm()
	return true
}

// settle brings what grows by itself up to date. It is called before anybody looks, so growths
// need no timer of their own.
func (d *Disk) settle() {
	if len(d.growths) == 0 || d.busy {
		return
	}
	now := d.opts.Loop.UnixNano()
	if d.settled == now {
		return
	}
	// Growths change totals themselves, which must not settle again.
	d.settled, d.busy, d.behind = now, true, false
	ended := false
	for i := 0; i < len(d.growths); i++ { // nobody stops one meanwhile
		g := d.growths[i]
		g.settle(now)
		ended = ended || g.over
		d.behind = d.behind || g.behind
	}
	if ended {
		d.growths = slices.DeleteFunc(d.growths, func(g *Growth) bool { return g.over })
	}
	d.busy = false
}

// wake is the timer.
func (d *Disk) wake() {
	d.settled = 0 // there may be more room since
	d.settle()
	d.arm()
}

// wakeIn sets the timer, which a disk without growths never makes.
func (d *Disk) wakeIn(t time.Duration) {
	if d.timer == nil {
		d.timer = d.opts.Loop.Root().NewTimer("disk", d.wake)
	}
	d.timer.Reset(t)
}

// noSpace is the errno of a change to an entry of dir that takes need.
func (s *Share) noSpace(dir *node, need Space) linux.Errno {
	if s.d == nil || dir != nil && !dir.counted || need.fits(s.d.free()) {
		return 0
	}
	return linux.ENOSPC
}

// weight is what an entry takes. Directories take a block, links none: as ext4 has them.
func (n *node) weight() Space {
	s := Space{n.allocated(), 1}
	for _, g := range n.ghosts() {
		s = s.plus(g.used)
	}
	return s
}

// ghosts are what growths take in a directory. They have no entries, and only count.
func (n *node) ghosts() []*ghost {
	if e := n.exts(); e != nil && e.ghosts != nil {
		return *e.ghosts
	}
	return nil
}

// linked reports whether what a file takes is counted: an open file may have been
// removed, or have names left. A removed file that is open still holds its blocks on Linux; here
// they count as free at once.
func (n *node) linked() bool {
	if n.counted {
		return true
	}
	if e := n.exts(); e != nil && slices.ContainsFunc(e.names, func(o *node) bool { return o.counted }) {
		return true
	}
	return false
}

// Used returns what the file system holds beside what it started from, and
// without what is on a tmpfs: bytes as du counts them, and inodes. What it started from is the
// image's, and counts there.
func (f *FS) Used() Space { return f.vol.share.Used() }

// Disk returns the disk that the file system is on, or nil.
func (f *FS) Disk() *Disk { return f.vol.share.d }

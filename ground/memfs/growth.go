package memfs

import (
	"math"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/ground/usage"
)

// Growth is something on a disk whose size follows a curve: nothing is written,
// but the space is taken. On a full disk it gets what is left, and the rest when
// there is room; a log's growth has lost it then. Scenarios let disks fill by it: a container
// that writes its layer, a log that grows. Whether somebody looks does not change what is taken.
type Growth struct {
	d *Disk
	// Exactly one of share, ghost and log says what it is about.
	share         *Share // that counts it, unless it is of files
	bytes, inodes usage.User
	// got is what it takes now; until is in ns on the loop's clock.
	got    Space
	until  int64 // it does not change before
	behind bool
	over   bool // it never changes any more

	// Of files: where it is, and either the directory's part of it, or that it
	// is a log.
	f     *FS
	path  string
	n     *node
	ghost *ghost
	log   bool
}

// ghost is what a growth takes in a directory. It belongs to the directory's node, so it goes
// with that.
type ghost struct {
	key  string
	used Space
}

// Grow takes as much of the share as the curves say, on the clock of
// loop.UnixNano. Curves count from User.Start.
func (s *Share) Grow(bytes, inodes usage.User) *Growth {
	return s.d.grow(&Growth{share: s, bytes: bytes, inodes: inodes})
}

// Grow has a directory, which it makes if there is none, hold as much more as
// the curves say: of files that can't be seen, but which Usage counts, and which
// go with the directory. An earlier Growth of the same key there ends, and what
// it has taken is the beginning of the new one.
func (f *FS) Grow(dir, key string, bytes, inodes usage.User) (*Growth, error) {
	if err := f.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	pl, errno := f.walk(dir, true)
	if errno == 0 {
		errno = f.noSpace(pl, true, Space{})
	}
	if errno != 0 {
		return nil, pathError("open", dir, errno)
	}
	pl = f.mine(pl, true)
	n := f.vol.shown(pl.n)
	e := n.extended()
	if e.ghosts == nil {
		e.ghosts = &[]*ghost{}
	}
	i := slices.IndexFunc(*e.ghosts, func(g *ghost) bool { return g.key == key })
	if i < 0 {
		i = len(*e.ghosts)
		*e.ghosts = append(*e.ghosts, &ghost{key: key})
	}
	d, mine := f.vol.disk(), (*e.ghosts)[i]
	for _, o := range d.growths {
		if o.ghost == mine {
			o.Stop()
			break
		}
	}
	return d.grow(&Growth{f: f, path: pl.path, n: n, ghost: mine, got: mine.used, bytes: bytes, inodes: inodes}), nil
}

// GrowFile appends to a file as much as a curve rises by: zeros. Where the curve
// falls nothing happens, and while there is no file it waits. Curves of logs only rise.
func (f *FS) GrowFile(name string, bytes usage.User) *Growth {
	return f.vol.disk().grow(&Growth{f: f, path: name, log: true, bytes: bytes})
}

// grow starts a growth: it takes what the curve says now.
func (d *Disk) grow(g *Growth) *Growth {
	d.settle()
	g.d = d
	d.growths = append(d.growths, g)
	d.wake()
	return g
}

// Used returns what the growth takes, of a log what was written and lost.
func (g *Growth) Used() Space {
	g.d.settle()
	return g.got
}

// Stop ends the growth. What it has taken stays.
func (g *Growth) Stop() {
	g.d.settle()
	g.over = true
	g.d.growths = slices.DeleteFunc(g.d.growths, func(o *Growth) bool { return o == g })
}

// settle takes or gives back what has changed. The disk says when. Between calls nothing happens:
// the curve says what has become.
func (g *Growth) settle(now int64) {
	if now < g.until {
		return
	}
	t := time.Duration(now)
	want := Space{g.bytes.At(t), g.inodes.At(t)}
	g.until = min(level(g.bytes, now), level(g.inodes, now))
	by := want.minus(g.got)
	if g.log {
		g.append(by.Bytes)
		return
	}
	// A tmpfs has no disk that could be full.
	if g.n == nil || g.n.counted {
		free := g.d.free()
		by = Space{min(by.Bytes, free.Bytes), min(by.Inodes, free.Inodes)}
	}
	g.got = g.got.plus(by)
	g.behind = g.got != want
	// There was not enough room: it tries again whenever it is asked.
	if g.behind {
		g.until = now
	}
	g.over = !g.behind && g.until == math.MaxInt64
	switch {
	case by == Space{}:
	case g.n == nil:
		g.share.Add(by)
		return
	default:
		g.ghost.used = g.got
		if g.n.counted {
			g.f.vol.share.Add(by)
		}
	}
	if g.n != nil { // also when the curve only begins to rise
		g.f.changed(g.path, false)
	}
}

// append lets a log grow by n bytes, of which those are lost that don't fit. A log's lost lines
// do not come later.
func (g *Growth) append(n int64) {
	if n > 0 && !g.f.appendZeros(g.path, n) {
		g.until = 0
		return // there is no file
	}
	g.got.Bytes += max(n, 0)
	g.over = g.until == math.MaxInt64
	g.f.changed(g.path, false)
}

// appendZeros adds to a file that is there, as far as there is room.
func (f *FS) appendZeros(name string, n int64) bool {
	pl, errno := f.walk(name, true)
	if errno != 0 || pl.n == nil || pl.n.isDir() {
		return false
	}
	if f.noSpace(pl, true, Space{}) != 0 {
		return true // not even for a copy of the file
	}
	pl = f.mine(pl, true)
	before, size := pl.n.allocated(), pl.n.size()
	if n = f.vol.room(f.full(pl.path), pl.n, size, size+n) - size; n > 0 {
		pl.n.makeSparse().put(size, n, nil)
		f.vol.resized(pl.n, before)
		f.vol.touch(pl.n)
	}
	return true
}

// level is until when a curve stays where it is, on the loop's clock; not after
// now if it doesn't. A curve that slopes is never level, so it is asked each time.
func level(u usage.User, now int64) int64 {
	t := time.Duration(now) - u.Start
	end, ok := u.Curve.Next(t, u.Key)
	switch {
	case !ok:
		return math.MaxInt64
	case u.Curve.At(end-1, u.Key) != u.Curve.At(t, u.Key):
		return now
	}
	return int64(u.Start + end)
}

// Near a limit, growths are looked at to the millisecond; before that, when half
// of what is left has gone.
const (
	// Below them the exact instant matters, above it only that nobody is late.
	nearBytes  = 1 << 20
	nearInodes = 64
	minWake    = time.Millisecond
)

// arm sets the timer to when growths may next fill the disk, or leave less than
// the floor, or begin to change files that somebody watches. The slack is how
// much others may take until then without its being set anew. Sooner than needed does no harm,
// later would: so it asks for the first time at which the sum may pass a limit.
func (d *Disk) arm() {
	if len(d.growths) == 0 {
		if d.timer != nil {
			d.timer.Stop()
		}
		return
	}
	now := d.opts.Loop.UnixNano()
	next := int64(math.MaxInt64)
	d.drift = Space{}
	size, used := d.opts.Size, d.share.used
	users := make([]usage.User, len(d.growths))
	for i, g := range d.growths {
		users[i] = g.bytes
		if g.f != nil && g.until > now {
			next = min(next, g.until)
		}
	}
	at, slack := d.limit(users, now, size.Bytes, used.Bytes, d.floor.Bytes, nearBytes)
	next, d.slack.Bytes = min(next, at), slack
	for i, g := range d.growths {
		users[i] = g.inodes
	}
	at, slack = d.limit(users, now, size.Inodes, used.Inodes, d.floor.Inodes, nearInodes)
	next, d.slack.Inodes = min(next, at), slack
	if next == math.MaxInt64 {
		if d.timer != nil {
			d.timer.Stop()
		}
		return
	}
	d.wakeIn(max(time.Duration(next-now), minWake))
}

// limit is when users may come near the next limit of one kind, and how much
// others may take before. Sums of curves are searched by package usage.
func (d *Disk) limit(users []usage.User, now, size, used, floor, near int64) (at, slack int64) {
	const never = math.MaxInt64
	if size == 0 {
		return never, never
	}
	limit := size
	if d.low != nil && used <= size-floor {
		limit = min(size, size-floor+1)
	}
	if used >= limit {
		return never, 0 // full: whoever gives back says so
	}
	var sum, peak int64
	for _, u := range users {
		sum += u.At(time.Duration(now))
		// What all will ever take fits: no timer, and others have the rest.
		peak += u.Curve.Peak()
	}
	budget := limit - used
	if rise := peak - sum; rise < budget {
		return never, budget - rise - 1
	}
	// Half now, half when it is asked again: few wake-ups, and none too late.
	if budget > near {
		slack = budget / 2
		budget -= slack
	}
	t, ok := usage.FirstOver(users, sum+budget-1, time.Duration(now))
	if !ok {
		return never, slack
	}
	return int64(t), slack
}

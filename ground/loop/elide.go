package loop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Elision leaves out passes of periodic bodies that would do nothing new.
//
// A body is a function of what it reads. Who owns a piece of that state has a
// [Version], and has it grow where the state is written. A [Periodic] that is
// elided declares the versions that it reads, and reports after which time a
// pass could do something although none of them has grown. Until then it has no
// timer. When one grows, the passes that were left out are accounted for and the
// next instant of the same grid is set, as if all had run.

// Forever is the answer of [Elider.Until] of a body that only a version can
// give something to do.
const Forever = math.MaxInt64

// ElisionMode says what a loop does with passes that can be elided.
type ElisionMode uint8

// The modes of elision.
const (
	// Elide leaves them out.
	Elide ElisionMode = iota
	// NoElide runs every pass even if nothing changed.
	NoElide
	// CheckElision leaves them out, but looks at each of their instants whether
	// something changed of which no version tells. That ends the loop's run with
	// an error that names the body and the version.
	CheckElision
	// CheckEachStep is CheckElision that also looks at every version after each step,
	// which names who changed what without telling, and is slow.
	CheckEachStep
)

// Elides reports whether the loop leaves out what would do nothing new.
func (l *Loop) Elides() bool { return l.elision != NoElide }

// ChecksElision reports whether the loop looks for changes of which no version
// tells.
func (l *Loop) ChecksElision() bool { return l.elision >= CheckElision }

// Version counts the changes of something. The zero value is ready.
type Version struct {
	n      uint64
	parked []*Periodic // some may have been woken by another version meanwhile
}

// Count returns how often the version has grown.
func (v *Version) Count() uint64 { return v.n }

// Grow is called by the owner where the state is written, before or after, in
// the same step. It wakes who is parked on it.
func (v *Version) Grow() {
	v.n++
	if len(v.parked) > 0 {
		v.wake()
	}
}

func (v *Version) wake() {
	list := v.parked
	v.parked = nil
	for i := range list {
		p := list[i]
		list[i] = nil
		p.reads &^= 1 << slices.Index(p.by.Reads(), v)
		p.Wake()
	}
	if v.parked == nil { // nobody parked again meanwhile
		v.parked = list[:0]
	}
}

// described is what Group.Describe is told of a version.
type described struct {
	g    *Group
	v    *Version
	name string
	of   func() uint64
	// count and state are the version's count, and what of returned, at the last look.
	count, state uint64
}

// Describe says what a version stands for, while the group lives, and how to compute
// a number that is another one if that has changed. It is for [CheckElision].
func (g *Group) Describe(v *Version, name string, state func() uint64) {
	g.l.described = append(g.l.described, described{g: g, v: v, name: name, of: state, count: v.n, state: state()})
}

// Rises makes a state for Describe of a count whose rise gives somebody something to
// do, and whose fall does not.
func Rises(of func() int) func() uint64 {
	last, rises := of(), uint64(0)
	return func() uint64 {
		now := of()
		if now > last {
			rises++
		}
		last = now
		return rises
	}
}

// look returns the name of what changed since the last look although its version
// did not grow; "": nothing did.
func (d *described) look() string {
	state, untold := d.of(), ""
	if state != d.state && d.v.n == d.count {
		untold = d.name
	}
	d.state, d.count = state, d.v.n
	return untold
}

// checkVersions looks at all that is described, at the end of a step.
func (l *Loop) checkVersions(step *Timer) {
	l.described = slices.DeleteFunc(l.described, func(d described) bool { return d.g.dead })
	for i := range l.described {
		if name := l.described[i].look(); name != "" {
			l.fail(fmt.Errorf("loop %s: %s changed what version %q stands for, and the version did not grow", l.name, step.what(), name))
		}
	}
}

// Elider says which passes of a Periodic can be left out.
type Elider interface {
	// Reads returns the versions of what passes go by; at most 16, always
	// in the same order.
	Reads() []*Version
	// Until is asked when a pass is due. It returns the time (ns since the Unix
	// epoch) before which passes would do nothing new as long as no version of
	// Reads grows: this one is run if that is now or earlier. [Forever]: only a
	// version can give it something to do.
	Until(now int64) int64
	// LeftOut is told of passes that were left out: how many, and when the last
	// would have begun, in ns since the Unix epoch.
	LeftOut(n, last int64)
}

// Planner is an Elider that knows, when a version has grown, which pass is the
// next that could do something. The passes before it are left out without a look.
type Planner interface {
	Elider
	// Plan is Until without effects, at a time at which no pass is due. It is asked
	// at the end of the step in which a version grew, when all is written.
	Plan(now int64) int64
}

// Elision is an Elider made of functions.
type Elision struct {
	Of   []*Version            // Reads
	Idle func(now int64) int64 // Until
}

// Reads implements Elider.
func (e *Elision) Reads() []*Version { return e.Of }

// Until implements Elider.
func (e *Elision) Until(now int64) int64 { return e.Idle(now) }

// LeftOut implements Elider.
func (*Elision) LeftOut(int64, int64) {}

// Skip is an Elider of a body that says itself, at each pass, whether that would do
// nothing.
type Skip func() bool

// Reads implements Elider.
func (Skip) Reads() []*Version { return nil }

// Until implements Elider.
func (s Skip) Until(now int64) int64 {
	if s() {
		return now + 1
	}
	return now
}

// LeftOut implements Elider.
func (Skip) LeftOut(int64, int64) {}

// Elide has passes left out as e says. It is called once, where parts are wired
// up; a loop that doesn't elide ignores it.
func (p *Periodic) Elide(e Elider) {
	switch l := p.timer.g.l; l.elision {
	case Elide:
		p.by = e
	case CheckElision, CheckEachStep:
		p.by = &elisionCheck{Elider: e}
	case NoElide:
	}
}

// Elide is Periodic's, of ticks for which a task waits. A task that is busy gets
// every tick, because there may be something to do when it looks: those that had
// no timer meanwhile are found when it waits again.
func (t *Ticks) Elide(e Elider) {
	if l := t.p.timer.g.l; l.Elides() {
		t.by, t.seen = e, l.now
		t.p.Elide((*tickElider)(t))
	}
}

// Deferrer is an Elider of ticks that has put something off until LeftOut is
// called, which it is before the task that waits for the ticks goes on.
type Deferrer interface{ Defers() bool }

// tickElider is Ticks as the Elider of its own Periodic.
type tickElider Ticks

// Reads implements Elider.
func (e *tickElider) Reads() []*Version { return e.by.Reads() }

// Until implements Elider.
func (e *tickElider) Until(now int64) int64 {
	if !(*Ticks)(e).Waited() {
		return now
	}
	return e.by.Until(now)
}

// LeftOut implements Elider.
func (e *tickElider) LeftOut(n, last int64) { e.by.LeftOut(n, last) }

// Plan implements Planner.
func (e *tickElider) Plan(now int64) int64 {
	if p, ok := e.by.(Planner); ok {
		return p.Plan(now)
	}
	return now
}

// Parked reports whether passes are elided until a version grows, or a time.
func (p *Periodic) Parked() bool { return p != nil && p.parked }

// After returns the first instant after t of a grid without jitter. Both are in ns
// since the Unix epoch.
func (p *Periodic) After(t int64) int64 {
	q := (t - p.next) / p.period
	if (t-p.next)%p.period < 0 {
		q--
	}
	return p.next + (q+1)*p.period
}

// After is Periodic's.
func (t *Ticks) After(at int64) int64 { return t.p.After(at) }

// Parked is Periodic's.
func (t *Ticks) Parked() bool { return t.p.parked }

// elide leaves out the pass that is due, if that can be.
func (p *Periodic) elide() bool {
	if p.by == nil {
		return false
	}
	now := p.timer.g.l.now
	if p.parked { // the time that was planned has come
		p.parked = false
		p.account(p.due)
	}
	until := p.by.Until(now)
	check, checked := p.by.(*elisionCheck)
	if checked {
		check.look(p, now, until)
	}
	if until <= now {
		return false
	}
	p.by.LeftOut(1, now)
	if p.sliding {
		p.next = now
	}
	p.next += p.wait()
	if p.next <= now { // the loop stood still for longer than a period
		p.next = now + p.period
	}
	if until > p.next && !checked {
		if p.jitter != nil {
			p.next += p.late()
		}
		p.park(until)
	} else {
		p.set(p.next)
	}
	return true
}

// park unsets the timer, or sets it to the first pass that is due at until.
func (p *Periodic) park(until int64) {
	p.parked = true
	for i, v := range p.by.Reads() {
		if p.reads&(1<<i) == 0 {
			p.reads |= 1 << i
			v.parked = append(v.parked, p)
		}
	}
	if until == Forever {
		return
	}
	if at := p.first(until); !p.timer.Set() || p.due > at {
		p.due = at
		p.set(at)
	}
}

// first returns when the first pass at t or later is due, p.next being the next.
// With jitter it draws as far as that; what was drawn is put back.
func (p *Periodic) first(t int64) int64 {
	at := p.next
	if p.jitter == nil {
		if t > at {
			at += p.every() * ((t-at-1)/p.every() + 1)
		}
		return at
	}
	n := p.jitter.n
	for at < t {
		at += p.wait() + p.late()
	}
	p.jitter.n = n
	return at
}

// every is the time from one elided pass to the next, without jitter.
func (p *Periodic) every() int64 { return p.period + p.late() }

// late is by how much the pass after one that is a task comes later than a
// period: the task is a step of its own, and no two steps see the same time.
func (p *Periodic) late() int64 {
	if p.task {
		return 1
	}
	return 0
}

// account moves next on to the first pass that is due now or later, and tells
// how many were left out.
func (p *Periodic) account(now int64) {
	if p.next >= now {
		return
	}
	n, last := int64(0), p.next
	if p.jitter == nil {
		n = (now-1-p.next)/p.every() + 1
		p.next += n * p.every()
		last = p.next - p.every()
	} else {
		for ; p.next < now; n++ {
			last = p.next
			p.next += p.wait() + p.late()
		}
	}
	p.by.LeftOut(n, last)
}

// CatchUp accounts for the passes left out so far. Who looks at what they leave
// behind calls it first.
func (p *Periodic) CatchUp() {
	if p != nil && p.parked {
		p.account(p.timer.g.l.now)
	}
}

// CatchUp is Periodic's.
func (t *Ticks) CatchUp() {
	if t != nil {
		t.p.CatchUp()
	}
}

// Wake ends the parking: the passes before now stay left out, the next is set.
// [Version.Grow] calls it; what changes without a version calls it by itself.
func (p *Periodic) Wake() {
	if !p.parked || p.timer.g.dead {
		return
	}
	l := p.timer.g.l
	p.parked = false
	p.account(l.now)
	if _, ok := p.by.(Planner); ok && l.stepping {
		l.woken = append(l.woken, p)
		return
	}
	p.set(p.next)
}

// Settle is called when what there was for a pass to do is done: those ahead may
// be elided before the next is due. Until must have no effect then.
func (p *Periodic) Settle() {
	now := p.timer.g.l.now
	if _, checked := p.by.(*elisionCheck); p.by == nil || checked || !p.timer.Set() || p.next <= now {
		return
	}
	if until := p.by.Until(now); until > p.next {
		p.timer.Stop()
		p.park(until)
	}
}

// plan sets the next pass that could do something. It is only ever brought
// forward: at the time that was planned before there is another look.
func (p *Periodic) plan(now int64) {
	if until := p.by.(Planner).Plan(now); until > p.next {
		p.park(until)
		return
	}
	p.set(p.next)
}

// plan is called at the end of a step that woke periodic bodies.
func (l *Loop) plan() {
	for i := 0; i < len(l.woken); i++ { // planning may wake others
		p := l.woken[i]
		l.woken[i] = nil
		if !p.timer.g.dead && !p.parked {
			p.plan(l.now)
		}
	}
	l.woken = l.woken[:0]
}

// elisionCheck stands before the Elider of a Periodic whose loop checks elision. It
// remembers the versions of when a pass was last left out.
type elisionCheck struct {
	Elider
	until  int64 // passes before it do nothing new; 0: the last was not left out
	counts []uint64
}

// look fails if a pass that would be left out, because nothing grew, has something
// to do.
func (c *elisionCheck) look(p *Periodic, now, until int64) {
	if t, ok := c.Elider.(*tickElider); ok && !(*Ticks)(t).Waited() {
		c.until = 0 // who is busy gets each tick
		return
	}
	l, reads := p.timer.g.l, c.Reads()
	untold := l.untold(reads)
	if now < c.until && !c.grown(reads) {
		if untold != "" {
			l.Untold(p.timer.name, untold)
			return
		}
		if until <= now {
			l.fail(fmt.Errorf("loop %s: %s was left out until %d, has something to do at %d, and no version that it reads has grown", l.name, p.timer.name, c.until, now))
			return
		}
	}
	c.until = 0
	if until <= now {
		return
	}
	c.until, c.counts = until, c.counts[:0]
	for _, v := range reads {
		c.counts = append(c.counts, v.n)
	}
}

// untold looks at those of the versions that are described.
func (l *Loop) untold(reads []*Version) (name string) {
	for i := range l.described {
		if d := &l.described[i]; !d.g.dead && slices.Contains(reads, d.v) {
			name = cmp.Or(name, d.look())
		}
	}
	return name
}

// Untold ends the run: a pass of a body was left out, but what the version of that
// name stands for changed and it did not grow.
func (l *Loop) Untold(body, version string) {
	l.fail(fmt.Errorf("loop %s: %s was left out, but what version %q stands for changed and the version did not grow", l.name, body, version))
}

func (c *elisionCheck) grown(reads []*Version) bool {
	for i, v := range reads {
		if v.n != c.counts[i] {
			return true
		}
	}
	return false
}

// maxMemo is how many versions a Memo reads at most.
const maxMemo = 4

// Memo is an Elider of a body that is a function of versions: a pass is left out
// while none of them has grown since before the last pass, if that one settled
// what there was to do.
type Memo struct {
	// Of are the versions that the body reads, at most maxMemo.
	Of []*Version
	// Known reports whether the versions tell of everything just now; nil: they
	// always do.
	Known func() bool

	counts  [maxMemo]uint64 // before the last pass
	settled bool
}

// Reads implements Elider.
func (m *Memo) Reads() []*Version { return m.Of }

// Until implements Elider.
func (m *Memo) Until(now int64) int64 {
	if m.Settled() {
		return Forever
	}
	return now
}

// Plan implements Planner.
func (m *Memo) Plan(now int64) int64 { return m.Until(now) }

// LeftOut implements Elider.
func (*Memo) LeftOut(int64, int64) {}

// Settled reports whether a pass now would find all as the last one left it.
func (m *Memo) Settled() bool {
	if m == nil || !m.settled || m.Known != nil && !m.Known() {
		return false
	}
	for i, v := range m.Of {
		if v.n != m.counts[i] {
			return false
		}
	}
	return true
}

// Begin is called before a pass, End after it: settled says that it did nothing
// that another pass over the same would do again.
func (m *Memo) Begin() {
	m.settled = false
	for i, v := range m.Of {
		m.counts[i] = v.n
	}
}

// End is described at Begin.
func (m *Memo) End(settled bool) { m.settled = settled && (m.Known == nil || m.Known()) }

// Accept is called after End for a version that the body itself has grown, and
// whose growth gives it nothing to do.
func (m *Memo) Accept(v *Version) {
	for i := range m.Of {
		if m.Of[i] == v {
			m.counts[i] = v.n
		}
	}
}

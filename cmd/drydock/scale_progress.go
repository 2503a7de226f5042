package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/drydock-sim/drydock/scale"
	"github.com/drydock-sim/drydock/scenarios"
)

// scaleProgress shows where a run stands: bars on a terminal, lines elsewhere. p
// is what was told last, last and lastAt what the rate is computed from. show is called by the
// run, the bars' decorators by mpb's own goroutine; mu is between the two.
type scaleProgress struct {
	w     io.Writer
	every time.Duration
	began time.Time

	// mu: of the rest: bars are drawn on a goroutine of their own.
	mu sync.Mutex
	p  scale.Progress
	// rate: node-seconds by wall second, lately.
	rate float64

	// bars and bar are nil unless w is a terminal.
	bars   *mpb.Progress
	bar    *mpb.Bar
	phase  scale.Phase
	lastAt time.Time
	last   scale.Progress
}

// barTotal is what a full bar counts to.
const barTotal = 1000

// newScaleProgress shows progress on w: a line every so often (0: none), or bars
// if w is a terminal. Lines are for logs: they stay readable when nobody overwrites them.
func newScaleProgress(w io.Writer, every time.Duration) *scaleProgress {
	s := &scaleProgress{w: w, every: every, began: time.Now(), lastAt: time.Now()}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(200*time.Millisecond))
	text := func(fn func() string) mpb.BarOption {
		return mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return fn()
		}))
	}
	s.bar = s.bars.New(barTotal, mpb.BarStyle().Rbound("]"), text(func() string { return fmt.Sprintf("%-8s ", s.p.Phase) }),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.clock()
		})))
	s.bars.New(0, mpb.NopStyle(), text(func() string { return s.podLine() }))
	s.bars.New(0, mpb.NopStyle(), text(func() string { return s.apiLine() }))
	return s
}

// clock is the virtual time, and how fast it goes in node-seconds per second. The rate is in
// nodes times virtual seconds per wall second, which does not depend on the cluster's size as a
// mere factor of time would.
func (s *scaleProgress) clock() string {
	t := " " + scenarios.ShortTime(s.p.Now.Truncate(time.Second))
	if s.p.Until > 0 {
		t += " of " + scenarios.ShortTime(s.p.Until.Truncate(time.Second))
	}
	if s.rate == 0 {
		return t // too early to tell
	}
	return t + fmt.Sprintf(", %s node-s/s", grouped(s.rate))
}

// podLine says how nodes and pods stand.
func (s *scaleProgress) podLine() string {
	return fmt.Sprintf("nodes %d of %d ready; pods %d running, %d pending, %d succeeded, %d failed", s.p.Ready, s.p.Nodes, s.p.Pods.Running, s.p.Pods.Pending, s.p.Pods.Succeeded, s.p.Pods.Failed)
}

// apiLine says how much has been asked of the API, and how long all has taken.
func (s *scaleProgress) apiLine() string {
	return fmt.Sprintf("API requests %s; wall time %s", grouped(float64(s.p.Requests)), time.Since(s.began).Truncate(time.Second))
}

// show is called after each virtual second. A line is written every so often, and
// when a phase begins; the rate is that since the line before. On a terminal it only hands over
// figures; mpb draws.
func (s *scaleProgress) show(p scale.Progress) {
	now := time.Now()
	wait := s.every
	if s.bars != nil {
		wait = time.Second
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p = p
	if s.bar != nil {
		s.bar.SetCurrent(done(&p))
	}
	since := now.Sub(s.lastAt)
	// A phase's beginning is told in lines at once, since phases may be short.
	if wait == 0 || since < wait && (p.Phase == s.phase || s.bars != nil) {
		return
	}
	// Over less the rate would be noise.
	if since > 100*time.Millisecond {
		s.rate = float64(p.Nodes) * (p.Now - s.last.Now).Seconds() / since.Seconds()
		s.last, s.lastAt = p, now
	}
	s.phase = p.Phase
	if s.bars == nil {
		fmt.Fprintf(s.w, "%s:%s; %s; %s\n", p.Phase, s.clock(), s.podLine(), s.apiLine())
	}
}

// done is how much of its phase a run has behind it, of barTotal; never all,
// since a full bar is taken for complete. In start-up pods count that have left Pending, failed
// ones too.
func done(p *scale.Progress) int64 {
	part := 0.0
	switch {
	case p.Phase == scale.PhaseNodes && p.Nodes > 0:
		part = float64(p.Ready) / float64(p.Nodes)
	case p.Phase == scale.PhaseStartup && p.Wanted > 0:
		part = float64(p.Pods.Total()-p.Pods.Pending) / float64(p.Wanted)
	case p.Until > 0:
		part = float64(p.Now) / float64(p.Until)
	}
	return int64(min(part, 0.999) * barTotal)
}

// close takes the bars away. What follows is written from the beginning of a
// line. It must be called before anything else is written to the terminal.
func (s *scaleProgress) close() {
	if s.bars != nil {
		s.bars.Shutdown()
	}
}

// grouped writes a number with commas. Commas, as in English.
func grouped(f float64) string {
	t := fmt.Sprintf("%.0f", f)
	for i := len(t) - 3; i > 0; i -= 3 {
		t = t[:i] + "," + t[i:]
	}
	return t
}

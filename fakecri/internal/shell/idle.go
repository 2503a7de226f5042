package shell

import (
	"bytes"
	"context"
	"errors"
	"math"
	"path"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// A container that waits is mostly a loop of short sleeps, so that a trap runs
// soon. A lap of it changes nothing but the number of the sleeping process, and
// there may be a hundred thousand such containers. So a loop that was seen to
// do nothing else is parked: one process stands for all the sleeps, and when a
// signal comes the end of the lap is computed that would be running.

// idleLaps is how many laps are run, and timed, before a loop is parked: the
// first one differs, as sleep is looked up in PATH.
const idleLaps = 2

// idleLoop reports whether a loop is one of while true; do sleep N; done, and
// returns the words of the sleep; nil if not. Nothing in it may be redefined:
// no alias, no function of the names, no set -x that would show each lap. It looks at the text
// alone; whether sleep is the real one is asked at each lap, by isSleep.
func idleLoop(s *shell, x *syntax.WhileClause) []string {
	// set -x and NoElide want to see each lap.
	if s.in.noElide || len(x.Cond) != 1 || len(x.Do) != 1 || s.opts.xtrace {
		return nil
	}
	cond, body := plainWords(x.Cond[0]), plainWords(x.Do[0])
	// Any alias at all is reason enough not to look further.
	if len(cond) != 1 || len(body) != 2 || body[0] != "sleep" || s.alias != nil {
		return nil
	}
	switch {
	case x.Until && cond[0] == "false", !x.Until && (cond[0] == "true" || cond[0] == ":"):
	default:
		return nil
	}
	if s.funcs[cond[0]] != nil || s.funcs["sleep"] != nil {
		return nil
	}
	return body
}

// plainWords returns the words of a command that is nothing but words: no
// redirection, no assignment, no expansion, no &. At most two words, so the result never holds
// more than a command and its operand.
func plainWords(st *syntax.Stmt) []string {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(st.Redirs) > 0 || st.Negated || st.Background || len(call.Assigns) > 0 || len(call.Args) > 2 {
		return nil
	}
	words := make([]string, 0, 2)
	for _, w := range call.Args {
		t, ok := simpleLit(w)
		if !ok {
			return nil
		}
		words = append(words, t)
	}
	return words
}

// idle times the laps of a loop. argv is nil for loops that it leaves alone. start is when the
// last lap began and took how long it was.
type idle struct {
	s     *shell
	argv  []string
	laps  int
	start time.Time
	took  time.Duration
}

// lap is called at the start of each lap. It returns true after it has parked
// the loop for any number of laps. Two laps must have taken the same time
// first: then the third will, too.
func (i *idle) lap() bool {
	s := i.s
	now := s.p.Now()
	took := now.Sub(i.start)
	// A microsecond is let pass: the shell's own cost falls due in slices, which shift by a
	// little.
	if i.laps++; i.laps > 1 && (took-i.took).Abs() > time.Microsecond {
		// A lap that took another time than the one before starts the count
		// anew.
		i.laps = min(i.laps, 2)
	}
	i.start, i.took = now, took
	if i.laps <= idleLaps || took <= 0 || !i.isSleep() {
		return false
	}
	i.laps = 0
	// Anew after each parking: what woke the shell may have changed what a lap takes.
	i.park(now, took)
	return true
}

// isSleep reports whether sleep is the image's own, and not some other program
// that an image or a script has put in its place. The content tells: the binaries of images are
// kernel.ELF of a name, and busybox's applets are links to one of them.
func (i *idle) isSleep() bool {
	s := i.s
	file, err := s.find("sleep")
	if err != nil || path.Base(file) != "sleep" {
		return false
	}
	data, err := s.p.View().ReadFile(file)
	return err == nil && (bytes.Equal(data, kernel.ELF("busybox")) || bytes.Equal(data, kernel.ELF("sleep")))
}

// park waits, in laps that take as long as the last one, until a signal has
// come and its lap is over, or until somebody has killed the sleep. What ps
// shows meanwhile is the shell and a sleep, as always; only the sleep's number
// stays the same.
//
// A signal that comes in the middle of a lap runs its trap at the lap's end, as the shell would
// have waited for that lap's sleep. The end is computed by counting laps from the start: that is
// exact as all laps take the same time.
func (i *idle) park(start time.Time, lap time.Duration) {
	s, argv := i.s, i.argv
	child := s.p.Fork(argv[0], nil, func(ctx context.Context, p *kernel.Process) int {
		// The sleep has no end of its own, since it stands for any number of laps.
		for p.Sleep(ctx, math.MaxInt64/4) == nil {
			continue
		}
		return 0
	})
	// ps and /proc show the command line and environment of a sleep that was started.
	child.Argv = argv
	child.Env = s.vars.environ()
	for {
		p, ex, err := s.p.WaitAny(s.ctx)
		switch {
		case errors.Is(err, kernel.ErrInterrupted):
			since := s.p.Now().Sub(start)
			// The end of the lap in which the signal came, by rounding up.
			end := start.Add((since + lap - 1) / lap * lap)
			for d := end.Sub(s.p.Now()); d > 0; d = end.Sub(s.p.Now()) {
				// Further signals interrupt the sleep, which then goes on.
				_ = s.p.Sleep(s.ctx, d)
			}
			// If the sleep is gone already there is nobody to wait for. The parked sleep goes
			// before the script continues: its number is free as after a real lap.
			if s.p.Kill(child.PID(), int(linux.SIGKILL)) == nil {
				for {
					if _, err := s.p.Wait(s.ctx, child); !errors.Is(err, kernel.ErrInterrupted) {
						return
					}
				}
			}
			return
		case err != nil:
			return
		case p == child:
			// Somebody has killed the sleep, as pkill sleep does; the loop goes on with its next
			// lap.
			s.kids.tellSignal(ex)
			return
		default:
			s.kids.reap(p, ex)
		}
	}
}

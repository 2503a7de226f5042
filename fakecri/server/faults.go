//go:build linux

package server

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri"
)

// faultTable holds the faults that were set, until they are cleared. Its fields
// are for use on the loop. The runtime has the faults themselves; this is what the interface
// shows and removes by number.
type faultTable struct {
	last int
	set  []setFault
}

// setFault is a fault in force, as it was asked for.
type setFault struct {
	id     int
	rule   fakecri.Fault
	remove func()
}

// addFault puts a fault in force and returns its number. The rule is kept as it was asked for,
// with the wall clock's times.
func (s *Server) addFault(rt *fakecri.Runtime, f fakecri.Fault) int {
	t := &s.faults
	t.last++
	t.set = append(t.set, setFault{t.last, f, rt.AddFault(s.loopFault(f))})
	return t.last
}

// remove takes back the fault of that number, or all for 0; it tells how many. remove works in
// place; the cleared rest lets go of what rules refer to.
func (t *faultTable) remove(id int) int {
	kept := t.set[:0]
	n := 0
	for _, f := range t.set {
		if id != 0 && f.id != id {
			kept = append(kept, f)
			continue
		}
		f.remove()
		n++
	}
	clear(t.set[len(kept):])
	t.set = kept
	return n
}

// AddFault puts a fault in force while the server runs. Its times (From, For,
// Latency) are the wall clock's. The number returned is for RemoveFault; the
// error names the field that is wrong. It may be called from any goroutine but the loop's.
func (s *Server) AddFault(f fakecri.Fault) (int, error) {
	if err := f.Validate(); err != nil {
		return 0, err
	}
	var id int
	err := s.Do(func(rt *fakecri.Runtime) { id = s.addFault(rt, f) })
	return id, err
}

// RemoveFault takes back the fault of that number, or all for 0. It tells how
// many that were.
func (s *Server) RemoveFault(id int) (int, error) {
	var n int
	err := s.Do(func(*fakecri.Runtime) { n = s.faults.remove(id) })
	return n, err
}

// loopFault is a fault with its times on the loop's clock. On a loop that runs ten times as fast,
// a second of the client's is ten there.
func (s *Server) loopFault(f fakecri.Fault) fakecri.Fault {
	f.From, f.For = s.onLoopClock(f.From), s.onLoopClock(f.For)
	f.Latency.Min, f.Latency.Max = s.onLoopClock(f.Latency.Min), s.onLoopClock(f.Latency.Max)
	return f
}

// onLoopClock is a duration of the wall clock on the loop's.
func (s *Server) onLoopClock(d time.Duration) time.Duration {
	if s.opts.Speed == 1 {
		return d
	}
	f := float64(d) * s.opts.Speed
	// Longer is cut, so that no sum overflows.
	if f >= float64(maxTimeout) {
		return maxTimeout
	}
	return time.Duration(f)
}

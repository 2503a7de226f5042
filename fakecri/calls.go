package fakecri

import (
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// callDaemon is the runtime's daemon: where calls arrive, meet faults and take
// their time.
type callDaemon struct {
	l       *loop.Loop
	rec     *trace.Recorder
	fields  []trace.Field // of the record being made: memory for the next
	lat     []Range       // by method; nil: all are as usual
	life    *daemonLife   // nil while it is down
	faults  []*fault
	changed func() // what a call could answer may be another
}

// daemonLife is one life of the daemon.
type daemonLife struct {
	g    *loop.Group
	down loop.Event
}

func newCallDaemon(l *loop.Loop, rec *trace.Recorder, latency map[string]Range, changed func()) *callDaemon {
	r := &callDaemon{l: l, rec: rec, changed: changed}
	if len(latency) > 0 {
		r.lat = make([]Range, methodCount)
		for m := range methods {
			r.lat[m] = methods[m].latency
			if d, ok := latency[methods[m].name]; ok {
				r.lat[m] = d
			}
		}
	}
	return r
}

// latency is how long a method takes.
func (r *callDaemon) latency(m method) Range {
	if r.lat == nil {
		return methods[m].latency
	}
	return r.lat[m]
}

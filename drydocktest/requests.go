package drydocktest

import (
	"fmt"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// requestLog notes the requests of clients in the order in which they are taken in. It is
// the pump's.
type requestLog struct {
	n    uint64
	hash uint64
	// lines are kept where runs are compared.
	keep  bool
	lines []string
}

// note notes a request.
func (l *requestLog) note(x *crossing) {
	l.n++
	l.hash = loop.Hash(l.hash, []string{x.who, x.key}, uint64(x.stamp))
	if l.keep {
		l.lines = append(l.lines, fmt.Sprintf("%s %s: %s", time.Unix(0, x.stamp).UTC().Format("15:04:05.000000"), x.who, x.key))
	}
}

package loop

import (
	"cmp"
	"slices"
)

// TimerCount is how many timers of one name are set.
type TimerCount struct {
	Group, Name string
	N           int
}

// Armed counts the timers that are set, by group and name; those that wake
// tasks are not counted, see Waiting.
func (l *Loop) Armed() []TimerCount {
	counts := map[[2]string]int{}
	for i := range l.heap.items {
		t := l.heap.items[i].t
		if _, task := t.do.(*Task); !task && !t.pooled {
			counts[[2]string{t.g.name, t.name}]++
		}
	}
	out := make([]TimerCount, 0, len(counts))
	for k, n := range counts { //drydock:unordered sorted below
		out = append(out, TimerCount{k[0], k[1], n})
	}
	slices.SortFunc(out, func(a, b TimerCount) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name)) })
	return out
}

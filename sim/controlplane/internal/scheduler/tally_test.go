package scheduler

import (
	"testing"
	"time"
)

// TestTrim: when tallies and carriers are forgotten.
func TestTrim(t *testing.T) {
	for _, tt := range []struct {
		name                           string
		tallies, carriers, sets, nodes int
		since                          time.Duration // the last time
		want                           bool
	}{
		{"few", fewTallies, fewTallies, 1, 10, time.Hour, false},
		{"many tallies", fewTallies + 1, 0, 1, 10, time.Hour, true},
		{"many carriers", 0, fewTallies + 1, 1, 10, time.Hour, true},
		{"many for a while", fewTallies + 1, 0, 1, 10, time.Minute, false},
		{"as many as there are labels for", fewTallies + 1, 0, fewTallies / talliesPerSet * 2, 10, time.Hour, false},
		{"large", 300, 0, 1, maxTallyEntries/300 + 1, time.Minute, true},
		{"large, because of the nodes alone", 200, 0, 1, maxTallyEntries/200 + 1, time.Hour, false},
	} {
		table := newNodeTable()
		table.slots = make([]*nodeInfo, tt.nodes)
		x := newLabelIndex(&table, nil)
		for i := range tt.sets {
			x.sets[string(rune(i))] = &labelSet{}
		}
		x.tallies = make([]*tally, tt.tallies)
		for range tt.carriers {
			x.carriers = append(x.carriers, &carrier{})
		}
		now := int64(24 * time.Hour)
		x.trimmed = now - int64(tt.since)
		if got := x.trim(now); got != tt.want || got != (len(x.tallies)+len(x.carriers) == 0) {
			t.Errorf("%s: %v, %d tallies and %d carriers are left", tt.name, got, len(x.tallies), len(x.carriers))
		}
	}
}

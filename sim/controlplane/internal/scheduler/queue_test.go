package scheduler

import (
	"testing"
	"time"
)

// TestRequeue: where a pod goes that something may help, by how its tries ended and how long ago the
// last one was.
func TestRequeue(t *testing.T) {
	for _, tt := range []struct {
		name            string
		refused, errors int
		ago             time.Duration
		want            place
	}{
		{"never tried", 0, 0, time.Second, active},
		{"refused", 1, 0, 500 * time.Millisecond, backingOff},
		{"its back-off is over", 1, 0, 2 * time.Second, active},
		{"refused three times", 3, 0, 3 * time.Second, backingOff},
		{"its back-off is over, too", 3, 0, 5 * time.Second, active},
		{"refused very often", 100, 0, 9 * time.Second, backingOff},
		{"it backs off no longer than that", 100, 0, 11 * time.Second, active},
		{"failed by an error", 0, 1, 500 * time.Millisecond, errorBackoff},
		{"failed by errors after it was refused", 1, 3, 3 * time.Second, errorBackoff},
		{"that back-off is over", 1, 3, 5 * time.Second, active},
	} {
		u := newQueue(time.Second, 10*time.Second)
		now := int64(time.Hour)
		q := &queued{unschedulable: tt.refused, errors: tt.errors, timestamp: now - int64(tt.ago)}
		if tt.errors == 0 {
			q.rejectors = nodeResourcesFit
		}
		u.requeue(q, now)
		if q.place != tt.want {
			t.Errorf("%s: place %d, want %d", tt.name, q.place, tt.want)
		}
	}
}

// TestBackoffOrder: a pod that backs off is tried early if no other is to be tried, and after it
// otherwise, however important it is. One that failed by an error is not.
func TestBackoffOrder(t *testing.T) {
	u := newQueue(time.Second, 10*time.Second)
	now := int64(time.Hour)
	for _, q := range []*queued{
		{name: "error", priority: 3, errors: 1, timestamp: now},
		{name: "refused", priority: 2, unschedulable: 1, rejectors: nodeResourcesFit, timestamp: now},
		{name: "new", priority: 1, timestamp: now},
	} {
		u.requeue(q, now)
	}
	for _, want := range []string{"new", "refused", ""} {
		got := ""
		if q := u.pop(now); q != nil {
			got = q.name
		}
		if got != want {
			t.Errorf("next is %q, want %q", got, want)
		}
	}
}

package record

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrecord "k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/drydock-sim/drydock/ground/loop"
)

func testEvent(object, uid, field, eventtype, reason, message string, at time.Time) *v1.Event {
	t := metav1.Time{Time: at.Truncate(time.Second)}
	return &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: eventName(object, at.UnixNano()), Namespace: "default"},
		InvolvedObject: v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "default", Name: object, FieldPath: field},
		Reason:         reason, Message: message, Type: eventtype, Count: 1,
		FirstTimestamp: t, LastTimestamp: t,
		Source:              v1.EventSource{Component: "kubelet", Host: "n"},
		ReportingController: "kubelet", ReportingInstance: "n",
	}
}

// TestSameAsClientGo plays random sequences to client-go's correlator and to
// ours. Where client-go is random (which message a full aggregate forgets), the
// sequence gives it no chance to show.
func TestSameAsClientGo(t *testing.T) {
	aggregated := 0
	for seed := range uint64(60) {
		aggregated += play(t, seed, 1500)
	}
	if aggregated < 100 {
		t.Errorf("only %d aggregated events", aggregated)
	}
}

func play(t *testing.T, seed uint64, n int) (aggregated int) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	theirs := clientrecord.NewEventCorrelator(clock)
	ours := newCorrelator()
	objects := 1 + rnd.IntN(6)
	type group struct {
		messages []string
		last     time.Time
	}
	groups := map[string]*group{}
	fresh := 0
	for i := range n {
		step := time.Duration(rnd.Int64N(int64(20 * time.Second)))
		if rnd.IntN(40) == 0 {
			step = time.Duration(rnd.Int64N(int64(20 * time.Minute)))
		}
		now := clock.Now().Add(step + 1)
		clock.SetTime(now)
		object, reason := fmt.Sprintf("p%d", rnd.IntN(objects)), fmt.Sprintf("R%d", rnd.IntN(3))
		typ := []string{v1.EventTypeNormal, v1.EventTypeWarning}[rnd.IntN(2)]
		k := object + reason + typ
		g := groups[k]
		if g == nil || now.Sub(g.last) > aggregateInterval {
			g = &group{}
			groups[k] = g
		}
		g.last = now
		var message string
		if len(g.messages) > 0 && len(g.messages) < aggregateMax && rnd.IntN(3) > 0 {
			message = g.messages[rnd.IntN(len(g.messages))]
		} else {
			fresh++
			message = fmt.Sprintf("message %d", fresh)
			g.messages = append(g.messages, message)
		}
		field := ""
		if len(g.messages) < aggregateMax {
			field = []string{"", "spec.containers{a}"}[rnd.IntN(2)]
		}
		mine := testEvent(object, "uid", field, typ, reason, message, now)
		his := *mine
		want, err := theirs.EventCorrelate(&his)
		if err != nil {
			t.Fatal(err)
		}
		sent := ours.correlate(mine, now.UnixNano(), now.UnixNano())
		if sent == want.Skip {
			t.Fatalf("seed %d event %d (%s %s): sent %v, client-go skips %v", seed, i, k, message, sent, want.Skip)
		}
		if !sent {
			continue
		}
		w := want.Event
		if strings.HasPrefix(w.Message, aggregatePrefix) {
			aggregated++
		}
		if mine.Name != w.Name || mine.Count != w.Count || mine.Message != w.Message || mine.Reason != w.Reason ||
			!mine.FirstTimestamp.Time.Equal(w.FirstTimestamp.Truncate(time.Second)) || !mine.LastTimestamp.Time.Equal(w.LastTimestamp.Truncate(time.Second)) {
			t.Fatalf("seed %d event %d:\n got %s x%d %q %v %v\nwant %s x%d %q %v %v", seed, i, mine.Name, mine.Count, mine.Message, mine.FirstTimestamp, mine.LastTimestamp,
				w.Name, w.Count, w.Message, w.FirstTimestamp, w.LastTimestamp)
		}
		if rnd.IntN(5) > 0 { // the write succeeded
			answer := *mine
			ours.update(&answer)
			theirs.UpdateState(&answer)
		}
	}
	return aggregated
}

func TestLRU(t *testing.T) {
	c := lru[int]{max: 100}
	var want []int // newest last
	rnd := rand.New(rand.NewPCG(1, 1))
	k := func(i int) key {
		var h loop.Hasher
		h.Str(fmt.Sprint(i))
		return key(h)
	}
	for range 20000 {
		i := rnd.IntN(150)
		at := -1
		for j, v := range want {
			if v == i {
				at = j
			}
		}
		got := c.get(k(i))
		if (got != nil) != (at >= 0) || got != nil && *got != i {
			t.Fatalf("get %d: %v, want index %d", i, got, at)
		}
		if at >= 0 {
			want = append(append(want[:at:at], want[at+1:]...), i)
			continue
		}
		c.put(k(i), i)
		if want = append(want, i); len(want) > 100 {
			want = want[1:]
		}
	}
	if c.len() != 100 {
		t.Errorf("%d entries", c.len())
	}
}

package queue

import (
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// items makes each UID's item on first use.
type items map[types.UID]*Item

func (m items) of(uid types.UID) *Item {
	if m[uid] == nil {
		m[uid] = &Item{UID: uid, Owner: uid}
	}
	return m[uid]
}

func TestTakeIsStrictAndOrdered(t *testing.T) {
	q, m := NewWorkQueue(), items{}
	q.Enqueue(m.of("c"), 10)
	q.Enqueue(m.of("b"), 10)
	q.Enqueue(m.of("a"), 20)
	q.Enqueue(m.of("d"), 5)
	q.Enqueue(m.of("d"), 30) // later overwrites earlier
	q.Enqueue(m.of("a"), 9)  // earlier overwrites later
	if q.Due(9) {
		t.Error("an entry is due only strictly after its time")
	}
	if got := q.Take(11); !reflect.DeepEqual(got, []types.UID{"a", "b", "c"}) {
		t.Errorf("took %v", got)
	}
	if q.Len() != 1 || q.Take(30) != nil {
		t.Error("d was taken early")
	}
	if got := q.Take(31); !reflect.DeepEqual(got, []types.UID{"d"}) {
		t.Errorf("took %v", got)
	}
}

func TestAnItemOutlivesItsOwner(t *testing.T) {
	q, m := NewWorkQueue(), items{}
	q.Enqueue(m.of("a"), 10)
	q.Leave(m.of("a"))
	q.Leave(m.of("b")) // waits for nothing
	if it, due := q.First(); it == nil || it.UID != "a" || it.Owner != nil || due != 10 {
		t.Errorf("first is %+v at %d", it, due)
	}
	next := &Item{UID: "a", Owner: "next"}
	q.Join(next)
	if it, _ := q.First(); it != next || q.Len() != 1 {
		t.Error("the new owner did not take the entry over")
	}
	q.Enqueue(next, 20)
	q.Leave(next)
	if got := q.Take(21); !reflect.DeepEqual(got, []types.UID{"a"}) || len(q.left) != 0 {
		t.Errorf("took %v, left %v", got, q.left)
	}
	last := &Item{UID: "a"}
	q.Join(last)
	if q.Len() != 0 || last.place != 0 {
		t.Error("what was taken came back")
	}
}

func TestEnqueueIsTold(t *testing.T) {
	q, m := NewWorkQueue(), items{}
	q.Enqueue(m.of("a"), 10)
	q.Enqueue(m.of("b"), 20)
	if n := q.Version().Count(); n != 2 {
		t.Errorf("version %d after two", n)
	}
	q.Postpone(m.of("a"), 30)
	if it, due := q.First(); q.Version().Count() != 2 || it.UID != "b" || due != 20 {
		t.Errorf("version %d, first %v at %d", q.Version().Count(), it.UID, due)
	}
}

func TestAgainstASortedList(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	q, m := NewWorkQueue(), items{}
	due := map[types.UID]int64{}
	now := int64(0)
	for range 5000 {
		uid := types.UID(rune('a' + rnd.Intn(26)))
		at := now + rnd.Int63n(20)
		q.Enqueue(m.of(uid), at)
		due[uid] = at
		if rnd.Intn(3) > 0 {
			continue
		}
		now += rnd.Int63n(5)
		var want []types.UID
		for u, at := range due {
			if at < now {
				want = append(want, u)
			}
		}
		slices.SortFunc(want, func(a, b types.UID) int {
			if due[a] != due[b] {
				return int(due[a] - due[b])
			}
			return strings.Compare(string(a), string(b))
		})
		for _, u := range want {
			delete(due, u)
		}
		if got := q.Take(now); !slices.Equal(got, want) {
			t.Fatalf("took %v, want %v", got, want)
		}
	}
}

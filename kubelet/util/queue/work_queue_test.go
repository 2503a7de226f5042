package queue

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestTakeIsStrictAndOrdered(t *testing.T) {
	q := NewWorkQueue()
	q.Enqueue("c", 10)
	q.Enqueue("b", 10)
	q.Enqueue("a", 20)
	q.Enqueue("d", 5)
	q.Enqueue("d", 30) // later overwrites earlier
	q.Enqueue("a", 9)  // earlier overwrites later
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

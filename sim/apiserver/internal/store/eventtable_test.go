package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

func kubeletEvent(i int) *v1.Event {
	pod := fmt.Sprint("web-", i/3)
	at := metav1.Time{Time: t0.Add(time.Duration(i) * time.Millisecond)}
	return &v1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", pod, at.UnixNano()), Namespace: "default"},
		InvolvedObject:      v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "default", Name: pod, UID: "u", ResourceVersion: "17", FieldPath: "spec.containers{app}"},
		Reason:              []string{"Pulled", "Created", "Started"}[i%3],
		Message:             "something",
		Type:                v1.EventTypeNormal,
		Count:               1,
		FirstTimestamp:      at,
		LastTimestamp:       at,
		Source:              v1.EventSource{Component: "kubelet", Host: "n"},
		ReportingController: "kubelet",
		ReportingInstance:   "n",
	}
}

// TestStoredEvents compares what the store tells of events with what it told
// its hooks, for plain events and for such as need room of their own.
func TestStoredEvents(t *testing.T) {
	if size := unsafe.Sizeof(storedEvent{}); size > 112 {
		t.Errorf("a storedEvent is %d bytes", size)
	}
	odd := map[string]func(*v1.Event){
		"plain":              func(*v1.Event) {},
		"another name":       func(e *v1.Event) { e.Name = "named-by-hand" },
		"upper case stamp":   func(e *v1.Event) { e.Name = "web-0.0a1" },
		"another object":     func(e *v1.Event) { e.InvolvedObject.Name = "other" },
		"long stamp":         func(e *v1.Event) { e.Name = "web-0.fffffffffffffffff" },
		"no version":         func(e *v1.Event) { e.InvolvedObject.ResourceVersion = "" },
		"strange version":    func(e *v1.Event) { e.InvolvedObject.ResourceVersion = "007" },
		"version of letters": func(e *v1.Event) { e.InvolvedObject.ResourceVersion = "abc" },
		"no times":           func(e *v1.Event) { e.FirstTimestamp, e.LastTimestamp = metav1.Time{}, metav1.Time{} },
		"before 1970":        func(e *v1.Event) { e.FirstTimestamp = metav1.Unix(-5, 0) },
		"at 1970":            func(e *v1.Event) { e.FirstTimestamp = metav1.Unix(0, 0) },
		"after 2106":         func(e *v1.Event) { e.LastTimestamp = metav1.Unix(1<<33, 0) },
		"labels":             func(e *v1.Event) { e.Labels = map[string]string{"a": "b"} },
		"annotations":        func(e *v1.Event) { e.Annotations = map[string]string{"a": "b"} },
		"owners": func(e *v1.Event) {
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "b"}}
		},
		"finalizers": func(e *v1.Event) { e.Finalizers = []string{"a/b"} },
		"event time": func(e *v1.Event) { // as events.k8s.io has it, with what that asks for
			e.EventTime, e.Action = metav1.MicroTime{Time: t0.Add(1500)}, "Starting"
			e.ReportingController, e.ReportingInstance = "kubelet", "node"
		},
		"series":               func(e *v1.Event) { e.Series = &v1.EventSeries{Count: 3} },
		"related":              func(e *v1.Event) { e.Related = &v1.ObjectReference{Name: "a"} },
		"action":               func(e *v1.Event) { e.Action = "Binding" },
		"another controller":   func(e *v1.Event) { e.ReportingController, e.ReportingInstance = "a", "b" },
		"a generated name":     func(e *v1.Event) { e.Name, e.GenerateName = "", "web-" },
		"another reason, type": func(e *v1.Event) { e.Reason, e.Type, e.Message, e.Count = "Killing", "Warning", "other", 7 },
	}
	for name, change := range odd {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Seed: 3})
			told := map[string]*v1.Event{}
			s.OnChange(func(c kind.Change) {
				if c.Type == watch.Deleted {
					delete(told, c.New.GetName())
				} else {
					ev := *c.New.(*v1.Event)
					told[ev.Name] = &ev
				}
			})
			for i := range 5 {
				ev := kubeletEvent(i)
				if i == 1 {
					change(ev)
				}
				if err := s.PostEvent(t0, ev); err != nil {
					t.Fatal(err)
				}
			}
			check := func(when string) {
				t.Helper()
				n := 0
				s.table(kinds.Event).Each(func(o kind.Object) bool {
					n++
					if got := o.(*v1.Event); !reflect.DeepEqual(got, told[got.Name]) {
						t.Errorf("%s: stored\n%+v, told\n%+v", when, got, told[got.Name])
					}
					return true
				})
				if n != len(told) {
					t.Errorf("%s: %d events, told of %d", when, n, len(told))
				}
			}
			check("created")
			for _, ev := range told {
				next := *ev
				next.Count, next.LastTimestamp = ev.Count+1, metav1.Time{Time: t0.Add(time.Minute)}
				if _, err := s.PatchEvent(t0.Add(time.Minute), ev, &next); err != nil {
					t.Fatal(err)
				}
			}
			check("patched")
			if len(s.Events()) != 5 {
				t.Errorf("%d events", len(s.Events()))
			}
			check("listed")
			first := s.Events()[0]
			if _, err := s.Delete(t0, kinds.Event, first.Namespace, first.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			check("deleted")
			if next := s.ExpireEvents(t0.Add(time.Hour)); next.Unix() != t0.Add(time.Hour+time.Minute).Unix() || len(s.Events()) != 4 {
				t.Errorf("next %v, %d events: a later write did not start the time to live anew", next, len(s.Events()))
			}
			if next := s.ExpireEvents(t0.Add(time.Hour + time.Minute)); !next.IsZero() || len(s.Events()) != 0 || len(told) != 0 {
				t.Errorf("next %v, %d events left", next, len(s.Events()))
			}
		})
	}
}

// TestEventsArePacked counts what is kept of a kubelet's events.
func TestEventsArePacked(t *testing.T) {
	s := New(Options{})
	for i := range 300 {
		if _, err := s.CreateEvent(t0, kubeletEvent(i)); err != nil {
			t.Fatal(err)
		}
	}
	if e := s.events; len(e.whole) != 0 || e.views != nil || len(e.classes) != 3 || len(e.sources) != 1 || len(e.messages) != 1 {
		t.Errorf("%d whole, %d views, %d classes, %d sources, %d messages", len(e.whole), len(e.views), len(e.classes), len(e.sources), len(e.messages))
	}
	if ev, _ := s.events.get("default", kubeletEvent(4).Name); ev == nil || ev.Reason != "Created" {
		t.Errorf("found %+v", ev)
	}
}

// TestEventExpiry compares what expires when with a list of all last writes, while
// events come, are written again and go, and holes are closed.
func TestEventExpiry(t *testing.T) {
	const ttl = 20 * time.Second
	s := New(Options{EventTTL: ttl})
	rnd := rand.New(rand.NewPCG(3, 4))
	want := map[string]int64{} // by name: when it expires
	expired := 0
	s.OnChange(func(c kind.Change) {
		name := c.New.GetName()
		if c.Verb == "expire" {
			expired++
			if _, ok := want[name]; !ok {
				t.Errorf("%s expires, which is not there", name)
			}
			delete(want, name)
		}
	})
	now := t0
	for i := range 5000 {
		now = now.Add(time.Duration(rnd.Int64N(int64(200 * time.Millisecond))))
		if i%1000 > 900 {
			now = now.Add(time.Second)
		}
		next := s.ExpireEvents(now)
		earliest := int64(0)
		for name, at := range want {
			if at <= now.Unix() {
				t.Fatalf("step %d: %s is still there at %v", i, name, now)
			}
			if earliest == 0 || at < earliest {
				earliest = at
			}
		}
		if earliest != 0 && (next.IsZero() || next.Unix() > earliest) {
			t.Fatalf("step %d: next %v, want %v at the latest", i, next, time.Unix(earliest, 0).UTC())
		}
		ev := kubeletEvent(i)
		if rnd.IntN(6) == 0 {
			ev.Labels = map[string]string{"whole": "yes"}
		}
		if err := s.PostEvent(now, ev); err != nil {
			t.Fatal(err)
		}
		want[ev.Name] = now.Add(ttl).Unix()
		other := kubeletEvent(max(0, i-rnd.IntN(40)))
		if _, ok := want[other.Name]; !ok {
			continue
		}
		switch rnd.IntN(6) {
		case 0:
			if _, err := s.Delete(now, kinds.Event, other.Namespace, other.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			delete(want, other.Name)
		case 1, 2:
			old, _ := s.events.get(other.Namespace, other.Name)
			again := *old
			again.Count++
			if _, err := s.PatchEvent(now, old, &again); err != nil {
				t.Fatal(err)
			}
			want[other.Name] = now.Add(ttl).Unix()
		}
		if rnd.IntN(50) == 0 {
			s.events.compact()
		}
	}
	if expired < 1000 {
		t.Errorf("only %d events expired", expired)
	}
	if next := s.ExpireEvents(now.Add(ttl + time.Second)); !next.IsZero() || len(want) != 0 || s.events.n != s.events.holes || len(s.expiry.again) != 0 || len(s.expiry.queue) != 0 {
		t.Errorf("next %v; left are %d events, %d slots of which %d holes, %d written again, %d in the queue",
			next, len(want), s.events.n, s.events.holes, len(s.expiry.again), len(s.expiry.queue))
	}
}

// TestExpiryUnseen has events expire while nobody wants to see them, and while
// somebody does: that is all the difference.
func TestExpiryUnseen(t *testing.T) {
	run := func(seen bool) (trail []string) {
		s := New(Options{EventTTL: time.Minute})
		s.OnChangeBare(func(c kind.Change) {
			if (c.New != nil) != (seen || c.Type != watch.Deleted) || (c.New != nil) != (c.Old != nil || c.Type == watch.Added) {
				t.Errorf("seen %t: told %s of %v, %v", seen, c.Verb, c.Old, c.New)
			}
			trail = append(trail, fmt.Sprint(c.Type, c.Verb, c.Version))
		})
		if seen {
			s.OnChange(func(c kind.Change) {
				if c.New.GetResourceVersion() != fmt.Sprint(c.Version) || c.Old != nil && (c.Old.GetName() != c.New.GetName() || c.Old.GetResourceVersion() == c.New.GetResourceVersion()) {
					t.Errorf("told %s %d of %v, %v", c.Verb, c.Version, c.Old, c.New)
				}
			}, kinds.Event)
		}
		for i := range 5 {
			ev := kubeletEvent(i)
			if i == 3 {
				ev.Labels = map[string]string{"whole": "yes"}
			}
			if err := s.PostEvent(t0, ev); err != nil {
				t.Fatal(err)
			}
		}
		s.ExpireEvents(t0.Add(3 * time.Minute))
		return append(trail, fmt.Sprint(s.Version(), len(trail), s.events.n-s.events.holes))
	}
	unseen, seen := run(false), run(true)
	if !slices.Equal(unseen, seen) || len(seen) != 11 || !strings.HasSuffix(seen[10], " 10 0") {
		t.Errorf("unseen %v\nseen   %v", unseen, seen)
	}
}

// TestMessagesAreShared: a recent message is kept once, and a thousand are recent.
func TestMessagesAreShared(t *testing.T) {
	table := &eventTable{messages: map[string]string{}}
	message := func(i int) string { return fmt.Sprint("message ", i) }
	first := table.share(message(0))
	for i := 1; i < sharedMessages; i++ {
		table.share(message(i))
	}
	if again := table.share(message(0)); unsafe.StringData(again) != unsafe.StringData(first) {
		t.Error("a recent message was forgotten")
	}
	table.share(message(sharedMessages))
	if len(table.messages) != 1 {
		t.Errorf("%d messages are kept, want the new one", len(table.messages))
	}
}

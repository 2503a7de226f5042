package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

func TestCollectorMergesByTimeRecorderSequence(t *testing.T) {
	var c Collector
	var got []string
	c.Each(func(r *Record) { got = append(got, r.Node+":"+r.Verb) })
	a, b := loop.New(loop.Options{Name: "a"}), loop.New(loop.Options{Name: "b"})
	defer a.Close()
	defer b.Close()
	ra := NewRecorder(a, "a", c.NewBuffer(nil))
	rb := NewRecorder(b, "b", c.NewBuffer(func(k Kind, _ string, _ []Field) bool { return k != KindLog }))
	b.Root().After(time.Second, func() {
		rb.Record(KindCRI, "x", "b1")
		rb.Record(KindCRI, "x", "b2")
		rb.Record(KindLog, "x", "unwanted")
	})
	a.Root().After(time.Second, func() { ra.Record(KindCRI, "x", "a1") })
	a.Root().After(3*time.Second, func() { ra.Record(KindCRI, "x", "a3") })
	b.Root().After(2*time.Second, func() { rb.Record(KindCRI, "x", "b3") })
	_ = a.RunUntil(loop.Epoch().Add(time.Minute))
	_ = b.RunUntil(loop.Epoch().Add(time.Minute))
	c.Flush(loop.Epoch().Add(2500 * time.Millisecond).UnixNano())
	if s := strings.Join(got, " "); s != "a:a1 b:b1 b:b2 b:b3" {
		t.Errorf("first flush: %s", s)
	}
	c.Flush(loop.Epoch().Add(time.Hour).UnixNano())
	if s := strings.Join(got, " "); s != "a:a1 b:b1 b:b2 b:b3 a:a3" {
		t.Errorf("second flush: %s", s)
	}
}

func TestHashTellsRecordsApart(t *testing.T) {
	hash := func(object, verb string, fields ...Field) uint64 {
		l := loop.New(loop.Options{})
		defer l.Close()
		r := NewRecorder(l, "n", nil)
		r.Record(KindCRI, object, verb, fields...)
		return r.Hash()
	}
	if hash("ab", "c") == hash("a", "bc") {
		t.Error("the border between parts is not hashed")
	}
	if hash("a", "b", Str("k", "v")) == hash("a", "b", Str("k", "w")) {
		t.Error("a field's value is not hashed")
	}
	if hash("a", "b", Int("k", 12)) != hash("a", "b", Str("k", "12")) {
		t.Error("a number is not its decimal text")
	}
}

func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	w := NewJSONWriter(&out, loop.Epoch())
	w.Write(&Record{At: loop.Epoch().Add(1500 * time.Millisecond).UnixNano(), Node: "n", Kind: KindEvent, Object: "pod a/b", Verb: "Pulled", Fields: []Field{Str("message", `say "hi"`)}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := `{"t":1.500000000,"node":"n","kind":"event","object":"pod a/b","verb":"Pulled","message":"say \"hi\""}` + "\n"
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
}

func TestObject(t *testing.T) {
	for want, o := range map[string]Object{
		"pod default/web-0":            {Kind: "pod", Namespace: "default", Name: "web-0"},
		"container default/web-0/main": {Kind: "container", Namespace: "default", Name: "web-0", Part: "main"},
		"node worker-0":                {Kind: "node", Name: "worker-0"},
		"runtime":                      {Name: "runtime"},
	} {
		if got := o.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRecordMarks has the engine tell of the loops that recorded something that is
// kept, in the window in which they did.
func TestRecordMarks(t *testing.T) {
	e, err := loop.NewEngine(loop.EngineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var told []string
	e.OnWindow(func(end time.Time, marked []int32) {
		told = append(told, fmt.Sprint(end.Sub(loop.Epoch()), marked))
	})
	var c Collector
	for i := range 3 {
		l := e.NewLoop(fmt.Sprint("n", i))
		r := NewRecorder(l, l.Name(), c.NewBuffer(func(_ Kind, verb string, _ []Field) bool { return verb == "kept" }))
		if i == 2 {
			r.Record(KindAPI, "before the run", "kept")
		}
		l.Root().Every("t", time.Second, 0, func() {
			verb := "kept"
			if l.Since(loop.Epoch()) > time.Duration(2-i)*time.Second {
				verb = "dropped"
			}
			r.Record(KindAPI, "x", verb)
		})
	}
	if err := e.RunUntil(loop.Epoch().Add(4 * time.Second)); err != nil {
		t.Fatal(err)
	}
	want := []string{"1.005s [0 1 2]", "2.005s [0]", "3.005s []"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

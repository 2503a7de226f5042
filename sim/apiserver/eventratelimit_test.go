package apiserver

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

func TestEventLimitBuckets(t *testing.T) {
	event := func(namespace, component, object string) *v1.Event {
		return &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Source: v1.EventSource{Component: component},
			InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: object}}
	}
	type write struct {
		after time.Duration
		user  string
		event *v1.Event
		want  string // "" is allowed
	}
	a, b := event("a", "kubelet", "x"), event("b", "kubelet", "x")
	for _, tc := range []struct {
		limit  EventLimit
		writes []write
	}{
		{EventLimit{Type: EventLimitServer, QPS: 1, Burst: 2}, []write{
			{0, "u", a, ""}, {0, "v", b, ""}, {0, "w", a, "limit reached on type Server for key "},
			{time.Second, "u", b, ""}, {time.Second + time.Millisecond, "u", b, "limit reached on type Server for key "}}},
		{EventLimit{Type: EventLimitNamespace, QPS: 1, Burst: 1}, []write{
			{0, "u", a, ""}, {0, "u", b, ""}, {0, "v", a, "limit reached on type Namespace for key a"}}},
		{EventLimit{Type: EventLimitUser, QPS: 1, Burst: 1}, []write{
			{0, "u", a, ""}, {0, "v", a, ""}, {0, "u", b, "limit reached on type User for key u"}}},
		{EventLimit{Type: EventLimitSourceAndObject, QPS: 1, Burst: 1}, []write{
			{0, "u", a, ""}, {0, "u", event("a", "scheduler", "x"), ""}, {0, "u", event("a", "kubelet", "y"), ""},
			{0, "v", a, "limit reached on type SourceAndObject for key kubeletPodax"}}},
		// The bucket of b drops that of a, which is full when it comes back.
		{EventLimit{Type: EventLimitNamespace, QPS: 1, Burst: 1, CacheSize: 1}, []write{
			{0, "u", a, ""}, {0, "u", b, ""}, {0, "u", a, ""}, {0, "u", a, "limit reached on type Namespace for key a"}}},
		// It is the one used last that stays.
		{EventLimit{Type: EventLimitNamespace, QPS: 1, Burst: 1, CacheSize: 2}, []write{
			{0, "u", a, ""}, {0, "u", b, ""}, {0, "u", a, "limit reached on type Namespace for key a"}, {0, "u", event("c", "", ""), ""},
			{0, "u", a, "limit reached on type Namespace for key a"}, {0, "u", b, ""}}},
	} {
		e := newEventLimiter(tc.limit)
		for i, w := range tc.writes {
			got := ""
			if err := e.accept(loop.Epoch().Add(w.after), w.user, w.event); err != nil {
				got = err.Error()
			}
			if got != w.want {
				t.Errorf("%v, write %d: %q, want %q", tc.limit, i, got, w.want)
			}
		}
	}
}

// TestEventRateLimit: what all limits say is one answer, each takes its token
// whatever the others say, and changes of events count as well.
func TestEventRateLimit(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 1})
	defer l.Close()
	s := New(Options{Loop: l, EventLimits: []EventLimit{
		{Type: EventLimitServer, QPS: 1, Burst: 4}, {Type: EventLimitNamespace, QPS: 1, Burst: 1}, {Type: EventLimitUser, QPS: 1, Burst: 3},
	}})
	event := func(namespace, name string) *v1.Event {
		return &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "p"},
			Reason: "R", Type: v1.EventTypeNormal}
	}
	s.by = "n1"
	if _, err := s.CreateEvent(event("default", "e1")); err != nil {
		t.Fatal(err)
	}
	_, err := s.CreateEvent(event("default", "e2"))
	if apierrors.ReasonForError(err) != metav1.StatusReasonTooManyRequests || codeOf("create", err) != http.StatusTooManyRequests {
		t.Fatalf("the namespace's second event: %v", err)
	}
	if want := "Too many requests: limit reached on type Namespace for key default"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if _, again := retry(err, 0); again {
		t.Error("client-go repeats it, without a header Retry-After")
	}
	changed := event("default", "e1")
	changed.Count = 2
	if _, err = s.PatchEvent(nil, changed); err == nil {
		t.Error("a change is not limited")
	}
	_, err = s.CreateEvent(event("kube-system", "e3"))
	if want := "Too many requests: limit reached on type User for key system:node:n1"; fmt.Sprint(err) != want {
		t.Errorf("the user's fourth write: %q, want %q", err, want)
	}
	_, err = s.CreateEvent(event("default", "e4"))
	if want := "Too many requests: [limit reached on type Server for key , limit reached on type Namespace for key default, limit reached on type User for key system:node:n1]"; fmt.Sprint(err) != want {
		t.Errorf("%q, want %q", err, want)
	}
	if n := len(s.Events()); n != 1 {
		t.Errorf("%d events are stored, want 1", n)
	}
}

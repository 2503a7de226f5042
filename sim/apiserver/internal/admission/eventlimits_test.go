package admission

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
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

package apiserver

import (
	"fmt"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/admission"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/stats"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// TestEventRateLimit: what all limits say is one answer, each takes its token
// whatever the others say, and changes of events count as well.
func TestEventRateLimit(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 1})
	defer l.Close()
	s := New(Options{Loop: l, EventLimits: []admission.EventLimit{
		{Type: admission.EventLimitServer, QPS: 1, Burst: 4}, {Type: admission.EventLimitNamespace, QPS: 1, Burst: 1}, {Type: admission.EventLimitUser, QPS: 1, Burst: 3},
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
	if apierrors.ReasonForError(err) != metav1.StatusReasonTooManyRequests || stats.CodeOf("create", err) != http.StatusTooManyRequests {
		t.Fatalf("the namespace's second event: %v", err)
	}
	if want := "Too many requests: limit reached on type Namespace for key default"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if _, again := wire.Retry(err, 0); again {
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

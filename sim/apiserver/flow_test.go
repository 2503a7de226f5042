package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/flow"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/stats"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

func loaded(load *flow.Load) (*loop.Loop, *Server) {
	l := loop.New(loop.Options{Seed: 1})
	return l, New(Options{Loop: l, Load: load})
}

func run(t *testing.T, l *loop.Loop, d time.Duration) {
	t.Helper()
	if err := l.RunUntil(l.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
}

func levelOf(s *stats.Stats, name string) *stats.LevelStats {
	for i := range s.Levels {
		if s.Levels[i].Name == name {
			return &s.Levels[i]
		}
	}
	return nil
}

func requestOf(s *stats.Stats, user, verb, resource string) *stats.RequestStats {
	for i := range s.Requests {
		if r := &s.Requests[i]; r.User == user && r.Verb == verb && r.Resource == resource {
			return r
		}
	}
	return &stats.RequestStats{}
}

// TestNominalSeats has upstream's shares of 600 seats.
func TestNominalSeats(t *testing.T) {
	l, s := loaded(&flow.Load{})
	defer l.Close()
	want := map[string]int{"catch-all": 13, "global-default": 49, "leader-election": 25, "node-high": 98, "system": 74, "workload-high": 98, "workload-low": 245}
	for _, lv := range s.Stats().Levels {
		if lv.Seats != want[lv.Name] {
			t.Errorf("%s has %d seats, want %d", lv.Name, lv.Seats, want[lv.Name])
		}
		delete(want, lv.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestBorrowing has idle levels lend what they may, and a busy one keep what it
// is entitled to.
func TestBorrowing(t *testing.T) {
	low, target := []float64{10, 20, 70}, []float64{50, 20, 70}
	got := flow.FairShares(200, low, target, []float64{200, 200, 200})
	if sum := got[0] + got[1] + got[2]; sum < 199.9 || sum > 200.1 {
		t.Errorf("shares %v have the sum %v", got, sum)
	}
	for i := range got {
		if got[i] < low[i] {
			t.Errorf("share %d is %v, below %v", i, got[i], low[i])
		}
	}
	l, s := loaded(&flow.Load{})
	defer l.Close()
	// At first nobody wants anything: all have what they don't lend, times 602/258.
	for name, want := range map[string]int{"catch-all": 30, "leader-election": 58, "node-high": 170, "system": 117, "workload-low": 56} {
		if lv := s.flow.ByName[name]; lv.Limit != want {
			t.Errorf("%s begins with %d seats, want %d", name, lv.Limit, want)
		}
	}
	run(t, l, 11*time.Second)
	total := 0
	for _, lv := range s.flow.Levels {
		total += lv.Limit
	}
	if total < 595 || total > 605 {
		t.Errorf("the limits come to %d", total)
	}
	if lv := s.flow.ByName["node-high"]; lv.Limit <= lv.Nominal {
		t.Errorf("idle, node-high has %d of %d: workload-low lends nothing", lv.Limit, lv.Nominal)
	}
}

// TestListSeats has lists weigh what the cluster stores of their resource, up to a
// level's most.
func TestListSeats(t *testing.T) {
	tests := []struct {
		seats          int // of the server
		pods           int
		verb, resource string
		want           int
	}{
		{600, 0, "list", "pods", 1},
		{600, 24, "list", "pods", 1},
		{600, 25, "list", "pods", 2},
		{600, 200, "watch", "pods", 9},
		{600, 300, "watch", "pods", 10},
		{600, 300, "get", "pods", 1},
		{600, 300, "patch", "pods/status", 1},
		{600, 300, "watch", "services", 1},
		{200, 300, "list", "pods", 4}, // 25 nominal seats: 15 %, and no more than a hand's share
		{24, 300, "list", "pods", 1},
	}
	for _, tt := range tests {
		l, s := loaded(&flow.Load{MaxRequestsInflight: tt.seats / 2, MaxMutatingRequestsInflight: tt.seats / 2})
		for i := range tt.pods {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: "default"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
			if _, err := s.Create(pod); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.flow.Seats(s.flow.ByName["system"], &wire.Request{Verb: tt.verb, Resource: tt.resource}); got != tt.want {
			t.Errorf("%s of %s with %d pods on a server of %d seats takes %d, want %d", tt.verb, tt.resource, tt.pods, tt.seats, got, tt.want)
		}
		l.Close()
	}
}

// askMany has one node get a pod n times at once.
func askMany(l *loop.Loop, c *Client, n int, done func(err error, took time.Duration)) {
	for i := range n {
		l.Root().Go(fmt.Sprintf("get %d", i), func(ctx context.Context) {
			begin := l.Now()
			_, err := c.askOnce(ctx, wire.Request{Verb: "get", Resource: "pods", Namespace: "default", Name: "p"}, args{}, func(s *store.Store, _ time.Time, _ *wire.Request, _ *args) (any, error) {
				return as[*v1.Pod](s.Get(KindPod, "default", "p"))
			})
			done(err, l.Since(begin))
		})
	}
}

// TestQueues overloads one level from one node: what finds neither a seat nor a
// place in the six queues of its hand is refused, another node of the level waits
// for one round at most, and heartbeats of a third don't wait.
func TestQueues(t *testing.T) {
	l, s := loaded(&flow.Load{Get: 100 * time.Millisecond})
	defer l.Close()
	if _, err := s.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c"}}); err != nil {
		t.Fatal(err)
	}
	noisy, quiet, beat := s.Client(l, "a"), s.Client(l, "b"), s.Client(l, "c")
	var ok, refused int
	askMany(l, noisy, 500, func(err error, _ time.Duration) {
		if apierrors.IsTooManyRequests(err) {
			refused++
		} else {
			ok++
		}
	})
	var quietTook, beatTook time.Duration
	l.Root().After(10*time.Millisecond, func() {
		askMany(l, quiet, 1, func(_ error, took time.Duration) { quietTook = took })
		l.Root().Go("heartbeat", func(ctx context.Context) {
			begin := l.Now()
			if _, err := beat.GetNode(ctx, "c"); err != nil {
				t.Error(err)
			}
			beatTook = l.Since(begin)
		})
	})
	run(t, l, 5*time.Second)
	// 117 seats, of which 43 are others' that idle, and 6 queues of 50.
	if ok != 417 || refused != 83 {
		t.Errorf("%d answered and %d refused, want 417 and 83", ok, refused)
	}
	if quietTook > 400*time.Millisecond {
		t.Errorf("the quiet node waited %v behind the noisy one", quietTook)
	}
	if beatTook > 170*time.Millisecond {
		t.Errorf("a heartbeat took %v", beatTook)
	}
	st := s.Stats()
	lv := levelOf(st, "system")
	if lv.MaxSeats != 117 || lv.MaxQueued < 300 || lv.Dispatched != 418 || len(lv.Rejected) != 1 || lv.Rejected[0] != (stats.ReasonCount{Reason: "queue-full", Count: 83}) {
		t.Errorf("system: %d seats at most, %d queued, %d dispatched, rejected %v", lv.MaxSeats, lv.MaxQueued, lv.Dispatched, lv.Rejected)
	}
	if lv.Wait.Count != 418 || lv.Wait.Max < 200*time.Millisecond || lv.Wait.Max > time.Second {
		t.Errorf("%d waited, at most %v", lv.Wait.Count, lv.Wait.Max)
	}
	r := requestOf(st, stats.UserKubelet, "get", "pods")
	if r.Total != 501 || len(r.Codes) != 2 || r.Codes[1] != (stats.CodeCount{Code: http.StatusTooManyRequests, Count: 83}) || r.Over[0].Rejected != 83 {
		t.Errorf("get pods: %d, codes %v", r.Total, r.Codes)
	}
	if q := r.Latency.Quantile(0.99); q < 300*time.Millisecond || q > 700*time.Millisecond {
		t.Errorf("p99 is %v", q)
	}
}

// TestQueueTimeout has a request wait for longer than it may: it is refused with
// the time to ask again, and the client does.
func TestQueueTimeout(t *testing.T) {
	l, s := loaded(&flow.Load{MaxRequestsInflight: 1, MaxMutatingRequestsInflight: 1, Get: 4 * time.Second, QueueWait: time.Second})
	defer l.Close()
	c := s.Client(l, "a")
	answers := 0
	for range 3 { // the level has one seat, and borrows one
		l.Root().Go("get", func(ctx context.Context) {
			if _, err := c.GetPod(ctx, "default", "p"); !apierrors.IsNotFound(err) {
				t.Errorf("got %v", err)
			}
			answers++
		})
	}
	run(t, l, 30*time.Second)
	if answers != 3 {
		t.Fatalf("%d answers", answers)
	}
	if lv := levelOf(s.Stats(), "system"); len(lv.Rejected) != 1 || lv.Rejected[0].Reason != "time-out" || lv.Dispatched != 3 {
		t.Errorf("dispatched %d, rejected %v", lv.Dispatched, lv.Rejected)
	}
}

// TestClientLimits has a kubelet's client wait for its bucket, but not its
// heartbeats and events.
func TestClientLimits(t *testing.T) {
	l, s := loaded(nil)
	defer l.Close()
	c := s.Client(l, "a")
	c.SetLimits(2, 3)
	var took [7]time.Duration
	for i := range took {
		l.Root().Go("get", func(ctx context.Context) {
			_, _ = c.GetPod(ctx, "default", "p")
			took[i] = l.Since(time.Unix(0, s.stats.Start))
		})
	}
	beat := time.Duration(0)
	l.Root().Go("beat", func(ctx context.Context) {
		_, _ = c.GetNode(ctx, "a")
		beat = l.Since(time.Unix(0, s.stats.Start))
	})
	run(t, l, 10*time.Second)
	slices.Sort(took[:]) // who comes first is the seed's
	for i, want := range []time.Duration{0, 0, 0, 500, 1000, 1500, 2000} {
		if got := took[i] - 10*time.Millisecond; got < want*time.Millisecond || got > want*time.Millisecond+time.Millisecond {
			t.Errorf("request %d was answered after %v, want %v ms and the way", i, took[i], int64(want))
		}
	}
	if beat > 11*time.Millisecond {
		t.Errorf("the heartbeat took %v", beat)
	}
	if r := requestOf(s.Stats(), stats.UserKubelet, "get", "pods"); r.Throttled.Count != 4 || r.Throttled.Max < 1990*time.Millisecond {
		t.Errorf("throttled: %d, at most %v", r.Throttled.Count, r.Throttled.Max)
	}
}

// TestLimitGivesBack: a request that would wait for longer than its context lasts fails at once, and
// takes nothing from the bucket.
func TestLimitGivesBack(t *testing.T) {
	l, s := loaded(nil)
	defer l.Close()
	c := s.Client(l, "a")
	c.SetLimits(1, 1)
	l.Root().Go("get", func(ctx context.Context) {
		begin := l.Now()
		_, _ = c.GetPod(ctx, "default", "p")
		short, cancel := loop.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		before := l.Now()
		if _, err := c.GetPod(short, "default", "p"); err == nil || !strings.Contains(err.Error(), "would exceed context deadline") || l.Since(before) > 0 {
			t.Errorf("got %v after %v", err, l.Since(before))
		}
		_, _ = c.GetPod(ctx, "default", "p")
		if took := l.Since(begin); took < time.Second || took > 1100*time.Millisecond {
			t.Errorf("the second was answered after %v", took)
		}
	})
	run(t, l, 10*time.Second)
}

// TestRequestsAreCounted has one from each side.
func TestRequestsAreCounted(t *testing.T) {
	l, s := loaded(nil)
	defer l.Close()
	c := s.Client(l, "a")
	l.Root().Go("get", func(ctx context.Context) { _, _ = c.GetPod(ctx, "default", "p") })
	RemoteOf(s, "c").Send(Request{Verb: "get", Resource: "pods"}, l.Now().UnixNano(), func() {}, func(time.Duration, error) {})
	run(t, l, 10*time.Second)
	if n := s.Requests(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// levelFor and schemaFor are objects of a configuration by users.
func levelFor(name string, response flowcontrolv1.LimitResponse) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: new(int32(1)), BorrowingLimitPercent: new(int32(0)), LimitResponse: response}}}
}

func schemaFor(name, level string, precedence int32, subject flowcontrolv1.Subject, rule flowcontrolv1.ResourcePolicyRule) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level}, MatchingPrecedence: precedence,
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: []flowcontrolv1.Subject{subject}, ResourceRules: []flowcontrolv1.ResourcePolicyRule{rule}}}}}
}

// TestSchemas asks which level requests have: by upstream's schemas, and by a user's.
func TestSchemas(t *testing.T) {
	node := &Asker{User: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"}}
	account := func(namespace, name string) *Asker { return askerOf("system:serviceaccount:" + namespace + ":" + name) }
	tests := []struct {
		who                   *Asker
		verb, resource, group string
		namespace             string
		own                   bool // with the user's schema
		want                  string
	}{
		{node, "get", "nodes", "", "", false, "node-high"},
		{node, "patch", "nodes/status", "", "", false, "node-high"},
		{node, "update", "leases", "", "kube-node-lease", false, "node-high"},
		{node, "update", "leases", "example.com", "kube-node-lease", false, "system"},
		{node, "get", "pods", "", "default", false, "system"},
		{askerOf(componentUser("kube-scheduler")), "create", "pods/binding", "", "default", false, "workload-high"},
		{askerOf(componentUser("kube-scheduler")), "update", "leases", "", "kube-system", false, "leader-election"},
		{askerOf(componentUser("replicaset-controller")), "create", "pods", "", "default", false, "workload-high"},
		{account("shop", "operator"), "list", "pods", "", "shop", false, "workload-low"},
		{askerOf("eve"), "list", "pods", "", "", false, "global-default"},
		{&Asker{User: "root", Groups: []string{"system:masters"}}, "list", "pods", "", "", false, "exempt"},
		{&Asker{User: "who"}, "list", "pods", "", "", false, "catch-all"},
		{account("shop", "operator"), "list", "pods", "", "shop", true, "own"},
		{account("shop", "operator"), "list", "pods/status", "", "shop", true, "workload-low"},
		{account("shop", "operator"), "list", "pods", "", "", true, "workload-low"},
		{account("shop", "operator"), "get", "pods", "", "shop", true, "workload-low"},
		{account("shopping", "operator"), "list", "pods", "", "shop", true, "workload-low"},
	}
	for _, tt := range tests {
		l, s := loaded(&flow.Load{})
		if tt.own {
			mustCreate(t, s, levelFor("own", flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}),
				schemaFor("own", "own", 50, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: "shop", Name: "*"}},
					flowcontrolv1.ResourcePolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}, Namespaces: []string{"*"}}),
				schemaFor("nowhere", "gone", 1+1, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "*"}},
					flowcontrolv1.ResourcePolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}))
			run(t, l, time.Second)
		}
		before := map[string]uint64{}
		for _, lv := range s.Stats().Levels {
			before[lv.Name] = lv.Dispatched
		}
		s.flow.Admit(tt.who, &wire.Request{Verb: tt.verb, Resource: tt.resource, Group: tt.group, Namespace: tt.namespace}, time.Second, func(time.Duration) {}, func(err error) { t.Error(err) })
		for _, lv := range s.Stats().Levels {
			if lv.Dispatched != before[lv.Name] && lv.Name != tt.want {
				t.Errorf("%s: %s %s in %q is of %s, want %s", tt.who.User, tt.verb, tt.resource, tt.namespace, lv.Name, tt.want)
			}
		}
		l.Close()
	}
}

func mustCreate(t *testing.T, s *Server, objs ...Object) {
	t.Helper()
	for _, obj := range objs {
		if _, err := s.Create(obj); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlowConfig changes a level under load: its queues are dealt anew, their end refuses
// who waits, and a level that is deleted is followed no more.
func TestFlowConfig(t *testing.T) {
	l, s := loaded(&flow.Load{Get: time.Second, MaxRequestsInflight: 20, MaxMutatingRequestsInflight: 10})
	defer l.Close()
	queue := func(n, length int32) flowcontrolv1.LimitResponse {
		return flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: n, HandSize: 1, QueueLengthLimit: length}}
	}
	mustCreate(t, s, levelFor("own", queue(8, 4)), schemaFor("own", "own", 50,
		flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "eve"}},
		flowcontrolv1.ResourcePolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}}))
	run(t, l, time.Second)
	var ok, refused int
	ask := func(n int) {
		for range n {
			s.flow.Admit(askerOf("eve"), &wire.Request{Verb: "get", Resource: "pods", Namespace: "default"}, time.Minute, func(time.Duration) { ok++ }, func(error) { refused++ })
		}
	}
	ask(7) // a seat, and one queue of four
	if ok != 1 || refused != 2 {
		t.Errorf("%d served and %d refused, want 1 and 2", ok, refused)
	}
	update := func(response flowcontrolv1.LimitResponse) {
		t.Helper()
		have, err := s.Get(kinds.PriorityLevelConfiguration, "", "own")
		if err != nil {
			t.Fatal(err)
		}
		next := have.(*flowcontrolv1.PriorityLevelConfiguration).DeepCopy()
		next.Spec.Limited.LimitResponse = response
		if _, err := s.Update(next, ""); err != nil {
			t.Fatal(err)
		}
		run(t, l, 10*time.Millisecond)
	}
	update(queue(2, 3)) // one of the four finds no place
	if lv := s.flow.ByName["own"]; ok != 1 || refused != 3 || lv.Limit != 1 {
		t.Errorf("%d served and %d refused, want 1 and 3; %d seats", ok, refused, lv.Limit)
	}
	update(flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject})
	if ok != 1 || refused != 6 {
		t.Errorf("%d served and %d refused, want 1 and 6", ok, refused)
	}
	if err := s.Delete(kinds.PriorityLevelConfiguration, "", "own", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	run(t, l, 10*time.Millisecond)
	schema, err := s.Get(kinds.FlowSchema, "", "own")
	if err != nil {
		t.Fatal(err)
	}
	if c := schema.(*flowcontrolv1.FlowSchema).Status.Conditions[0]; c.Type != "Dangling" || c.Status != "True" || c.Reason != "NotFound" {
		t.Errorf("the schema says %+v", c)
	}
	ask(2)
	if ok != 3 || refused != 6 {
		t.Errorf("with global-default's seats %d served and %d refused, want 3 and 6", ok, refused)
	}
}

// TestSuggestedConfig has the API server see to its own configuration, but for what users
// have taken over.
func TestSuggestedConfig(t *testing.T) {
	l, s := loaded(nil)
	defer l.Close()
	s.OpenDoor()
	edit := func(name string, fn func(f *flowcontrolv1.FlowSchema)) {
		t.Helper()
		have, err := s.Get(kinds.FlowSchema, "", name)
		if err != nil {
			t.Fatal(err)
		}
		next := have.(*flowcontrolv1.FlowSchema).DeepCopy()
		fn(next)
		if _, err := s.Update(next, ""); err != nil {
			t.Fatal(err)
		}
	}
	edit("probes", func(f *flowcontrolv1.FlowSchema) { f.Spec.MatchingPrecedence = 77 })
	edit("service-accounts", func(f *flowcontrolv1.FlowSchema) {
		f.Spec.MatchingPrecedence, f.Annotations["apf.kubernetes.io/autoupdate-spec"] = 77, "false"
	})
	if err := s.Delete(kinds.FlowSchema, "", "exempt", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, schemaFor("old", "exempt", 60, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "eve"}},
		flowcontrolv1.ResourcePolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}}))
	edit("old", func(f *flowcontrolv1.FlowSchema) {
		f.Annotations = map[string]string{"apf.kubernetes.io/autoupdate-spec": "true"}
	})
	run(t, l, 61*time.Second)
	for name, want := range map[string]int32{"probes": 2, "service-accounts": 77, "exempt": 1, "old": 0} {
		have, _ := s.Store().Lookup(kinds.FlowSchema, "", name).(*flowcontrolv1.FlowSchema)
		switch {
		case want == 0 && have != nil:
			t.Errorf("%s is there", name)
		case want != 0 && (have == nil || have.Spec.MatchingPrecedence != want):
			t.Errorf("%s is %+v, want the precedence %d", name, have, want)
		}
	}
}

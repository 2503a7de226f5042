package up

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/scenarios"
)

// as is how client-go reaches a cluster as another user, without trying again.
func as(c *Cluster, user string) *kubernetes.Clientset {
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil {
				resp.Header.Del("Retry-After")
			}
			return resp, err
		})
	}
	return kubernetes.NewForConfigOrDie(config)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestPanics: a request that panics on the API's loop is answered as the server's mistake,
// and the cluster goes on.
func TestPanics(t *testing.T) {
	c := start(t, Options{Nodes: 1})
	var said []string
	way := &door{c.pacer, c.session.Cluster().API(), func(text string) { said = append(said, text) }}
	if err := way.Do(t.Context(), func() { panic("oops") }); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "oops") {
		t.Errorf("answer %v", err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "oops") || !strings.Contains(said[0], "TestPanics") {
		t.Errorf("said %q, want the panic and where it was", said)
	}
	if _, err := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestLoad has the load model act on clients as their flow schema says.
func TestLoad(t *testing.T) {
	list, err := scenarios.Parse("load.yaml", []byte(`
apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: load}
spec:
  nodes: [{name: n}]
  api: {load: {get: 300ms}}
`), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Scenario: list[0]})
	admin, ctx := kubernetes.NewForConfigOrDie(c.Config()), t.Context()
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: new(int32(0)), BorrowingLimitPercent: new(int32(0)), LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}}}}
	if _, err := admin.FlowcontrolV1().PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "slow"}, MatchingPrecedence: 50,
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "eve"}}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}}}}}}
	if _, err := admin.FlowcontrolV1().FlowSchemas().Create(ctx, schema, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // the configuration is followed a millisecond later
	ask := func(user string) (served, refused int) {
		client := as(c, user)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					served++
				case apierrors.IsTooManyRequests(err):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return served, refused
	}
	if served, refused := ask("eve"); served == 0 || refused == 0 {
		t.Errorf("eve, whose level has one seat: %d served, %d refused", served, refused)
	}
	if served, refused := ask("adam"); served != 4 {
		t.Errorf("adam: %d served, %d refused", served, refused)
	}
}

// TestFaultsOfClients has faults act on the client that they name, and break its watches.
func TestFaultsOfClients(t *testing.T) {
	c := start(t, Options{})
	control, ctx := client(t, c.Config()), t.Context()
	eve, adam := as(c, "eve"), as(c, "adam")
	maps := func(c *kubernetes.Clientset) error {
		_, err := c.CoreV1().ConfigMaps("default").Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}}, metav1.CreateOptions{})
		return err
	}
	watch, err := eve.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ fault, want string }{
		{"{error: {code: 503, reason: ServiceUnavailable, message: down}, verb: create, resource: configmaps, for: 1h}", "down"},
		{"{refuse: true, for: 1h}", "stream error"},
	} {
		if _, err := control.Do(ctx, "{fault: {client: eve, api: "+tt.fault+"}}"); err != nil {
			t.Fatal(err)
		}
		if err := maps(eve); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.fault, err, tt.want)
		}
		if err := maps(adam); err != nil {
			t.Errorf("%s hits another client: %v", tt.fault, err)
		}
	}
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for open := true; open; {
		select {
		case _, open = <-watch.ResultChan():
		case <-within.Done():
			t.Fatal("the watch stands though connections are refused")
		}
	}
}

package facade

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// inRealTime is how a client reaches an API whose loop runs until the test ends.
func inRealTime(t *testing.T) *rest.Config {
	l := loop.NewReal(loop.Options{Name: "api"})
	gone := make(chan struct{})
	f := New(Options{API: apiserver.New(apiserver.Options{Loop: l}), Door: NewRealDoor(l, gone)})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(gone)
		_ = l.RunReal(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-gone
	})
	return &rest.Config{Host: "http://drydock", Transport: &Transport{f}}
}

// TestWebhooks: one labels what is made, also what gets its name here, another refuses
// what it sees of that; each is called once for a request.
func TestWebhooks(t *testing.T) {
	var mu sync.Mutex
	calls := map[string]int{}
	hooks := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		calls[req.URL.Path]++
		mu.Unlock()
		review := &admissionv1.AdmissionReview{}
		cm := &v1.ConfigMap{}
		body, err := io.ReadAll(req.Body)
		if err := errors.Join(err, json.Unmarshal(body, review)); err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal(review.Request.Object.Raw, cm); err != nil {
			t.Error(err)
		}
		r := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		switch req.URL.Path {
		case "/label":
			jsonPatch := admissionv1.PatchTypeJSONPatch
			r.PatchType, r.Patch = &jsonPatch, []byte(`[{"op":"add","path":"/metadata/labels","value":{"by":"hook"}}]`)
		case "/check":
			r.Warnings = []string{"careful"}
			if cm.Labels["by"] != "hook" || cm.Data["bad"] != "" {
				r.Allowed, r.Result = false, &metav1.Status{Message: "it is bad"}
			}
		}
		review.Request, review.Response = nil, r
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	defer hooks.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hooks.Certificate().Raw})

	ctx, clients := t.Context(), kubernetes.NewForConfigOrDie(inRealTime(t))

	none, rules := admissionregistrationv1.SideEffectClassNone, []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"CREATE"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	config := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(hooks.URL + path), CABundle: ca}
	}
	registration := clients.AdmissionregistrationV1()
	if _, err := registration.MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "label.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, ClientConfig: config("/label"), Rules: rules}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := registration.ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "check.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, ClientConfig: config("/check"), Rules: rules}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	maps := clients.CoreV1().ConfigMaps("default")
	made, err := maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	if err != nil || made.Labels["by"] != "hook" || !strings.HasPrefix(made.Name, "x-") {
		t.Fatalf("%+v, %v", made, err)
	}
	if calls["/label"] != 1 || calls["/check"] != 1 {
		t.Errorf("%v, want one call each", calls)
	}
	_, err = maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "y"}, Data: map[string]string{"bad": "v"}}, metav1.CreateOptions{})
	if err == nil || err.Error() != `admission webhook "check.example.com" denied the request: it is bad` {
		t.Errorf("%v", err)
	}
	// Who asks for it is called again once another has changed what it has seen.
	again := admissionregistrationv1.IfNeededReinvocationPolicy
	if _, err := registration.MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "first.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, ClientConfig: config("/first"), Rules: rules, ReinvocationPolicy: &again}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, labels := range []map[string]string{{"by": "hook"}, nil} {
		calls["/first"], calls["/label"] = 0, 0
		if _, err = maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "r-", Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		if want := 2 - len(labels); calls["/first"] != want || calls["/label"] != 1 {
			t.Errorf("%v, want %d calls of the first", calls, want)
		}
	}
	hooks.Close()
	_, err = maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "z"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), `failed calling webhook "first.example.com": failed to call webhook: Post "`+hooks.URL+`/first?timeout=10s"`) {
		t.Errorf("%v", err)
	}
}

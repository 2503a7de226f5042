package up

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestNotices has it said, once each, what of a client's objects has no effect, and which
// images nobody knows.
func TestNotices(t *testing.T) {
	var mu sync.Mutex
	var told []string
	c := start(t, Options{Nodes: 1, Speed: 100, Notice: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
	}})
	clients, ctx := kubernetes.NewForConfigOrDie(c.Config()), t.Context()
	for _, name := range []string{"a", "b"} {
		class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/c"}}
		if _, err := clients.NetworkingV1().IngressClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	none := admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hooks"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "a.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hook"}},
	}}}
	if _, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "example.com/unheard-of:1"}}}}
	if _, err := clients.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`stored, but nothing in a simulation acts on them: IngressClass`,
		`ValidatingWebhookConfiguration "hooks": services can't be reached here, so that calls of webhooks behind shop/hook fail`,
		"nobody knows what these images run: example.com/unheard-of:1",
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		have := slices.Clone(told)
		mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(want), func(w string) bool {
			return slices.ContainsFunc(have, func(h string) bool { return strings.HasPrefix(h, w) })
		})
		switch {
		case len(missing) == 0 && len(have) == len(want):
			return
		case time.Now().After(end):
			t.Fatalf("told %q, want %q", have, want)
		}
	}
}

package store

import (
	"maps"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTopologyLabels: a pod has its node's zone and region, whichever way it comes to the
// node, and what it shares with others is not written to.
func TestTopologyLabels(t *testing.T) {
	s := New(Options{})
	mustCreate(t, s, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{
		v1.LabelTopologyZone: "z1", v1.LabelTopologyRegion: "r1", v1.LabelHostname: "a"}}})
	mustCreate(t, s, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "plain"}})
	shared := map[string]string{"app": "web", v1.LabelTopologyZone: "mine"}
	labelled := func(name, node string) *v1.Pod {
		return testPod(name, func(p *v1.Pod) { p.Labels, p.Spec.NodeName = maps.Clone(shared), node })
	}
	bound := func(name, node string, binding metav1.ObjectMeta) map[string]string {
		mustCreate(t, s, labelled(name, ""))
		pod, err := s.Bind(t0, "default", name, node, binding)
		if err != nil {
			t.Fatal(err)
		}
		return pod.Labels
	}
	template, err := s.NewTemplate(labelled("of", ""))
	if err != nil {
		t.Fatal(err)
	}
	stamped, err := s.CreateFromTemplate(t0, template, Stamp{Name: "stamped", NodeName: "a", Labels: shared})
	if err != nil {
		t.Fatal(err)
	}
	onA := map[string]string{"app": "web", v1.LabelTopologyZone: "z1", v1.LabelTopologyRegion: "r1"}
	with := maps.Clone(onA)
	with["given"] = "yes"
	for name, tc := range map[string]struct{ got, want map[string]string }{
		"created on a node":             {mustCreate(t, s, labelled("created", "a")).GetLabels(), onA},
		"of a template, on a node":      {stamped.Labels, onA},
		"bound":                         {bound("bound", "a", metav1.ObjectMeta{}), onA},
		"bound with labels":             {bound("given", "a", metav1.ObjectMeta{Labels: map[string]string{"given": "yes"}}), with},
		"on a node without topology":    {bound("plain", "plain", metav1.ObjectMeta{}), shared},
		"on a node that isn't there":    {mustCreate(t, s, labelled("nowhere", "none")).GetLabels(), shared},
		"those that several pods share": {shared, map[string]string{"app": "web", v1.LabelTopologyZone: "mine"}},
	} {
		if !maps.Equal(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
}

func TestBindPreconditions(t *testing.T) {
	s := New(Options{})
	pod := mustCreate(t, s, testPod("p", func(*v1.Pod) {}))
	for _, tc := range []struct {
		binding metav1.ObjectMeta
		want    string
	}{
		{metav1.ObjectMeta{UID: "other"}, `on pods "p": Precondition failed: UID in precondition: other`},
		{metav1.ObjectMeta{ResourceVersion: "1"}, `on pods "p": Precondition failed: ResourceVersion in precondition: 1`},
		{metav1.ObjectMeta{UID: pod.GetUID(), ResourceVersion: pod.GetResourceVersion(), Annotations: map[string]string{"why": "test"}}, ""},
		{metav1.ObjectMeta{}, `on pods/binding "p": pod p is already assigned to node "n"`},
	} {
		bound, err := s.Bind(t0, "default", "p", "n", tc.binding)
		switch {
		case tc.want == "" && (err != nil || bound.Annotations["why"] != "test"):
			t.Errorf("%+v: %+v, %v", tc.binding, bound, err)
		case tc.want != "" && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%+v: %v, want %q", tc.binding, err, tc.want)
		}
	}
}

func TestDefaultIngressClass(t *testing.T) {
	s := New(Options{})
	for i, name := range []string{"older", "newest-b", "newest-a", "other"} {
		class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/c"}}
		if name != "other" {
			class.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
		}
		if _, err := s.Create(t0.Add(time.Duration(min(i, 1))*time.Second), class); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		change func(*networkingv1.Ingress)
		want   string
	}{
		"none": {func(*networkingv1.Ingress) {}, "newest-a"},
		"own":  {func(i *networkingv1.Ingress) { i.Spec.IngressClassName = new("other") }, "other"},
		"legacy": {func(i *networkingv1.Ingress) {
			i.Annotations = map[string]string{"kubernetes.io/ingress.class": "nginx"}
		}, ""},
	} {
		ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: networkingv1.IngressSpec{
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}
		tc.change(ingress)
		got := ""
		if c := mustCreate(t, s, ingress).(*networkingv1.Ingress).Spec.IngressClassName; c != nil {
			got = *c
		}
		if got != tc.want {
			t.Errorf("%s: class %q, want %q", name, got, tc.want)
		}
	}
}

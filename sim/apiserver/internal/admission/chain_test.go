package admission

import (
	"errors"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

func TestChain(t *testing.T) {
	var asked []string
	says := func(name string, err error) func(*Request) error {
		return func(*Request) error {
			asked = append(asked, name)
			return err
		}
	}
	create, update := []admissionv1.Operation{admissionv1.Create}, []admissionv1.Operation{admissionv1.Update}
	p := &Plugins{chains: map[chainKey]Chain{}, all: []*Plugin{
		{Name: "pods", Kinds: []kind.Kind{"Pod"}, Operations: create, Mutate: says("pods", nil), Validate: says("pods validate", nil)},
		{Name: "all", Operations: create, Subresources: []string{"", "token"}, Stamped: true, Mutate: says("all", nil)},
		{Name: "any", Operations: create, Subresources: []string{"*"}, Mutate: says("any", nil)},
		{Name: "idle", Operations: create, Idle: func() bool { return true }, Mutate: says("idle", nil)},
		{Name: "updates", Operations: update, Validate: says("updates", errors.New("no"))},
		{Name: "updates too", Operations: update, Validate: says("too late", nil)},
	}}
	for _, tc := range []struct {
		name  string
		chain Chain
		want  []string
		err   bool
	}{
		{"pod", p.Chain(admissionv1.Create, "Pod", ""), []string{"pods", "all", "any", "pods validate"}, false},
		{"other kind", p.Chain(admissionv1.Create, "ConfigMap", ""), []string{"all", "any"}, false},
		{"subresource", p.Chain(admissionv1.Create, "ServiceAccount", "token"), []string{"all", "any"}, false},
		{"another", p.Chain(admissionv1.Create, "Pod", "binding"), []string{"any"}, false},
		{"the first error ends it", p.Chain(admissionv1.Update, "Pod", ""), []string{"updates"}, true},
		{"delete", p.Chain(admissionv1.Delete, "Pod", ""), nil, false},
		{"template", p.TemplateChain("Pod"), []string{"pods", "any", "pods validate"}, false},
		{"stamped", p.StampedChain("Pod"), []string{"all"}, false},
	} {
		asked = nil
		err := errors.Join(tc.chain.Mutate(&Request{}), tc.chain.Validate(&Request{}))
		if !slices.Equal(asked, tc.want) || err != nil != tc.err {
			t.Errorf("%s: asked %v, error %v; want %v, %v", tc.name, asked, err, tc.want, tc.err)
		}
	}
}

// TestTaintNode: a new node isn't ready for pods until something says that it is.
func TestTaintNode(t *testing.T) {
	notReady := func(effect v1.TaintEffect) v1.Taint { return v1.Taint{Key: v1.TaintNodeNotReady, Effect: effect} }
	for _, tc := range []struct {
		name      string
		on        bool
		has, want []v1.Taint
	}{
		{"off", false, nil, nil},
		{"new", true, nil, []v1.Taint{notReady(v1.TaintEffectNoSchedule)}},
		{"has it", true, []v1.Taint{notReady(v1.TaintEffectNoSchedule)}, []v1.Taint{notReady(v1.TaintEffectNoSchedule)}},
		{"of another effect", true, []v1.Taint{notReady(v1.TaintEffectNoExecute)}, []v1.Taint{notReady(v1.TaintEffectNoExecute), notReady(v1.TaintEffectNoSchedule)}},
	} {
		n := &v1.Node{Spec: v1.NodeSpec{Taints: tc.has}}
		if err := (&Plugins{taintNewNodes: tc.on}).taintNode(&Request{Object: n}); err != nil || !slices.Equal(n.Spec.Taints, tc.want) {
			t.Errorf("%s: %v, %v; want %v", tc.name, n.Spec.Taints, err, tc.want)
		}
	}
}

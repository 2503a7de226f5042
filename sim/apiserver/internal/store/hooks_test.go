package store

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// TestHooksAreRemoved has components come and go: what they registered is told of
// what there is and of changes, and of nothing once they are gone, also when they
// go while a change is being told.
func TestHooksAreRemoved(t *testing.T) {
	s := New(Options{})
	create := func(name string) {
		t.Helper()
		if _, err := s.Create(loop.Epoch(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	var heard []string
	hear := func(who string) func(kind.Change) {
		return func(c kind.Change) { heard = append(heard, who+" "+c.Verb+" "+c.New.GetName()) }
	}
	var first Hooks
	s.OnChange(func(c kind.Change) {
		if c.New.GetName() == "last" {
			first.Remove()
		}
	})
	first = s.Hooked(func() { s.OnChange(hear("a")); s.OnChange(hear("b")) })
	second := s.Hooked(func() { s.OnChange(hear("c")) })
	create("one")
	create("last")
	if got := fmt.Sprint(heard); got != "[a create one b create one c create one c create last]" {
		t.Errorf("heard %s", got)
	}
	heard = nil
	second.List()
	if got := fmt.Sprint(heard[:2]); got != "[c list default c list kube-node-lease]" {
		t.Errorf("listed %s", got)
	}
	second.Remove()
	if len(s.hooks) != 1 {
		t.Errorf("%d hooks are left", len(s.hooks))
	}
}

// TestHooksHearTheirKinds has a hook named for kinds told of these alone, in
// changes and in its first list, whenever it comes.
func TestHooksHearTheirKinds(t *testing.T) {
	s := New(Options{})
	var heard []string
	hear := func(who string) func(kind.Change) {
		return func(c kind.Change) { heard = append(heard, fmt.Sprint(who, " ", c.Kind, " ", c.New.GetName())) }
	}
	create := func(objs ...kind.Object) {
		t.Helper()
		for _, obj := range objs {
			if _, err := s.Create(loop.Epoch(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	named := metav1.ObjectMeta{Name: "x", Namespace: "default"}
	s.OnChange(hear("nodes"), kinds.Node)
	create(&v1.ConfigMap{ObjectMeta: named}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	both := s.Hooked(func() { s.OnChange(hear("both"), kinds.Node, kinds.Secret) })
	create(&v1.Secret{ObjectMeta: named}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
	if got := fmt.Sprint(heard); got != "[nodes Node a both Secret x nodes Node b both Node b]" {
		t.Errorf("heard %s", got)
	}
	heard = nil
	both.List()
	if got := fmt.Sprint(heard); got != "[both Node a both Node b both Secret x]" {
		t.Errorf("listed %s", got)
	}
	heard = nil
	both.Remove()
	create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	if got := fmt.Sprint(heard); got != "[nodes Node c]" {
		t.Errorf("heard %s after one was removed", got)
	}
	if n := len(s.hooksOf(kinds.Node)); n != 1 {
		t.Errorf("%d hooks of nodes are kept", n)
	}
}

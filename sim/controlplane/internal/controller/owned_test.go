package controller

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestPodsChangeHands: whose pod it is, and what the controllers a and b hear, while the pod goes
// from one to the other.
func TestPodsChangeHands(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 1})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	pods := NewPods(srv)
	var heard []string
	pods.OnChange("ReplicaSet", func(owner Key, _ types.UID, c PodChange) {
		what := "changed"
		switch {
		case c.Old == nil:
			what = "came"
		case c.New == nil:
			what = "left"
		}
		heard = append(heard, owner.Name+": "+what)
	})
	pods.OnOrphan(func(*v1.Pod) { heard = append(heard, "nobody's") })
	if _, err := srv.Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "app:1"}}}}); err != nil {
		t.Fatal(err)
	}
	edit := func(change func(m *metav1.ObjectMeta)) func() error {
		return func() error {
			_, err := srv.PatchPodMeta("default", "p", "", change)
			return err
		}
	}
	owner := func(name string) func() error {
		return edit(func(m *metav1.ObjectMeta) {
			m.OwnerReferences = nil
			if name != "" {
				m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: new(true)}}
			}
		})
	}
	for _, step := range []struct {
		name string
		do   func() error
		want string // what was heard, and whose it is then
	}{
		{"adopted", owner("a"), "a: came; a 1, b 0, nobody's 0"},
		{"touched", edit(func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{"x": "y"} }), "a: changed; a 1, b 0, nobody's 0"},
		{"taken over", owner("b"), "a: left, b: came; a 0, b 1, nobody's 0"},
		{"released", owner(""), "b: left, nobody's; a 0, b 0, nobody's 1"},
		{"adopted again", owner("a"), "a: came; a 1, b 0, nobody's 0"},
		{"deleted", func() error {
			return srv.Delete(apiserver.KindPod, "default", "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		}, "a: changed, a: left; a 0, b 0, nobody's 0"},
	} {
		heard = nil
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s; a %d, b %d, nobody's %d", strings.Join(heard, ", "), pods.Of("a").Len(), pods.Of("b").Len(), pods.Orphans("default"))
		if got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

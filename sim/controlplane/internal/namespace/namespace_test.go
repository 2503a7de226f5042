package namespace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const component = "namespace-controller"

// rig has a namespace, team, that is deleted at 0 s.
type rig struct {
	t   *testing.T
	l   *loop.Loop
	srv *apiserver.Server
	// told are team's changes: when, and which conditions were True, or "finalized",
	// or "gone".
	told []string
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, l: loop.New(loop.Options{Name: "api", Seed: 5})}
	t.Cleanup(r.l.Close)
	r.srv = apiserver.New(apiserver.Options{Loop: r.l, LatencyMin: time.Microsecond}) // times are the controller's own
	New(controller.Options{Group: r.l.NewGroup("manager"), API: r.srv.Component(component, -1, 0)})
	r.srv.OnChange(func(ch apiserver.Change) {
		ns := ch.New.(*v1.Namespace)
		if ns.Name != "team" || ch.Verb == "create" || ch.Old.GetDeletionTimestamp() == nil {
			return
		}
		what := "finalized"
		switch {
		case ch.Type == watch.Deleted:
			what = "gone"
		case ch.Subresource == "status":
			what = conditions(ns.Status.Conditions)
		}
		r.told = append(r.told, fmt.Sprintf("%v %s", r.l.Since(loop.Epoch()).Truncate(time.Second), what))
	}, apiserver.KindNamespace)
	return r
}

// conditions shows those that are True.
func conditions(list []v1.NamespaceCondition) string {
	var out []string
	for _, c := range list {
		if c.Status == v1.ConditionTrue {
			out = append(out, fmt.Sprintf("%s(%s: %s)", c.Type, c.Reason, c.Message))
		}
	}
	if out == nil {
		return fmt.Sprintf("%d well", len(list))
	}
	return strings.Join(out, " ")
}

func (r *rig) ok(_ any, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) at(d time.Duration, do func()) { r.l.Root().At(loop.Epoch().Add(d), do) }

func (r *rig) configMap(name string, finalizers ...string) {
	r.t.Helper()
	r.ok(r.srv.Create(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Finalizers: finalizers}}))
}

func (r *rig) pod(name, node string, grace int64) {
	r.t.Helper()
	r.ok(r.srv.Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: v1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &grace, Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}))
}

// ended is what a kubelet does when a pod's containers have ended.
func (r *rig) ended(name string) {
	none := int64(0)
	r.ok(nil, r.srv.Delete(apiserver.KindPod, "team", name, metav1.DeleteOptions{GracePeriodSeconds: &none}))
}

func (r *rig) finalize(k apiserver.Kind, namespace, name string) {
	o := r.srv.Store().Lookup(k, namespace, name).DeepCopyObject().(apiserver.Object)
	o.SetFinalizers(nil)
	r.ok(r.srv.Update(o, ""))
}

func TestDeletion(t *testing.T) {
	const remain = "NamespaceContentRemaining(SomeResourcesRemain: Some resources are remaining: "
	const failed = "NamespaceDeletionContentFailure(ContentDeletionFailed: Failed to delete all resource types, 1 remaining: "
	for _, tc := range []struct {
		name string
		fill func(*rig)
		want []string
	}{
		{"empty", func(*rig) {}, []string{"5s 5 well", "5s gone"}},
		{"what goes at once", func(r *rig) {
			r.configMap("a")
			r.pod("pending", "", 30)
		}, []string{"5s 5 well", "5s gone"}},
		// The change of the conditions has it looked at again at 10 s; 30 s of grace
		// make 16 s until the next look. While there are pods nothing tells what remains.
		{"pods first", func(r *rig) {
			r.pod("web", "n", 30)
			r.configMap("a")
			r.at(20*time.Second, func() {
				if r.srv.Store().Lookup(apiserver.KindConfigMap, "team", "a") == nil {
					r.t.Error("the configMap went before the pod")
				}
				r.ended("web")
			})
		}, []string{"5s 5 well", "26s gone"}},
		// Retries come after 5 ms, 10 ms, ...: the eleventh 10.2 s after the first look.
		{"a pod that ignores its grace period", func(r *rig) {
			r.pod("web", "n", 2)
			r.at(12*time.Second, func() { r.ended("web") })
		}, []string{"5s " + failed + "unexpected items still remain in namespace: team for gvr: /v1, Resource=pods)", "15s 5 well", "15s gone"}},
		// A finalizer is thought to take 15 s, which make 8 s until the next look, but
		// for a change's 5 s: 5, 10, 18, 23 s.
		{"finalizers", func(r *rig) {
			r.configMap("a", "example.com/x")
			r.configMap("b", "example.com/x", "example.com/a")
			r.configMap("c")
			r.at(12*time.Second, func() { r.finalize(apiserver.KindConfigMap, "team", "a") })
			r.at(20*time.Second, func() { r.finalize(apiserver.KindConfigMap, "team", "b") })
		}, []string{
			"5s " + remain + "configmaps. has 2 resource instances) NamespaceFinalizersRemaining(SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/a in 1 resource instances, example.com/x in 2 resource instances)",
			"18s " + remain + "configmaps. has 1 resource instances) NamespaceFinalizersRemaining(SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/a in 1 resource instances, example.com/x in 1 resource instances)",
			"23s 5 well", "23s gone",
		}},
		{"errors of the API", func(r *rig) {
			r.configMap("a")
			remove := r.srv.AddFault(apiserver.Fault{Node: component, Verb: "deletecollection", Resource: "configmaps", Code: 500, Message: "out of order"})
			r.at(12*time.Second, remove)
		}, []string{"5s " + failed + "out of order)", "15s 5 well", "15s gone"}},
		{"a finalizer of its own", func(r *rig) {
			ns := r.srv.Store().Lookup(apiserver.KindNamespace, "", "team").DeepCopyObject().(*v1.Namespace)
			ns.Finalizers = []string{"example.com/x"}
			r.ok(r.srv.Update(ns, ""))
			r.at(40*time.Second, func() { r.finalize(apiserver.KindNamespace, "", "team") })
		}, []string{"5s 5 well", "5s finalized", "40s gone"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.ok(r.srv.Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
			tc.fill(r)
			r.ok(nil, r.srv.Delete(apiserver.KindNamespace, "", "team", metav1.DeleteOptions{}))
			r.ok(nil, r.l.RunUntil(loop.Epoch().Add(2*time.Minute)))
			if !slices.Equal(r.told, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(r.told, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestConditionsKeepTheirTime: a condition's time moves with its status alone.
func TestConditionsKeepTheirTime(t *testing.T) {
	r := newRig(t)
	r.ok(r.srv.Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
	r.ok(r.srv.Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
	r.configMap("a", "example.com/x")
	r.configMap("b", "example.com/x")
	r.ok(nil, r.srv.Delete(apiserver.KindNamespace, "", "team", metav1.DeleteOptions{}))
	r.at(12*time.Second, func() { r.finalize(apiserver.KindConfigMap, "team", "a") })
	r.ok(nil, r.l.RunUntil(loop.Epoch().Add(20*time.Second)))
	ns := r.srv.Store().Lookup(apiserver.KindNamespace, "", "team").(*v1.Namespace)
	if len(r.told) != 2 {
		t.Fatalf("told %q", r.told)
	}
	for _, c := range ns.Status.Conditions {
		if at := c.LastTransitionTime.Sub(loop.Epoch()); at != 5*time.Second {
			t.Errorf("%s is of %v", c.Type, at)
		}
	}
	if ns := r.srv.Store().Lookup(apiserver.KindNamespace, "", "other").(*v1.Namespace); ns.Status.Phase != v1.NamespaceActive || ns.Status.Conditions != nil {
		t.Errorf("other: %+v", ns.Status)
	}
}

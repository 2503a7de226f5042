package garbagecollector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

type rig struct {
	t   *testing.T
	l   *loop.Loop
	srv *apiserver.Server
	c   *Controller
}

func newRig(t *testing.T, seed uint64) *rig {
	l := loop.New(loop.Options{Name: "api", Seed: seed})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	return &rig{t, l, srv, New(controller.Options{Group: l.NewGroup("manager"), API: srv.Component("garbage-collector-controller", -1, 0)})}
}

func (r *rig) make(o apiserver.Object, owners ...apiserver.Object) apiserver.Object {
	r.t.Helper()
	yes := true
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		k := r.srv.Store().Kinds().Of(owner)
		refs = append(refs, metav1.OwnerReference{APIVersion: k.APIVersion(), Kind: string(k.Kind), Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: &yes})
	}
	o.SetOwnerReferences(refs)
	made, err := r.srv.Create(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

func template() (v1.PodTemplateSpec, *metav1.LabelSelector) {
	labels := map[string]string{"app": "web"}
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}, &metav1.LabelSelector{MatchLabels: labels}
}

func deployment(name string) apiserver.Object {
	pod, sel := template()
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: appsv1.DeploymentSpec{Template: pod, Selector: sel}}
}

func replicaSet(name string) apiserver.Object {
	pod, sel := template()
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: appsv1.ReplicaSetSpec{Template: pod, Selector: sel}}
}

func pod(name, node string) apiserver.Object {
	p, _ := template()
	p.Spec.NodeName = node
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: p.Spec}
}

func (r *rig) run(d time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(r.l.Now().Add(d)); err != nil {
		r.t.Fatal(err)
	}
}

// left names what there is, and what is being deleted with a dash.
func (r *rig) left() string {
	var out []string
	for _, k := range []apiserver.Kind{apiserver.KindDeployment, apiserver.KindReplicaSet, apiserver.KindPod} {
		list, _ := r.srv.List(k, "default")
		for _, o := range list {
			name := o.GetName()
			if o.GetDeletionTimestamp() != nil {
				name += "-"
			}
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// TestPropagation deletes a Deployment with a ReplicaSet, a pod that takes its
// time to end and one that does not.
func TestPropagation(t *testing.T) {
	for _, tc := range []struct {
		policy            metav1.DeletionPropagation
		meanwhile, finish string
	}{
		{metav1.DeletePropagationBackground, "slow-", ""},
		{metav1.DeletePropagationForeground, "d- rs- slow-", ""},
		{metav1.DeletePropagationOrphan, "rs quick slow", "rs quick"}, // slow is deleted by the test
	} {
		r := newRig(t, 3)
		d := r.make(deployment("d"))
		rs := r.make(replicaSet("rs"), d)
		r.make(pod("slow", "node"), rs)
		r.make(pod("quick", ""), rs)
		if err := r.srv.Delete(apiserver.KindDeployment, "default", "d", metav1.DeleteOptions{PropagationPolicy: &tc.policy}); err != nil {
			t.Fatal(err)
		}
		r.run(5 * time.Second)
		if got := r.left(); got != tc.meanwhile {
			t.Errorf("%s: left %q, want %q", tc.policy, got, tc.meanwhile)
		}
		none := int64(0)
		if err := r.srv.Delete(apiserver.KindPod, "default", "slow", metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			t.Fatal(err)
		}
		r.run(5 * time.Second)
		if got := r.left(); got != tc.finish {
			t.Errorf("%s: in the end %q, want %q", tc.policy, got, tc.finish)
		}
		if tc.policy == metav1.DeletePropagationOrphan {
			if refs := r.srv.Store().Lookup(apiserver.KindReplicaSet, "default", "rs").GetOwnerReferences(); len(refs) != 0 {
				t.Errorf("the orphan has owners %v", refs)
			}
		} else if len(r.c.owned)+len(r.c.absent) != 0 {
			t.Errorf("%s: the collector keeps %d owners and %d that are gone", tc.policy, len(r.c.owned), len(r.c.absent))
		}
	}
}

// TestOwners: an object stays while one of its owners does, and loses the
// reference to the others.
func TestOwners(t *testing.T) {
	r := newRig(t, 4)
	a, b := r.make(replicaSet("a")), r.make(replicaSet("b"))
	r.make(pod("both", "node"), a, b)
	if err := r.srv.Delete(apiserver.KindReplicaSet, "default", "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Second)
	p := r.srv.Pod("default", "both")
	if p == nil || p.DeletionTimestamp != nil || len(p.OwnerReferences) != 1 || p.OwnerReferences[0].Name != "b" {
		t.Fatalf("pod %+v", p)
	}
	if err := r.srv.Delete(apiserver.KindReplicaSet, "default", "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Second)
	if p := r.srv.Pod("default", "both"); p != nil && p.DeletionTimestamp == nil {
		t.Error("the pod outlived its last owner")
	}
}

// TestRandomTrees deletes at random in random trees of owners and holds what is
// left to the closure of what was deleted.
func TestRandomTrees(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, seed)
		type made struct {
			kind   apiserver.Kind
			name   string
			owners []int
		}
		var all []made
		var objs []apiserver.Object
		for i := range 40 {
			m := made{kind: apiserver.KindReplicaSet, name: fmt.Sprint("o", i)}
			var owners []apiserver.Object
			for j, o := range objs {
				if all[j].kind != apiserver.KindPod && rnd.IntN(6) == 0 && len(owners) < 2 {
					owners, m.owners = append(owners, o), append(m.owners, j)
				}
			}
			o := replicaSet(m.name)
			if rnd.IntN(2) == 0 {
				m.kind, o = apiserver.KindPod, pod(m.name, "")
			}
			objs = append(objs, r.make(o, owners...))
			all = append(all, m)
		}
		dead := map[int]bool{}
		for range 6 {
			i := rnd.IntN(len(all))
			if dead[i] {
				continue
			}
			policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[rnd.IntN(2)]
			if err := r.srv.Delete(all[i].kind, "default", all[i].name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
				t.Fatal(err)
			}
			r.run(10 * time.Second)
			dead[i] = true
			for j := range all { // owners come before their dependents
				if len(all[j].owners) > 0 && !slices.ContainsFunc(all[j].owners, func(o int) bool { return !dead[o] }) {
					dead[j] = true
				}
			}
		}
		for i, m := range all {
			if there := r.srv.Store().Lookup(m.kind, "default", m.name) != nil; there == dead[i] {
				t.Errorf("seed %d: %s with owners %v: there %v, want %v", seed, m.name, m.owners, there, !dead[i])
			}
		}
	}
}

// TestOwnerElsewhere has an object name an owner of another namespace: it is deleted,
// with an event, and those that name the owner rightly keep it.
func TestOwnerElsewhere(t *testing.T) {
	r := newRig(t, 1)
	if _, err := r.srv.Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}); err != nil {
		t.Fatal(err)
	}
	owner, gone := r.make(deployment("web")), r.make(deployment("old"))
	r.make(replicaSet("both"), owner, gone)
	stray := r.make(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stray", Namespace: "other"}}, owner)
	node := r.make(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, owner)
	r.run(time.Second)
	if r.srv.Store().Lookup(apiserver.KindConfigMap, "other", "stray") != nil {
		t.Error("the object in another namespace is still there")
	}
	// Now the garbage collector looks at what the owner rightly owns.
	if err := r.srv.Delete(apiserver.KindDeployment, "default", "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(time.Second)
	both := r.srv.Store().Lookup(apiserver.KindReplicaSet, "default", "both")
	if both == nil || len(both.GetOwnerReferences()) != 1 || both.GetOwnerReferences()[0].UID != owner.GetUID() {
		t.Errorf("the ReplicaSet of the remaining owner is %v", both)
	}
	if r.srv.Store().Lookup(apiserver.KindNode, "", "n") == nil {
		t.Error("a node that names an owner in a namespace is gone")
	}
	got := map[string]string{}
	for _, ev := range r.srv.Events() {
		got[ev.InvolvedObject.Name] = ev.Type + " " + ev.Reason + ": " + ev.Message
	}
	for _, o := range []apiserver.Object{stray, node} {
		want := fmt.Sprintf("Warning OwnerRefInvalidNamespace: ownerRef [apps/v1/Deployment, namespace: %s, name: web, uid: %s] does not exist in namespace %q", o.GetNamespace(), owner.GetUID(), o.GetNamespace())
		if got[o.GetName()] != want {
			t.Errorf("event about %s: %q, want %q", o.GetName(), got[o.GetName()], want)
		}
	}
}

// TestCustomOwner: what a custom resource owns goes with it, though its kind came when
// the collector was there already.
func TestCustomOwner(t *testing.T) {
	r := newRig(t, 6)
	preserve := true
	r.make(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "shops.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shops", Singular: "shop", Kind: "Shop", ListKind: "ShopList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}}}},
		},
	})
	r.run(time.Second)
	shop := &unstructured.Unstructured{}
	shop.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"})
	shop.SetNamespace("default")
	shop.SetName("corner")
	made, err := r.srv.Create(shop)
	if err != nil {
		t.Fatal(err)
	}
	p := pod("owned", "")
	p.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Shop", Name: "corner", UID: made.GetUID()}})
	if _, err := r.srv.Create(p); err != nil {
		t.Fatal(err)
	}
	r.run(time.Minute)
	if got := r.left(); got != "owned" {
		t.Fatalf("with its owner: left %q", got)
	}
	if err := r.srv.Delete("shops.example.com", "default", "corner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(time.Minute)
	if got := r.left(); got != "" {
		t.Errorf("without its owner: left %q", got)
	}
}

// TestNewOwnerMeanwhile: an object that gets an owner while the collector deletes it for want of one
// stays, whenever in between it gets it.
func TestNewOwnerMeanwhile(t *testing.T) {
	saved := 0
	for after := time.Duration(0); after < 100*time.Millisecond; after += time.Millisecond {
		r := newRig(t, 3)
		owner := r.make(deployment("owner"))
		gone := r.make(replicaSet("gone"))
		r.make(pod("a", "node"), gone)
		r.run(time.Second)
		if err := r.srv.Delete(apiserver.KindReplicaSet, "default", "gone", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		late := false
		r.l.Root().After(after, func() {
			p := r.srv.Pod("default", "a").DeepCopy()
			if late = p.DeletionTimestamp != nil; late {
				return
			}
			p.OwnerReferences = append(p.OwnerReferences, controller.OwnerReference(owner))
			if _, err := r.srv.Update(p, ""); err != nil {
				t.Error(err)
			}
		})
		r.run(10 * time.Second)
		switch p := r.srv.Pod("default", "a"); {
		case late:
		case p == nil || p.DeletionTimestamp != nil:
			t.Errorf("%v after the owner's end another one came, and the pod is deleted all the same", after)
		case len(p.OwnerReferences) != 1:
			t.Errorf("the pod's owners are %v", p.OwnerReferences)
		default:
			saved++
		}
	}
	if saved == 0 {
		t.Error("the owner always came too late")
	}
}

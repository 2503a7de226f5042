package controlplane

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestAccounts: where a door is open each namespace has its account and its root
// certificate at once, also when somebody takes them away; elsewhere none has.
func TestAccounts(t *testing.T) {
	r := newRig(t, 1)
	count := func(k apiserver.Kind) int {
		list, err := r.srv.List(k, "")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	r.run(time.Minute)
	if n := count(apiserver.KindServiceAccount) + count(apiserver.KindConfigMap); n != 0 {
		t.Fatalf("%d objects without a door", n)
	}
	r.srv.OpenDoor()
	if a, c := count(apiserver.KindServiceAccount), count(apiserver.KindConfigMap); a != 4 || c != 4 {
		t.Fatalf("%d accounts, %d config maps, want 4", a, c)
	}
	if _, err := r.srv.Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	made, err := r.srv.Create(pod)
	if err != nil || len(made.(*v1.Pod).Spec.Volumes) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	if err := r.srv.Delete(apiserver.KindServiceAccount, "shop", "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if a := count(apiserver.KindServiceAccount); a != 5 {
		t.Errorf("%d accounts after one was deleted, want 5", a)
	}
	ca, _ := r.srv.Store().Lookup(apiserver.KindConfigMap, "shop", "kube-root-ca.crt").(*v1.ConfigMap)
	c := ca.DeepCopy()
	c.Data["ca.crt"] = "mine"
	if _, err := r.srv.Update(c, ""); err != nil {
		t.Fatal(err)
	}
	if got := r.srv.Store().Lookup(apiserver.KindConfigMap, "shop", "kube-root-ca.crt").(*v1.ConfigMap).Data["ca.crt"]; got != string(r.srv.Authority().PEM()) {
		t.Errorf("%q", got)
	}
	r.run(10 * time.Second) // the pod starts
	if err := r.srv.Delete(apiserver.KindNamespace, "", "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Minute)
	if a := count(apiserver.KindServiceAccount); a != 4 {
		t.Errorf("%d accounts after a namespace went, want 4", a)
	}
}

// TestQuotaIsCounted: a quota is charged for what is made, also by controllers, and given
// back what is gone.
func TestQuotaIsCounted(t *testing.T) {
	r := newRig(t, 1)
	hard := v1.ResourceList{"pods": *quantity(2), "count/configmaps": *quantity(1)}
	if _, err := r.srv.Create(&v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "q"}, Spec: v1.ResourceQuotaSpec{Hard: hard}}); err != nil {
		t.Fatal(err)
	}
	used := func(want int64) {
		t.Helper()
		q := r.srv.Store().Lookup(apiserver.KindResourceQuota, "default", "q").(*v1.ResourceQuota)
		pods := q.Status.Used["pods"]
		if pods.Value() != want {
			t.Errorf("%d pods used, want %d (%+v)", pods.Value(), want, q.Status)
		}
	}
	r.run(time.Second)
	used(0)
	r.apply(`
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i}]}
`)
	r.run(10 * time.Second)
	used(2)
	if n := len(r.srv.Pods()); n != 2 {
		t.Errorf("%d pods, want 2", n)
	}
	r.patch(apiserver.KindReplicaSet, "web", `{"spec":{"replicas":1}}`)
	r.run(time.Minute)
	used(1)
}

func quantity(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

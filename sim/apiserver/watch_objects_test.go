package apiserver

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

func (r *rig) put(name, data string) {
	r.t.Helper()
	o := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"k": data}}
	var err error
	if r.srv.store.Lookup(KindConfigMap, "default", name) == nil {
		_, err = r.srv.store.Create(r.srv.now(), o)
	} else {
		_, err = r.srv.store.Update(r.srv.now(), o, "")
	}
	if err != nil {
		r.t.Error(err)
	}
}

func (r *rig) watchConfigMap(name string) (stop func()) {
	data := func(c *v1.ConfigMap) string {
		if c == nil {
			return "none"
		}
		return c.Data["k"]
	}
	return r.c.WatchConfigMap(r.g, "default", name, func(c *v1.ConfigMap) { r.note("list %s", data(c)) },
		func(t watch.EventType, c *v1.ConfigMap) { r.note("%s %s", t, data(c)) })
}

// A watch of one object shows that object only, through partitions, and ends
// when it is stopped.
func TestWatchConfigMap(t *testing.T) {
	r := newRig(t, 1, Options{})
	stop := r.watchConfigMap("cm")
	r.at(time.Second, func() { r.put("cm", "1"); r.put("other", "x") })
	r.at(2*time.Second, func() { r.put("cm", "2") })
	r.at(3*time.Second, func() {
		if _, err := r.srv.store.Delete(r.srv.now(), KindConfigMap, "default", "cm", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	var heal func()
	r.at(4*time.Second, func() {
		heal = r.srv.AddFault(wire.Fault{Refuse: true})
		r.put("cm", "3")
	})
	r.at(5*time.Second, func() { heal() })
	r.node.Root().At(loop.Epoch().Add(10*time.Second), func() { stop(); stop() })
	r.at(11*time.Second, func() { r.put("cm", "4") })
	r.run(12 * time.Second)
	want := []string{"0s list none", "1s ADDED 1", "2s MODIFIED 2", "3s DELETED 2"}
	if len(r.log) != 5 || !reflect.DeepEqual(r.log[:4], want) || !strings.HasSuffix(r.log[4], "list 3") {
		t.Error(r.log)
	}
	if len(r.srv.watches.byObject) != 0 || len(r.srv.watches.peers["n"][0].subs) != 0 {
		t.Error("the API remembers the watch")
	}
}

// A node's watches end with its kubelet.
func TestObjectWatchesDieWithGroup(t *testing.T) {
	r := newRig(t, 1, Options{})
	r.watchConfigMap("a")
	r.watchConfigMap("b")
	r.c.WatchServices(r.g, func([]*v1.Service) {}, func(watch.EventType, *v1.Service) {})
	r.node.Root().At(loop.Epoch().Add(time.Second), func() {
		if len(r.srv.watches.byObject) != 3 {
			t.Error(len(r.srv.watches.byObject))
		}
		r.g.Kill()
	})
	r.run(2 * time.Second)
	if len(r.srv.watches.byObject) != 0 || len(r.c.watchers) != 0 {
		t.Error("watches are left")
	}
}

func TestCreateToken(t *testing.T) {
	ask := func(r *rig, tr *authenticationv1.TokenRequest) (out *authenticationv1.TokenRequest, err error) {
		r.g.Go("ask", func(ctx context.Context) { out, err = r.c.CreateToken(ctx, "default", "builder", tr) })
		r.run(r.e.Now().Sub(loop.Epoch()) + time.Second)
		return out, err
	}
	request := func(seconds int64) *authenticationv1.TokenRequest {
		tr := &authenticationv1.TokenRequest{}
		tr.Spec.ExpirationSeconds = &seconds
		tr.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"}
		return tr
	}
	r := newRig(t, 1, Options{})
	if _, err := ask(r, request(3600)); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	r.at(r.e.Now().Sub(loop.Epoch()), func() {
		r.create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1.PodSpec{ServiceAccountName: "builder", Containers: []v1.Container{{Name: "c", Image: "i"}}}})
	})
	r.run(r.e.Now().Sub(loop.Epoch()) + time.Second)
	tr := request(3600)
	if _, err := ask(r, tr); !apierrors.IsConflict(err) {
		t.Error(err) // another pod of that name
	}
	tr.Spec.BoundObjectRef.UID = r.srv.store.Pod("default", "p").UID
	a, err := ask(r, tr)
	if err != nil || a.Status.Token == "" || a.Status.ExpirationTimestamp.Sub(loop.Epoch()) < time.Hour {
		t.Fatal(a, err)
	}
	b, err := ask(r, tr)
	if err != nil || b.Status.Token == a.Status.Token {
		t.Error(b, err)
	}
	tr = tr.DeepCopy()
	*tr.Spec.ExpirationSeconds = 60
	if _, err := ask(r, tr); !apierrors.IsInvalid(err) {
		t.Error(err)
	}
}

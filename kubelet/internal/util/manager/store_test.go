package manager

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// api is an API with one configMap, "cm", or none.
type api struct {
	l       *loop.Loop
	object  *v1.ConfigMap
	err     error
	latency time.Duration // of lists
	gets    int
	lists   int
	watches int // in progress
	event   func(watch.EventType, *v1.ConfigMap)
}

func (a *api) GetConfigMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	a.gets++
	switch {
	case a.err != nil:
		return nil, a.err
	case a.object == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return a.object, nil
}

func (a *api) WatchConfigMap(g *loop.Group, _, _ string, listed func(*v1.ConfigMap), event func(watch.EventType, *v1.ConfigMap)) (stop func()) {
	a.lists++
	a.watches++
	a.event = event
	g.After(a.latency, func() { listed(a.object) })
	return func() { a.watches-- }
}

// set changes the configMap.
func (a *api) set(version int, data string) {
	a.object = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(version)}, Data: map[string]string{"k": data}}
	if a.event != nil && a.watches > 0 {
		a.event(watch.Modified, a.object)
	}
}

type rig struct {
	t    *testing.T
	l    *loop.Loop
	api  *api
	m    *Store[*v1.ConfigMap]
	node *v1.Node
}

func newRig(t *testing.T, strategy kubeletconfig.ResourceChangeDetectionStrategy) *rig {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	r := &rig{t: t, l: l, api: &api{l: l, latency: 5 * time.Millisecond}}
	r.m = NewConfigMaps(r.api, Options{Group: l.Root(), Strategy: strategy, Resync: time.Minute,
		Node: func() *v1.Node { return r.node }})
	return r
}

// get reads at a time since the start.
func (r *rig) get(at time.Duration, want string) {
	r.l.Root().At(loop.Epoch().Add(at), func() {
		r.l.Root().Go("get", func(ctx context.Context) {
			r.t.Helper()
			c, err := r.m.Get(ctx, "default", "cm")
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = c.Data["k"]
			}
			got = fmt.Sprintf("%v %s", r.l.Since(loop.Epoch().Add(at)).Truncate(time.Millisecond), got)
			if got != want {
				r.t.Errorf("at %v: %q, want %q", at, got, want)
			}
		})
	})
}

func (r *rig) at(at time.Duration, fn func()) { r.l.Root().At(loop.Epoch().Add(at), fn) }

func (r *rig) run(until time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(loop.Epoch().Add(until)); err != nil {
		r.t.Fatal(err)
	}
}

// user is a pod that uses the configMap.
func user(uid string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)}}
	v := v1.Volume{Name: "v"}
	v.ConfigMap = &v1.ConfigMapVolumeSource{}
	v.ConfigMap.Name = "cm"
	p.Spec.Volumes = []v1.Volume{v}
	return p
}

func TestWatch(t *testing.T) {
	r := newRig(t, kubeletconfig.WatchChangeDetectionStrategy)
	pod, other := user("p"), user("other")
	r.get(0, `0s object "default"/"cm" not registered`)
	r.at(time.Second, func() { r.m.RegisterPod(pod); r.m.RegisterPod(pod); r.m.RegisterPod(other) })
	r.get(time.Second+time.Millisecond, `10ms configmap "cm" not found`) // looked at every 10 ms
	r.at(2*time.Second, func() { r.api.set(1, "a") })
	r.get(3*time.Second, "0s a")
	r.at(4*time.Second, func() { r.api.set(2, "b"); r.m.UnregisterPod(pod) })
	r.get(5*time.Second, "0s b")
	r.at(6*time.Second, func() { r.api.event(watch.Deleted, r.api.object) })
	r.get(7*time.Second, `0s configmap "cm" not found`)
	r.at(8*time.Second, func() { r.m.UnregisterPod(other) })
	r.get(9*time.Second, `0s object "default"/"cm" not registered`)
	r.run(10 * time.Second)
	if r.api.lists != 1 || r.api.watches != 0 || r.api.gets != 0 {
		t.Errorf("%+v", r.api)
	}
}

func TestWatchTakesLong(t *testing.T) {
	r := newRig(t, kubeletconfig.WatchChangeDetectionStrategy)
	r.api.latency = 3 * time.Second
	r.at(0, func() { r.m.RegisterPod(user("p")) })
	r.get(time.Second, "1s failed to sync configmap cache: timed out waiting for the condition")
	r.get(4*time.Second, `0s configmap "cm" not found`)
	r.run(5 * time.Second)
}

// A watch that nobody reads for five minutes ends, at a full minute, and begins
// again with the next read.
func TestIdleWatch(t *testing.T) {
	r := newRig(t, kubeletconfig.WatchChangeDetectionStrategy)
	r.at(0, func() { r.api.set(1, "a"); r.m.RegisterPod(user("p")) })
	r.get(30*time.Second, "0s a")
	for minute, want := range map[int]int{5: 1, 6: 0} {
		r.at(time.Duration(minute)*time.Minute+time.Second, func() {
			if r.api.watches != want {
				t.Errorf("%d watches after %d minutes", r.api.watches, minute)
			}
		})
	}
	r.at(7*time.Minute, func() { r.api.set(2, "b") })
	r.get(8*time.Minute, "10ms b")
	r.run(9 * time.Minute)
	if r.api.lists != 2 || r.api.watches != 1 {
		t.Errorf("%+v", r.api)
	}
}

func TestImmutable(t *testing.T) {
	r := newRig(t, kubeletconfig.WatchChangeDetectionStrategy)
	r.at(0, func() {
		r.api.set(1, "a")
		yes := true
		r.api.object.Immutable = &yes
		r.m.RegisterPod(user("p"))
	})
	r.get(time.Second, "0s a")
	r.at(2*time.Second, func() {
		if r.api.watches != 0 {
			t.Error("still watched")
		}
		r.api.object = nil
	})
	r.get(time.Hour, "0s a")
	r.run(2 * time.Hour)
}

func TestCache(t *testing.T) {
	r := newRig(t, kubeletconfig.TTLCacheChangeDetectionStrategy)
	pod := user("p")
	r.at(0, func() { r.m.RegisterPod(pod) })
	r.get(time.Second, `0s configmaps "cm" not found`)
	r.at(2*time.Second, func() { r.api.set(5, "a") })
	r.get(3*time.Second, "0s a") // what is missing is asked for each time
	r.at(4*time.Second, func() { r.api.set(6, "b") })
	r.get(5*time.Second, "0s a")
	r.get(64*time.Second, "0s b") // a minute later
	r.at(65*time.Second, func() { r.api.set(7, "c"); r.m.RegisterPod(pod) })
	r.get(66*time.Second, "0s c") // registered anew
	r.at(67*time.Second, func() { r.api.err = errors.New("down") })
	r.get(200*time.Second, "0s c") // what is kept serves on
	r.at(201*time.Second, func() { r.api.err = nil; r.api.set(3, "old") })
	r.get(202*time.Second, "0s c") // an older version is none
	r.at(203*time.Second, func() {
		r.node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.ObjectTTLAnnotationKey: "10"}}}
		r.api.set(8, "d")
		r.m.RegisterPod(pod)
	})
	r.get(204*time.Second, "0s d")
	r.at(205*time.Second, func() { r.api.set(9, "e") })
	r.get(213*time.Second, "0s d")
	r.get(215*time.Second, "0s e") // as the node's annotation says
	r.run(300 * time.Second)
	if r.api.lists != 0 {
		t.Errorf("%+v", r.api)
	}
}

func TestGet(t *testing.T) {
	r := newRig(t, kubeletconfig.GetChangeDetectionStrategy)
	r.get(0, `0s configmaps "cm" not found`)
	r.at(time.Second, func() { r.api.set(1, "a") })
	r.get(2*time.Second, "0s a")
	r.run(3 * time.Second)
}

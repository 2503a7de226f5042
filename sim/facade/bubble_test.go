package facade

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// latency is what a message takes.
const latency = 5 * time.Millisecond

// ahead is by how much the cluster's clock is ahead of the bubble's, so that times of
// the one can be told from those of the other.
const ahead = 1000 * time.Hour

// bubbleDoor has an API's loop follow the time of the bubble that it is in.
type bubbleDoor struct {
	l    *loop.Loop
	mu   sync.Mutex
	in   []*crossing
	wake chan struct{}
	quit chan struct{}
	done chan struct{}
	last time.Time // of a delivery
}

// crossing is a request on its way.
type crossing struct {
	at  time.Time
	key string
	fn  func()
	ok  chan struct{}
}

type keyOf struct{}

func newBubbleDoor(l *loop.Loop) *bubbleDoor {
	d := &bubbleDoor{l: l, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	return d
}

// open has the loop run from now on: until then it is the caller's.
func (d *bubbleDoor) open() { go d.pump() }

func (d *bubbleDoor) close() {
	close(d.quit)
	<-d.done
}

// Do implements Door.
func (d *bubbleDoor) Do(ctx context.Context, fn func()) error {
	key, _ := ctx.Value(keyOf{}).(string)
	c := &crossing{at: time.Now().Add(latency), key: key, fn: fn, ok: make(chan struct{})}
	d.mu.Lock()
	d.in = append(d.in, c)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
	select {
	case <-c.ok:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Deliver implements Door: no two deliveries are at one instant.
func (d *bubbleDoor) Deliver(_ context.Context, fn func()) {
	at := time.Now().Add(latency)
	if !at.After(d.last) {
		at = d.last.Add(time.Microsecond)
	}
	d.last = at
	time.AfterFunc(time.Until(at), fn)
}

func (d *bubbleDoor) pump() {
	defer close(d.done)
	timer := time.NewTimer(0)
	for {
		now := time.Now()
		if err := d.l.RunUntil(now.Add(ahead)); err != nil {
			panic(err)
		}
		d.mu.Lock()
		slices.SortStableFunc(d.in, func(a, b *crossing) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.key, b.key)) })
		var due []*crossing
		for len(d.in) > 0 && !d.in[0].at.After(now) {
			due, d.in = append(due, d.in[0]), d.in[1:]
		}
		next := now.Add(time.Millisecond) // the loop may have something to do
		if len(d.in) > 0 {
			next = d.in[0].at
		}
		d.mu.Unlock()
		for _, c := range due {
			c.fn()
			d.Deliver(context.Background(), func() { close(c.ok) })
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-d.wake:
		case <-d.quit:
			return
		}
	}
}

// inBubble runs fn with clients of a new API, and returns the hash of its trace.
func inBubble(t *testing.T, fn func(t *testing.T, config *rest.Config)) (hash string) {
	synctest.Test(t, func(t *testing.T) {
		if d := time.Until(loop.Epoch()); d > 0 {
			time.Sleep(d)
		}
		l := loop.New(loop.Options{Name: "api", Start: loop.Epoch().Add(ahead)})
		rec := trace.NewRecorder(l, "", nil)
		api := apiserver.New(apiserver.Options{Loop: l, Recorder: rec})
		door := newBubbleDoor(l)
		f := New(Options{API: api, Door: door})
		door.open()
		keyed := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			f.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), keyOf{}, req.UserAgent()+" "+req.Method+" "+req.URL.String())))
		})
		defer func() {
			door.close()
			l.Close()
			hash = fmt.Sprint(rec.Hash())
		}()
		fn(t, &rest.Config{Host: "http://drydock", Transport: &Transport{keyed}})
	})
	return hash
}

// widgets is the definition of a kind with a default, a field less than clients send,
// and a rule.
const widgets = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{
		"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
		"schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"spec": {"type": "object", "required": ["size"], "properties": {
				"size": {"type": "integer", "minimum": 1}, "mode": {"type": "string", "default": "slow"}},
				"x-kubernetes-validations": [{"rule": "self.mode != 'fast' || self.size < 5", "message": "too large for fast"}]},
			"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}`

// TestFirstSlice serves a definition, its Established condition, a create and a watch to
// client-go, twice with the same trace.
func TestFirstSlice(t *testing.T) {
	var hashes []string
	for range 2 {
		hashes = append(hashes, inBubble(t, firstSlice))
	}
	if hashes[0] != hashes[1] {
		t.Errorf("hashes %v", hashes)
	}
}

func firstSlice(t *testing.T, config *rest.Config) {
	clients := dynamic.NewForConfigOrDie(config)
	def := &unstructured.Unstructured{}
	if err := def.UnmarshalJSON([]byte(widgets)); err != nil {
		t.Fatal(err)
	}
	defs := clients.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	seen, err := defs.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := defs.Create(t.Context(), def, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for ev := range seen.ResultChan() {
		conditions, _, _ := unstructured.NestedSlice(ev.Object.(*unstructured.Unstructured).Object, "status", "conditions")
		if slices.ContainsFunc(conditions, func(c any) bool {
			return c.(map[string]any)["type"] == "Established" && c.(map[string]any)["status"] == "True"
		}) {
			break
		}
	}
	seen.Stop()

	ours := clients.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("default")
	w, err := ours.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	widget := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": spec, "status": map[string]any{"mine": true}}}
	}
	for _, bad := range []struct {
		spec map[string]any
		want string
	}{
		{map[string]any{}, "spec.size: Required value"},
		{map[string]any{"size": int64(0)}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"},
		{map[string]any{"size": int64(7), "mode": "fast"}, "spec: Invalid value: too large for fast"},
	} {
		if _, err := ours.Create(t.Context(), widget("bad", bad.spec), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v: %v, want %s", bad.spec, err, bad.want)
		}
	}
	made, err := ours.Create(t.Context(), widget("one", map[string]any{"size": int64(3), "unknown": "x"}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := made.Object["spec"], any(map[string]any{"size": int64(3), "mode": "slow"}); !reflect.DeepEqual(got, want) || made.Object["status"] != nil {
		t.Errorf("made %v, want %v and no status", made.Object, want)
	}
	ev := <-w.ResultChan()
	if got := ev.Object.(*unstructured.Unstructured); ev.Type != watch.Added || got.GetUID() != made.GetUID() || got.GetGeneration() != 1 {
		t.Errorf("event %v %v", ev.Type, got)
	}
	if at := made.GetCreationTimestamp(); at.Sub(loop.Epoch()) < ahead {
		t.Errorf("created at %v, not the cluster's time", at)
	}
	patched, err := ours.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"status":{"ready":true}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if got := patched.Object["status"]; !reflect.DeepEqual(got, any(map[string]any{"ready": true})) || patched.GetGeneration() != 1 {
		t.Errorf("patched %v", patched.Object)
	}
	if err := defs.Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for ev := range w.ResultChan() {
		if ev.Type == watch.Deleted {
			break
		}
	}
	if _, err := ours.Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its definition: %v", err)
	}
}

func TestCreateAndWatch(t *testing.T) {
	var hashes []string
	for range 2 {
		hashes = append(hashes, inBubble(t, func(t *testing.T, config *rest.Config) {
			clients := kubernetes.NewForConfigOrDie(config)
			maps := clients.CoreV1().ConfigMaps("default")
			w, err := maps.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ev := <-w.ResultChan()
			if got, ok := ev.Object.(*v1.ConfigMap); !ok || got.UID != made.UID || got.Data["a"] != "b" {
				t.Errorf("%v %v, want %v", ev.Type, ev.Object, made)
			}
			w.Stop()
			if _, err := clients.Discovery().ServerPreferredResources(); err != nil {
				t.Error(err)
			}
		}))
	}
	if hashes[0] != hashes[1] {
		t.Errorf("hashes %v", hashes)
	}
}

// TestApplyAndDryRun: what is applied to nothing is made, what is done for show leaves
// nothing, and times are the cluster's.
func TestApplyAndDryRun(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		show := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		shown, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "show-"}}, show)
		if err != nil || shown.UID == "" || shown.ResourceVersion != "" {
			t.Errorf("for show: %v, %v", shown, err)
		}
		if _, err := maps.Get(t.Context(), shown.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after the show: %v", err)
		}
		for _, manager := range []string{"one", "two"} {
			time.Sleep(time.Minute)
			apply := applyv1.ConfigMap("applied", "default").WithData(map[string]string{manager: "v"})
			if _, err := maps.Apply(t.Context(), apply, metav1.ApplyOptions{FieldManager: manager}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := maps.Get(t.Context(), "applied", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var managers []string
		for _, e := range got.ManagedFields {
			managers = append(managers, fmt.Sprint(e.Manager, " ", e.Time.Sub(loop.Epoch().Add(ahead)).Truncate(time.Minute)))
		}
		if want := []string{"one 1m0s", "two 2m0s"}; !slices.Equal(managers, want) || len(got.Data) != 2 {
			t.Errorf("managers %q, want %q; data %v", managers, want, got.Data)
		}
		if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Kind != "" || list.ResourceVersion != got.ResourceVersion {
			t.Errorf("list %v, %v", list, err)
		}
	})
}

// TestFieldSelectors: a kind is selected by its own fields, and by no others.
func TestFieldSelectors(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		clients := kubernetes.NewForConfigOrDie(config).CoreV1()
		for _, typ := range []v1.SecretType{"one", "two"} {
			if _, err := clients.Secrets("default").Create(t.Context(), &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: string(typ)}, Type: typ}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := clients.Secrets("default").List(t.Context(), metav1.ListOptions{FieldSelector: "type=two"})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != "two" {
			t.Errorf("%v, %v", list, err)
		}
		for selector, want := range map[string]string{"data=x": "field label not supported: data", "metadata.name=one,type=two": ""} {
			list, err := clients.Secrets("default").List(t.Context(), metav1.ListOptions{FieldSelector: selector})
			if want == "" && (err != nil || len(list.Items) > 0) || want != "" && (err == nil || err.Error() != want) {
				t.Errorf("%s: %v, want %q", selector, err, want)
			}
		}
	})
}

// TestSubresources: scale, binding, eviction and ephemeral containers go by paths of
// their own.
func TestSubresources(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		clients := kubernetes.NewForConfigOrDie(config)
		ctx, labels := t.Context(), map[string]string{"app": "web"}
		spec := v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "nginx"}}}
		deployments := clients.AppsV1().Deployments("default")
		_, err := deployments.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
		if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app=web" {
			t.Fatalf("%+v, %v", scale, err)
		}
		scale.Spec.Replicas = 5
		if _, err := deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if d, err := deployments.Get(ctx, "web", metav1.GetOptions{}); err != nil || *d.Spec.Replicas != 5 || d.Generation != 2 {
			t.Errorf("%+v, %v", d, err)
		}

		if _, err := clients.CoreV1().ServiceAccounts("default").Create(ctx, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pods := clients.CoreV1().Pods("default")
		pod, err := pods.Create(ctx, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}}}
		if pod, err = pods.UpdateEphemeralContainers(ctx, "p", pod, metav1.UpdateOptions{}); err != nil || len(pod.Spec.EphemeralContainers) != 1 {
			t.Errorf("%+v, %v", pod, err)
		}
		binding := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: v1.ObjectReference{Kind: "Node", Name: "n"}}
		for i, want := range []string{"", `Operation cannot be fulfilled on pods/binding "p"`} {
			err := pods.Bind(ctx, binding, metav1.CreateOptions{})
			if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("binding %d: %v, want %q", i, err, want)
			}
		}
		if err := pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p"}}); err != nil {
			t.Error(err)
		}
		if pod, err = pods.Get(ctx, "p", metav1.GetOptions{}); err != nil || pod.Spec.NodeName != "n" || pod.DeletionTimestamp == nil {
			t.Errorf("%+v, %v", pod, err)
		}
	})
}

// TestWatch: a watch can begin with more than it may be behind later, an object that is
// selected no longer is shown as it was, and who has stopped is forgotten.
func TestWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		const n = watchBuffer + 5
		for i := range n {
			c := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i), Labels: map[string]string{"in": "yes"}}}
			if _, err := maps.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w, err := maps.Watch(t.Context(), metav1.ListOptions{LabelSelector: "in=yes"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if ev, ok := <-w.ResultChan(); !ok || ev.Type != watch.Added {
				t.Fatalf("event %d: %v %v", i, ok, ev)
			}
		}
		patch := []byte(`{"metadata":{"labels":{"in":"no"}}}`)
		patched, err := maps.Patch(t.Context(), "m0", types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ev := <-w.ResultChan()
		if m, ok := ev.Object.(*v1.ConfigMap); !ok || ev.Type != watch.Deleted || m.Labels["in"] != "yes" || m.ResourceVersion != patched.ResourceVersion {
			t.Errorf("%v %v", ev.Type, ev.Object)
		}
		w.Stop()
	})
}

// TestEndedWatches: who has stopped watching costs the next change nothing.
func TestEndedWatches(t *testing.T) {
	l := loop.New(loop.Options{})
	defer l.Close()
	api := apiserver.New(apiserver.Options{Loop: l})
	f := New(Options{API: api, Door: NewRealDoor(l, nil)})
	k := f.kinds.find(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	for range 3 {
		w, err := f.watches.add(context.Background(), k.storage, "", &metainternalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.Stop()
	}
	if _, err := api.Create(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}); err != nil {
		t.Fatal(err)
	}
	if n := len(f.watches.of(apiserver.KindConfigMap).watchers); n != 0 {
		t.Errorf("%d watchers are kept", n)
	}
}

package clientgo

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
)

// run runs a real loop for the test's body, which may post to it.
func run(t *testing.T, body func(l *loop.Loop, g *loop.Group)) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := loop.NewReal(loop.Options{Name: "test"})
	g := l.NewGroup("kubelet")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.RunReal(ctx) }()
	body(l, g)
	l.Post(g.Kill)
	done := make(chan struct{})
	l.Post(func() { close(done) })
	<-done
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	l.Close()
}

// next takes what the loop tells next.
func next(t *testing.T, ch <-chan string, want string) {
	t.Helper()
	select {
	case got := <-ch:
		if got != want {
			t.Fatalf("told %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing came, want %q", want)
	}
}

func pod(name, node string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.PodSpec{NodeName: node}}
}

// A watch tells of the list first and of each change after it, on the loop, and
// ends with its group.
func TestWatchPods(t *testing.T) {
	cs := fake.NewClientset(pod("a", "n1"))
	ch := make(chan string, 100)
	run(t, func(l *loop.Loop, g *loop.Group) {
		c := NewForClients(l, cs, cs, cs)
		l.Post(func() {
			c.WatchPods(g, "n1", func(pods []*v1.Pod) {
				for _, p := range pods {
					ch <- "listed " + p.Name
				}
				ch <- "end of list"
			}, func(typ watch.EventType, p *v1.Pod) { ch <- string(typ) + " " + p.Name })
		})
		next(t, ch, "listed a")
		next(t, ch, "end of list")
		ctx := context.Background()
		pods := cs.CoreV1().Pods("default")
		b := pod("b", "n1")
		if _, err := pods.Create(ctx, b, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		next(t, ch, "ADDED b")
		b.Labels = map[string]string{"x": "y"}
		if _, err := pods.Update(ctx, b, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		next(t, ch, "MODIFIED b")
		if err := pods.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		next(t, ch, "DELETED a")
	})
	if _, err := cs.CoreV1().Pods("default").Create(context.Background(), pod("late", "n1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(ch) > 0 {
		t.Errorf("told %q after the group was killed", <-ch)
	}
}

// A watch of one object tells nil when there is none, and stops when told to.
func TestWatchConfigMap(t *testing.T) {
	cs := fake.NewClientset()
	ch := make(chan string, 100)
	run(t, func(l *loop.Loop, g *loop.Group) {
		c := NewForClients(l, cs, cs, cs)
		var stop func()
		l.Post(func() {
			stop = c.WatchConfigMap(g, "default", "cm", func(cm *v1.ConfigMap) {
				if cm == nil {
					ch <- "none"
					return
				}
				ch <- "listed"
			}, func(typ watch.EventType, cm *v1.ConfigMap) { ch <- string(typ) + " " + cm.Data["k"] })
		})
		next(t, ch, "none")
		maps := cs.CoreV1().ConfigMaps("default")
		cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm", Namespace: "default"}, Data: map[string]string{"k": "1"}}
		if _, err := maps.Create(context.Background(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		next(t, ch, "ADDED 1")
		stopped := make(chan struct{})
		l.Post(func() { stop(); close(stopped) })
		<-stopped
		cm.Data["k"] = "2"
		if _, err := maps.Update(context.Background(), cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		if len(ch) > 0 {
			t.Errorf("told %q after stop", <-ch)
		}
	})
}

// Watches that come and go leave nothing with their group, whose end ends those
// that are left.
func TestWatchesComeAndGo(t *testing.T) {
	cs := fake.NewClientset()
	run(t, func(l *loop.Loop, g *loop.Group) {
		c := NewForClients(l, cs, cs, cs)
		watch := func() (stop func()) {
			return c.WatchConfigMap(g, "default", "cm", func(*v1.ConfigMap) {}, func(watch.EventType, *v1.ConfigMap) {})
		}
		done := make(chan struct{})
		l.Post(func() {
			defer close(done)
			watch()
			of := c.watchesOf(g)
			for range 100 {
				watch()()
			}
			if len(c.watches) != 1 || c.watchesOf(g) != of || of.Err() != nil {
				t.Errorf("%d contexts; the group's is %v", len(c.watches), of.Err())
			}
			g.Kill()
			if len(c.watches) != 0 || of.Err() == nil {
				t.Errorf("after the group's end: %d contexts; the group's is %v", len(c.watches), of.Err())
			}
		})
		<-done
	})
}

// What a patch holds: only the difference, and the pod's UID.
func TestPodStatusPatch(t *testing.T) {
	base := &v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{{Type: "PodScheduled", Status: "True"}}}
	now := base.DeepCopy()
	now.Phase = v1.PodRunning
	now.Conditions = append(now.Conditions, v1.PodCondition{Type: "Ready", Status: "True"})
	patch, err := podStatusPatch("u1", base, now)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"uid":"u1"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"},{"type":"Ready"}],"conditions":[{"lastProbeTime":null,"lastTransitionTime":null,"status":"True","type":"Ready"}],"phase":"Running"}}`
	if string(patch) != want {
		t.Errorf("got  %s\nwant %s", patch, want)
	}
}

// Addresses of one type are not merged into one, and the spec is not touched.
func TestNodeStatusPatch(t *testing.T) {
	base := &v1.Node{Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.1"}}}}
	now := base.DeepCopy()
	now.Spec.Unschedulable = true
	now.Labels = map[string]string{"a": "b"}
	now.Status.Addresses = append(now.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: "fd00::1"})
	patch, err := nodeStatusPatch(base, now)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"labels":{"a":"b"}},"status":{"addresses":[{"address":"10.0.0.1","type":"InternalIP"},{"address":"fd00::1","type":"InternalIP"},{"$patch":"replace"}]}}`
	if string(patch) != want {
		t.Errorf("got  %s\nwant %s", patch, want)
	}
	if patch, err = nodeStatusPatch(base, base); err != nil || string(patch) != "{}" {
		t.Errorf("nothing differs: %s, %v", patch, err)
	}
}

// A request of a task goes out and its answer comes back to the task; one that
// gets no answer ends with its context.
func TestRequests(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/nodes/n1":
			_ = json.NewEncoder(w).Encode(&v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		case "/api/v1/namespaces/default/secrets/slow":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(v1.Resource("secrets"), "s").Status())
		}
	}))
	defer srv.Close()
	cfg := &kubeletconfig.KubeletConfiguration{}
	kubeletcfg.SetDefaults(cfg)
	var got []string
	run(t, func(l *loop.Loop, g *loop.Group) {
		c, err := New(l, &rest.Config{Host: srv.URL}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		l.Post(func() {
			g.Go("requests", func(ctx context.Context) {
				defer close(done)
				n, err := c.GetNode(ctx, "n1")
				if err != nil {
					t.Error(err)
					return
				}
				got = append(got, n.Name)
				if _, err := c.GetSecret(ctx, "default", "s"); !apierrors.IsNotFound(err) {
					t.Errorf("a secret that is not there: %v", err)
				}
				tctx, cancel := loop.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				if _, err := c.GetSecret(tctx, "default", "slow"); err == nil {
					t.Error("a secret that never comes came")
				}
			})
		})
		<-done
		srv.CloseClientConnections()
	})
	if !slices.Equal(got, []string{"n1"}) {
		t.Error(got)
	}
}

// What a watch heard before it was stopped, and the loop had not come to, is not
// told.
func TestStoppedWatchIsSilent(t *testing.T) {
	told := false
	run(t, func(l *loop.Loop, g *loop.Group) {
		ctx, cancel := context.WithCancel(context.Background())
		f := &feed[v1.Pod]{ctx: ctx, l: l, g: g, event: func(watch.EventType, *v1.Pod) { told = true }}
		l.Post(func() {
			if err := f.Add(pod("a", "n1")); err != nil {
				t.Error(err)
			}
			cancel()
		})
	})
	if told {
		t.Error("a stopped watch told of a pod")
	}
}

package clients

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// pod is one that runs until it is deleted.
func pod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
	}
}

// within returns a context that ends with the test, or after a while.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestInformer sees a pod run, and go, in a shared informer's cache.
func TestInformer(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(start(t).Config())
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	defer cancel()
	running, gone := make(chan string, 1), make(chan string, 1)
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(was, is any) {
			if was.(*v1.Pod).Status.Phase != v1.PodRunning && is.(*v1.Pod).Status.Phase == v1.PodRunning {
				running <- is.(*v1.Pod).Spec.NodeName
			}
		},
		DeleteFunc: func(obj any) { gone <- obj.(*v1.Pod).Name },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			t.Fatalf("the informer of %s has not synced", kind)
		}
	}
	if _, err := client.CoreV1().Pods("default").Create(ctx, pod("seen"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if node := await(ctx, t, running); node == "" {
		t.Error("the pod runs on no node")
	}
	if _, err := pods.Lister().Pods("default").Get("seen"); err != nil {
		t.Errorf("from the cache: %v", err)
	}
	if err := client.CoreV1().Pods("default").Delete(ctx, "seen", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, gone)
	cancel()
	factory.Shutdown()
}

func await(ctx context.Context, t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case s := <-from:
		return s
	case <-ctx.Done():
		t.Fatal("not seen in time")
	}
	return ""
}

// TestLeaderElection has a second candidate take over when the first lets go.
func TestLeaderElection(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(start(t).Config())
	ctx := within(t, time.Minute)
	leads := make(chan string, 2)
	candidate := func(name string) context.CancelFunc {
		ctx, cancel := context.WithCancel(ctx)
		lock := &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "leader"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads <- name }, OnStoppedLeading: func() {}},
		})
		return cancel
	}
	stop := candidate("first")
	if got := await(ctx, t, leads); got != "first" {
		t.Fatalf("%s leads", got)
	}
	defer candidate("second")()
	stop()
	if got := await(ctx, t, leads); got != "second" {
		t.Errorf("%s leads after the first let go", got)
	}
}

// TestApply has two managers of one object's fields, and their conflict.
func TestApply(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(start(t).Config())
	ctx := within(t, time.Minute)
	apply := func(manager, value string, force bool) (*v1.ConfigMap, error) {
		return client.CoreV1().ConfigMaps("default").Apply(ctx,
			applyv1.ConfigMap("shared", "default").WithData(map[string]string{"key": value, manager: "own"}),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	if _, err := apply("one", "1", false); err != nil {
		t.Fatal(err)
	}
	if _, err := apply("two", "2", false); !apierrors.IsConflict(err) {
		t.Errorf("a second manager's other value: %v", err)
	}
	got, err := apply("two", "2", true)
	if err != nil {
		t.Fatal(err)
	}
	if got.Data["key"] != "2" || got.Data["one"] != "own" || len(got.ManagedFields) != 2 {
		t.Errorf("forced: %v, %d managers", got.Data, len(got.ManagedFields))
	}
}

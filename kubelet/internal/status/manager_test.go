package status

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

var podResource = schema.GroupResource{Resource: "pods"}

// world is a fake API, pod manager and pod workers of one node.
type world struct {
	l    *loop.Loop
	api  map[string]*v1.Pod
	pods map[types.UID]*v1.Pod
	// mirror UID by static UID
	mirrors map[types.UID]*v1.Pod
	mayRun  bool
	calls   []string
	timed   []string // calls with the time since the start
	latency time.Duration
	fail    map[string]error // by verb; kept until removed
	rooms   []*v1.Pod        // of patches
}

func (w *world) call(ctx context.Context, verb, name string) error {
	if err := w.l.Sleep(ctx, w.latency); err != nil {
		return err
	}
	w.calls = append(w.calls, verb+" "+name)
	w.timed = append(w.timed, fmt.Sprintf("%v %s %s", w.l.Since(loop.Epoch()).Round(time.Millisecond), verb, name))
	return w.fail[verb]
}

func (w *world) GetPod(ctx context.Context, ns, name string) (*v1.Pod, error) {
	if err := w.call(ctx, "get", name); err != nil {
		return nil, err
	}
	if p := w.api[name]; p != nil {
		return p, nil
	}
	return nil, apierrors.NewNotFound(podResource, name)
}

func (w *world) PatchPodStatus(ctx context.Context, ns, name string, uid types.UID, base, s *v1.PodStatus, room *v1.Pod) (*v1.Pod, error) {
	if err := w.call(ctx, "patch", name); err != nil {
		return nil, err
	}
	p := w.api[name]
	if p == nil {
		return nil, apierrors.NewNotFound(podResource, name)
	}
	if p.UID != uid {
		return nil, apierrors.NewConflict(podResource, name, errors.New("uid"))
	}
	w.rooms = append(w.rooms, room)
	next := *p
	next.Status = *s
	w.api[name] = &next
	if room != nil && room.Name == "" {
		*room = next
		w.api[name] = room
	}
	return w.api[name], nil
}

func (w *world) DeletePod(ctx context.Context, ns, name string, o metav1.DeleteOptions) error {
	if err := w.call(ctx, fmt.Sprintf("delete(%d,%s)", *o.GracePeriodSeconds, *o.Preconditions.UID), name); err != nil {
		return err
	}
	if err := w.fail["delete"]; err != nil {
		return err
	}
	delete(w.api, name)
	return nil
}

func (w *world) GetPodByUID(uid types.UID) (*v1.Pod, bool) { p, ok := w.pods[uid]; return p, ok }
func (w *world) GetMirrorPodByPod(p *v1.Pod) (*v1.Pod, bool) {
	m, ok := w.mirrors[p.UID]
	return m, ok
}
func (w *world) TranslatePodUID(uid types.UID) types.UID {
	for s, m := range w.mirrors {
		if m.UID == uid {
			return s
		}
	}
	return uid
}
func (w *world) MirrorUID(s types.UID) (types.UID, bool) {
	if m, ok := w.mirrors[s]; ok {
		return m.UID, true
	}
	return "", false
}
func (w *world) PodCouldHaveRunningContainers(*v1.Pod) bool { return w.mayRun }

// take returns and forgets the calls so far.
func (w *world) take() string {
	s := strings.Join(w.calls, ", ")
	w.calls = nil
	return s
}

// run lets d pass.
func (w *world) run(t testing.TB, d time.Duration) {
	t.Helper()
	if err := w.l.RunUntil(w.l.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
}

// echo has the pod manager see the API's pod, as its watch would.
func (w *world) echo(m *Manager, name string) {
	p := w.api[name]
	if p == nil {
		return
	}
	if s := w.TranslatePodUID(p.UID); s != p.UID {
		w.mirrors[s] = p
	} else {
		w.pods[p.UID] = p
	}
	m.PodChanged(p.UID)
}

func newManager(t testing.TB) (*Manager, *world, *loop.Loop) {
	l := loop.New(loop.Options{Name: "node"})
	t.Cleanup(l.Close)
	w := &world{l: l, api: map[string]*v1.Pod{}, pods: map[types.UID]*v1.Pod{}, mirrors: map[types.UID]*v1.Pod{},
		mayRun: true, latency: 10 * time.Millisecond, fail: map[string]error{}}
	m := New(Options{Loop: l, Client: w, PodManager: w, DeletionSafety: w})
	m.Start(l.NewGroup("kubelet"))
	return m, w, l
}

// add puts a pod into the API and the pod manager.
func (w *world) add(p *v1.Pod) *v1.Pod {
	w.api[p.Name], w.pods[p.UID] = p, p
	return p
}

func set(m *Manager, p *v1.Pod, entries ...string) {
	old, _ := m.GetPodStatus(p.UID)
	m.SetPodStatus(p, generate(p, runtimeOf(true, entries...), func(in *Input) { in.Old = old }))
}

// An idle manager costs nothing, and the first status says when the kubelet came
// to know of the pod.
func TestIdleManager(t *testing.T) {
	m, w, l := newManager(t)
	p := w.add(testPod(v1.RestartPolicyAlways, "a"))
	set(m, p)
	w.run(t, time.Second)
	s := w.api["p"].Status
	if s.StartTime == nil || !s.StartTime.Time.Equal(t0) || FindCondition(s.Conditions, v1.PodReady).LastTransitionTime.IsZero() {
		t.Errorf("startTime %v, conditions %v", s.StartTime, s.Conditions)
	}
	w.echo(m, "p")
	set(m, p)
	w.run(t, time.Minute)
	steps := l.Steps()
	w.run(t, time.Hour)
	if l.Steps() != steps {
		t.Errorf("an idle manager took %d steps in an hour", l.Steps()-steps)
	}
}

// A probe's result makes a new status: the one before may be shared.
func TestReadinessWritesToNoStatus(t *testing.T) {
	m, w, _ := newManager(t)
	p := w.add(testPod(v1.RestartPolicyAlways, "a"))
	set(m, p, "a running")
	before, _ := m.GetPodStatus(p.UID)
	m.SetContainerReadiness(p.UID, kubecontainer.ContainerID{Type: "containerd", ID: "id-a-running"}, false)
	after, _ := m.GetPodStatus(p.UID)
	if !before.ContainerStatuses[0].Ready || after.ContainerStatuses[0].Ready {
		t.Error("a shared status was written to")
	}
}

func TestMerge(t *testing.T) {
	now := metav1.Time{Time: t0}
	disrupted := v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}
	api := &v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: "x/y", Status: "True"}, {Type: v1.PodReady, Status: "True"}},
		ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "claim"}}}
	own := &v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Conditions: []v1.PodCondition{
		{Type: "foreign", Status: "True"}, disrupted, {Type: v1.PodReady, Status: "True"}}}
	held := merge(api, own, true, now)
	if held.Phase != v1.PodRunning || held.Reason != "" || FindCondition(held.Conditions, v1.DisruptionTarget) != nil || FindCondition(held.Conditions, "foreign") != nil {
		t.Errorf("held back: %+v", held)
	}
	s := merge(api, own, false, now)
	if s.Phase != v1.PodFailed || s.Reason != "Evicted" || conditionText(s, v1.PodReady) != "False PodFailed" || conditionText(s, "x/y") != "True" {
		t.Errorf("merged: %+v", s)
	}
	if c := FindCondition(s.Conditions, v1.DisruptionTarget); c == nil || !c.LastTransitionTime.Equal(&now) || len(s.ResourceClaimStatuses) != 1 {
		t.Errorf("merged: %+v", s)
	}
	if own.Conditions[2].Status != v1.ConditionTrue {
		t.Error("merge wrote to its input")
	}
}

// TestEqualityCoversEveryField changes each field of the compared structs.
func TestEqualityCoversEveryField(t *testing.T) {
	skip := map[string]bool{"Conditions": true, "ResourceClaimStatuses": true, "ExtendedResourceClaimStatus": true, "NodeAllocatableResourceClaimStatuses": true}
	check := func(name string, typ reflect.Type, equal func(a, b reflect.Value) bool) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if name == "PodStatus" && skip[f.Name] {
				continue
			}
			a, b := reflect.New(typ), reflect.New(typ)
			fill(b.Elem().Field(i))
			if equal(a, b) {
				t.Errorf("%s.%s is not compared", name, f.Name)
			}
			fill(a.Elem().Field(i))
			if !equal(a, b) {
				t.Errorf("%s.%s: equal ones differ", name, f.Name)
			}
		}
	}
	check("PodStatus", reflect.TypeFor[v1.PodStatus](), func(a, b reflect.Value) bool {
		return fieldsEqual(a.Interface().(*v1.PodStatus), b.Interface().(*v1.PodStatus))
	})
	check("ContainerStatus", reflect.TypeFor[v1.ContainerStatus](), func(a, b reflect.Value) bool {
		return containerStatusEqual(a.Interface().(*v1.ContainerStatus), b.Interface().(*v1.ContainerStatus))
	})
	check("ContainerStateTerminated", reflect.TypeFor[v1.ContainerStateTerminated](), func(a, b reflect.Value) bool {
		return terminatedEqual(a.Interface().(*v1.ContainerStateTerminated), b.Interface().(*v1.ContainerStateTerminated))
	})
	check("ContainerState", reflect.TypeFor[v1.ContainerState](), func(a, b reflect.Value) bool {
		return stateEqual(a.Interface().(*v1.ContainerState), b.Interface().(*v1.ContainerState))
	})
}

// fill sets a value to something that is not its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(v1.ResourceCPU), reflect.New(v.Type().Elem()).Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			v.Set(reflect.ValueOf(metav1.Time{Time: t0}))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	}
}

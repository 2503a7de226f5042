package store

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/merge"
)

func TestUserPatch(t *testing.T) {
	strategic, merge, jsonp := types.StrategicMergePatchType, types.MergePatchType, types.JSONPatchType
	for _, tc := range []struct {
		name  string
		pt    types.PatchType
		patch string
		sub   string
		want  string // error, or "" for success
		gen   int64
	}{
		{"label", merge, `{"metadata":{"labels":{"a":"b"}}}`, "", "", 1},
		{"image", strategic, `{"spec":{"containers":[{"name":"main","image":"app:2"}]}}`, "", "", 2},
		{"image in yaml", strategic, "spec: {containers: [{name: main, image: 'app:2'}]}", "", "", 2},
		{"image by json patch", jsonp, `[{"op":"replace","path":"/spec/containers/0/image","value":"app:2"}]`, "", "", 2},
		{"nothing", merge, `{}`, "", "", 1},
		{"a second container", strategic, `{"spec":{"containers":[{"name":"two","image":"x"}]}}`, "", "pod updates may not add or remove containers", 1},
		{"command", strategic, `{"spec":{"containers":[{"name":"main","command":["x"]}]}}`, "", "pod updates may not change fields other than", 1},
		{"node", merge, `{"spec":{"nodeName":"other"}}`, "", "pod updates may not change fields other than", 1},
		{"deadline", merge, `{"spec":{"activeDeadlineSeconds":60}}`, "", "", 2},
		{"tolerations", jsonp, `[{"op":"add","path":"/spec/tolerations/-","value":{"key":"x","operator":"Exists"}}]`, "", "", 2},
		{"tolerations taken away that admission gives", merge, `{"spec":{"tolerations":[]}}`, "", "", 1},
		{"tolerations changed", jsonp, `[{"op":"replace","path":"/spec/tolerations/0/tolerationSeconds","value":null}]`, "", "", 2},
		{"status through spec", merge, `{"status":{"phase":"Failed"}}`, "", "", 1},
		{"status", strategic, `{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`, "status", "", 1},
		{"bad status", strategic, `{"status":{"conditions":[{"type":"x y","status":"True"}]}}`, "status", `status.conditions[0].Type: Invalid value: "x y"`, 1},
		{"resize", strategic, `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"50m"}}}]}}`, "resize", "Pod QOS Class may not change", 1},
		{"resize within the class", strategic, `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}`, "resize", "", 2},
		{"resize over the node", strategic, `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"50"}}}]}}`, "resize", `pods "p" is forbidden`, 1},
		{"ephemeral", strategic, `{"spec":{"ephemeralContainers":[{"name":"dbg","image":"x"}]}}`, "ephemeralcontainers", "", 2},
		{"unknown field", merge, `{"spec":{"nope":1}}`, "", `unknown field "spec.nope"`, 1},
		{"wrong version", merge, `{"metadata":{"resourceVersion":"1"}}`, "", "the object has been modified", 1},
		{"wrong uid", merge, `{"metadata":{"uid":"x"}}`, "", "metadata.uid: Invalid value", 1},
		{"not a patch", jsonp, `{"a":1}`, "", "cannot unmarshal", 1},
		{"failing test", jsonp, `[{"op":"test","path":"/spec/nodeName","value":"x"}]`, "", "test", 1},
		{"no such subresource", merge, `{}`, "scale", `no subresource "scale"`, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			mustCreate(t, s, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Capacity: v1.ResourceList{"cpu": resource.MustParse("2")}}})
			before := mustCreate(t, s, testPod("p", onNode("n"), func(p *v1.Pod) {
				if strings.HasPrefix(tc.name, "resize ") {
					p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse("100m")}
				}
			})).(*v1.Pod)
			was := before.DeepCopy()
			_, err := s.Patch(t0, kinds.Pod, "default", "p", tc.pt, []byte(tc.patch), tc.sub)
			check(t, err, tc.want)
			got := s.Pod("default", "p")
			if got.Generation != tc.gen {
				t.Errorf("generation %d, want %d", got.Generation, tc.gen)
			}
			if got.Status.Phase != v1.PodPending {
				t.Errorf("phase %s", got.Status.Phase)
			}
			if !equality.Semantic.DeepEqual(before, was) {
				t.Error("the stored object was written to")
			}
		})
	}
}

func TestNoChangeNoVersion(t *testing.T) {
	s := New(Options{})
	p := mustCreate(t, s, testPod("p", onNode("n"))).(*v1.Pod)
	v := s.Version()
	if got, err := s.Update(t0, p, ""); err != nil || got != kind.Object(p) {
		t.Errorf("%v, %v", got, err)
	}
	st := p.Status
	if got, err := s.PatchPodStatus(t0, "default", "p", p.UID, &p.Status, &st); err != nil || got != p {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := s.Patch(t0, kinds.Pod, "default", "p", types.MergePatchType, []byte(`{}`), ""); err != nil {
		t.Error(err)
	}
	if s.Version() != v {
		t.Errorf("version went from %d to %d", v, s.Version())
	}
}

func TestApply(t *testing.T) {
	s := New(Options{})
	manifest := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"a": "1", "b": "2"}}
	if _, err := s.Apply(t0, manifest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Patch(t0, kinds.ConfigMap, "", "c", types.MergePatchType, []byte(`{"data":{"other":"x"}}`), ""); err != nil {
		t.Fatal(err)
	}
	second := manifest.DeepCopy()
	second.Data = map[string]string{"a": "3"}
	got, err := s.Apply(t0, second)
	if err != nil {
		t.Fatal(err)
	}
	if d := got.(*v1.ConfigMap).Data; len(d) != 2 || d["a"] != "3" || d["other"] != "x" {
		t.Errorf("got %v, want a=3 and other=x", d)
	}
	v := s.Version()
	if _, err := s.Apply(t0, second); err != nil || s.Version() != v {
		t.Errorf("applying the same again: %v, version %d to %d", err, v, s.Version())
	}
}

// TestMergeAgreesWithStrategicPatch compares the merge on structs with the
// library on JSON.
func TestMergeAgreesWithStrategicPatch(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for i := range 3000 {
		base := randomStatus(r)
		want, next := base, base
		if r.Intn(2) == 0 {
			next = randomStatus(r)
		}
		cur := base
		foreign := r.Intn(2) == 0
		if foreign { // somebody else wrote meanwhile
			cur.Conditions = append(append([]v1.PodCondition(nil), base.Conditions...), v1.PodCondition{Type: "x.io/other", Status: v1.ConditionTrue})
			r.Shuffle(len(cur.Conditions), func(a, b int) {
				cur.Conditions[a], cur.Conditions[b] = cur.Conditions[b], cur.Conditions[a]
			})
		}
		next.QOSClass = base.QOSClass
		viaJSON(t, &cur, &base, &next, &want)
		got, _ := merge.PodStatus(&cur, &base, &next)
		if foreign { // the library's order then depends on a slice that it overwrites
			byType := func(a, b v1.PodCondition) int { return strings.Compare(string(a.Type), string(b.Type)) }
			slices.SortFunc(got.Conditions, byType)
			slices.SortFunc(want.Conditions, byType)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Fatalf("case %d:\n got %s\nwant %s", i, a, b)
		}
	}
}

func viaJSON(t *testing.T, cur, base, next, out *v1.PodStatus) {
	t.Helper()
	enc := func(s *v1.PodStatus) []byte {
		b, err := json.Marshal(&v1.Pod{Status: *s})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(enc(base), enc(next), &v1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(enc(cur), patch, &v1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	var p v1.Pod
	if err := json.Unmarshal(merged, &p); err != nil {
		t.Fatal(err)
	}
	*out = p.Status
}

func randomStatus(r *rand.Rand) v1.PodStatus {
	at := func() metav1.Time { return asjson.Time(t0.Add(time.Duration(r.Intn(3)) * time.Second)) }
	pick := func(v ...string) string { return v[r.Intn(len(v))] }
	st := v1.PodStatus{
		Phase: v1.PodPhase(pick("Pending", "Running", "Failed")), Reason: pick("", "Evicted"), Message: pick("", "m"),
		QOSClass: v1.PodQOSBurstable, HostIP: pick("", "10.0.0.1"), ObservedGeneration: int64(r.Intn(2)),
	}
	for _, typ := range []v1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		if r.Intn(4) > 0 {
			st.Conditions = append(st.Conditions, v1.PodCondition{Type: typ, Status: v1.ConditionStatus(pick("True", "False")), Reason: pick("", "R"), LastTransitionTime: at()})
		}
	}
	if ip := pick("", "10.1.0.1", "10.1.0.2"); ip != "" {
		st.PodIP, st.PodIPs = ip, []v1.PodIP{{IP: ip}}
	}
	if r.Intn(2) == 0 {
		st.StartTime = ptr(at())
	}
	for _, name := range []string{"a", "b"} {
		c := v1.ContainerStatus{Name: name, Ready: r.Intn(2) == 0, RestartCount: int32(r.Intn(2)), Image: "i"}
		switch r.Intn(3) {
		case 0:
			c.State.Running = &v1.ContainerStateRunning{StartedAt: at()}
		case 1:
			c.State.Waiting = &v1.ContainerStateWaiting{Reason: pick("A", "B")}
		case 2:
			c.State.Terminated = &v1.ContainerStateTerminated{ExitCode: int32(r.Intn(2)), FinishedAt: at()}
		}
		if r.Intn(3) > 0 {
			st.ContainerStatuses = append(st.ContainerStatuses, c)
		}
	}
	return st
}

func TestPatchPodStatus(t *testing.T) {
	s := New(Options{})
	p := mustCreate(t, s, testPod("p", onNode("n"))).(*v1.Pod)
	if _, err := s.PatchPodStatus(t0, "default", "p", "other", &p.Status, &p.Status); !apierrors.IsConflict(err) {
		t.Errorf("another UID: %v", err)
	}
	if _, err := s.PatchPodStatus(t0, "default", "q", "", &p.Status, &p.Status); !apierrors.IsNotFound(err) {
		t.Errorf("no such pod: %v", err)
	}
	st := p.Status
	late := metav1.NewTime(t0.Add(1500 * time.Millisecond))
	st.StartTime = &late
	st.ContainerStatuses = []v1.ContainerStatus{{Name: "main", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: late}}}}
	got, err := s.PatchPodStatus(t0, "default", "p", p.UID, &p.Status, &st)
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Status.StartTime.Nanosecond() + got.Status.ContainerStatuses[0].State.Running.StartedAt.Nanosecond(); n != 0 {
		t.Errorf("times are not whole seconds: %v", got.Status)
	}
	if late.Nanosecond() == 0 || st.ContainerStatuses[0].State.Running.StartedAt.Nanosecond() == 0 {
		t.Error("the caller's status was written to")
	}
	if got.Generation != 1 || p.Status.StartTime != nil {
		t.Error("generation moved, or the old object was written to")
	}
}

// TestPatchTakesRoom has a status sent in a pod, which becomes the stored one if
// it says just what the patch comes to, and only once.
func TestPatchTakesRoom(t *testing.T) {
	gate := v1.PodCondition{Type: "x/gate", Status: v1.ConditionTrue}
	for _, tc := range []struct {
		name  string
		api   func(*v1.PodStatus) // what others wrote after base was read
		taken bool
	}{
		{"as it was read", func(*v1.PodStatus) {}, true},
		{"others' condition", func(st *v1.PodStatus) { st.Conditions = []v1.PodCondition{gate} }, false},
		{"others' field", func(st *v1.PodStatus) { st.NominatedNodeName = "m" }, false},
		{"others' claim", func(st *v1.PodStatus) { st.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "c"}} }, false},
		{"others' sums", func(st *v1.PodStatus) {
			st.AllocatedResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{})
			p := mustCreate(t, s, testPod("p", onNode("n"))).(*v1.Pod)
			others := p.Status
			tc.api(&others)
			old, err := s.PatchPodStatus(t0, "default", "p", "", nil, &others)
			if err != nil {
				t.Fatal(err)
			}
			was := *old
			began := asjson.Time(t0)
			room := &v1.Pod{Status: p.Status}
			room.Status.Phase, room.Status.StartTime = v1.PodRunning, &began
			room.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: began}}
			want := New(Options{})
			_ = mustCreate(t, want, testPod("p", onNode("n")))
			if _, err := want.PatchPodStatus(t0, "default", "p", "", nil, &others); err != nil {
				t.Fatal(err)
			}
			plain, err := want.PatchPodStatus(t0, "default", "p", "", &p.Status, &room.Status)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.PatchPodStatusIn("default", "p", p.UID, &p.Status, &room.Status, room)
			if err != nil {
				t.Fatal(err)
			}
			if (got == room) != tc.taken || (room.Name != "") != tc.taken {
				t.Errorf("taken: %t, named %q", got == room, room.Name)
			}
			if !equality.Semantic.DeepEqual(got, plain) {
				t.Errorf("with room %+v\nwithout %+v", got, plain)
			}
			if !equality.Semantic.DeepEqual(old, &was) || s.PodsOnNode("n")[0] != got || s.Pod("default", "p") != got {
				t.Error("the old object was written to, or the new one is not found")
			}
			// The same request again, after somebody else's write.
			others = got.Status
			others.Phase = v1.PodPending
			if _, err := s.PatchPodStatus(t0, "default", "p", "", nil, &others); err != nil {
				t.Fatal(err)
			}
			kept := *got
			again, err := s.PatchPodStatusIn("default", "p", p.UID, &p.Status, &room.Status, room)
			if err != nil {
				t.Fatal(err)
			}
			if tc.taken && (again == room || !equality.Semantic.DeepEqual(got, &kept)) {
				t.Error("the room of an object was taken again")
			}
		})
	}
}

// TestOnePodStatusSeesEveryField has each field of a status differ, those that
// come with another version of the API, too.
func TestOnePodStatusSeesEveryField(t *testing.T) {
	if !merge.OnePodStatus(&v1.PodStatus{}, &v1.PodStatus{}) {
		t.Error("nothing is not nothing")
	}
	for i := range reflect.TypeFor[v1.PodStatus]().NumField() {
		var a, b v1.PodStatus
		switch f := reflect.ValueOf(&a).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int64:
			f.SetInt(1)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
		default:
			t.Fatalf("%s", f.Kind())
		}
		c := a
		if merge.OnePodStatus(&a, &b) || merge.OnePodStatus(&b, &a) || !merge.OnePodStatus(&a, &c) {
			t.Errorf("%s is not looked at", reflect.TypeFor[v1.PodStatus]().Field(i).Name)
		}
	}
}

func TestPatchNode(t *testing.T) {
	s := New(Options{})
	n := mustCreate(t, s, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "1", "b": "2"}}}).(*v1.Node)
	if _, err := s.Patch(t0, kinds.Node, "", "n", types.MergePatchType, []byte(`{"metadata":{"labels":{"user":"x"}},"spec":{"unschedulable":true}}`), ""); err != nil {
		t.Fatal(err)
	}
	next := *n
	next.Labels = map[string]string{"a": "9"}
	next.Spec.Unschedulable = false
	next.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	got, err := s.PatchNode(t0, "n", n, &next)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Labels) != 2 || got.Labels["a"] != "9" || got.Labels["user"] != "x" {
		t.Errorf("labels %v", got.Labels)
	}
	if !got.Spec.Unschedulable {
		t.Error("the status subresource changed the spec")
	}
	if len(got.Status.Conditions) != 1 {
		t.Errorf("conditions %v", got.Status.Conditions)
	}
}

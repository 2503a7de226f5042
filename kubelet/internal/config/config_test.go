package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

type events struct{ lines []string }

func (e *events) Event(ref *v1.ObjectReference, _, reason, message string) {
	e.lines = append(e.lines, ref.Name+" "+reason+" "+message)
}

func aPod(name, uid string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.Namespace, p.UID = name, "default", types.UID(uid)
	for _, f := range change {
		f(p)
	}
	return p
}

// drain returns what was sent, one "OP name/uid name/uid" per message.
func drain(c *PodConfig) []string {
	var out []string
	for {
		u, ok := c.Updates().TryGet()
		if !ok {
			return out
		}
		line := u.Op.String()
		for _, p := range u.Pods {
			line += fmt.Sprintf(" %s/%s", p.Name, p.UID)
		}
		out = append(out, line)
	}
}

func TestMerge(t *testing.T) {
	image := func(i string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.Containers = []v1.Container{{Image: i}} }
	}
	running := func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }
	label := func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} }
	annotation := func(k string) func(*v1.Pod) { return func(p *v1.Pod) { p.Annotations = map[string]string{k: "x"} } }
	gone := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: loop.Epoch()} }
	owner := func(p *v1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }
	for _, tc := range []struct {
		name string
		old  []*v1.Pod
		now  []*v1.Pod
		want []string
	}{
		{"new", nil, []*v1.Pod{aPod("b", "2"), aPod("a", "1")}, []string{"ADD b/2 a/1"}},
		{"same", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "1")}, nil},
		{"spec", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "1", image("x"))}, []string{"UPDATE a/1"}},
		{"labels", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "1", label)}, []string{"UPDATE a/1"}},
		{"annotations", []*v1.Pod{aPod("a", "1", annotation("k"))}, []*v1.Pod{aPod("a", "1")}, []string{"UPDATE a/1"}},
		{"a local annotation", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "1", annotation(kubetypes.ConfigMirrorAnnotationKey))}, nil},
		{"owners are never looked at", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "1", owner)}, nil},
		{"status", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "1", running)}, []string{"RECONCILE a/1"}},
		{"spec and status", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "1", running, image("x"))}, []string{"UPDATE a/1"}},
		{"deletion", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "1", gone)}, []string{"DELETE a/1"}},
		{"removal", []*v1.Pod{aPod("b", "2"), aPod("a", "1")}, nil, []string{"REMOVE a/1 b/2"}},
		{"another UID", []*v1.Pod{aPod("a", "1")}, []*v1.Pod{aPod("a", "2")}, []string{"REMOVE a/1", "ADD a/2"}},
		{"all at once", []*v1.Pod{aPod("a", "1"), aPod("b", "2"), aPod("c", "3"), aPod("d", "4")},
			[]*v1.Pod{aPod("d", "4", running), aPod("c", "3", gone), aPod("b", "2", image("x")), aPod("e", "5")},
			[]string{"REMOVE a/1", "ADD e/5", "UPDATE b/2", "DELETE c/3", "RECONCILE d/4"}},
		{"nothing", nil, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewPodConfig(Options{Loop: loop.New(loop.Options{}), Recorder: &events{}})
			s := c.Source("api")
			s.Set(tc.old)
			drain(c)
			s.Set(tc.now)
			if got := drain(c); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// A change of one pod says the same as the whole list with that change.
func TestUpsertIsSetWithOneChange(t *testing.T) {
	c := NewPodConfig(Options{Loop: loop.New(loop.Options{}), Recorder: &events{}})
	s := c.Source("api")
	s.Set([]*v1.Pod{aPod("a", "1"), aPod("b", "2")})
	drain(c)
	s.Upsert(aPod("a", "1", func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }))
	s.Upsert(aPod("b", "3"))
	s.Upsert(aPod("c", "4"))
	s.Delete("default", "a")
	s.Delete("default", "a")
	want := []string{"RECONCILE a/1", "REMOVE b/2", "ADD b/3", "ADD c/4", "REMOVE a/1"}
	if got := drain(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFirstEmptyUpdateAndReadiness(t *testing.T) {
	rec := &events{}
	c := NewPodConfig(Options{Loop: loop.New(loop.Options{}), Recorder: rec})
	file, api := c.Source("file"), c.Source("api")
	file.Set(nil)
	if got := drain(c); !reflect.DeepEqual(got, []string{"ADD"}) {
		t.Errorf("an empty first list says %v", got)
	}
	c.MarkSeen("file")
	if c.AllReady() {
		t.Error("ready without the API's list")
	}
	dup := aPod("a", "2")
	api.Set([]*v1.Pod{aPod("a", "1"), dup})
	if got := drain(c); !reflect.DeepEqual(got, []string{"ADD a/1"}) {
		t.Errorf("got %v", got)
	}
	if len(rec.lines) != 1 || !strings.Contains(rec.lines[0], `Error validating pod a_default(2) from api due to duplicate pod name "a", ignoring`) {
		t.Errorf("events %v", rec.lines)
	}
	if c.AllReady() {
		t.Error("ready before the sync loop has handled the list")
	}
	c.MarkSeen("api")
	if !c.AllReady() {
		t.Error("not ready")
	}
}

// What upstream's copy of a pod keeps from the first version is kept, whether
// the pod is the API's own object or, since it bears annotations that are the
// kubelet's, a copy; and nobody's object is written to.
func TestStoredPodsKeepWhatTheySawFirst(t *testing.T) {
	version := func(v string) func(*v1.Pod) { return func(p *v1.Pod) { p.ResourceVersion = v } }
	running := func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }
	labelled := func(p *v1.Pod) { p.Labels, p.Generation = map[string]string{"x": "y"}, 2 }
	annotated := func(kv ...string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Annotations = map[string]string{}
			for i := 0; i < len(kv); i += 2 {
				p.Annotations[kv[i]] = kv[i+1]
			}
		}
	}
	const seen = "2026-01-01T00:00:00.000000000Z"
	source, first, mirror := kubetypes.ConfigSourceAnnotationKey, kubetypes.ConfigFirstSeenAnnotationKey, kubetypes.ConfigMirrorAnnotationKey
	for _, tc := range []struct {
		name, source string
		versions     []*v1.Pod
		own          bool // the last object is the source's
		want         map[string]string
	}{
		{"of the API", "api", []*v1.Pod{aPod("a", "1", version("5")), aPod("a", "1", version("6"), running)}, true,
			map[string]string{source: "api", first: seen}},
		{"changed", "api", []*v1.Pod{aPod("a", "1", version("5")), aPod("a", "1", version("6"), labelled, annotated("k", "v"))}, true,
			map[string]string{source: "api", first: seen, "k": "v"}},
		{"a mirror", "api", []*v1.Pod{aPod("a", "1", version("5"), annotated(mirror, "h", source, "file", first, "x")),
			aPod("a", "1", version("6"), running, annotated(mirror, "h", source, "file", first, "x"))}, false,
			map[string]string{source: "api", first: seen, mirror: "h"}},
		{"made to look static", "api", []*v1.Pod{aPod("a", "1", version("5")), aPod("a", "1", version("6"), running),
			aPod("a", "1", version("7"), labelled, running, annotated(source, "file", "k", "v"))}, false,
			map[string]string{source: "api", first: seen, "k": "v"}},
		{"of a file", "file", []*v1.Pod{aPod("a", "1"), aPod("a", "1", labelled)}, false, map[string]string{source: "file", first: seen}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := loop.New(loop.Options{})
			t.Cleanup(l.Close)
			c := NewPodConfig(Options{Loop: l, Recorder: &events{}})
			s := c.Source(tc.source)
			var got *v1.Pod
			for i, pod := range tc.versions {
				before, sent := pod.DeepCopy(), got
				s.Set([]*v1.Pod{pod})
				u, ok := c.Updates().TryGet()
				if !ok || len(u.Pods) != 1 {
					t.Fatalf("version %d: got %+v", i, u)
				}
				got = u.Pods[0]
				if !reflect.DeepEqual(pod, before) {
					t.Error("the source's object was written to")
				}
				if got == sent {
					t.Error("messages must not share what changes")
				}
				if err := l.RunUntil(l.Now().Add(time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			last := tc.versions[len(tc.versions)-1]
			if (got == last) != tc.own {
				t.Errorf("the source's own object: %v", got == last)
			}
			if got.Status.Phase != last.Status.Phase || got.Labels["x"] != last.Labels["x"] || got.Generation != last.Generation {
				t.Errorf("got %+v", got)
			}
			f := c.FirstSeen("1", keyOf(got))
			if a := f.Annotations(got); !reflect.DeepEqual(a, tc.want) {
				t.Errorf("annotations %v, want %v", a, tc.want)
			}
			if kept := got.ResourceVersion; f != nil && f.ResourceVersion != "5" || f == nil && kept != tc.versions[0].ResourceVersion {
				t.Errorf("resourceVersion %q, %+v", kept, f)
			}
		})
	}
}

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: web%s}
spec:
  containers:
  - {name: main, image: "%s", unknownField: 1}
`

func fileWorld(t *testing.T) (*loop.Loop, *memfs.FS, *PodConfig, *[]string) {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	f := memfs.New(memfs.Options{Loop: l})
	c := NewPodConfig(Options{Loop: l, Recorder: &events{}})
	var logs []string
	StartFile(FileOptions{
		Group: l.NewGroup("kubelet"), FS: f, Path: "/etc/manifests/", Period: 20 * time.Second,
		Pods: StaticPods{NodeName: "Node1"}, Source: c.Source("file"),
		Log: func(format string, args ...any) { logs = append(logs, fmt.Sprintf(format, args...)) },
	})
	return l, f, c, &logs
}

// toldUntil runs the loop, and returns what the configuration told of until then, without UIDs.
func toldUntil(t *testing.T, l *loop.Loop, c *PodConfig, at time.Duration) (out []string) {
	t.Helper()
	if err := l.RunUntil(loop.Epoch().Add(at)); err != nil {
		t.Fatal(err)
	}
	for _, line := range drain(c) {
		var words []string
		for _, w := range strings.Fields(line) {
			name, _, _ := strings.Cut(w, "/")
			words = append(words, name)
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// TestFileSourceOfOneFile: staticPodPath may be a manifest. One that can't be read leaves all as it
// was, where one in a folder loses its pod at the next list; one that is missing is no pod
// (sourceFile.listConfig of pkg/kubelet/config/file.go).
func TestFileSourceOfOneFile(t *testing.T) {
	l, f, c, logs := fileWorld(t)
	if err := f.MkdirAll("/etc", 0o755); err != nil {
		t.Fatal(err)
	}
	at := time.Duration(0)
	for _, step := range []struct {
		what, text string // "" removes the file
		want       string
		logs       bool
	}{
		{"nothing is there", "", "[ADD]", false},
		{"a manifest", fmt.Sprintf(manifest, "", "a"), "[ADD web-node1]", false},
		{"the same one", fmt.Sprintf(manifest, "", "a"), "[]", false},
		{"an edit", fmt.Sprintf(manifest, "", "b"), "[REMOVE web-node1 ADD web-node1]", false},
		{"a broken edit", "kind: Pod\n  broken", "[]", true},
		{"mended", fmt.Sprintf(manifest, "-2", "b"), "[REMOVE web-node1 ADD web-2-node1]", false},
		{"removed", "", "[REMOVE web-2-node1]", false},
	} {
		*logs = nil
		if step.text == "" {
			_ = f.Remove("/etc/manifests")
		} else if err := f.WriteFile("/etc/manifests", []byte(step.text), 0o644); err != nil {
			t.Fatal(err)
		}
		at += 45 * time.Second // so that there are lists as well
		if got := fmt.Sprint(toldUntil(t, l, c, at)); got != step.want || len(*logs) > 0 != step.logs {
			t.Errorf("%s: got %s, want %s; logs %q", step.what, got, step.want, *logs)
		}
	}
}

func TestFileSource(t *testing.T) {
	l, f, c, logs := fileWorld(t)
	run := func(at time.Duration) []string {
		t.Helper()
		return toldUntil(t, l, c, at)
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := f.WriteFile("/etc/manifests/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect("a missing path counts as seen", run(time.Second), "ADD")
	if err := f.MkdirAll("/etc/manifests/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	write(".hidden.yaml", fmt.Sprintf(manifest, "-h", "a"))
	write("web.yaml", fmt.Sprintf(manifest, "", "a"))
	expect("a file starts a pod at once", run(2*time.Second), "ADD web-node1")
	write("web.yaml", fmt.Sprintf(manifest, "", "b"))
	expect("an edit gives a new UID", run(3*time.Second), "REMOVE web-node1", "ADD web-node1")
	write("web.yaml", "kind: Pod\n  broken")
	expect("a broken edit keeps the pod", run(4*time.Second))
	if len(*logs) == 0 {
		t.Error("nothing was logged")
	}
	expect("the next list drops it", run(21*time.Second), "REMOVE web-node1")
	write("web.yaml", fmt.Sprintf(manifest, "", "c"))
	expect("mended", run(22*time.Second), "ADD web-node1")
	expect("later lists say nothing", run(70*time.Second))
	if err := f.Remove("/etc/manifests/web.yaml"); err != nil {
		t.Fatal(err)
	}
	expect("removed", run(71*time.Second), "REMOVE web-node1")
	write("a.yaml", fmt.Sprintf(manifest, "", "d"))
	expect("one of two files", run(72*time.Second), "ADD web-node1")
	write("b.yaml", fmt.Sprintf(manifest, "", "e"))
	expect("the other replaces its pod", run(73*time.Second), "REMOVE web-node1", "ADD web-node1")
	if err := f.Remove("/etc/manifests/a.yaml"); err != nil {
		t.Fatal(err)
	}
	expect("with either file the pod of the name goes", run(74*time.Second), "REMOVE web-node1")
	expect("the next list finds the file that is left", run(81*time.Second), "ADD web-node1")
}

func TestDecode(t *testing.T) {
	d := StaticPods{NodeName: "Node1", Defaulter: func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyAlways }}
	pod, err := d.Decode([]byte(fmt.Sprintf(manifest, "", "a")), "/m/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if pod.Name != "web-node1" || pod.Namespace != "default" || pod.Spec.NodeName != "Node1" || len(pod.UID) != 32 ||
		pod.Annotations[kubetypes.ConfigHashAnnotationKey] != string(pod.UID) || pod.Status.Phase != v1.PodPending ||
		pod.Spec.RestartPolicy != v1.RestartPolicyAlways {
		t.Errorf("got %+v", pod)
	}
	if want := []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}}; !reflect.DeepEqual(pod.Spec.Tolerations, want) {
		t.Errorf("tolerations %v", pod.Spec.Tolerations)
	}
	uid := func(node, path, image string) types.UID {
		o := d
		o.NodeName = node
		p, err := o.Decode([]byte(fmt.Sprintf(manifest, "", image)), path)
		if err != nil {
			t.Fatal(err)
		}
		return p.UID
	}
	if uid("Node1", "/m/web.yaml", "a") != pod.UID || uid("n2", "/m/web.yaml", "a") == pod.UID ||
		uid("Node1", "/m/x.yaml", "a") == pod.UID || uid("Node1", "/m/web.yaml", "b") == pod.UID {
		t.Error("the UID must depend on content, node and path, and on nothing else")
	}
	for _, tc := range []struct{ manifest, want string }{
		{"apiVersion: v1\nkind: Pod\nmetadata: {}\n", "invalid pod: name is needed for the pod"},
		{"apiVersion: v1\nkind: PodList\nitems: []\n", "couldn't parse as pod"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {serviceAccountName: x}\n", "static pods may not reference serviceaccounts"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, envFrom: [{secretRef: {name: s}}]}]}\n", "static pods may not reference secrets"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {imagePullSecrets: [{name: s}], containers: [{name: c}]}\n", "static pods may not reference secrets"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}\n", "static pods may not reference secrets"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: v, secret: {secretName: s}}], containers: [{name: c}]}\n", "static pods may not reference secrets"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: v, configMap: {name: s}}]}\n", "static pods may not reference configmaps"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: s}}]}\n", "static pods may not reference persistentvolumeclaims"},
	} {
		if _, err := d.Decode([]byte(tc.manifest), "/m/a.yaml"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
	// A reference that names nothing is none.
	nameless := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {imagePullSecrets: [{}], containers: [{name: c, image: i, envFrom: [{secretRef: {}}]}]}\n"
	if _, err := d.Decode([]byte(nameless), "/m/a.yaml"); err != nil && strings.Contains(err.Error(), "secrets") {
		t.Error(err)
	}
}

package kubelet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet"
	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
)

// world is a node without an API: static pods only.
type world struct {
	t       *testing.T
	l       *loop.Loop
	fs      *memfs.FS
	rt      *fakecri.Runtime
	rec     *trace.Recorder
	records []*trace.Record
	logs    []string
	group   *loop.Group
	kl      *kubelet.Kubelet
	noElide bool
	exit    error
}

// nodeLogs keeps containers' logs in the node's files.
type nodeLogs struct{ fs *memfs.FS }

func (n nodeLogs) OpenLog(file string)                { _ = n.fs.Append(file, nil, 0o640) }
func (n nodeLogs) WriteLog(file string, lines []byte) { _ = n.fs.Append(file, lines, 0o640) }

func (w *world) Wants(trace.Kind, string, []trace.Field) bool { return true }
func (w *world) Take(r *trace.Record)                         { w.records = append(w.records, r) }

type machine struct{}

func (machine) Capacity() v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("4Gi"), v1.ResourceEphemeralStorage: resource.MustParse("50Gi")}
}
func (machine) BootID() string        { return "boot" }
func (machine) MachineID() string     { return "machine" }
func (machine) SystemUUID() string    { return "system" }
func (machine) KernelVersion() string { return "6.1.0" }
func (machine) OSImage() string       { return "test" }
func (machine) NodeIP() string        { return "172.16.0.1" }

func newWorld(t *testing.T, noElide bool) *world {
	w := &world{t: t, l: loop.New(loop.Options{Name: "node-0", Seed: 7, Elision: map[bool]loop.ElisionMode{true: loop.NoElide}[noElide]}), noElide: noElide}
	t.Cleanup(w.l.Close)
	w.rec = trace.NewRecorder(w.l, "node-0", w)
	w.fs = memfs.New(memfs.Options{Loop: w.l})
	w.rt = fakecri.New(fakecri.Options{Loop: w.l, Recorder: w.rec, Logs: nodeLogs{w.fs},
		Images:   []fakecri.Image{{Name: "app:1", Present: true}, {Name: "fails:1", Present: true}, {Name: "probed:1", Present: true}},
		Programs: []fakecri.Program{probedProgram, {Match: fakecri.Match{Image: "fails:1"}, Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: time.Second, Max: time.Second}, ExitCode: 1}}},
	})
	if err := w.fs.MkdirAll("/etc/manifests", 0o755); err != nil {
		t.Fatal(err)
	}
	w.rt.StartDaemon()
	return w
}

func (w *world) start() {
	w.t.Helper()
	w.startWith(func(*kubelet.Options) {})
}

// startWith starts a kubelet with options that change sets.
func (w *world) startWith(change func(*kubelet.Options)) {
	w.t.Helper()
	cfg := &kubeletconfig.KubeletConfiguration{StaticPodPath: "/etc/manifests"}
	kubeletcfg.SetDefaults(cfg)
	w.group = w.l.NewGroup("kubelet")
	rt := w.rt.Client(w.group)
	opts := kubelet.Options{
		Loop: w.l, Group: w.group, NodeName: "node-0", Config: cfg, RuntimeService: rt, ImageService: rt,
		FS: w.fs, Machine: machine{}, Network: network{w.rt},
		Defaulter: func(p *v1.Pod) {
			links := true
			p.Spec.RestartPolicy, p.Spec.DNSPolicy, p.Spec.EnableServiceLinks = v1.RestartPolicyAlways, v1.DNSDefault, &links
			for i := range p.Spec.Containers {
				p.Spec.Containers[i].ImagePullPolicy = v1.PullIfNotPresent
			}
		},
		Exit: func(err error) { w.exit = err },
		Log: func(format string, args ...any) {
			w.logs = append(w.logs, fmt.Sprintf("%8.3f ", w.seconds())+fmt.Sprintf(format, args...))
		},
	}
	change(&opts)
	var err error
	if w.kl, err = kubelet.New(opts); err != nil {
		w.t.Fatal(err)
	}
	w.kl.Start()
}

func (w *world) seconds() float64 { return w.l.Since(loop.Epoch()).Seconds() }

func (w *world) write(name, uid, image string, grace int) {
	w.t.Helper()
	text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, uid: %q}\nspec: {terminationGracePeriodSeconds: %d, containers: [{name: main, image: %q}]}\n", name, uid, grace, image)
	if err := w.fs.WriteFile("/etc/manifests/"+name+".yaml", []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := w.fs.Remove("/etc/manifests/" + name + ".yaml"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run(until float64) {
	w.t.Helper()
	if err := w.l.RunUntil(loop.Epoch().Add(time.Duration(until * float64(time.Second)))); err != nil {
		w.t.Fatal(err)
	}
}

// calls returns the CRI calls and process events from a time on, one
// "seconds Verb object" each.
func (w *world) calls(from float64, verbs ...string) []string {
	var out []string
	for _, r := range w.records {
		at := float64(r.At-loop.Epoch().UnixNano()) / 1e9
		if at < from {
			continue
		}
		for _, v := range verbs {
			if r.Verb == v {
				out = append(out, fmt.Sprintf("%.0f %s %s", at, v, r.Object))
			}
		}
	}
	return out
}

func (w *world) expect(what string, got []string, want ...string) {
	w.t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("%s: got\n  %s\nwant\n  %s\nlog\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "), strings.Join(w.logs, "\n  "))
	}
}

func TestStaticPodRunsAndGoes(t *testing.T) {
	w := newWorld(t, false)
	w.start()
	w.run(2)
	w.write("web", "", "app:1", 5)
	w.run(4)
	w.expect("start", w.calls(0, "RunPodSandbox", "StartContainer"), "2 RunPodSandbox pod default/web-node-0", "2 StartContainer container default/web-node-0/main")
	if dirs, _ := w.fs.ReadDir("/var/lib/kubelet/pods"); len(dirs) != 1 {
		t.Errorf("pod directories %v", dirs)
	}
	w.remove("web")
	w.run(15)
	w.expect("stop", w.calls(4, "StopContainer", "StopPodSandbox"), "4 StopContainer container default/web-node-0/main", "4 StopPodSandbox pod default/web-node-0")
	if dirs, _ := w.fs.ReadDir("/var/lib/kubelet/pods"); len(dirs) != 0 {
		t.Errorf("pod directories %v", dirs)
	}
}

// An edited manifest without a UID is another pod of the same name: it waits
// for the old one, and is looked at again 10 to 15 s later.
func TestSameNameReplaced(t *testing.T) {
	w := newWorld(t, false)
	w.start()
	w.run(2)
	w.write("web", "", "app:1", 5)
	w.run(10)
	w.write("web", "", "app:1", 6)
	w.run(30)
	starts := w.calls(9, "StartContainer")
	if len(starts) != 1 {
		t.Fatalf("starts %v\n%s", starts, strings.Join(w.logs, "\n"))
	}
	var at float64
	if _, err := fmt.Sscanf(starts[0], "%f", &at); err != nil || at < 20 || at > 27 {
		t.Errorf("the new pod started: %s", starts[0])
	}
}

// A manifest with a fixed UID that is removed and comes again while its pod
// still ends is started by the housekeeping after its end.
func TestSameUIDComesAgain(t *testing.T) {
	w := newWorld(t, false)
	w.start()
	w.run(2)
	w.write("web", "fixed", "app:1", 5)
	w.run(10)
	w.remove("web")
	w.run(10.01)
	w.write("web", "fixed", "app:1", 5)
	w.run(16)
	starts := w.calls(9, "StartContainer")
	if len(starts) != 1 || starts[0] > "14" {
		t.Errorf("starts %v\n%s", starts, strings.Join(w.logs, "\n"))
	}
}

func TestRestartedKubeletTakesOver(t *testing.T) {
	w := newWorld(t, false)
	w.start()
	w.run(2)
	w.write("web", "", "app:1", 5)
	w.write("gone", "", "app:1", 5)
	w.run(10)
	w.group.Kill()
	w.run(11)
	w.remove("gone")
	w.run(12)
	w.start()
	w.run(40)
	w.expect("what a new kubelet does", w.calls(11, "RunPodSandbox", "StartContainer", "StopContainer"),
		"14 StopContainer container default/gone-node-0/main")
	if want := "Clean up containers for orphaned pod we had not seen before pod=gone-node-0_default"; !slices.ContainsFunc(w.logs, func(l string) bool { return strings.Contains(l, want) }) {
		t.Errorf("no %q in\n%s", want, strings.Join(w.logs, "\n"))
	}
}

// A crash loop: restarts not before 0, 10, 20 s after the exits.
func TestCrashLoopRequeue(t *testing.T) {
	w := newWorld(t, false)
	w.start()
	w.run(2)
	w.write("web", "", "fails:1", 5)
	w.run(70)
	var exits, starts []float64
	for _, r := range w.records {
		at := float64(r.At-loop.Epoch().UnixNano()) / 1e9
		switch {
		case r.Kind == trace.KindProcess && r.Verb == "exit":
			exits = append(exits, at)
		case r.Kind == trace.KindProcess && r.Verb == "start":
			starts = append(starts, at)
		}
	}
	for i, low := range []float64{0, 10, 20} {
		if i+1 >= len(starts) {
			t.Fatalf("only %d starts", len(starts))
		}
		if d := starts[i+1] - exits[i]; d < low || d > low*1.5+3 {
			t.Errorf("restart %d came %.1f s after the exit", i+1, d)
		}
	}
}

func TestRuntimeDownAtStart(t *testing.T) {
	w := newWorld(t, false)
	w.rt.StopDaemon()
	w.start()
	w.run(5)
	if w.exit == nil || !strings.Contains(w.exit.Error(), `validate CRI v1 runtime API for endpoint "unix:///run/containerd/containerd.sock"`) {
		t.Errorf("exit %v", w.exit)
	}
}

// While the runtime is down nothing is synced; what came meanwhile is taken in
// within 5 s of its return.
func TestRuntimeDown(t *testing.T) {
	w := newWorld(t, false)
	w.start()
	w.run(5)
	w.rt.StopDaemon()
	w.run(40)
	w.write("web", "", "app:1", 5)
	w.run(60)
	if got := w.calls(5, "RunPodSandbox"); len(got) != 0 {
		t.Errorf("synced with a runtime that is down: %v", got)
	}
	w.rt.StartDaemon()
	w.run(72)
	if got := w.calls(60, "StartContainer"); len(got) != 1 {
		t.Errorf("starts %v\n%s", got, strings.Join(w.logs, "\n"))
	}
}

// What is left out changes nothing that can be seen.
func TestElisionIsInvisible(t *testing.T) {
	var worlds [2]*world
	var stats [2]kubelet.Stats
	for i := range worlds {
		w := newWorld(t, i == 1)
		w.start()
		w.run(2)
		w.write("web", "", "app:1", 5)
		w.write("loop", "", "fails:1", 5)
		w.run(100)
		if err := w.rt.StopContainerOutside("default/web-node-0", "main"); err != nil {
			t.Fatal(err)
		}
		w.run(130)
		w.write("web", "", "app:1", 7)
		w.run(200)
		w.remove("loop")
		w.run(400)
		worlds[i], stats[i] = w, w.kl.Stats()
	}
	sameRecords(t, worlds[0].records, worlds[1].records)
	if stats[0].Resyncs == 0 || stats[0].PLEG.Elided < 300 || stats[0].Housekeepings >= stats[1].Housekeepings/2 {
		t.Errorf("little was left out: %+v\nwithout elision: %+v", stats[0], stats[1])
	}
}

// sameRecords holds a trace with elision against one without.
func sameRecords(t *testing.T, a, b []*trace.Record) {
	t.Helper()
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) {
			t.Fatalf("%d records with elision, %d without", len(a), len(b))
		}
		// Each step on the loop takes a nanosecond, and there are fewer steps.
		apart := time.Duration(a[i].At - b[i].At).Abs()
		if a[i].Kind != b[i].Kind || a[i].Verb != b[i].Verb || a[i].Object != b[i].Object || apart > 10*time.Microsecond {
			t.Fatalf("record %d: with elision %+v, without %+v", i, a[i], b[i])
		}
	}
}

// Trouble reaches an idle kubelet, most of whose timers are not set, as soon as
// one that polls.
func TestElisionIsInvisibleInTrouble(t *testing.T) {
	for name, trouble := range map[string]func(w *world){
		"the daemon is down": func(w *world) {
			w.rt.StopDaemon()
			w.run(145)
			w.write("late", "", "app:1", 5)
			w.run(150)
			w.rt.StartDaemon()
		},
		"the network is not ready": func(w *world) {
			w.rt.SetNetworkReady(false, "NetworkPluginNotReady", "cni plugin not initialized")
			w.run(190)
			w.rt.SetNetworkReady(true, "", "")
		},
		"a listing hangs": func(w *world) {
			remove := w.rt.AddFault(fakecri.Fault{Method: "ListPodSandbox", Hang: true})
			w.run(150)
			remove()
		},
		"status fails": func(w *world) {
			remove := w.rt.AddFault(fakecri.Fault{Method: "Status", Error: &fakecri.FaultError{Code: "Unknown"}})
			w.run(160)
			w.write("late", "", "app:1", 5)
			w.run(170)
			remove()
		},
		"a container dies": func(w *world) {
			if err := w.rt.StopContainerOutside("default/web-node-0", "main"); err != nil {
				t.Fatal(err)
			}
		},
		"a sandbox goes": func(w *world) {
			if err := w.rt.StopSandboxOutside("default/web-node-0"); err != nil {
				t.Fatal(err)
			}
		},
		"the manifest goes": func(w *world) { w.remove("web") },
	} {
		t.Run(name, func(t *testing.T) {
			var records [2][]*trace.Record
			for i := range records {
				w := newWorld(t, i == 1)
				w.start()
				w.run(2)
				w.write("web", "", "app:1", 5)
				w.run(100.4)
				trouble(w)
				w.run(400)
				records[i] = w.records
			}
			if len(records[0]) < 4 {
				t.Errorf("%d records", len(records[0]))
			}
			sameRecords(t, records[0], records[1])
		})
	}
}

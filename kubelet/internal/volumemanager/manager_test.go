package volumemanager

import (
	"context"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/emptydir"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/hostpath"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/keyed"
)

// rig is a volume manager with everything around it made by hand.
type rig struct {
	claims     claims
	t          *testing.T
	l          *loop.Loop
	g          *loop.Group
	fs         *memfs.FS
	m          *Manager
	pods       map[types.UID]*v1.Pod
	stopped    map[types.UID]bool // containers are stopped
	ready      bool
	configMaps map[string]*v1.ConfigMap
	log        []string
}

func (r *rig) GetPodByUID(uid types.UID) (*v1.Pod, bool) { p, ok := r.pods[uid]; return p, ok }
func (r *rig) ShouldPodContainersBeTerminating(uid types.UID) bool {
	return r.stopped[uid] || r.pods[uid] == nil
}
func (r *rig) ShouldPodRuntimeBeRemoved(uid types.UID) bool {
	return r.stopped[uid] || r.pods[uid] == nil
}
func (r *rig) Event(_ *v1.ObjectReference, typ, reason, message string) {
	r.say(typ + " " + reason + " " + message)
}
func (r *rig) Get(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	if c := r.configMaps[name]; c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmap"}, name)
}
func (r *rig) Peek(_, name string) (*v1.ConfigMap, bool) { return r.configMaps[name], true }

func (r *rig) MountTmpfs(path string, _ int64) error { return r.fs.MountTmpfs(path) }
func (r *rig) Unmount(path string) error             { return r.fs.Unmount(path) }
func (r *rig) IsMountPoint(path string) bool         { return r.fs.Mounted(path) }

// say notes what happened, with its time to a tenth of a second.
func (r *rig) say(what string) {
	r.log = append(r.log, fmt.Sprintf("%.1f %s", r.l.Since(loop.Epoch()).Seconds(), what))
}

func newRig(t *testing.T, noElide bool) *rig {
	l := loop.New(loop.Options{Elision: map[bool]loop.ElisionMode{true: loop.NoElide}[noElide]})
	t.Cleanup(l.Close)
	r := &rig{t: t, l: l, g: l.NewGroup("kubelet"), fs: memfs.New(memfs.Options{Loop: l}), ready: true,
		pods: map[types.UID]*v1.Pod{}, stopped: map[types.UID]bool{}, configMaps: map[string]*v1.ConfigMap{}}
	r.restart()
	return r
}

// restart makes a new manager, as a new kubelet would.
func (r *rig) restart() {
	r.g.Kill()
	r.g = r.l.NewGroup("kubelet")
	host := &volume.Host{FS: r.fs, Mounter: r, PodsDir: "/pods", ConfigMaps: r, Now: r.l.Now,
		NodeAllocatable: func() v1.ResourceList { return nil },
		Random:          func(o string, n uint64) uint32 { return uint32(r.l.Uint64("test", o, n)) }}
	r.m = New(Options{Group: r.g, Claims: &r.claims, NodeName: "n", Host: host, Pods: r, States: r, Recorder: r,
		Plugins:      []volume.Plugin{emptydir.New(host), keyed.NewConfigMap(host), hostpath.New(host)},
		SourcesReady: func() bool { return r.ready }})
	r.m.Start()
}

func (r *rig) run(until time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(loop.Epoch().Add(until)); err != nil {
		r.t.Fatal(err)
	}
}

// at has fn run at a time since the start.
func (r *rig) at(at time.Duration, fn func()) { r.l.Root().At(loop.Epoch().Add(at), fn) }

// add has the kubelet know a pod and wait for its volumes.
func (r *rig) add(pod *v1.Pod) {
	r.pods[pod.UID] = pod
	r.m.PodAdded(pod)
	r.g.Go("sync", func(ctx context.Context) {
		if err := r.m.WaitForAttachAndMount(ctx, pod); err != nil {
			r.say("wait: " + err.Error())
			return
		}
		r.say("mounted")
	})
}

// end stops a pod's containers and waits for its volumes to go.
func (r *rig) end(pod *v1.Pod) {
	r.stopped[pod.UID] = true
	r.m.PodsChanged()
	r.g.Go("end", func(ctx context.Context) {
		if err := r.m.WaitForUnmount(ctx, pod); err != nil {
			r.say("wait: " + err.Error())
		}
		if err := r.m.WaitForVolumePaths(ctx, pod); err != nil {
			r.say("wait: " + err.Error())
		}
		r.say("unmounted")
	})
}

func (r *rig) want(want ...string) {
	r.t.Helper()
	if !reflect.DeepEqual(r.log, want) {
		r.t.Errorf("got\n %s\nwant\n %s", strings.Join(r.log, "\n "), strings.Join(want, "\n "))
	}
}

func testPod(uid string, volumes ...v1.Volume) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)}}
	c := v1.Container{Name: "main"}
	for _, v := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	pod.Spec.Containers, pod.Spec.Volumes = []v1.Container{c}, volumes
	return pod
}

func configMapVolume(name, object string) v1.Volume {
	mode := int32(0o644)
	v := v1.Volume{Name: name}
	v.ConfigMap = &v1.ConfigMapVolumeSource{DefaultMode: &mode}
	v.ConfigMap.Name = object
	return v
}

func emptyDirVolume(name string, medium v1.StorageMedium) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: medium}}}
}

func configMap(data string) *v1.ConfigMap { return &v1.ConfigMap{Data: map[string]string{"k": data}} }

// A missing configMap is tried 0.5, 1, 2, 4, ... seconds apart, and once it is
// there the next try mounts it. Each outcome is the same whether or not the
// loops run while nothing changes.
func TestLateConfigMap(t *testing.T) {
	for _, noElide := range []bool{false, true} {
		r := newRig(t, noElide)
		r.at(time.Second, func() { r.add(testPod("p", configMapVolume("v", "cm"))) })
		r.at(10*time.Second, func() { r.configMaps["cm"] = configMap("1") })
		r.run(30 * time.Second)
		const text = ` Warning FailedMount MountVolume.SetUp failed for volume "v" : configmap "cm" not found`
		tries := 0
		for _, line := range r.log[:len(r.log)-1] {
			if strings.HasSuffix(line, text) {
				tries++
			}
		}
		last := r.log[len(r.log)-1]
		if tries != 5 || len(r.log) != 6 || !strings.HasSuffix(last, " mounted") || !strings.HasPrefix(last, "17.2") {
			t.Errorf("noElide %t: %s", noElide, strings.Join(r.log, "\n "))
		}
		if b, err := r.fs.ReadFile("/pods/p/volumes/kubernetes.io~configmap/v/k"); string(b) != "1" {
			t.Errorf("%q, %v", b, err)
		}
	}
}

func TestMountsAndUnmounts(t *testing.T) {
	for _, noElide := range []bool{false, true} {
		r := newRig(t, noElide)
		pod := testPod("p", emptyDirVolume("d", ""), emptyDirVolume("m", v1.StorageMediumMemory))
		r.at(time.Second, func() { r.add(pod) })
		r.at(2*time.Second, func() {
			for name, want := range map[string]string{"d": "/pods/p/volumes/kubernetes.io~empty-dir/d", "m": "/pods/p/volumes/kubernetes.io~empty-dir/m"} {
				info, err := r.fs.Stat(want)
				if err != nil || info.Mode().Perm() != 0o777 || r.m.GetMountedVolumesForPod("p")[name].Path != want {
					t.Errorf("%s: %v, %v", name, info, err)
				}
			}
			if !r.fs.Mounted("/pods/p/volumes/kubernetes.io~empty-dir/m") || r.fs.Mounted("/pods/p/volumes/kubernetes.io~empty-dir/d") {
				t.Error("tmpfs")
			}
			if !r.m.Settled(pod) {
				t.Error("not settled")
			}
		})
		r.at(3*time.Second, func() { r.end(pod) })
		r.at(4*time.Second, func() { delete(r.pods, "p"); r.m.PodsChanged() })
		r.run(10 * time.Second)
		r.want("1.3 mounted", "3.3 unmounted")
		for _, dir := range []string{"/pods/p/volumes/kubernetes.io~empty-dir", "/pods/p/plugins/kubernetes.io~empty-dir"} {
			if left, _ := r.fs.ReadDir(dir); len(left) != 0 {
				t.Errorf("%s: %v", dir, left)
			}
		}
		if len(r.m.pods) != 0 || len(r.m.order) != 0 {
			t.Error("the pod is not forgotten")
		}
		if !noElide && !(r.m.populating.passes.Parked() && r.m.reconciling.passes.Parked()) {
			t.Error("a loop runs although nothing happens")
		}
	}
}

// A volume that no container uses is not mounted, and a pod that uses none is
// not known.
func TestUnusedVolumes(t *testing.T) {
	r := newRig(t, false)
	pod := testPod("p", configMapVolume("v", "absent"))
	pod.Spec.Containers[0].VolumeMounts = nil
	r.at(time.Second, func() { r.add(pod) })
	r.run(5 * time.Second)
	r.want("1.0 mounted")
	if len(r.m.pods) != 0 || !r.m.Settled(pod) {
		t.Error("known")
	}
}

// A changed configMap reaches the files with the next sync, not before, and all
// of it at once.
func TestUpdateComesWithASync(t *testing.T) {
	r := newRig(t, false)
	pod := testPod("p", configMapVolume("v", "cm"))
	r.configMaps["cm"] = configMap("old")
	file := "/pods/p/volumes/kubernetes.io~configmap/v/k"
	holds := func(want string) {
		t.Helper()
		if b, err := r.fs.ReadFile(file); string(b) != want {
			t.Errorf("%q, %v", b, err)
		}
	}
	r.at(time.Second, func() { r.add(pod) })
	r.at(2*time.Second, func() {
		if !r.m.Settled(pod) {
			t.Error("not settled")
		}
		r.configMaps["cm"] = configMap("new")
		if r.m.Settled(pod) {
			t.Error("settled with an old object")
		}
	})
	r.at(9*time.Second, func() { holds("old"); r.add(pod) })
	r.at(10*time.Second, func() {
		holds("new")
		if !r.m.Settled(pod) {
			t.Error("not settled")
		}
		delete(r.configMaps, "cm")
		r.add(pod)
	})
	r.run(11 * time.Second)
	holds("new")
	r.want("1.3 mounted", "9.0 mounted", "10.0 mounted",
		`10.2 Warning FailedMount MountVolume.SetUp failed for volume "v" : configmap "cm" not found`,
		`10.8 Warning FailedMount MountVolume.SetUp failed for volume "v" : configmap "cm" not found`)
}

// What a sync waits for in vain: no event by itself, an error that says what.
func TestWaitTimesOut(t *testing.T) {
	r := newRig(t, false)
	r.at(time.Second, func() { r.add(testPod("p", configMapVolume("v", "cm"), emptyDirVolume("d", ""))) })
	r.run(130 * time.Second)
	if !slices.Contains(r.log, "124.0 wait: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: context deadline exceeded") {
		t.Error(r.log)
	}
}

func TestCancelWait(t *testing.T) {
	r := newRig(t, false)
	r.at(time.Second, func() { r.add(testPod("p", configMapVolume("v", "cm"))) })
	r.at(2*time.Second, func() { r.m.CancelWait("p") })
	r.run(3 * time.Second)
	if !slices.Contains(r.log, "2.0 wait: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: context canceled") {
		t.Error(r.log)
	}
}

// A new kubelet takes over what is wanted, and takes the rest away, but not
// before all sources have told of their pods.
func TestReconstruction(t *testing.T) {
	r := newRig(t, false)
	kept, gone := testPod("kept", emptyDirVolume("d", "")), testPod("gone", emptyDirVolume("d", v1.StorageMediumMemory))
	file := func(uid string) string { return "/pods/" + uid + "/volumes/kubernetes.io~empty-dir/d/f" }
	r.at(time.Second, func() { r.add(kept); r.add(gone) })
	r.at(2*time.Second, func() {
		for _, uid := range []string{"kept", "gone"} {
			if err := r.fs.WriteFile(file(uid), []byte("x"), 0o644); err != nil {
				t.Error(err)
			}
		}
		r.ready = false
		delete(r.pods, "gone")
		r.restart()
	})
	r.at(3*time.Second, func() { r.add(kept) })
	exists := func(uid string, want bool) {
		t.Helper()
		if _, err := r.fs.Stat(file(uid)); (err == nil) != want {
			t.Errorf("%s: %v", uid, err)
		}
	}
	r.at(5*time.Second, func() {
		exists("gone", true)
		if !r.m.HasPossiblyMountedVolumesForPod("gone") {
			t.Error("gone is not known")
		}
		r.ready = true
		r.m.SourcesSeen()
	})
	r.run(6 * time.Second)
	exists("kept", true)
	exists("gone", false)
	if r.m.HasPossiblyMountedVolumesForPod("gone") || r.fs.Mounted("/pods/gone/volumes/kubernetes.io~empty-dir/d") {
		t.Error("gone is mounted")
	}
	r.want("1.3 mounted", "1.3 mounted", "3.0 mounted")
}

func TestHostPathMismatch(t *testing.T) {
	r := newRig(t, false)
	typ := v1.HostPathDirectory
	v := v1.Volume{Name: "h"}
	v.HostPath = &v1.HostPathVolumeSource{Path: "/etc/file", Type: &typ}
	if err := r.fs.MkdirAll("/etc", fs.FileMode(0o755)); err != nil {
		t.Fatal(err)
	}
	if err := r.fs.WriteFile("/etc/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.at(time.Second, func() { r.add(testPod("p", v)) })
	r.run(1500 * time.Millisecond)
	r.want(`1.1 Warning FailedMount MountVolume.SetUp failed for volume "h" : hostPath type check failed: /etc/file is not a directory`)
}

func TestBackoff(t *testing.T) {
	var b backoff
	var waits []time.Duration
	for range 10 {
		b.failed(mountOperation, 0)
		waits = append(waits, b.wait)
	}
	if waits[0] != 500*time.Millisecond || waits[1] != time.Second || waits[7] != 64*time.Second || waits[8] != backoffMax || waits[9] != backoffMax {
		t.Error(waits)
	}
	if b.until(unmountOperation) != 0 {
		t.Error("another operation waits")
	}
	b.failed(unmountOperation, 0)
	if b.wait != backoffInitial {
		t.Error("another operation begins with the wait of the last")
	}
}

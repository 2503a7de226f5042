package kubelet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

// What a kubelet has on a machine and a simulated one has not: cgroups, links to
// logs, checkpoints that outlive a kill.

// cgroups writes down what it is asked, with the seconds.
type cgroups struct {
	w     *world
	pods  map[types.UID]bool
	calls []string
	fail  error
	// rootFails is how often the root's values are refused; used is what the
	// pods of each class use.
	rootFails int
	used      int64
}

func (c *cgroups) say(format string, args ...any) error {
	if c.fail != nil {
		return c.fail
	}
	c.calls = append(c.calls, fmt.Sprintf("%.0f ", c.w.seconds())+fmt.Sprintf(format, args...))
	return nil
}

func (c *cgroups) SetRoot(_ context.Context, v cm.NodeCgroup) error {
	if c.rootFails > 0 {
		c.rootFails--
		return errors.New("device or resource busy")
	}
	return c.say("root %d %d", *v.CPUShares, *v.MemoryLimit>>20)
}

func (c *cgroups) SetReserved(_ context.Context, name string, v cm.NodeCgroup) error {
	if name == "/none" {
		return errors.New("cgroup [\"none\"] has some missing paths: /sys/fs/cgroup/none")
	}
	memory := int64(-1)
	if v.MemoryLimit != nil {
		memory = *v.MemoryLimit >> 20
	}
	return c.say("%s %d %d", name, *v.CPUShares, memory)
}

func (c *cgroups) SetClass(_ context.Context, class v1.PodQOSClass, v cm.ClassCgroup) error {
	if v.MemoryLimit != nil && *v.MemoryLimit < c.used {
		return errors.New("device or resource busy")
	}
	if class == v1.PodQOSBestEffort && v.MemoryLimit == nil {
		return c.fail
	}
	if v.MemoryLimit != nil {
		return c.say("%s %d %d", class, v.CPUShares, *v.MemoryLimit>>20)
	}
	return c.say("%s %d", class, v.CPUShares)
}

func (c *cgroups) ClassMemory(context.Context, v1.PodQOSClass) (int64, error) { return c.used, nil }

func (c *cgroups) SetPod(_ context.Context, class v1.PodQOSClass, uid types.UID, v cm.PodCgroup) error {
	if err := c.say("%s pod %dm", class, v.MilliCPU); err != nil {
		return err
	}
	c.pods[uid] = true
	return nil
}

func (c *cgroups) PodExists(_ v1.PodQOSClass, uid types.UID) bool { return c.pods[uid] }

func (c *cgroups) Pods() []types.UID {
	var out []types.UID
	for uid := range c.pods {
		out = append(out, uid)
	}
	slices.Sort(out)
	return out
}

func (c *cgroups) ShrinkPod(_ context.Context, uid types.UID) error { return c.say("shrink %s", uid) }

func (c *cgroups) RemovePod(_ context.Context, uid types.UID) error {
	if !c.pods[uid] {
		return nil
	}
	delete(c.pods, uid)
	return c.say("remove pod")
}

// onMachine starts a kubelet as on a machine.
func (w *world) onMachine(c *cgroups, change func(*kubeletconfig.KubeletConfiguration)) {
	w.t.Helper()
	w.startWith(func(o *kubelet.Options) {
		o.Cgroups, o.ContainerLogsDir, o.Durable = c, "/var/log/containers", true
		if change != nil {
			change(o.Config)
		}
	})
}

const requests = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: fixed}\nspec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: app:1, resources: {requests: {cpu: 250m}}}]}\n"

func TestCgroups(t *testing.T) {
	w := newWorld(t, true)
	c := &cgroups{w: w, pods: map[types.UID]bool{"orphan": true}}
	w.onMachine(c, func(cfg *kubeletconfig.KubeletConfiguration) {
		cfg.KubeReserved = map[string]string{"cpu": "500m", "memory": "1Gi"}
	})
	w.run(2)
	if err := w.fs.WriteFile("/etc/manifests/web.yaml", []byte(requests), 0o644); err != nil {
		t.Fatal(err)
	}
	w.run(10)
	w.remove("web")
	w.run(20)
	w.expect("cgroups", c.calls, "0 root 1536 3072", "0 Burstable 2", "2 Burstable 256", "2 Burstable pod 250m", "2 remove pod", "11 remove pod")
}

// nodeEvents are the events about the node with a reason, in order.
func (w *world) nodeEvents(reasons ...string) []string {
	var out []string
	for _, l := range w.logs {
		for _, r := range reasons {
			if i := strings.Index(l, r+" about Node"); i >= 0 {
				out = append(out, l[i:])
			}
		}
	}
	return out
}

// TestNodeAllocatable: what the reserved cgroups and all pods get, and the
// events of it.
func TestNodeAllocatable(t *testing.T) {
	w := newWorld(t, true)
	c := &cgroups{w: w, pods: map[types.UID]bool{}, rootFails: 2}
	w.onMachine(c, func(cfg *kubeletconfig.KubeletConfiguration) {
		cfg.EnforceNodeAllocatable = []string{"pods", "system-reserved", "kube-reserved-compressible"}
		cfg.SystemReservedCgroup, cfg.KubeReservedCgroup = "/system.slice", "/daemons"
		cfg.KubeReserved = map[string]string{"cpu": "500m", "memory": "1Gi"}
		cfg.SystemReserved = map[string]string{"cpu": "100m", "memory": "512Mi"}
	})
	w.run(200)
	want := []string{"0 /system.slice 102 512", "0 /daemons 512 -1", "120 root 1433 2560"}
	var got []string
	for _, call := range c.calls {
		if !strings.Contains(call, "Burstable") {
			got = append(got, call)
		}
	}
	w.expect("cgroups", got, want...)
	const node = "about Node /node-0 : "
	w.expect("events", w.nodeEvents("NodeAllocatableEnforced", "FailedNodeAllocatableEnforcement"),
		"FailedNodeAllocatableEnforcement "+node+`Failed to update Node Allocatable Limits ["kubepods"]: device or resource busy`,
		"NodeAllocatableEnforced "+node+"Updated limits on system reserved cgroup /system.slice",
		"NodeAllocatableEnforced "+node+"Updated limits on kube reserved cgroup /daemons",
		"FailedNodeAllocatableEnforcement "+node+`Failed to update Node Allocatable Limits ["kubepods"]: device or resource busy`,
		"NodeAllocatableEnforced "+node+"Updated Node Allocatable limit across pods")
}

// TestReservedCgroupThatIsNotThere: the kubelet does not start without it.
func TestReservedCgroupThatIsNotThere(t *testing.T) {
	w := newWorld(t, true)
	w.onMachine(&cgroups{w: w, pods: map[types.UID]bool{}}, func(cfg *kubeletconfig.KubeletConfiguration) {
		cfg.EnforceNodeAllocatable = []string{"pods", "kube-reserved"}
		cfg.KubeReservedCgroup, cfg.KubeReserved = "/none", map[string]string{"cpu": "500m"}
	})
	w.run(2)
	text := `Failed to enforce Kube Reserved Cgroup Limits on "/none": cgroup ["none"] has some missing paths: /sys/fs/cgroup/none`
	if got := w.nodeEvents("FailedNodeAllocatableEnforcement"); len(got) != 1 || !strings.HasSuffix(got[0], text) {
		t.Errorf("events %q", got)
	}
	if w.exit == nil || w.exit.Error() != "failed to start ContainerManager: "+text {
		t.Errorf("it ended with %v", w.exit)
	}
}

// TestQOSReserved: memory that lower classes may not use; what they use already
// is the limit where it is more.
func TestQOSReserved(t *testing.T) {
	w := newWorld(t, true)
	c := &cgroups{w: w, pods: map[types.UID]bool{}, used: 3500 << 20}
	w.onMachine(c, func(cfg *kubeletconfig.KubeletConfiguration) {
		cfg.FeatureGates = map[string]bool{"QOSReserved": true}
		cfg.QOSReserved = map[string]string{"memory": "50%"}
	})
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, uid: NAME}\nspec: {containers: [{name: main, image: app:1, resources: RES}]}\n"
	for name, res := range map[string]string{"burst": "{requests: {memory: 1Gi, cpu: 500m}}", "guar": "{requests: {memory: 512Mi, cpu: 1}, limits: {memory: 512Mi, cpu: 1}}"} {
		if err := w.fs.WriteFile("/etc/manifests/"+name+".yaml", []byte(strings.NewReplacer("NAME", name, "RES", res).Replace(pod)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.run(10)
	// 4096 MiB less half of 512, and less half of 1024: below what is used.
	for _, want := range []string{"Burstable 512 3840", "BestEffort 2 3500"} {
		if !slices.ContainsFunc(c.calls, func(call string) bool { return strings.HasSuffix(call, want) }) {
			t.Errorf("no %q in %q", want, c.calls)
		}
	}
}

func TestCgroupThatCannotBeMade(t *testing.T) {
	w := newWorld(t, true)
	w.onMachine(&cgroups{w: w, pods: map[types.UID]bool{}, fail: errors.New("no room")}, nil)
	w.run(2)
	w.write("web", "", "app:1", 1)
	w.run(6)
	if got := w.calls(0, "RunPodSandbox"); len(got) != 0 {
		t.Errorf("a pod without its cgroup was started: %v", got)
	}
	want := "FailedCreatePodContainer about Pod default/web-node-0 : unable to ensure pod container exists: no room"
	if !slices.ContainsFunc(w.logs, func(l string) bool { return strings.Contains(l, want) }) {
		t.Errorf("no event in\n%s", strings.Join(w.logs, "\n"))
	}
}

// bySystemd are cgroups that systemd makes, if there is one.
type bySystemd struct {
	*cgroups
	slices *cgroups
	err    error
}

func (c bySystemd) Systemd(context.Context) (cm.Cgroups, error) { return c.slices, c.err }

// systemdRuntime says that its driver is systemd's.
type systemdRuntime struct{ internalapi.RuntimeService }

func (systemdRuntime) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_SYSTEMD}}, nil
}

// TestSystemdCgroups: with the runtime's systemd driver the pods' cgroups are slices that systemd
// makes, and the runtime's own affair where there is no systemd.
func TestSystemdCgroups(t *testing.T) {
	for _, refused := range []error{nil, errors.New("connect to the system bus: no such file")} {
		w := newWorld(t, true)
		files, units := &cgroups{w: w, pods: map[types.UID]bool{}}, &cgroups{w: w, pods: map[types.UID]bool{}}
		w.startWith(func(o *kubelet.Options) {
			o.RuntimeService = systemdRuntime{o.RuntimeService}
			o.Cgroups = bySystemd{files, units, refused}
		})
		w.run(2)
		if err := w.fs.WriteFile("/etc/manifests/web.yaml", []byte(requests), 0o644); err != nil {
			t.Fatal(err)
		}
		w.run(6)
		w.expect("files", files.calls)
		if refused != nil {
			w.expect("slices", units.calls)
			if !slices.ContainsFunc(w.logs, func(l string) bool { return strings.Contains(l, "left to the runtime: "+refused.Error()) }) {
				t.Error("nothing is said of it")
			}
		} else {
			w.expect("slices", units.calls, "0 root 2048 4096", "0 Burstable 2", "2 Burstable 256", "2 Burstable pod 250m")
		}
		w.expect("start", w.calls(0, "StartContainer"), "2 StartContainer container default/web-node-0/main")
	}
}

func TestNoCgroupsWithoutQOS(t *testing.T) {
	w := newWorld(t, true)
	c := &cgroups{w: w, pods: map[types.UID]bool{}}
	w.onMachine(c, func(cfg *kubeletconfig.KubeletConfiguration) {
		no := false
		cfg.CgroupsPerQOS, cfg.EnforceNodeAllocatable = &no, []string{"none"}
	})
	w.run(2)
	w.write("web", "", "app:1", 1)
	w.run(6)
	w.expect("cgroups", c.calls)
	w.expect("start", w.calls(0, "StartContainer"), "2 StartContainer container default/web-node-0/main")
}

func TestLogLinks(t *testing.T) {
	w := newWorld(t, true)
	dir := "/var/log/containers"
	if err := errors.Join(w.fs.MkdirAll(dir, 0o755), w.fs.Symlink("/nowhere", dir+"/old_default_main-abc.log"), w.fs.Symlink("/nowhere", dir+"/other")); err != nil {
		t.Fatal(err)
	}
	links := func() (out []string) {
		entries, err := w.fs.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			to, _ := w.fs.Readlink(dir + "/" + e.Name())
			name, _, _ := strings.Cut(e.Name(), "-node-0_default_main-")
			out = append(out, name+" "+to)
		}
		return out
	}
	w.onMachine(&cgroups{w: w, pods: map[types.UID]bool{}}, nil)
	w.run(2)
	w.write("web", "fixed", "app:1", 1)
	w.run(10)
	w.expect("links", links(), "old_default_main-abc.log /nowhere", "other /nowhere", "web /var/log/pods/default_web-node-0_fixed/main/0.log")
	w.remove("web")
	w.run(90)
	w.expect("links after the end", links(), "other /nowhere")
}

// The checkpoint of a pod is there as soon as the pod runs.
func TestDurableCheckpoint(t *testing.T) {
	w := newWorld(t, true)
	w.onMachine(&cgroups{w: w, pods: map[types.UID]bool{}}, nil)
	w.run(2)
	if err := w.fs.WriteFile("/etc/manifests/web.yaml", []byte(requests), 0o644); err != nil {
		t.Fatal(err)
	}
	w.run(4)
	for _, name := range []string{"allocated_pods_state", "actuated_pods_state"} {
		data, err := w.fs.ReadFile("/var/lib/kubelet/" + name)
		if err != nil || !strings.Contains(string(data), `\"fixed\"`) || !strings.Contains(string(data), "250m") {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	w.remove("web")
	w.run(20)
	if data, _ := w.fs.ReadFile("/var/lib/kubelet/allocated_pods_state"); strings.Contains(string(data), "fixed") {
		t.Errorf("a pod that is gone is in %q", data)
	}
}

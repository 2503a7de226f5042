package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// deviceSeeds is how many random runs there are, unless DEVICE_SEEDS says.
const deviceSeeds = 40

const gpus = "example.com/gpu"

// deviceRun is a node on which pods with devices come and go, whose plugin and kubelet
// fail.
type deviceRun struct {
	t    *testing.T
	c    *Cluster
	n    *Node
	rng  *rand.Rand
	made map[string][]string // the devices that a pod's container was created with
	pods int
	seed uint64
}

// TestRandomDevices holds, over random runs, that no device is given twice, that none of a
// gone pod is kept, and that the checkpoint, the pod resources API and the container's
// configuration agree.
func TestRandomDevices(t *testing.T) {
	skipOneLoop(t)
	seeds := uint64(deviceSeeds)
	if text := os.Getenv("DEVICE_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = n
	}
	for seed := range seeds {
		runDevices(t, seed)
	}
}

func runDevices(t *testing.T, seed uint64) {
	c, err := New(Options{Seed: seed + 1, Workers: 1, ControlPlane: controlplane.Options{Disable: []string{"*"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := &deviceRun{t: t, c: c, rng: rand.New(rand.NewPCG(seed, 22)), made: map[string][]string{}, seed: seed}
	r.n, err = c.AddNode(NodeOptions{Name: "n", Plugins: &plugins.Options{}, Created: r.created})
	if err != nil {
		t.Fatal(err)
	}
	r.n.Plugins().StartDevice(plugins.Device{
		Resource: gpus, Devices: healthyDevices(4), Reregister: true, PreStart: seed%2 == 0, Preferred: seed%3 == 0,
		Answer: func(ids []string) *pluginapi.ContainerAllocateResponse {
			return &pluginapi.ContainerAllocateResponse{Envs: map[string]string{"GPUS": strings.Join(ids, ",")}}
		},
	})
	for at := 10 * time.Second; at < 4*time.Minute; at += time.Duration(1+r.rng.IntN(9)) * time.Second {
		if err := c.RunUntil(at); err != nil {
			t.Fatal(err)
		}
		r.check()
		r.act()
	}
	r.n.StartKubelet()
	r.deleteAll()
	if err := c.RunUntil(8 * time.Minute); err != nil {
		t.Fatal(err)
	}
	r.check()
	r.all()
}

// all holds that, once all pods are gone, one gets all devices.
func (r *deviceRun) all() {
	if list := r.n.Kubelet().PodResources().List(); len(list.PodResources) > 0 {
		r.t.Errorf("seed %d: devices of pods that are gone: %v", r.seed, list)
	}
	h := r.n.Plugins()
	if err := errors.Join(h.RestartDevice(gpus), h.SetDevices(gpus, healthyDevices(4))); err != nil {
		r.t.Fatal(err)
	}
	q := v1.ResourceList{gpus: resource.MustParse("4")}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all"}, Spec: v1.PodSpec{NodeName: "n",
		Containers: []v1.Container{{Name: "c", Image: "busybox", Command: []string{"sleep", "900"}, Resources: v1.ResourceRequirements{Limits: q, Requests: q}}}}}
	if err := r.c.RunUntil(8*time.Minute + 20*time.Second); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.c.API().Create(pod); err != nil {
		r.t.Fatal(err)
	}
	if err := r.c.RunUntil(9 * time.Minute); err != nil {
		r.t.Fatal(err)
	}
	r.check()
	if p := r.c.API().Pod("default", "all"); p.Status.Phase != v1.PodRunning {
		r.t.Errorf("seed %d: nobody has devices, and who asks for all doesn't run: %s %s", r.seed, p.Status.Reason, p.Status.Message)
	}
}

func healthyDevices(n int) []*pluginapi.Device {
	var out []*pluginapi.Device
	for i := range n {
		out = append(out, &pluginapi.Device{ID: fmt.Sprintf("gpu-%d", i), Health: pluginapi.Healthy})
	}
	return out
}

// act does one thing of those that happen to a node.
func (r *deviceRun) act() {
	h := r.n.Plugins()
	switch r.rng.IntN(12) {
	case 0, 1, 2, 3, 4:
		r.create()
	case 5, 6, 7:
		if pods := r.c.API().Pods(); len(pods) > 0 {
			pod := pods[r.rng.IntN(len(pods))]
			_ = r.c.API().Delete(apiserver.KindPod, pod.Namespace, pod.Name, metav1.DeleteOptions{})
		}
	case 8:
		r.n.RestartKubelet(time.Duration(r.rng.IntN(5)) * time.Second)
	case 9:
		list := healthyDevices(4)
		for _, d := range list {
			if r.rng.IntN(4) == 0 {
				d.Health = pluginapi.Unhealthy
			}
		}
		_ = h.SetDevices(gpus, list) // one that has stopped
	case 10:
		_ = h.StopDevice(gpus) // one that has stopped already
	case 11:
		if err := h.RestartDevice(gpus); err != nil {
			r.t.Fatal(err)
		}
	}
}

// create makes a pod on the node, whose init containers and containers ask for devices.
func (r *deviceRun) create() {
	r.pods++
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", r.pods)}, Spec: v1.PodSpec{
		NodeName: "n", TerminationGracePeriodSeconds: new(int64(1))}}
	container := func(name string) v1.Container {
		q := *resource.NewQuantity(int64(r.rng.IntN(3)), resource.DecimalSI)
		list := v1.ResourceList{gpus: q}
		return v1.Container{Name: name, Image: "busybox", Command: []string{"sleep", strconv.Itoa(1 + r.rng.IntN(60))}, Resources: v1.ResourceRequirements{Limits: list, Requests: list}}
	}
	for i := range r.rng.IntN(3) {
		c := container(fmt.Sprintf("i%d", i))
		c.Command[1] = "1"
		if r.rng.IntN(3) == 0 {
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i := range 1 + r.rng.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprintf("c%d", i)))
	}
	if _, err := r.c.API().Create(pod); err != nil {
		r.t.Fatal(err)
	}
}

func (r *deviceRun) deleteAll() {
	for _, pod := range r.c.API().Pods() {
		_ = r.c.API().Delete(apiserver.KindPod, pod.Namespace, pod.Name, metav1.DeleteOptions{})
	}
}

// created notes the devices of a container.
func (r *deviceRun) created(c Created) {
	i := slices.IndexFunc(c.Config.Envs, func(e *runtimeapi.KeyValue) bool { return e.Key == "GPUS" })
	key := c.Pod + "/" + c.Config.Metadata.Name
	r.made[key] = nil
	if i >= 0 {
		r.made[key] = strings.Split(string(c.Config.Envs[i].Value), ",")
	}
}

// check holds the invariants.
func (r *deviceRun) check() {
	k := r.n.Kubelet()
	if k == nil || k.PodResources() == nil {
		return
	}
	holders, listed := map[string]string{}, map[string][]string{}
	for _, p := range k.PodResources().List().PodResources {
		for _, c := range p.Containers {
			key := p.Namespace + "/" + p.Name + "/" + c.Name
			for _, d := range c.Devices {
				id := d.DeviceIds[0]
				if other := holders[id]; other != "" {
					r.t.Errorf("seed %d at %v: %s has %s, and so has %s", r.seed, r.c.API().Loop().Now(), key, id, other)
				}
				holders[id] = key
				listed[key] = append(listed[key], id)
			}
			made, ok := r.made[key]
			if ok && !slices.Equal(slices.Sorted(slices.Values(listed[key])), slices.Sorted(slices.Values(made))) {
				r.t.Errorf("seed %d: %s has %v, and was created with %v", r.seed, key, listed[key], made)
			}
		}
	}
	r.checkFile(listed)
}

// checkFile holds that the checkpoint has what is listed.
func (r *deviceRun) checkFile(listed map[string][]string) {
	data, err := r.n.FS().ReadFile(path.Join("/var/lib/kubelet/device-plugins", "kubelet_internal_checkpoint"))
	if err != nil {
		return // none was written
	}
	var file struct {
		Data struct {
			PodDeviceEntries []struct {
				PodUID, ContainerName string
				DeviceIDs             map[string][]string
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		r.t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, pod := range r.c.API().Pods() {
		for _, e := range file.Data.PodDeviceEntries {
			key := pod.Namespace + "/" + pod.Name + "/" + e.ContainerName
			if e.PodUID != string(pod.UID) || listed[key] == nil {
				continue
			}
			kept[key] = true
			var ids []string
			for _, list := range e.DeviceIDs {
				ids = append(ids, list...)
			}
			slices.Sort(ids)
			if want := slices.Sorted(slices.Values(listed[key])); !slices.Equal(ids, want) {
				r.t.Errorf("seed %d: the checkpoint has %v for %s, who has %v", r.seed, ids, key, want)
			}
		}
	}
	for key := range listed {
		if !kept[key] {
			r.t.Errorf("seed %d: the checkpoint has nothing for %s, who has %v", r.seed, key, listed[key])
		}
	}
}

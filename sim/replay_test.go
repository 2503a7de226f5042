package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// recording is a recorded run of the real kubelet, or a replay of one.
type recording struct {
	Name string `json:"name"`
	// Duration is how long a pod case was looked at, in seconds; node cases
	// don't say.
	Duration float64                             `json:"duration,omitempty"`
	Config   *kubeletconfig.KubeletConfiguration `json:"config,omitempty"`
	Actions  []action                            `json:"actions"`
	Runs     []observation                       `json:"runs"`
}

// action is something done to the recorded node.
type action struct {
	At                 float64         `json:"at"`
	Action             string          `json:"action"`
	Pod                *v1.Pod         `json:"pod"`
	Namespace          string          `json:"namespace"`
	Name               string          `json:"name"`
	Container          string          `json:"container"`
	GracePeriodSeconds *int64          `json:"gracePeriodSeconds"`
	Patch              json.RawMessage `json:"patch"`
	File               string          `json:"file"`
	Manifest           json.RawMessage `json:"manifest"`
	RejectedByAPI      bool            `json:"rejectedByAPI"`
}

const (
	recordedNode = "node-0"
	// upBefore is how long a node was up before a pod case.
	upBefore = 30 * time.Second
	// leasePeriod is the mean time between two renewals of a lease.
	leasePeriod = 10200 * time.Millisecond
)

// variant is what a recording leaves open: of the orders and latencies that a
// real node may have, and of the moments of its relists at which a case may
// begin, it picks one.
type variant struct {
	seed uint64
	// phase is the part of a second between a relist and the case's start.
	phase time.Duration
}

// readRecording reads a recording's file.
func readRecording(file string) (*recording, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &recording{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func (r *recording) ofNode() bool { return len(r.Runs) > 0 && r.Runs[0].Pods != nil }

// up is how long the kubelet had been up when the case began. In a node case
// its lease tells: it is renewed from the kubelet's start on.
func (r *recording) up(v variant) time.Duration {
	if r.ofNode() && len(r.Runs[0].Leases) > 1 {
		return leasePeriod - seconds(r.Runs[0].Leases[1].At)
	}
	return upBefore + v.phase
}

// end is the time after a case's start to which it is replayed: its duration,
// or a little after the last that was seen.
func (r *recording) end() float64 {
	end := r.Duration
	for _, a := range r.Actions {
		end = max(end, a.At+1)
	}
	for i := range r.Runs {
		end = max(end, r.Runs[i].last()+1)
	}
	return end
}

// replay does on a simulated node what a recording says was done on the real
// one, where containers run the given programs, and returns what was seen.
func replay(rec *recording, programs []fakecri.Program, v variant) (*recording, error) {
	c, err := sim.New(sim.Options{Seed: v.seed, Workers: 1, NoBinder: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	n, err := c.AddNode(recordedNodeOptions(rec.Config, programs))
	if err != nil {
		return nil, err
	}
	zero := rec.up(v)
	o := newObserver(c, zero)
	var failed error
	for i := range rec.Actions {
		a := &rec.Actions[i]
		at := zero + seconds(a.At)
		if a.Action == "runtime-start" {
			at = zero + rec.reconnects(i)
		}
		do, onNode := nodeAction(n, rec, a)
		schedule := n.At
		if !onNode {
			do, schedule = func() error { return apiAction(c.API(), rec, a) }, c.At
		}
		schedule(at, func() {
			if err := do(); (err != nil) != a.RejectedByAPI && failed == nil {
				failed = fmt.Errorf("%s at %vs: %v", a.Action, a.At, err)
			}
		})
	}
	if err := c.RunUntil(zero + seconds(rec.end())); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return &recording{Name: rec.Name, Runs: []observation{o.result(rec.ofNode())}}, nil
}

// reconnects is when the runtime is there again for the kubelet after the
// runtime-start that is action i. The recordings' proxy stood between the two,
// a gRPC client with its default back-off: while the runtime was down it tried
// after 1 s, and then each time after 1.6 times as long.
func (r *recording) reconnects(i int) time.Duration {
	start, try := r.Actions[i].At, 0.0
	for k := range r.Actions[:i] {
		if r.Actions[k].Action == "runtime-kill" {
			try = r.Actions[k].At
		}
	}
	for wait := 1.0; try < start; wait *= 1.6 {
		try += wait
	}
	return seconds(try)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// recordedNodeOptions describe the machine of the recordings.
func recordedNodeOptions(config *kubeletconfig.KubeletConfiguration, programs []fakecri.Program) sim.NodeOptions {
	if config == nil {
		config = &kubeletconfig.KubeletConfiguration{}
	}
	no, resolv := false, ""
	config.FailCgroupV1 = &no
	config.CgroupDriver = "cgroupfs"
	config.ClusterDNS, config.ClusterDomain, config.ResolverConfig = []string{"10.96.0.10"}, "cluster.local", &resolv
	if config.EvictionHard == nil {
		config.EvictionHard = map[string]string{"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"}
	}
	refused := func(image string) fakecri.Image {
		return fakecri.Image{Name: image, Fail: &fakecri.PullFailure{Message: `failed to pull and unpack image "` + image +
			`": failed to resolve reference "` + image + `": failed to do request: Head "https://127.0.0.1:5999/v2/none/manifests/1": dial tcp 127.0.0.1:5999: connect: connection refused`}}
	}
	return sim.NodeOptions{
		Name: recordedNode, Kubelet: config, Capacity: resources("cpu", "2", "memory", "24684084Ki", "ephemeral-storage", "264212084Ki"),
		KubeletRestart: -1,
		Runtime: fakecri.Options{
			OnlyListedImages: true, Programs: programs,
			Images: []fakecri.Image{
				{Name: "registry.local/busybox:1.35", Aliases: []string{"registry.local/busybox:2"}, Present: true},
				{Name: "registry.local/busybox:full", Present: true},
				{Name: "registry.local/busybox:mem", Present: true},
				refused("127.0.0.1:5999/none:1"), refused("127.0.0.1:5999/none:3"),
			},
		},
	}
}

// nodeAction returns what an action does on the node, or false if it is done
// through the API.
func nodeAction(n *sim.Node, rec *recording, a *action) (func() error, bool) {
	pod := rec.target(a)
	quiet := func(fn func()) (func() error, bool) { return func() error { fn(); return nil }, true }
	switch a.Action {
	case "kubelet-kill":
		return quiet(n.StopKubelet)
	case "kubelet-start":
		return quiet(n.StartKubelet)
	case "runtime-kill":
		return quiet(n.StopRuntime)
	case "runtime-start":
		return quiet(n.StartRuntime)
	case "stop-all":
		return quiet(n.Runtime().StopAllOutside)
	case "stop-container":
		return func() error { return n.Runtime().StopContainerOutside(pod.String(), a.Container) }, true
	case "remove-container":
		return func() error { return n.Runtime().RemoveContainerOutside(pod.String(), a.Container) }, true
	case "stop-sandbox":
		return func() error { return n.Runtime().StopSandboxOutside(pod.String()) }, true
	case "static-write":
		return func() error { return n.WriteStaticPod(a.File, a.Manifest) }, true
	case "static-remove":
		return func() error { return n.RemoveStaticPod(a.File) }, true
	}
	return nil, false
}

// apiAction does an action through the API.
func apiAction(api *apiserver.Server, rec *recording, a *action) error {
	pod := rec.target(a)
	var err error
	switch a.Action {
	case "create":
		_, err = api.Create(a.Pod.DeepCopy())
	case "delete":
		err = api.Delete(apiserver.KindPod, pod.Namespace, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: a.GracePeriodSeconds})
	case "patch":
		_, err = api.Patch(apiserver.KindPod, pod.Namespace, pod.Name, types.JSONPatchType, a.Patch, "")
	case "patch-status":
		_, err = api.Patch(apiserver.KindPod, pod.Namespace, pod.Name, types.StrategicMergePatchType, a.Patch, "status")
	case "resize":
		_, err = api.Patch(apiserver.KindPod, pod.Namespace, pod.Name, types.StrategicMergePatchType, a.Patch, "resize")
	case "ephemeral":
		_, err = api.Patch(apiserver.KindPod, pod.Namespace, pod.Name, types.StrategicMergePatchType, a.Patch, "ephemeralcontainers")
	default:
		err = fmt.Errorf("not a known action")
	}
	return err
}

// target is the pod that an action is about: unless it says, that of the case.
func (r *recording) target(a *action) types.NamespacedName {
	if a.Name != "" {
		return types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
	}
	for i := range r.Actions {
		if p := r.Actions[i].Pod; p != nil {
			return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		}
	}
	return types.NamespacedName{}
}

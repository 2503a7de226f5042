package document

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// leastMemory is what no machine with a kubelet has less of.
const leastMemory = 16 << 20

// NodeGroup is a number of equal nodes.
type NodeGroup struct {
	// The nodes' name. With a count, the nodes are called name-0, name-1 and so on; without one there is one node, called just so.
	Name string `json:"name" required:""`
	// How many nodes there are.
	Count *int `json:"count,omitempty"`
	// Labels that the kubelets register their nodes with.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints that the kubelets register their nodes with.
	Taints []v1.Taint `json:"taints,omitempty"`
	// What a machine has: cpu, memory, pods, ephemeral-storage, hugepages. Unless said: cpu 4, memory 16Gi, ephemeral-storage 100Gi, and pods as the kubelet's maxPods says.
	Capacity v1.ResourceList `json:"capacity,omitempty"`
	// Where the machine's CPUs and memory are, for the CPU, memory and topology managers. Unless said, every CPU is a core of one socket and one NUMA node.
	Topology *Topology `json:"topology,omitempty"`
	// The kubelets' KubeletConfiguration (kubelet.config.k8s.io/v1beta1), as in a real cluster; what is not said has upstream's default.
	Kubelet *kubeletconfig.KubeletConfiguration `json:"kubelet,omitempty"`
	// The kubelets' --cloud-provider. With external a node has the taint node.cloudprovider.kubernetes.io/uninitialized and no address until somebody takes the one away and sets the other, as a cloud controller would: by patches.
	CloudProvider string `json:"cloudProvider,omitempty" enum:"external"`
	// The machine's disks. One with everything on it, of the capacity's ephemeral-storage, unless said.
	Filesystems *Filesystems `json:"filesystems,omitempty"`
	// Swap space. None unless said; a kubelet starts on a machine that has some only with failSwapOn: false.
	Swap *resource.Quantity `json:"swap,omitempty"`
	// How many process numbers the kernel gives out: its pid_max. 4194304 unless said.
	PIDMax *int `json:"pidMax,omitempty"`
	// How many threads the kernel lets there be: its threads-max. As many as fit an eighth of the memory unless said; the smaller of both counts.
	ThreadsMax *int `json:"threadsMax,omitempty"`
	// For how long logind has a shutdown held up: its InhibitDelayMaxSec. 5s unless said; a kubelet whose configuration needs more raises it.
	InhibitDelay time.Duration `json:"inhibitDelay,omitempty"`
	// The certificates that the API knows the nodes by. It knows them by their names unless said.
	Certificates *Certificates `json:"certificates,omitempty"`
	// What the machine uses outside of all pods: the system, daemons, other people's files.
	Usage *value.MachineUsage `json:"usage,omitempty"`
	// Devices that the nodes' device plugins offer.
	Devices []Devices `json:"devices,omitempty"`
	// Drivers that run on the nodes.
	Drivers []Driver `json:"drivers,omitempty"`
	// Plugins that give the kubelets credentials for pulling images.
	CredentialProviders []CredentialProvider `json:"credentialProviders,omitempty"`
	// The container runtime.
	Runtime Runtime `json:"runtime,omitempty"`
	// Manifests of static pods that are there from the start: file name to manifest.
	StaticPods value.StaticPods `json:"staticPods,omitempty"`
}

// Certificates are what the API knows nodes by, and whoever asks their kubelets. What kubelets do about them their KubeletConfiguration says: with rotateCertificates they ask for the next client certificate in time, with serverTLSBootstrap for one to serve with.
type Certificates struct {
	// How long the client certificates are good that the nodes begin with. As long as those that the cluster signs unless said.
	Lifetime time.Duration `json:"lifetime,omitempty"`
	// A kubelet that starts without a good client certificate has a token to ask for one with, as with --bootstrap-kubeconfig. Goes with rotateCertificates.
	Bootstrap bool `json:"bootstrap,omitempty"`
}

// Options are the certificates as a node takes them.
func (c *Certificates) Options() *sim.Certificates {
	if c == nil {
		return nil
	}
	return &sim.Certificates{Lifetime: c.Lifetime, Bootstrap: c.Bootstrap}
}

// Runtime is how the container runtime of a node behaves.
type Runtime struct {
	// The runtime's name, the prefix of container IDs. containerd unless said.
	Name string `json:"name,omitempty"`
	// The runtime's version. 2.4.2 unless said.
	Version string `json:"version,omitempty"`
	// How it makes cgroups, which the kubelet follows. cgroupfs unless said.
	CgroupDriver string `json:"cgroupDriver,omitempty" enum:"cgroupfs,systemd"`
	// How long CRI calls take, by method: a time (`2s`) or a range from which each call draws (`2s..4s`). Methods that are not named take what they take on an idle machine.
	Latency map[string]value.Range `json:"latency,omitempty" keys:"cri"`
	// Pulls of images that the scenario does not list fail.
	OnlyListedImages bool `json:"onlyListedImages,omitempty"`
}

// KubeletRestart is how a kubelet that exits by itself comes back.
type KubeletRestart struct {
	// How long after its exit it is started again.
	After time.Duration `json:"after,omitempty"`
	// It is not started again. Written as `kubeletRestart: never`.
	Never bool `json:"-"`
}

// NodeNames returns the names of the group's nodes: name-0, name-1 and so on,
// or just the name if the group has no count.
func (g *NodeGroup) NodeNames() []string {
	if g.Count == nil {
		return []string{g.Name}
	}
	var out []string
	for i := range *g.Count {
		out = append(out, g.Name+"-"+strconv.Itoa(i))
	}
	return out
}

// Options are the group's nodes as the cluster takes them, without what is not
// the group's: a name, and what all nodes share.
func (g *NodeGroup) Options() sim.NodeOptions {
	latency := make(map[string]fakecri.Range, len(g.Runtime.Latency))
	for m, r := range g.Runtime.Latency { //drydock:unordered each key is set once
		latency[m] = r.Runtime()
	}
	var hosts *plugins.Options
	if g.hasPlugins() {
		hosts = &plugins.Options{}
	}
	return sim.NodeOptions{
		Plugins: hosts, Certificates: g.Certificates.Options(),
		Labels: g.Labels, Taints: g.Taints, Capacity: g.Capacity, Topology: g.machineTopology(), Kubelet: g.Kubelet,
		Filesystems: g.disks(), ExternalCloudProvider: g.CloudProvider != "", Usage: g.Usage.Machine(),
		Swap: amountOf(g.Swap), PIDMax: int64(ptr.Deref(g.PIDMax, 0)), ThreadsMax: int64(ptr.Deref(g.ThreadsMax, 0)), InhibitDelay: g.InhibitDelay,
		Runtime: fakecri.Options{
			Name: g.Runtime.Name, Version: g.Runtime.Version, CgroupDriver: g.Runtime.CgroupDriver, Latency: latency, OnlyListedImages: g.Runtime.OnlyListedImages,
			CDI: g.cdi(),
		},
	}
}

// imagefs reports whether the nodes have a file system of their own for images.
func (g *NodeGroup) imagefs() bool { return g.Filesystems != nil && g.Filesystems.Imagefs != nil }

// Check checks a group, and fills in its machines' capacity.
func (g *NodeGroup) Check(at decode.Place) {
	for _, k := range decode.SortedKeys(g.Labels) {
		if msgs := validation.IsQualifiedName(k); len(msgs) > 0 {
			at.Field("labels").Key(k).Errorf("%q is no label's name: %s", decode.Short(k), msgs[0])
		}
		if msgs := validation.IsValidLabelValue(g.Labels[k]); len(msgs) > 0 {
			at.Field("labels").Key(k).Errorf("%q is no label's value: %s", decode.Short(g.Labels[k]), msgs[0])
		}
	}
	for i := range g.Taints {
		t := &g.Taints[i]
		if t.Key == "" {
			at.Field("taints").Index(i).Field("key").Errorf("must be set")
		}
		switch t.Effect {
		case v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute:
		default:
			effects := []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}
			at.Field("taints").Index(i).Field("effect").Errorf("%q is none of %s%s", t.Effect, strings.Join(effects, ", "), suggest.Suffix(string(t.Effect), effects))
		}
	}
	if c, at := g.Certificates, at.Field("certificates"); c != nil {
		value.NotNegative(at.Field("lifetime"), c.Lifetime)
		if c.Bootstrap && (g.Kubelet == nil || !g.Kubelet.RotateCertificates) {
			at.Field("bootstrap").Errorf("goes with the kubelet's rotateCertificates only")
		}
	}
	g.checkTopology(at)
	g.checkDevices(at.Field("devices"))
	g.checkDrivers(at.Field("drivers"))
	g.checkCredentialProviders(at.Field("credentialProviders"))
	g.checkCapacity(at.Field("capacity"))
	g.checkFilesystems(at)
	g.checkMachine(at)
	if g.Usage != nil {
		g.Usage.Check(at.Field("usage"), g.imagefs())
	}
	for i := range g.StaticPods {
		f := &g.StaticPods[i]
		value.CheckStaticPod(at.Field("staticPods").Key(f.File), f.File, &f.Manifest)
	}
}

// Check wants CRI methods that there are.
func (r *Runtime) Check(at decode.Place) {
	for _, m := range decode.SortedKeys(r.Latency) {
		value.OneOf(at.Field("latency").Key(m), "CRI method", m, fakecri.Methods())
	}
}

// DecodeYAML takes `never` for a restart that does not come.
func (k *KubeletRestart) DecodeYAML(at decode.Place) bool {
	text, scalar := at.Scalar()
	if !scalar {
		return false
	}
	if text != "never" {
		at.Mismatch("never or {after: 10s}")
	}
	k.Never = true
	return true
}

// checkCapacity wants resources that there are, and fills in those of an ordinary
// machine.
func (g *NodeGroup) checkCapacity(at decode.Place) {
	if g.Capacity == nil {
		g.Capacity = v1.ResourceList{}
	}
	known := []string{"cpu", "memory", "pods", "ephemeral-storage"}
	for _, name := range sets.List(sets.KeySet(g.Capacity)) {
		at, name, q := at.Key(string(name)), string(name), g.Capacity[name]
		if q.Sign() < 0 {
			written, _ := at.Scalar()
			at.Errorf("%s is negative", cmp.Or(written, q.String()))
		}
		if !strings.HasPrefix(name, v1.ResourceHugePagesPrefix) && !strings.Contains(name, "/") {
			value.OneOf(at, "resource", name, known)
		}
	}
	if q, ok := g.Capacity[v1.ResourceMemory]; ok && q.Sign() > 0 && q.Value() < leastMemory {
		written, _ := at.Key("memory").Scalar()
		at.Found(value.Notice(fmt.Sprintf("%v: a machine with %s of memory (%s) holds nothing: is the unit missing, as in %sGi?", at.Key("memory").Pos(), written, text.Plural(int(q.Value()), "byte"), strings.TrimRight(written, "kKMGTPEim"))))
	}
	pods := int64(110)
	if g.Kubelet != nil && g.Kubelet.MaxPods > 0 {
		pods = int64(g.Kubelet.MaxPods)
	}
	for _, d := range []struct {
		name v1.ResourceName
		q    resource.Quantity
	}{
		{v1.ResourceCPU, resource.MustParse("4")},
		{v1.ResourceMemory, resource.MustParse("16Gi")},
		{v1.ResourceEphemeralStorage, resource.MustParse("100Gi")},
		{v1.ResourcePods, *resource.NewQuantity(pods, resource.DecimalSI)},
	} {
		if _, ok := g.Capacity[d.name]; !ok {
			_ = d.q.String() // remembers its text while nobody else sees it
			g.Capacity[d.name] = d.q
		}
	}
}

// maxPIDs is the kernel's largest pid_max.
const maxPIDs = 1 << 22

// checkMachine checks what a group's machines have beside their capacity.
func (g *NodeGroup) checkMachine(at decode.Place) {
	value.Bytes().CheckLeast(at.Field("swap"), g.Swap, 0)
	for _, x := range []struct {
		name string
		n    *int
		max  int
	}{{"pidMax", g.PIDMax, maxPIDs}, {"threadsMax", g.ThreadsMax, math.MaxInt32}} {
		if x.n != nil && (*x.n < 1 || *x.n > x.max) {
			at.Field(x.name).Errorf("must be between 1 and %d", x.max)
		}
	}
	if g.InhibitDelay == 0 && at.Field("inhibitDelay").Written() {
		at.Field("inhibitDelay").Errorf("must be more than 0s")
	}
}

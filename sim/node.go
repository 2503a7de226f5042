package sim

import (
	"cmp"
	"fmt"
	"io/fs"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet"
	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/internal/identity"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// ManifestDir is where a node's static pod manifests are, unless its
// configuration names another place.
const ManifestDir = "/etc/kubernetes/manifests"

// ClusterDNS and ClusterDomain are what a node's pods look names up with, unless
// its configuration says something else.
const (
	ClusterDNS    = "10.96.0.10"
	ClusterDomain = "cluster.local"
)

// DefaultKubeletRestart is after how long a kubelet that exits is started
// again, as by systemd's RestartSec=10 of kubeadm's unit.
const DefaultKubeletRestart = 10 * time.Second

// NodeOptions say what a node is made of.
type NodeOptions struct {
	Name string
	// Labels and Taints are what the kubelet registers the node with.
	Labels map[string]string
	Taints []v1.Taint
	// Capacity is what the machine has; what it leaves out is as in
	// DefaultCapacity. pods sets the kubelet's maxPods instead.
	Capacity v1.ResourceList
	// Topology is where the machine's CPUs and memory are; nil: each CPU is a core
	// of one socket, and all is in one NUMA node. It and Capacity must agree where
	// both say something.
	Topology *cm.Topology
	// NoAppArmor is a machine whose kernel has no AppArmor: pods that ask for
	// it are refused.
	NoAppArmor bool
	// Swap of the machine in bytes. The kubelet starts on one that has some only
	// with failSwapOn: false.
	Swap int64
	// Kubelet is the kubelet's configuration; what it leaves out has
	// upstream's default. It is not written to.
	Kubelet *kubeletconfig.KubeletConfiguration
	// ExternalCloudProvider is the kubelet's --cloud-provider=external: the node has a
	// taint and no address until somebody, in place of a cloud controller, sees to it.
	ExternalCloudProvider bool
	// KubeletRestart is after how long a kubelet that exits by itself is
	// started again. Zero means DefaultKubeletRestart; negative means never.
	KubeletRestart time.Duration
	// Filesystems are the machine's disks.
	Filesystems Filesystems
	// Runtime configures the container runtime; its Loop, Recorder, Node,
	// PodCIDR, Warn, FS, Logs, Trees, and what it knows of the machine are set
	// here.
	Runtime fakecri.Options
	// InhibitDelay is logind's InhibitDelayMaxSec, for how long a shutdown can be
	// held up unless a kubelet overrides it. Zero means DefaultInhibitDelay.
	InhibitDelay time.Duration
	// Usage is what the machine uses itself, outside pods.
	Usage MachineUsage
	// Sampling is how often pods' cgroups are looked at; zero: whenever a kubelet
	// asks.
	Sampling Sampling
	// PIDMax is the kernel's pid_max, ThreadsMax its threads-max: there can be as
	// many processes as the smaller says. Zero means what Linux and systemd set:
	// 4194304, and an eighth of the memory in kernel stacks.
	PIDMax, ThreadsMax int64
	// Certificates, if not nil, are what the API knows the node by, and whoever asks its kubelet.
	Certificates *Certificates
	// Plugins, if not nil, has the machine host plugins: see Node.Plugins.
	Plugins *plugins.Options
	// CredentialProviders are the machine's image credential provider plugins; nil: it
	// has none.
	CredentialProviders *CredentialProviders
	// Created, if not nil, is told on the node's loop of each container that a kubelet has
	// made.
	Created func(Created)
	// Host is the machine outside that the node is, on the wall clock; then
	// Capacity, NoAppArmor and Runtime mean nothing.
	Host *Host
}

// Node is a simulated node: a machine with a disk, on which a container runtime
// and a kubelet run. Its methods are for use on its loop, or between runs.
type Node struct {
	name    string
	labels  map[string]string // to register with
	host    *Host             // nil: a simulated machine
	cloud   bool              // NodeOptions.ExternalCloudProvider
	restart time.Duration     // NodeOptions.KubeletRestart
	looks   Sampling
	cluster *Cluster
	l       *loop.Loop
	rec     *trace.Recorder
	machine *Machine
	fs      *memfs.FS
	answers map[string]Answer // by path: see Get
	// files: where static pods go: fs, or the host's.
	files manifests
	// named: on a host: what its kubelets made.
	named  map[string]named
	rt     *fakecri.Runtime
	told   map[string]bool // see warnOnce
	client *apiserver.Client
	// credentials runs the machine's image credential provider plugins; nil: it has none.
	credentials *credentialPlugins
	config      *kubeletconfig.KubeletConfiguration
	// settings are those of config and the machine; nil: the kubelet works them out.
	settings *kubelet.Settings

	// group: the kubelet's; nil while it is down.
	group   *loop.Group
	kubelet *kubelet.Kubelet
	// wanted tells that the kubelet is to run whenever the machine does.
	wanted bool
	off    bool
	timer  *loop.Timer // the next start of the kubelet
	power  *loop.Timer // the return of the power
	logind logind
	past   kubelet.Stats
	// plugins: nil: there are none, and none come.
	plugins *plugins.Host
	created func(Created)
	// identity: nil: the node is known by its name.
	identity *identity.Identity
}

// AddNode adds a node, whose runtime and kubelet start at once. It must not be
// called while the cluster runs. Errors are of the options.
func (c *Cluster) AddNode(opts NodeOptions) (*Node, error) {
	if opts.Name == "" {
		return nil, fmt.Errorf("sim: a node needs a name")
	}
	if c.byName[opts.Name] != nil {
		return nil, fmt.Errorf("sim: there are two nodes %s", opts.Name)
	}
	opts.KubeletRestart = cmp.Or(opts.KubeletRestart, DefaultKubeletRestart)
	config, err := nodeConfig(&opts)
	if err != nil {
		return nil, err
	}
	if err := opts.Filesystems.validate(); err != nil {
		return nil, fmt.Errorf("node %s: %w", opts.Name, err)
	}
	if opts.Host != nil {
		return c.addHostNode(opts, config)
	}
	index := len(c.nodes)
	l := c.engine.NewLoop(opts.Name)
	n := newNode(c, l, &opts, config)
	n.machine = newMachine(l, opts.Name, index, opts.Capacity)
	n.machine.noAppArmor, n.machine.swap = opts.NoAppArmor, opts.Swap
	if err := n.machine.setTopology(opts.Topology, opts.Capacity); err != nil {
		return nil, fmt.Errorf("node %s: %w", opts.Name, err)
	}
	rt := opts.Runtime
	n.machine.disks = newDisks(l, opts.Filesystems, n.machine.capacity, &rt)
	n.share()
	n.fs = memfs.New(memfs.Options{Loop: l, Share: n.machine.disks.root.Share()})
	n.files = n.fs
	if err := n.fs.MkdirAll(config.StaticPodPath, 0o755); err != nil {
		return nil, fmt.Errorf("node %s: staticPodPath: %w", opts.Name, err)
	}
	n.setDiskUsage(opts.Usage) // last: a machine may be full from the start
	rt.Loop, rt.Recorder, rt.Node = l, n.rec, opts.Name
	rt.PodCIDR = podCIDR(index)
	rt.Warn, rt.WarnOfPod = n.warn, n.warnOfPod
	rt.NoElide = rt.NoElide || c.opts.Elision == loop.NoElide
	rt.Far = &services{n: n}
	rt.Ends, rt.Execs, rt.NonRoot, rt.Unknown, rt.Unserved = n.ends, n.execs, n.nonRoot, n.unknownImage, n.unserved
	rt.FS, rt.Logs, rt.Trees = n.fs, nodeLogs{n.fs}, c.trees
	rt.NodeIP, rt.Memory, rt.CPUs = n.machine.NodeIP(), n.machine.capacity.Memory().Value(), int(n.machine.capacity.Cpu().Value())
	rt.System = fakecri.SystemUsage{Memory: opts.Usage.Memory, CPU: opts.Usage.CPU, PIDs: opts.Usage.PIDs}
	rt.MaxPIDs = opts.maxPIDs(rt.Memory)
	if limit := config.PodPidsLimit; limit != nil && *limit > 0 {
		rt.PodPIDs = *limit
	}
	if err := rt.Validate(); err != nil {
		return nil, fmt.Errorf("node %s: runtime: %w", opts.Name, err)
	}
	n.rt = fakecri.New(rt)
	n.client = c.api.Client(l, opts.Name)
	n.timer = l.Root().NewTimer("kubelet start", n.bringUp)
	if opts.Certificates != nil {
		n.identity = opts.Certificates.of(n)
	}
	n.power = l.Root().NewTimer("power on", n.boot)
	n.logind = logind{
		l: l, fs: n.fs, initial: cmp.Or(opts.InhibitDelay, DefaultInhibitDelay),
		turnOff: func(off time.Duration) { n.turnOff("shuts down", off) }, isOff: func() bool { return n.off },
	}
	if opts.Plugins != nil || len(c.nfs) > 0 {
		o := plugins.Options{}
		if opts.Plugins != nil {
			o = *opts.Plugins
		}
		o.FS, o.Node = n.fs, opts.Name
		o.API = func() plugins.API { return c.api.Client(l, opts.Name) }
		n.plugins = plugins.NewHost(l, o)
		for _, server := range c.nfs {
			n.plugins.ServeNFS(server)
		}
	}
	n.created = opts.Created
	c.nodes = append(c.nodes, n)
	c.byName[opts.Name] = n
	n.rt.StartDaemon()
	n.bringUp()
	return n, nil
}

func newNode(c *Cluster, l *loop.Loop, opts *NodeOptions, config *kubeletconfig.KubeletConfiguration) *Node {
	n := &Node{
		name: opts.Name, labels: opts.Labels, host: opts.Host, cloud: opts.ExternalCloudProvider, restart: opts.KubeletRestart, looks: opts.Sampling,
		cluster: c, l: l, rec: c.newRecorder(l, opts.Name), config: config, wanted: true,
	}
	if opts.CredentialProviders != nil {
		n.credentials = &credentialPlugins{n, opts.CredentialProviders, map[string]int{}}
	}
	return n
}

// podCIDR is the prefix of the pods of the node with that index: a /24 of
// 10.128.0.0/9, and once those are used up, from 11.0.0.0 on.
func podCIDR(index int) string {
	if n := index - 1<<15; n >= 0 {
		return fmt.Sprintf("%d.%d.%d.0/24", 11+n>>16, n>>8&255, n&255)
	}
	return fmt.Sprintf("10.%d.%d.0/24", 128+index>>8, index&255)
}

// nodeConfig completes a copy of the kubelet's configuration.
func nodeConfig(opts *NodeOptions) (*kubeletconfig.KubeletConfiguration, error) {
	config := &kubeletconfig.KubeletConfiguration{}
	if opts.Kubelet != nil {
		config = opts.Kubelet.DeepCopy()
	}
	if pods, ok := opts.Capacity[v1.ResourcePods]; ok && config.MaxPods == 0 {
		config.MaxPods = int32(pods.Value())
	}
	config.StaticPodPath = cmp.Or(config.StaticPodPath, ManifestDir)
	if config.ClusterDNS == nil { // as kubeadm has it; an empty list stays
		config.ClusterDNS = []string{ClusterDNS}
		config.ClusterDomain = cmp.Or(config.ClusterDomain, ClusterDomain)
	}
	if len(opts.Taints) > 0 {
		config.RegisterWithTaints = append(config.RegisterWithTaints[:len(config.RegisterWithTaints):len(config.RegisterWithTaints)], opts.Taints...)
	}
	if opts.Host != nil {
		opts.Host.config(config)
	}
	if opts.Filesystems.Container != nil && config.ContainerRuntimeEndpoint == "" {
		config.ContainerRuntimeEndpoint = crioSocket
	}
	kubeletcfg.SetDefaults(config)
	if err := kubeletcfg.Validate(config); err != nil {
		return nil, fmt.Errorf("node %s: %w", opts.Name, err)
	}
	return config, nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.name }

// Loop returns the node's loop.
func (n *Node) Loop() *loop.Loop { return n.l }

// Runtime returns the node's container runtime; nil on a host.
func (n *Node) Runtime() *fakecri.Runtime { return n.rt }

// FS returns the node's file system; nil on a host.
func (n *Node) FS() *memfs.FS { return n.fs }

// Machine returns the node's hardware; nil on a host.
func (n *Node) Machine() *Machine { return n.machine }

// Plugins returns the host of the node's plugins; nil unless NodeOptions.Plugins asked
// for one.
func (n *Node) Plugins() *plugins.Host { return n.plugins }

// SetNFSDown has a server of NFS not answer the node, or answer it again.
func (n *Node) SetNFSDown(server string, down bool) error {
	if n.plugins == nil {
		return fmt.Errorf("there is no NFS server %s", server)
	}
	return n.plugins.SetNFSDown(server, down) //nolint:wrapcheck // It names the server.
}

// Storage returns what is behind a driver of CSI; nil: nothing was started.
func (n *Node) Storage(driver string) *plugins.Storage { return n.cluster.Storage(driver) }

// Labels are those that the kubelet registers the node with.
func (n *Node) Labels() map[string]string { return n.labels }

// Kubelet returns the running kubelet, or nil.
func (n *Node) Kubelet() *kubelet.Kubelet { return n.kubelet }

// At has fn run on the node's loop at a time since the start of the run.
func (n *Node) At(at time.Duration, fn func()) {
	n.l.Root().At(n.cluster.start.Add(at), fn)
}

// warn records what a manifest asks for and nobody acts on.
func (n *Node) warn(text string) { n.rec.Record(trace.KindWarning, "node "+n.name, text) }

// nodeLogs keeps containers' logs in the node's files. Without the pod's log
// directory there is none.
type nodeLogs struct{ fs *memfs.FS }

// OpenLog makes the file, if it is not there.
func (n nodeLogs) OpenLog(file string) { _ = n.fs.Append(file, nil, 0o640) }

// WriteLog appends to the file.
func (n nodeLogs) WriteLog(file string, lines []byte) { _ = n.fs.Append(file, lines, 0o640) }

// bringUp starts a kubelet process, if one is to run and none does.
func (n *Node) bringUp() {
	if n.group != nil || n.off || !n.wanted {
		return
	}
	g := n.l.NewGroup("kubelet")
	opts := kubelet.Options{
		Loop: n.l, Group: g, NodeName: n.name, Config: n.config, Client: n.client,
		PodKeys: podKeys{n.l.Seed()}, NodeLabels: n.labels, ExternalCloudProvider: n.cloud, Settings: n.settings, NoMetrics: n.cluster.opts.NoKubeletMetrics,
		Defaulter: apiserver.SetPodDefaults,
		Validator: func(pod *v1.Pod) error { return apiserver.ValidatePod(pod).ToAggregate() },
	}
	if h := n.host; h != nil {
		opts.RuntimeService, opts.ImageService, opts.FS, opts.Mounter = tracedRuntime{h.RuntimeService, n.l, n.rec, n.named}, tracedImages{h.ImageService, n.l, n.rec}, h.FS, h.Mounter
		opts.Machine, opts.Network, opts.RootDir = h.Machine, h.Network, h.RootDir
		opts.Cgroups, opts.MachineStats, opts.OOM = h.Cgroups, h.Stats, h.OOM
	} else {
		rt := n.rt.Client(g)
		opts.RuntimeService, opts.ImageService, opts.FS, opts.Mounter = rt, rt, n.fs, mounter{n.fs, n.plugins}
		opts.Machine, opts.Network = n.machine, podNetwork{n.rt}
		machine := machineStats{n, g, n.newSampler(g)}
		if machine.s != nil {
			opts.RuntimeService = sampledRuntime{rt, machine.s}
		}
		if n.created != nil {
			opts.RuntimeService = watchedRuntime{sampledRuntime{rt, machine.s}, n.rt, n, n.created}
		}
		opts.MachineStats, opts.OOM = machine, machine
		opts.Cgroups = cgroups{memory: n.rt.SetPodsMemoryLimit, pids: n.rt.SetPodsPIDLimit}
		opts.Logind = logindClient{&n.logind, g}
		opts.Unsupported = n.unregistered
		if n.plugins != nil {
			opts.DevicePlugins, opts.PluginSockets = n.plugins, n.plugins.Sockets()
		} else {
			opts.DRAPlugins = plugins.AnyDRA{}
		}
	}
	if n.cluster.opts.KubeletLogs {
		opts.Log = func(format string, args ...any) {
			n.rec.Record(trace.KindLog, "kubelet", strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
		}
	}
	if c := n.credentials; c != nil {
		opts.CredentialProviders, opts.CredentialPlugins = c.of.config, c
	}
	opts.Exit = func(err error) { n.exited(g, err) }
	n.client.SetLimits(float64(*n.config.KubeAPIQPS), int(n.config.KubeAPIBurst))
	k, err := kubelet.New(opts)
	n.group = g
	if err != nil {
		n.exited(g, err)
		return
	}
	n.kubelet = k
	n.rec.Record(trace.KindKubelet, "node "+n.name, "starts")
	if n.identity != nil {
		n.identity.Start(g, opts.Exit, opts.Log)
	}
	k.Start()
}

// exited is the end of a kubelet that could not go on.
func (n *Node) exited(g *loop.Group, err error) {
	if n.group != g {
		return
	}
	n.rec.Record(trace.KindKubelet, "node "+n.name, "exits", trace.Str("message", err.Error()))
	n.end()
	if n.restart > 0 {
		n.timer.Reset(n.restart)
	}
}

// end kills the kubelet's process, if there is one.
func (n *Node) end() {
	if n.group == nil {
		return
	}
	if n.kubelet != nil {
		s := n.kubelet.Stats()
		n.past.Syncs += s.Syncs
		n.past.Resyncs += s.Resyncs
		n.past.Probes += s.Probes
	}
	n.group.Kill()
	n.group, n.kubelet = nil, nil
	if n.plugins != nil {
		n.plugins.KubeletGone()
	}
}

// StopKubelet kills the kubelet (SIGKILL); containers live on.
func (n *Node) StopKubelet() {
	n.wanted = false
	n.timer.Stop()
	if n.group != nil {
		n.rec.Record(trace.KindKubelet, "node "+n.name, "is killed")
		n.end()
	}
}

// StartKubelet starts the kubelet, unless it runs or the machine is off.
func (n *Node) StartKubelet() {
	n.wanted = true
	n.timer.Stop()
	n.bringUp()
}

// RestartKubelet kills the kubelet and starts it again after down.
func (n *Node) RestartKubelet(down time.Duration) {
	n.StopKubelet()
	n.wanted = true
	n.timer.Reset(down)
}

// StopRuntime stops the container runtime's daemon; containers live on.
func (n *Node) StopRuntime() {
	n.rec.Record(trace.KindFault, "node "+n.name, "runtime daemon stops")
	n.rt.StopDaemon()
}

// StartRuntime starts the container runtime's daemon.
func (n *Node) StartRuntime() {
	if n.off {
		return
	}
	n.rec.Record(trace.KindFault, "node "+n.name, "runtime daemon starts")
	n.rt.StartDaemon()
}

// PowerCut takes the machine's power: every process dies, what is on disk
// stays, tmpfs is emptied. After d the machine boots, with a new boot ID; with 0
// it stays off until Boot.
func (n *Node) PowerCut(d time.Duration) { n.turnOff("power is cut", d) }

func (n *Node) turnOff(verb string, d time.Duration) {
	if n.off {
		return
	}
	n.off = true
	n.rec.Record(trace.KindFault, "node "+n.name, verb)
	n.timer.Stop()
	n.end()
	n.logind.poweredOff()
	n.rt.StopDaemon()
	n.rt.PowerCut()
	n.fs.PowerCut()
	if d > 0 {
		n.power.Reset(d)
	}
}

// Boot gives the machine power again, if it has none: runtime and kubelet start.
func (n *Node) Boot() {
	n.power.Stop()
	n.boot()
}

func (n *Node) boot() {
	if !n.off {
		return
	}
	n.off = false
	n.machine.reboot()
	n.rec.Record(trace.KindFault, "node "+n.name, "boots")
	n.rt.StartDaemon()
	n.bringUp()
}

// WriteStaticPod writes a manifest into the manifest directory.
func (n *Node) WriteStaticPod(file string, manifest []byte) error {
	return n.files.WriteFile(n.manifest(file), manifest, fs.FileMode(0o644))
}

// RemoveStaticPod removes a manifest from the manifest directory.
func (n *Node) RemoveStaticPod(file string) error {
	return n.files.Remove(n.manifest(file))
}

// stats counts what the node's kubelets have done.
func (n *Node) stats() kubelet.Stats {
	s := n.past
	if n.kubelet != nil {
		now := n.kubelet.Stats()
		s.Syncs += now.Syncs
		s.Resyncs += now.Resyncs
		s.Probes += now.Probes
	}
	return s
}

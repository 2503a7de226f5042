package parity

import (
	"fmt"
	"github.com/drydock-sim/drydock/ground/loop"
	"io/fs"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

const (
	recordedNode = "node-0"
	// recordedHostname is the machine's own name: the kubelet was told another.
	recordedHostname = "vm"
	// plainUpBefore and fullUpBefore are how long the node of the pod cases was
	// up before one of either group: long enough for relists and passes of the
	// eviction manager to drift (see listing). Containers are collected 3 s after
	// a case's start, for the minutes, when little else happens; the recorded cases
	// have that at any second. The fractions tell when relists look: not while a pod
	// starts or is restarted, or half of it would be seen, and synced for.
	plainUpBefore = 10*time.Minute + 56*time.Second + 550*time.Millisecond
	fullUpBefore  = 10*time.Minute + 56*time.Second + 950*time.Millisecond
	// In node cases the kubelet was started for the case, nodeUpBefore it, which
	// the garbage collection of containers shows each minute, or idleUpBefore where
	// nothing is done; the node registered anew, and its lease was there from the
	// case before.
	nodeUpBefore = 14700 * time.Millisecond
	idleUpBefore = 1050 * time.Millisecond
)

// Options say how a case is replayed.
type Options struct {
	// Seed decides what a recording leaves to chance: latencies, jitter, the
	// order of what is simultaneous. With 0 latencies and jitter are not drawn:
	// they are the middle of their range, since that is nearest to most runs.
	Seed uint64
	// Phase is added to the time between the kubelet's start and the case's.
	Phase time.Duration
	// Warn takes what containers ask for and is not simulated; nil drops it.
	Warn func(text string)
}

// Replay does on a simulated node what was done on the recorded one, and
// returns what was seen. It looks at the case's name, actions, configuration and
// machine only. The same seed gives the same observation.
func (c *Case) Replay(opts Options) (*Observation, error) {
	// Relists take time (see listing); one that is left out would not.
	cl, err := sim.New(sim.Options{Seed: opts.Seed, Typical: opts.Seed == 0, Workers: 1, ControlPlane: controlplane.Options{Disable: []string{"*"}}, Elision: loop.NoElide})
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	options, err := c.nodeOptions()
	if err != nil {
		return nil, err
	}
	n, err := cl.AddNode(options)
	if err != nil {
		return nil, err
	}
	zero := c.begins() + opts.Phase
	o := newObserver(cl, zero, opts.Warn)
	p := &play{c: c, cluster: cl, node: n}
	if err := p.makeEarlierObjects(); err != nil {
		return nil, err
	}
	for i := range c.Actions {
		// All actions are scheduled before anything runs, so none depends on what the node does.
		p.schedule(i, zero)
	}
	if err := cl.RunUntil(zero + c.watched()); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	if p.failed != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, p.failed)
	}
	if !c.ofNode() {
		// What was left was deleted by force after the watch, so only the calls
		// of that were recorded.
		o.watching = false
		if err := p.clear(); err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Name, err)
		}
		if err := cl.RunUntil(zero + c.watched() + clearing); err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Name, err)
		}
	}
	return o.result(c.ofNode()), nil
}

// begins is when the case begins, after the node's start.
func (c *Case) begins() time.Duration {
	switch {
	case c.ofNode() && len(c.Actions) == 0:
		return idleUpBefore
	case c.ofNode():
		return nodeUpBefore
	case c.usesImage(fullImage):
		return fullUpBefore
	}
	return plainUpBefore
}

// clear deletes by force what pods there are. A grace period of 0 is kubectl delete --force.
func (p *play) clear() error {
	api := p.cluster.API()
	now := int64(0)
	for _, pod := range api.Pods() {
		if err := api.Delete(apiserver.KindPod, pod.Namespace, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return err
		}
	}
	return nil
}

// makeEarlierObjects makes what was there before a case: the API's own service,
// and what cases refer to and another one, which ran before them, had made. They are what the
// recordings' pods refer to.
func (p *play) makeEarlierObjects() error {
	if err := p.makeMachineFiles(); err != nil {
		return err
	}
	// Its address and port are in the environment of every container.
	service := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: "kubernetes"},
		Spec:       v1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []v1.ServicePort{{Name: "https", Port: 443, Protocol: v1.ProtocolTCP}}},
	}
	if _, err := p.cluster.API().Create(service); err != nil {
		return err
	}
	for _, class := range []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 10}, {ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}} {
		if _, err := p.cluster.API().Create(&class); err != nil {
			return err
		}
	}
	if p.c.ofNode() {
		_, err := p.cluster.API().Create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: recordedNode}})
		return err
	}
	const name = "cm-b1"
	// A case that makes it must not find it.
	for i := range p.c.Actions {
		if a := &p.c.Actions[i]; a.Action == "configmap" && a.Name == name {
			return nil
		}
	}
	_, err := p.cluster.API().Create(&v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: name},
		Data:       map[string]string{"a": "1", "b": "2", "bad-name": "3"},
	})
	return err
}

// makeMachineFiles makes what pods may look for on any machine.
func (p *play) makeMachineFiles() error {
	files := p.node.FS()
	for _, dir := range []string{"/etc", "/tmp", "/var/log", "/var/lib", "/var/run", "/run", "/opt", "/usr", "/home", "/root", "/mnt"} {
		if err := files.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := files.Chmod("/tmp", fs.ModeSticky|0o777); err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{
		{"/etc/hosts", "127.0.0.1 localhost\n127.0.0.1 runsc\n127.0.0.1 " + recordedHostname + "\n"},
		{"/etc/hostname", recordedHostname + "\n"},
	} {
		if err := files.WriteFile(f.name, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// nodeOptions describe the machine as it was for the case. It adds to the common options what the
// case's configuration asks for.
func (c *Case) nodeOptions() (sim.NodeOptions, error) {
	o := recordedNodeOptions(c.Config)
	if c.collectsImages() { // images that no pod uses
		for i := int64(1); i <= 3; i++ {
			o.Runtime.Images = append(o.Runtime.Images, fakecri.Image{
				Name: fmt.Sprintf("registry.local/unused:%d", i), Present: true, Size: i * 30_000_000,
			})
		}
	}
	err := c.Machine.use(&o)
	return o, err
}

// recordedNodeOptions describe the machine of the recordings. Each number is the recorded
// machine's own, as its node status and configuration say.
func recordedNodeOptions(added *kubeletconfig.KubeletConfiguration) sim.NodeOptions {
	config := &kubeletconfig.KubeletConfiguration{}
	if added != nil {
		config = added.DeepCopy()
	}
	// The recorded machine had cgroups of v1, which a kubelet refuses unless told
	// otherwise.
	no, yes, resolv := false, true, ""
	config.FailCgroupV1, config.SingleProcessOOMKill = &no, &yes
	config.CgroupDriver = "cgroupfs"
	config.ClusterDNS, config.ClusterDomain, config.ResolverConfig = []string{"10.96.0.10"}, "cluster.local", &resolv
	if config.EvictionHard == nil {
		config.EvictionHard = map[string]string{"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"}
	}
	refused := func(image string) fakecri.Image {
		return fakecri.Image{Name: image, Fail: &fakecri.PullFailure{Message: `failed to pull and unpack image "` + image +
			`": failed to resolve reference "` + image + `": failed to do request: Head "https://` + image + `": dial tcp 127.0.0.1:5999: connect: connection refused`}}
	}
	// What is on the machine was put there by hand: no registry has it.
	present := func(image string, commands []string, aliases ...string) fakecri.Image {
		return fakecri.Image{
			Name: image, Aliases: aliases, Present: true, Commands: commands, Bare: true, Standalone: true, Env: []string{"PATH=/bin"},
			Fail: &fakecri.PullFailure{Message: `failed to pull and unpack image "` + image +
				`": failed to resolve image: failed to do request: dial tcp: lookup registry.local: no such host`},
		}
	}
	sized := func(im fakecri.Image, bytes int64) fakecri.Image {
		im.Size = bytes
		return im
	}
	all := append([]string{"sh", "usemem"}, fakecri.DebianApplets()...)
	return sim.NodeOptions{
		Name: recordedNode, Kubelet: config, KubeletRestart: -1, NoAppArmor: true, Sampling: housekeeping,
		Capacity: v1.ResourceList{
			v1.ResourceCPU:              resource.MustParse("2"),
			v1.ResourceMemory:           resource.MustParse("24684084Ki"),
			v1.ResourceEphemeralStorage: resource.MustParse("264212084Ki"),
		},
		Runtime: fakecri.Options{
			OnlyListedImages: true,
			LayerPeriod:      10 * time.Second,
			LayerFirst:       layersAt,
			Latency: map[string]fakecri.Range{
				"ListPodSandbox":     {Min: listing, Max: listing},
				"ListContainers":     {Min: listing, Max: listing},
				"ListContainerStats": {Min: measuring, Max: measuring},
			},
			Hostname:         recordedHostname,
			Kernel:           "6.18.44",
			NoUserNamespaces: true,
			DiskDevice:       "/dev/vda",
			Images: []fakecri.Image{
				present("registry.local/busybox:1.35", append([]string{"sh"}, strings.Fields(small)...), "registry.local/busybox:2"),
				// One image: what was removed has one name only, and the other was
				// not left.
				sized(present("registry.local/busybox:mem", all, "registry.local/busybox:full"), 2_786_660),
				refused("127.0.0.1:5999/none:1"), refused("127.0.0.1:5999/none:2"), refused("127.0.0.1:5999/none:3"),
			},
		},
	}
}

// small are the commands of the small recorded image, beside sh.
const small = "cat date dd echo env false grep head hostname httpd id kill ls mkdir nc ps rm sh sleep sync tail test top touch true wget"

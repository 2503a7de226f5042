package fakecri

import (
	"cmp"
	"fmt"
	"net/netip"
	"sort"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/lifecycle"
	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/trace"
)

// Options configure a Runtime. Only Loop is required.
type Options struct {
	// Loop is the node's loop.
	Loop *loop.Loop
	// Recorder takes the trace; nil means none.
	Recorder *trace.Recorder

	// Name is the runtime's name, the prefix of container IDs in the API.
	// Default "containerd".
	Name string
	// Version is the runtime's version. Default "2.4.2".
	Version string
	// Node tells this node from others in ids. Default: the loop's name.
	Node string
	// Hostname is the machine's own name. Default: Node.
	Hostname string
	// Kernel is the version of the machine's kernel. Default "6.1.0".
	Kernel string
	// CgroupDriver is "cgroupfs" (the default) or "systemd".
	CgroupDriver string
	// Handlers are the runtime handlers besides the default one ("").
	// Default: "runc".
	Handlers []string
	// DiskDevice is what mount(8) and df(1) show of the node's disk. Default
	// "/dev/vda1".
	DiskDevice string
	// NoUserNamespaces has the handlers say that they can't give a pod its own
	// users, as with runc before 1.2.
	NoUserNamespaces bool
	// CDI is what the machine's CDI files say: the environment ("NAME=value") that a device
	// gives a container, by the device's full name. nil: the machine has any device, and it
	// gives nothing.
	CDI map[string][]string
	// PodCIDR is the prefix that pod IPs come from. Default "10.244.0.0/24".
	PodCIDR string

	// Latency is how long a CRI method takes, by its name; what is not named
	// takes what it took on containerd, from 1 to 150 ms, and reads take none.
	// StopContainer's passes after the process ended, and a StopContainer or
	// StopPodSandbox that finds nothing to stop takes an eighth of it. PullImage
	// takes what the image says, on top of it.
	Latency map[string]Range
	// LayerPeriod is how often the writable layers are measured that statistics
	// tell of, as containerd does each 10 s (stats_collect_period); a layer that
	// was not yet has nothing in it. LayerFirst is when first. Without a period
	// they are measured whenever somebody asks.
	LayerPeriod, LayerFirst time.Duration

	// Images is the catalogue: what can be pulled, how it pulls, and what is
	// there from the start.
	Images []Image
	// OnlyListedImages makes pulls of anything else fail with NotFound. By
	// default any well-formed reference can be pulled.
	OnlyListedImages bool
	// ImagesByBaseName makes references that end in the same name and tag one
	// image wherever they are pulled from, as if every registry had a copy:
	// "docker.io/library/app:1" and "quay.io/x/app:1". By default only names
	// that are aliases in the catalogue are.
	ImagesByBaseName bool
	// SandboxImage is the image of sandboxes, present from the start and pinned.
	// Empty means that listings show none.
	SandboxImage string
	// ImageFilesystem is the mount point that ImageFsInfo and container stats
	// name. Default: containerd's overlayfs snapshotter's.
	ImageFilesystem string
	// ContainerFilesystem is the mount point that they name for writable layers.
	// Default: ImageFilesystem. Another is a split file system, as CRI-O has it.
	ContainerFilesystem string
	// ImageDisk and LayerDisk are what images and writable layers take their
	// space from. Nil means a disk without end.
	ImageDisk, LayerDisk *memfs.Share
	// ImageSize is the size in bytes of an image that says none.
	// Default 50 MB.
	ImageSize int64
	// ImagePull is how long an image that doesn't say takes to pull.
	// Default 1s to 3s.
	ImagePull Range

	// Programs say what containers do; the first that matches counts.
	Programs []Program
	// Behave, if any, is asked before Programs what a run of a container does;
	// nil means that it does not say. It must always answer the same, may be
	// called from several loops at once, and what it returns is not written to.
	Behave func(pod *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) *Behaviour
	// Ends, if any, reports of a container whose program nobody knows whether it is one
	// that ends by itself: its pod is not to restart it. Such a one exits 0 after a
	// second; any other runs until it is stopped.
	Ends func(pod *runtimeapi.PodSandboxMetadata, container string) bool
	// Execs, if any, reports of a container whether its pod runs commands in it, as probes
	// and hooks do. One with a known image's server then is a process, so that they are
	// run beside it.
	Execs func(pod *runtimeapi.PodSandboxMetadata, container string) bool
	// NonRoot, if any, is asked before a pod's sandbox is made of which images it wants a user
	// other than root, without saying which. One of which nothing is known has such a user
	// from then on, as it must have had wherever that pod ran.
	NonRoot func(pod *runtimeapi.PodSandboxMetadata) (images []string)
	// Unknown, if any, is told once of each image of whose program nothing is known,
	// unless Images lists it.
	Unknown func(image string)
	// Unserved, if any, is told of each probe or hook of a container, but for those with
	// a stated program, that asks its pod for a port that nobody in it ever serves.
	Unserved func(Unserved)
	// Interpret has containers whose program is that of a known image, or not
	// known, run as a process too, so that others can be run beside it and be
	// connected to it. By default nothing is interpreted that need not be.
	Interpret bool
	// NoElide has each lap of a shell's idle loop run, see package shell.
	NoElide bool
	// Trees are the files of images; runtimes that have the same Trees share
	// them. Nil means the runtime's own.
	Trees *Trees
	// FS are the node's files, which containers mount and in which a stated
	// program leaves its termination message. Nil means files of its own.
	FS *memfs.FS
	// NodeIP is the node's address, which pods on the host's network have.
	NodeIP string
	// Memory in bytes and CPUs are the machine's, which processes see. When
	// more memory is used the OOM killer goes to work; 0 means that there is
	// always enough.
	Memory int64
	CPUs   int
	// MaxPIDs is how many processes the machine can have, PodPIDs how many a
	// pod can; 0 means any number.
	MaxPIDs, PodPIDs int64
	// System is what the machine uses itself, outside containers.
	System SystemUsage
	// Host, if any, are the real machine's files, which the host paths of
	// mounts, termination messages and seccomp profiles are in; FS holds only
	// what the runtime keeps for itself then. Nil means that FS has them all.
	Host hostfs.FS
	// Streaming gives out the URLs of Exec, Attach and PortForward, which are
	// Unimplemented without it.
	Streaming StreamingServer
	// OnListen, if any, is told of each port that is opened and closed in pods
	// and on the node's network, with which stated programs then always listen
	// on theirs. It must not wait.
	OnListen func(Listening)
	// Far, if any, is what pods' processes reach beyond the node: names, services and
	// other nodes.
	Far Far
	// Logs takes what programs write; nil drops it.
	Logs LogSink
	// Warn takes one sentence about what is not acted on; nil drops it.
	Warn func(string)
	// WarnOfPod, if any, takes those about a container in Warn's place, with the container's pod,
	// its name and its image, which text doesn't begin with.
	WarnOfPod func(pod *runtimeapi.PodSandboxMetadata, container, image, text string)
}

func (o *Options) setDefaults() {
	o.Name = cmp.Or(o.Name, "containerd")
	o.Version = cmp.Or(o.Version, "2.4.2")
	if o.Node == "" && o.Loop != nil {
		o.Node = o.Loop.Name()
	}
	o.Hostname = cmp.Or(o.Hostname, o.Node)
	o.CgroupDriver = cmp.Or(o.CgroupDriver, "cgroupfs")
	if o.Handlers == nil {
		o.Handlers = lifecycle.Usual
	}
	o.PodCIDR = cmp.Or(o.PodCIDR, "10.244.0.0/24")
	o.ImageFilesystem = cmp.Or(o.ImageFilesystem, DefaultImageFilesystem)
	o.ContainerFilesystem = cmp.Or(o.ContainerFilesystem, o.ImageFilesystem)
	o.ImageSize = cmp.Or(o.ImageSize, 50_000_000)
	if o.ImagePull == (Range{}) {
		o.ImagePull = Range{Min: time.Second, Max: 3 * time.Second}
	}
}

// Validate returns what is wrong with the options, naming the field. New panics
// on what Validate refuses.
func (o Options) Validate() error {
	o.setDefaults()
	if p, err := netip.ParsePrefix(o.PodCIDR); err != nil {
		return fmt.Errorf("podCIDR: %w", err)
	} else if p.Addr().BitLen()-p.Bits() < 2 {
		return fmt.Errorf("podCIDR: %s has no room for pods", o.PodCIDR)
	}
	if o.CgroupDriver != "cgroupfs" && o.CgroupDriver != "systemd" {
		return fmt.Errorf("cgroupDriver: %q is neither cgroupfs nor systemd", o.CgroupDriver)
	}
	names := make([]string, 0, len(o.Latency))
	for name := range o.Latency { //drydock:unordered sorted below
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if _, ok := calls.MethodByName(name); !ok {
			return fmt.Errorf("latency: no CRI method %q", name)
		}
		if o.Latency[name].Min < 0 {
			return fmt.Errorf("latency[%s]: negative", name)
		}
	}
	if o.SandboxImage != "" {
		if _, err := images.Canonical(o.SandboxImage); err != nil {
			return fmt.Errorf("sandboxImage: %q: %w", o.SandboxImage, err)
		}
	}
	for i := range o.Images {
		if err := o.Images[i].Validate(); err != nil {
			return fmt.Errorf("images[%d]: %w", i, err)
		}
	}
	for i := range o.Programs {
		if err := o.Programs[i].Validate(); err != nil {
			return fmt.Errorf("programs[%d]: %w", i, err)
		}
	}
	return nil
}

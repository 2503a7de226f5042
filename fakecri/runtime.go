package fakecri

import (
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/accounts"
	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/disk"
	"github.com/drydock-sim/drydock/fakecri/internal/hostfiles"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/lifecycle"
	"github.com/drydock-sim/drydock/fakecri/internal/output"
	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/podnet"
	"github.com/drydock-sim/drydock/fakecri/internal/process"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/internal/streams"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Runtime is one node's container runtime: its records, images and processes.
// It outlives its daemon, and all but the processes outlive a power cut. Like
// everything on a loop it is for use by one step at a time.
type Runtime struct {
	// unsure counts the answers of generation that were made unlike the one before.
	unsure uint64
	l      *loop.Loop
	opts   kept

	warner *records.Warner
	files  *hostfiles.Files
	calls  *calls.Daemon
	images *images.Store
	recs   *records.Store
	kern   *podkernel.Node
	out    *output.Outputs
	disks  *disk.Layers
	use    *accounts.Node
	net    *podnet.Net
	run    *process.Runner
	exec   *streams.Execs
	life   *lifecycle.Machine
	view   *viewer

	// lost is what a power cut ended and the daemon hasn't found out yet.
	lost []*records.Container
	// unmade is the container that UsesFiles is about; it asks for each that is
	// made.
	unmade records.Container
}

// kept are the Options that only answers tell of; New hands the others on.
type kept struct {
	Name, Version, Node, PodCIDR, SandboxImage, ImageFilesystem, ContainerFilesystem string

	Handlers  []string
	Streaming StreamingServer
	NonRoot   func(pod *runtimeapi.PodSandboxMetadata) []string
}

// New returns a runtime whose daemon is down. It panics on options that
// Options.Validate refuses.
func New(opts Options) *Runtime {
	if opts.Loop == nil {
		panic("fakecri: Options.Loop is required")
	}
	if err := opts.Validate(); err != nil {
		panic(fmt.Errorf("fakecri: %w", err))
	}
	opts.setDefaults()
	l, o := opts.Loop, &opts
	r := &Runtime{l: l, opts: kept{
		Name: o.Name, Version: o.Version, Node: o.Node, PodCIDR: o.PodCIDR, SandboxImage: o.SandboxImage,
		ImageFilesystem: o.ImageFilesystem, ContainerFilesystem: o.ContainerFilesystem, Handlers: o.Handlers, Streaming: o.Streaming, NonRoot: o.NonRoot,
	}}
	r.warner = &records.Warner{To: o.Warn, OfPod: o.WarnOfPod}
	r.files = hostfiles.New(l, o.FS, o.Host)
	r.calls = calls.New(l, o.Recorder, o.Latency, func() { r.recs.Changed() })
	r.recs = records.New(l, o.Node, r.calls)
	r.kern = podkernel.New(r.files, r.recs, podkernel.Options{
		Loop: l, Hostname: o.Hostname, NodeIP: o.NodeIP, Kernel: o.Kernel, DiskDevice: o.DiskDevice, CgroupDriver: o.CgroupDriver,
		Memory: o.Memory, CPUs: o.CPUs, OnListen: o.OnListen, Far: o.Far,
	})
	r.out = &output.Outputs{Loop: l, Logs: o.Logs, Attachable: o.Streaming != nil, Kernel: r.kern}
	r.disks = disk.New(l, o.LayerDisk, o.LayerPeriod, o.LayerFirst, r.files, o.Logs != nil, r.warner)
	imageDisk := o.ImageDisk
	if imageDisk == nil {
		imageDisk = r.disks.Share.Disk().Share()
	}
	r.images = images.New(images.Options{
		Loop: l, Images: o.Images, OnlyListedImages: o.OnlyListedImages, ImagesByBaseName: o.ImagesByBaseName, SandboxImage: o.SandboxImage,
		ImageSize: o.ImageSize, ImagePull: o.ImagePull, Disk: imageDisk, Trees: o.Trees, NoElide: o.NoElide,
	})
	r.use = accounts.New(l, o.Recorder, r.recs, r.kern, o.System, accounts.Limits{Memory: o.Memory, MaxPIDs: o.MaxPIDs, PodPIDs: o.PodPIDs})
	r.net = podnet.New(l, r.recs, r.kern, r.warner, o.PodCIDR, o.NodeIP, o.NoElide)
	r.run = &process.Runner{
		Loop: l, Recorder: o.Recorder, Records: r.recs, Images: r.images, Files: r.files, Layers: r.disks, Kernel: r.kern, Accounts: r.use, Output: r.out,
		Net: r.net, Warner: r.warner, Options: process.Options{Programs: o.Programs, Behave: o.Behave, Interpret: o.Interpret, Attachable: o.Streaming != nil, Ends: o.Ends, Execs: o.Execs, Unknown: o.Unknown, Unserved: o.Unserved},
	}
	r.exec = &streams.Execs{Loop: l, Calls: r.calls, Records: r.recs, Kernel: r.kern, Output: r.out, Warner: r.warner}
	r.life = &lifecycle.Machine{
		Loop: l, Handlers: lifecycle.HandlersOf(o.Handlers, o.NoUserNamespaces), NoUserNamespaces: o.NoUserNamespaces, CDI: o.CDI, Calls: r.calls, Records: r.recs, Images: r.images,
		Files: r.files, Layers: r.disks, Kernel: r.kern, Accounts: r.use, Net: r.net, Runner: r.run,
	}
	r.view = &viewer{Runtime: r}
	r.kern.Accounts, r.kern.Serve = r.use, r.net.Serve
	r.use.Runner = r.run
	r.net.ExitSoon = r.run.ExitSoon
	if o.Unserved != nil {
		r.net.Unserved = r.run.TellUnserved
	}
	r.run.Event = r.view.event
	r.life.Event = r.run.Event
	return r
}

// StartDaemon starts the daemon, unless it is up. After a power cut it finds
// out what has died, and when it says that happened: now, as containerd does.
func (r *Runtime) StartDaemon() {
	if r.calls.Life != nil {
		return
	}
	for _, c := range r.lost {
		if c.Listed && c.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			c.FinishedAt = r.l.UnixNano()
		}
	}
	if r.lost != nil {
		r.kern.BootedAt = r.l.UnixNano()
	}
	r.lost = nil
	r.calls.Life = &calls.Life{Group: r.l.NewGroup("runtime")}
	r.recs.Changed()
}

// StopDaemon kills the daemon: calls in flight are answered Unavailable and
// leave nothing behind that was not done yet; containers live on.
func (r *Runtime) StopDaemon() {
	d := r.calls.Life
	if d == nil {
		return
	}
	r.calls.Life = nil
	r.recs.Changed()
	d.Group.Kill()
	d.Down.Fire()
}

// DaemonUp reports whether the daemon is up.
func (r *Runtime) DaemonUp() bool { return r.calls.Life != nil }

// generation is Client.Generation.
func (r *Runtime) generation() uint64 {
	// A listing that fails, hangs or takes time is not like the one before,
	// so whoever compares generations has to make it.
	if r.calls.Life == nil || r.calls.ListingFaulted() ||
		r.calls.Latency(calls.ListPodSandbox).Max > 0 || r.calls.Latency(calls.ListContainers).Max > 0 ||
		r.calls.Latency(calls.ListPodSandbox).Min > 0 || r.calls.Latency(calls.ListContainers).Min > 0 {
		r.unsure++
	}
	return r.recs.Gen + r.unsure
}

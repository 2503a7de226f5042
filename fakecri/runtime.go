package fakecri

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// The labels by which kubelets know their sandboxes and containers.
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"
)

// Runtime is one node's container runtime: its records, images and processes.
// It outlives its daemon, and all but the processes outlive a power cut. Like
// everything on a loop it is for use by one step at a time.
type Runtime struct {
	l    *loop.Loop
	opts Options

	warner *warner
	files  *nodeFiles
	calls  *callDaemon
	images *imageStore
	recs   *recordStore
	kern   *nodeKernel
	out    *outputs
	disks  *layerStore
	use    *accounts
	net    *podNet
	run    *runner
	exec   *execs
	life   *lifecycle
	view   *viewer

	// lost is what a power cut ended and the daemon hasn't found out yet.
	lost []*container
	// unmade is the container that UsesFiles is about; it asks for each that is
	// made.
	unmade container
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
	r := &Runtime{l: l, opts: opts}
	r.warner = &warner{to: o.Warn}
	r.files = newNodeFiles(l, o.FS, o.Host)
	r.calls = newCallDaemon(l, o.Recorder, o.Latency, func() { r.recs.changed() })
	r.recs = newRecordStore(l, o.Node, r.calls)
	r.kern = newNodeKernel(r.files, r.recs, kernelOptions{
		Loop: l, Hostname: o.Hostname, NodeIP: o.NodeIP, Kernel: o.Kernel, DiskDevice: o.DiskDevice, CgroupDriver: o.CgroupDriver,
		Memory: o.Memory, CPUs: o.CPUs, OnListen: o.OnListen,
	})
	r.out = &outputs{l: l, logs: o.Logs, attachable: o.Streaming != nil, kern: r.kern}
	r.disks = newLayerStore(l, o.LayerDisk, o.LayerPeriod, o.LayerFirst, r.files, o.Logs != nil, r.warner)
	imageDisk := o.ImageDisk
	if imageDisk == nil {
		imageDisk = r.disks.layers.Disk().Share()
	}
	r.images = newImageStore(imageOptions{
		Loop: l, Images: o.Images, OnlyListedImages: o.OnlyListedImages, ImagesByBaseName: o.ImagesByBaseName, SandboxImage: o.SandboxImage,
		ImageSize: o.ImageSize, ImagePull: o.ImagePull, Disk: imageDisk, Trees: o.Trees, NoElide: o.NoElide,
	})
	r.use = newAccounts(l, o.Recorder, r.recs, r.kern, o.System, usageLimits{Memory: o.Memory, MaxPIDs: o.MaxPIDs, PodPIDs: o.PodPIDs})
	r.net = newPodNet(l, r.recs, r.kern, r.warner, o.PodCIDR, o.NodeIP, o.NoElide)
	r.run = &runner{
		l: l, rec: o.Recorder, calls: r.calls, recs: r.recs, images: r.images, files: r.files, disks: r.disks, kern: r.kern, use: r.use, out: r.out,
		net: r.net, warner: r.warner, opts: runOptions{Programs: o.Programs, Behave: o.Behave, Interpret: o.Interpret, Attachable: o.Streaming != nil},
	}
	r.exec = &execs{l: l, calls: r.calls, recs: r.recs, images: r.images, kern: r.kern, out: r.out, run: r.run, net: r.net, warner: r.warner}
	r.life = &lifecycle{
		l: l, handlers: handlersOf(o.Handlers, o.NoUserNamespaces), noUserNamespaces: o.NoUserNamespaces, calls: r.calls, recs: r.recs, images: r.images,
		files: r.files, disks: r.disks, kern: r.kern, use: r.use, net: r.net, run: r.run,
	}
	r.view = newViewer(r)
	r.kern.memoryUsed = func() int64 { return r.use.NodeUsage().Memory }
	r.kern.grown, r.kern.serve, r.kern.podLimit, r.kern.setCgroupLimit = r.use.grown, r.net.serve, r.use.podLimit, r.use.setCgroupLimit
	r.use.exit, r.use.ends = r.run.exit, r.run.ends
	r.net.exitSoon = r.run.exitSoon
	r.run.event, r.life.event = r.view.event, r.view.event
	return r
}

// StartDaemon starts the daemon, unless it is up. After a power cut it finds
// out what has died, and when it says that happened: now, as containerd does.
func (r *Runtime) StartDaemon() {
	if r.calls.life != nil {
		return
	}
	for _, c := range r.lost {
		if c.listed && c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
			c.finishedAt = r.l.UnixNano()
		}
	}
	if r.lost != nil {
		r.kern.bootedAt = r.l.UnixNano()
	}
	r.lost = nil
	r.calls.life = &daemonLife{g: r.l.NewGroup("runtime")}
	r.recs.changed()
}

// StopDaemon kills the daemon: calls in flight are answered Unavailable and
// leave nothing behind that was not done yet; containers live on.
func (r *Runtime) StopDaemon() {
	d := r.calls.life
	if d == nil {
		return
	}
	r.calls.life = nil
	r.recs.changed()
	d.g.Kill()
	d.down.Fire()
}

// DaemonUp tells whether the daemon is up.
func (r *Runtime) DaemonUp() bool { return r.calls.life != nil }

// newID returns a new id of 64 hex digits; none comes twice.
func (r *recordStore) newID(kind string) string {
	r.ids++
	return hashID(kind, r.node, r.l.Seed(), r.ids)
}

func hashID(kind, name string, nums ...uint64) string {
	b := make([]byte, 0, 128)
	b = append(b, kind...)
	b = append(b, 0)
	b = append(b, name...)
	b = append(b, 0)
	for _, n := range nums {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	var id [2 * sha256.Size]byte
	hex.Encode(id[:], sum[:])
	return string(id[:])
}

func (r *warner) warn(format string, args ...any) {
	if r.to != nil {
		r.to(fmt.Sprintf(format, args...))
	}
}

// changed is called after each change of what a call could answer.
func (r *recordStore) changed() {
	r.gen++
	r.watchers.tell(r.gen)
}

// generation is Client.Generation.
func (r *Runtime) generation() uint64 {
	// A listing that fails, hangs or takes time is not like the one before,
	// so whoever compares generations has to make it.
	if r.calls.life == nil || r.calls.listingFaulted() ||
		r.calls.latency(mListPodSandbox).Max > 0 || r.calls.latency(mListContainers).Max > 0 ||
		r.calls.latency(mListPodSandbox).Min > 0 || r.calls.latency(mListContainers).Min > 0 {
		r.recs.gen++
	}
	return r.recs.gen
}

// prompt tells whether a call would be answered at once and leave no trace.
func (r *callDaemon) prompt(m method) bool {
	if r.life == nil || r.latency(m).Max > 0 || r.latency(m).Min > 0 || r.rec.TraceReads() {
		return false
	}
	for _, f := range r.faults {
		if f.active && f.methods[m] {
			return false
		}
	}
	return true
}

// key spreads what a draw is about over the draws of one pod's name.
func (s *subject) key() uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s.namespace); i++ {
		h = (h ^ uint64(s.namespace[i])) * 1099511628211
	}
	h = (h ^ '/') * 1099511628211
	for i := 0; i < len(s.container); i++ {
		h = (h ^ uint64(s.container[i])) * 1099511628211
	}
	return h + uint64(s.attempt)
}

// between draws a duration for a purpose and a subject.
func (s *subject) draw(l *loop.Loop, d Range, purpose string) int64 {
	if d.Max <= d.Min {
		return int64(d.Min)
	}
	object := s.pod
	if object == "" {
		object = s.image
	}
	return int64(l.Between(d.Min, d.Max, purpose, object, s.key()))
}

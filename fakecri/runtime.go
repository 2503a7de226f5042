package fakecri

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// labelPodUID is the label by which the kubelet finds a pod's objects.
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
	l      *loop.Loop
	rec    *trace.Recorder
	fields []trace.Field // of the record being made: memory for the next
	opts   Options
	lat    []Range // by method; nil: all are as usual
	daemon *daemon // nil while it is down

	gen      uint64
	imageGen uint64
	// containerGen grows when a container's record comes or goes.
	containerGen uint64
	ids          uint64

	sandboxByID   byID[*sandbox]
	containerByID byID[*container]
	pods          map[string]*podRecords // by the uid of the sandboxes' metadata
	// sandboxes and containers are what listings show, in order of creation.
	sandboxes  []*sandbox
	containers []*container
	// mislabelled counts what is listed without its pod's uid as its label;
	// unless 0, the index by pod is of no use to that filter.
	mislabelled int

	images imageStore
	disks  disks
	ips    ipPool
	faults []*fault

	use       accounts
	processes *loop.Group // timers of stated programs; dies in a power cut
	warned    map[string]bool
	// lost is what a power cut ended and the daemon hasn't found out yet.
	lost []*container

	// unmade is the container that UsesFiles is about; it asks for each that is
	// made.
	unmade container

	watchers       []watcher
	listers        []*lister
	answerWatchers []answerWatcher
	listeners      []listener

	trees    *Trees
	commands kernel.Commands // what interpreted programs do; made for the first
	// What interpreted processes see of the node; nil while there are none.
	machine    *kernel.Machine
	podKernels map[*sandbox]*podKernel
	sandboxOf  map[*kernel.NetNS]*sandbox   // kept for Options.OnListen only
	attached   map[*container][]*attachment // nil until a client attaches
	bootedAt   int64
	hadKernel  bool // since the start of the run, whatever was cut since

	networkNotReady *runtimeapi.RuntimeCondition
	handlers        []*runtimeapi.RuntimeHandler
	// linux is shared by the statuses of sandboxes with the same namespaces.
	linux *runtimeapi.LinuxPodSandboxStatus
}

// daemon is one life of the runtime's daemon.
type daemon struct {
	g    *loop.Group
	down loop.Event
}

// podRecords are the records of one pod.
type podRecords struct {
	sandboxes  []*sandbox // those being created included
	containers []*container

	oneSandbox   [1]*sandbox // room for what most pods have
	oneContainer [1]*container
}

func newPodRecords() *podRecords {
	p := &podRecords{}
	p.sandboxes, p.containers = p.oneSandbox[:0], p.oneContainer[:0]
	return p
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
	r := &Runtime{
		l:         opts.Loop,
		rec:       opts.Recorder,
		opts:      opts,
		pods:      map[string]*podRecords{},
		gen:       1,
		imageGen:  1,
		processes: opts.Loop.NewGroup("processes"),
		trees:     opts.Trees,
		bootedAt:  opts.Loop.UnixNano(),
	}
	if r.trees != nil {
		r.trees.prepare(r.l, opts.Images)
	}
	if len(opts.Latency) > 0 {
		r.lat = make([]Range, methodCount)
		for m := range methods {
			r.lat[m] = methods[m].latency
			if d, ok := opts.Latency[methods[m].name]; ok {
				r.lat[m] = d
			}
		}
	}
	features := &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: !r.opts.NoUserNamespaces}
	r.handlers = append(r.handlers, &runtimeapi.RuntimeHandler{Features: features})
	for _, h := range opts.Handlers {
		r.handlers = append(r.handlers, &runtimeapi.RuntimeHandler{Name: h, Features: features})
	}
	r.linux = &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{}}}
	r.ips.init(opts.PodCIDR)
	r.initDisks()
	r.images.init(r)
	r.initUse()
	return r
}

// latency is how long a method takes.
func (r *Runtime) latency(m method) Range {
	if r.lat == nil {
		return methods[m].latency
	}
	return r.lat[m]
}

// StartDaemon starts the daemon, unless it is up. After a power cut it finds
// out what has died, and when it says that happened: now, as containerd does.
func (r *Runtime) StartDaemon() {
	if r.daemon != nil {
		return
	}
	for _, c := range r.lost {
		if c.listed && c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
			c.finishedAt = r.l.UnixNano()
		}
	}
	if r.lost != nil {
		r.bootedAt = r.l.UnixNano()
	}
	r.lost = nil
	r.daemon = &daemon{g: r.l.NewGroup("runtime")}
	r.changed()
}

// StopDaemon kills the daemon: calls in flight are answered Unavailable and
// leave nothing behind that was not done yet; containers live on.
func (r *Runtime) StopDaemon() {
	d := r.daemon
	if d == nil {
		return
	}
	r.daemon = nil
	r.changed()
	d.g.Kill()
	d.down.Fire()
}

// DaemonUp tells whether the daemon is up.
func (r *Runtime) DaemonUp() bool { return r.daemon != nil }

// newID returns a new id of 64 hex digits; none comes twice.
func (r *Runtime) newID(kind string) string {
	r.ids++
	return r.hashID(kind, r.opts.Node, r.l.Seed(), r.ids)
}

func (r *Runtime) hashID(kind, name string, nums ...uint64) string {
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

func (r *Runtime) warn(format string, args ...any) {
	if r.opts.Warn != nil {
		r.opts.Warn(fmt.Sprintf(format, args...))
	}
}

// watcher is told of changes while its group lives.
type watcher struct {
	g  *loop.Group
	fn func()
}

// changed is called after each change of what a call could answer.
func (r *Runtime) changed() {
	r.gen++
	for _, w := range r.watchers {
		w.fn()
	}
}

// watch is Client.OnChange.
func (r *Runtime) watch(g *loop.Group, fn func()) {
	if g.Dead() {
		return
	}
	r.watchers = append(r.watchers, watcher{g, fn})
	g.OnKill(func() {
		r.watchers = slices.DeleteFunc(slices.Clone(r.watchers), func(w watcher) bool { return w.g == g })
	})
}

// generation is Client.Generation.
func (r *Runtime) generation() uint64 {
	// A listing that fails, hangs or takes time is not like the one before,
	// so whoever compares generations has to make it.
	if r.daemon == nil || len(r.faults) > 0 && r.listingFaulted() ||
		r.latency(mListPodSandbox).Max > 0 || r.latency(mListContainers).Max > 0 ||
		r.latency(mListPodSandbox).Min > 0 || r.latency(mListContainers).Min > 0 {
		r.gen++
	}
	return r.gen
}

// prompt tells whether a call would be answered at once and leave no trace.
func (r *Runtime) prompt(m method) bool {
	if r.daemon == nil || r.latency(m).Max > 0 || r.latency(m).Min > 0 || r.rec.TraceReads() {
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
func (r *Runtime) between(d Range, purpose string, s *subject) (out int64) {
	if d.Max <= d.Min {
		return int64(d.Min)
	}
	object := s.pod
	if object == "" {
		object = s.image
	}
	return int64(r.l.Between(d.Min, d.Max, purpose, object, s.key()))
}

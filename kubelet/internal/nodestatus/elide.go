package nodestatus

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Elided is a Manager that leaves out periodic updates whose inputs are what they
// were when an update last found nothing to send. A status that is due although it
// did not change is sent all the same.
type Elided struct {
	*Manager
	plain updater
	o     ElideOptions // with sent among Reads
	// sent grows when a status was sent, so that another is due later.
	sent loop.Version
	// settled is the input of the last update that found nothing to send; without a
	// node: the last was not such a one.
	settled inputs
}

// ElideOptions say what is known without looking.
type ElideOptions struct {
	// KnownRuntimeVersion returns the answer that Sources.RuntimeVersion would
	// give, if the call can be left out.
	KnownRuntimeVersion func() (string, bool)
	// Reads grow with everything that Sources return, while AllTold.
	Reads   []*loop.Version
	AllTold func() bool
}

// Elide has updates of a manager, not yet started, left out.
func Elide(m *Manager, o ElideOptions) *Elided {
	e := &Elided{Manager: m, plain: m.updater, o: o}
	e.o.Reads = slices.Concat(o.Reads, []*loop.Version{&e.sent})
	m.updater = e
	ask := m.opts.Sources.RuntimeVersion
	m.opts.Sources.RuntimeVersion = func(ctx context.Context) (string, error) {
		if version, ok := e.o.KnownRuntimeVersion(); ok {
			return version, nil
		}
		return ask(ctx)
	}
	return e
}

// Start is Manager's.
func (e *Elided) Start(g *loop.Group) {
	e.Manager.Start(g)
	if e.passes != nil {
		e.passes.Elide(e)
	}
}

// tryUpdate implements updater.
func (e *Elided) tryUpdate(ctx context.Context, try int) (sent bool, err error) {
	e.settled = inputs{}
	e.sent.Grow()
	// The node is read before the update and compared after it: one that came in
	// between has not been looked at.
	node := e.informed()
	sent, err = e.plain.tryUpdate(ctx, try)
	if err == nil && !sent {
		if in, ok := e.inputs(); ok && in.node == node {
			e.settled = in
		}
	}
	return sent, err
}

// Describe says what the version of its own stands for.
func (e *Elided) Describe(g *loop.Group) {
	g.Describe(&e.sent, "node status", loop.Rises(func() int {
		if e.settled.node == nil {
			return 1
		}
		return 0
	}))
}

// Reads implements loop.Elider.
func (e *Elided) Reads() []*loop.Version { return e.o.Reads }

// Until implements loop.Elider.
func (e *Elided) Until(now int64) int64 {
	switch {
	case !e.nothingToDo():
		return now
	case !e.o.AllTold():
		// This pass can be left out, but not the next without being asked about.
		return now + 1
	}
	return e.lastReport.Add(e.opts.ReportFrequency + e.delay).UnixNano()
}

// LeftOut implements loop.Elider.
func (*Elided) LeftOut(int64, int64) {}

// nothingToDo reports whether an update now would compute what the last one did,
// which sent nothing.
func (e *Elided) nothingToDo() bool {
	if e.settled.node == nil || e.expired() {
		return false
	}
	version, ok := e.o.KnownRuntimeVersion()
	// Without a known answer the call must be made, and another answer is another
	// status.
	if !ok || version != e.version {
		return false
	}
	in, ok := e.inputs()
	return ok && in == e.settled
}

// inputs are what a status is made of, in a form that compares at no cost.
type inputs struct {
	node              *v1.Node
	machine           *Machine
	resources         *Resources
	images            *Image
	imageCount        int
	inUse             *v1.UniqueVolumeName
	inUseCount        int
	inUseKnown        bool
	handlers          *v1.NodeRuntimeHandler
	handlerCount      int
	features          *v1.NodeFeatures
	memory, disk, pid bool
	notReady          string
}

// inputs reads them; false means that they can't tell that nothing changed.
func (e *Elided) inputs() (inputs, bool) {
	s := &e.opts.Sources
	in := inputs{node: e.informed()}
	if s.Machine != nil {
		in.machine = s.Machine()
	}
	if s.Resources != nil {
		in.resources = s.Resources()
	}
	if s.VolumesInUse != nil {
		volumes, known := s.VolumesInUse()
		in.inUse, in.inUseCount = identity(volumes)
		in.inUseKnown = known
	}
	if s.Images != nil {
		in.images, in.imageCount = identity(s.Images())
	}
	if s.RuntimeHandlers != nil {
		in.handlers, in.handlerCount = identity(s.RuntimeHandlers())
	}
	if s.Features != nil {
		in.features = s.Features()
	}
	in.memory, in.disk, in.pid = ask(s.MemoryPressure), ask(s.DiskPressure), ask(s.PIDPressure)
	if err := utilerrors.NewAggregate(e.readyErrors()); err != nil {
		in.notReady = err.Error()
	}
	return in, in.node != nil
}

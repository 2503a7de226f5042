package report

import (
	"time"
)

// Part is one of the spans that a pod's start is made of. They follow each other
// and add up to the time from its creation until a watcher has seen it run. The order of the
// constants is the order in time, and of columns and charts.
type Part uint8

// The parts of a start.
const (
	// Scheduling is from creation to the binding to a node.
	Scheduling Part = iota
	// Sandbox is until the pod's sandbox is ready: the kubelet hears of the pod, admits
	// it, mounts its volumes and has the runtime make the sandbox.
	Sandbox
	// Pulling is the waiting for images and their pulls.
	Pulling
	// Init is from the first init container's start to the first other
	// container's, pulls left out.
	Init
	// Containers is the making and starting of the containers.
	Containers
	// Reporting is from the last container's start until a watcher has the status that
	// says so: the kubelet's relist, its status write, the watch.
	Reporting
	parts
)

// String is the name in charts and tables.
func (p Part) String() string {
	return [...]string{"Scheduling", "Sandbox", "Image pull", "Init", "Containers", "Reporting"}[p]
}

// tick is the resolution of what is kept of a start. uint32 ticks are 4.9 days, and a tenth of a
// millisecond is finer than any latency here.
const tick = 100 * time.Microsecond

// start is what is kept of a pod that has started. It is 32 bytes. A million of
// them are 32 MB; that is why parts are counted in ticks and flags share a word
// with the node. It is packed since it is the one thing that is kept per pod for good.
type start struct {
	// created: ticks since the start of the run: the low bits.
	created uint32
	parts   [parts]uint32
	// node: index, above nodeBits the high bits of created, above these flags. From the low end:
	// 20 bits of node index, 9 of creation, 3 flags.
	node uint32
}

const (
	nodeBits    = 20
	createdBits = 9
	// stateful and unschedulable pods are not among those that the SLO is about.
	stateful      = 1 << 31
	unschedulable = 1 << 30
	// untold pods have no records in the trace: all after Scheduling counts as
	// Containers.
	untold = 1 << 29
)

// startOf returns the record of a pod of that node and creation, with its flags. 20 bits are a
// million nodes, ten times scale.MaxNodes.
func startOf(node int, created time.Duration, flags uint32) start {
	at := min(uint64(max(created/tick, 0)), 1<<(32+createdBits)-1) // 6.9 years
	return start{created: uint32(at), node: uint32(node)&(1<<nodeBits-1) | uint32(at>>32)<<nodeBits | flags}
}

// at is when the pod was created.
func (s *start) at() time.Duration {
	return time.Duration(uint64(s.node>>nodeBits)&(1<<createdBits-1)<<32|uint64(s.created)) * tick
}

// on is the index of its node.
func (s *start) on() int { return int(s.node & (1<<nodeBits - 1)) }

// total is the sum of all parts.
func (s *start) total() (t time.Duration) {
	for _, p := range s.parts {
		t += time.Duration(p) * tick
	}
	return t
}

// sli is the latency that the SLO is about: without pulls and init containers. The SLO excludes
// pulls and init containers, since their time is the user's doing.
func (s *start) sli() time.Duration {
	return s.total() - time.Duration(s.parts[Pulling]+s.parts[Init])*tick
}

// counts reports whether the SLO is about the pod.
func (s *start) counts() bool { return s.node&(stateful|unschedulable) == 0 }

// ticks cuts a span to the resolution and to what fits: 4.9 days. A start that takes longer
// counts as that long.
func ticks(d time.Duration) uint32 {
	return uint32(min(max(d/tick, 0), 1<<32-1))
}

// starts keeps records of starts: all up to limit, then every second, fourth, ... The sample is
// by order of start, not random: a run repeats it exactly.
type starts struct {
	limit, stride, seen int
	list                []start
}

// add keeps a record if its turn has come. When the list is full every second one
// goes and the stride doubles, so what is kept is an even sample of all. After a halving, the one
// at hand may no longer be on the new stride; hence the second test.
func (s *starts) add(x start) {
	if s.seen%s.stride == 0 {
		if len(s.list) == s.limit {
			for i := 0; 2*i < len(s.list); i++ {
				s.list[i] = s.list[2*i]
			}
			s.list = s.list[:(len(s.list)+1)/2]
			s.stride *= 2
		}
		if s.seen%s.stride == 0 {
			s.list = append(s.list, x)
		}
	}
	s.seen++
}

package fakecri

import "github.com/drydock-sim/drydock/ground/loop"

// recordStore is what the runtime knows of: its sandboxes and containers, who
// is told of their changes, and the ids that they get.
type recordStore struct {
	l     *loop.Loop
	node  string
	calls *callDaemon

	gen uint64
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

	watchers watchers[uint64] // of gen
	listers  []*lister
}

func newRecordStore(l *loop.Loop, node string, calls *callDaemon) *recordStore {
	return &recordStore{l: l, node: node, calls: calls, pods: map[string]*podRecords{}, gen: 1}
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

package facade

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// How many changes of a kind are remembered, for watches and lists that begin behind:
// so many at least, and those of the last historyAge of the cluster's time, but never
// more than maxHistory. As upstream's watch cache does (k8s.io/apiserver,
// pkg/storage/cacher/watch_cache.go), whose snapshots live as long as its events.
const (
	minHistory = 1024
	maxHistory = 16384
	historyAge = 75 * time.Second
)

// history are the last changes of a kind. What the kind was at an earlier version is
// found by undoing them, so that a list of the past holds nothing while nobody asks.
type history struct {
	changes []past
	// from is the version after which no change is missing.
	from uint64
	// born is the version at which there was nothing of the kind.
	born uint64
	full int // the number of changes at which old ones are dropped next
}

// past is a change, and when it was (Unix nanoseconds of the cluster's time).
type past struct {
	apiserver.Change
	at int64
}

// newHistory begins behind a version, with what is there: objects that are as they were
// made. Otherwise what was before is unknown.
func newHistory(version uint64) *history { return &history{from: version, full: 2 * minHistory} }

// add remembers a change, and forgets old ones when there are many.
func (h *history) add(c apiserver.Change, now int64) {
	h.changes = append(h.changes, past{c, now})
	if len(h.changes) < h.full {
		return
	}
	keep := len(h.changes) - minHistory
	old, _ := slices.BinarySearchFunc(h.changes, now-int64(historyAge), func(p past, at int64) int { return cmp.Compare(p.at, at) })
	drop := max(min(keep, old), len(h.changes)-maxHistory/2)
	if drop > 0 {
		h.from = h.changes[drop-1].Version
		h.changes = slices.Clone(h.changes[drop:])
	}
	h.full = min(max(2*minHistory, 2*len(h.changes)), maxHistory)
}

// forget drops all changes up to a version, which is the present one.
func (h *history) forget(version uint64) { *h = *newHistory(version) }

// since are the changes after a version.
func (h *history) since(version uint64) []past {
	i, _ := slices.BinarySearchFunc(h.changes, version+1, func(p past, v uint64) int { return cmp.Compare(p.Version, v) })
	return h.changes[i:]
}

// objectName names an object of a kind.
type objectName struct{ namespace, name string }

func nameOf(o apiserver.Object) objectName { return objectName{o.GetNamespace(), o.GetName()} }

// asOf returns what the objects of a namespace ("" for all) were at a version, given what
// they are. The version is not before from.
func (h *history) asOf(version uint64, namespace string, objects []apiserver.Object) []apiserver.Object {
	was := map[objectName]apiserver.Object{}
	for _, c := range h.since(version) {
		if n := nameOf(c.New); namespace == "" || n.namespace == namespace {
			if _, seen := was[n]; !seen {
				was[n] = c.Old
			}
		}
	}
	if len(was) == 0 {
		return objects
	}
	objects = slices.DeleteFunc(objects, func(o apiserver.Object) bool {
		_, changed := was[nameOf(o)]
		return changed
	})
	for _, o := range was {
		if o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}

// byKey orders objects as etcd's keys do: "NAMESPACE/NAME", byte by byte, by which the
// namespace "a-b" comes before "a".
func byKey(a, b apiserver.Object) int {
	if x, y := a.GetNamespace(), b.GetNamespace(); x != y {
		return cmp.Compare(x+"/", y+"/")
	}
	return cmp.Compare(a.GetName(), b.GetName())
}

// keyBelow is an object's key below that of its namespace, or of its kind where a request
// is for all namespaces.
func keyBelow(o apiserver.Object, namespace string) string {
	if ns := o.GetNamespace(); ns != "" && namespace == "" {
		return strings.Join([]string{ns, o.GetName()}, "/")
	}
	return o.GetName()
}

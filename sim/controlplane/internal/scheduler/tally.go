package scheduler

import (
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// labelSet is a namespace with a set of labels that pods there have. There are
// few of them however many pods there are, so a new tally asks the sets and not
// the pods. They come and go with pods on nodes and with pods that wait.
type labelSet struct {
	namespace string
	labels    labels.Set
	key       string
	at        map[*nodeInfo]population
	// waiting: how many pods with these labels are to be placed.
	waiting int
	// tallies: those that count pods with these labels.
	tallies []*tally
	// carriers: those whose term matches pods with these labels.
	carriers []*carrier
	// seen: how many of labelIndex.carriers were looked at.
	seen int
	// epoch: of labelIndex.epoch when carriers was made.
	epoch  uint64
	spread defaultSpread
}

// population counts pods on a node: those that live, those being deleted.
type population struct{ live, dying int32 }

// topoKey is a topology key that something counts by. Its values are numbered.
// Counts by value are slices by these numbers, so a count is two loads; numbers
// of values that are gone are given out again.
type topoKey struct {
	name    string
	id      int // index into nodeInfo.topo
	numbers map[string]int32
	values  []string // by number
	// free: numbers of values that no node has any more.
	free []int32
	// nodes: how many nodes have each value.
	nodes   []int32
	present int // how many nodes have the key
	domains int // how many values some node has
}

// none is the number of no value.
const none int32 = -1

// topoKey returns what is kept of a topology key.
func (t *nodeTable) topoKey(name string) *topoKey {
	k := t.keyByName[name]
	if k == nil {
		k = &topoKey{name: name, id: len(t.keys), numbers: map[string]int32{}}
		t.keyByName[name] = k
		t.keys = append(t.keys, k)
		for _, n := range t.slots {
			if n != nil {
				n.topo = append(n.topo, none)
				k.set(n, n.node)
			}
		}
	}
	return k
}

// relabel takes over the values that a node has now; nil: it is gone. It returns
// the numbers of those that it had, until the next call.
func (t *nodeTable) relabel(n *nodeInfo, node *v1.Node) []int32 {
	t.was = append(t.was[:0], n.topo...)
	for _, k := range t.keys {
		k.set(n, node)
	}
	return t.was
}

// set takes the value of a node over; nil: it is gone.
func (k *topoKey) set(n *nodeInfo, node *v1.Node) {
	if old := n.topo[k.id]; old != none {
		k.present--
		if k.nodes[old]--; k.nodes[old] == 0 {
			k.domains--
			delete(k.numbers, k.values[old])
			k.free = append(k.free, old)
		}
		n.topo[k.id] = none
	}
	if node == nil {
		return
	}
	v, ok := node.Labels[k.name]
	if !ok {
		return
	}
	i, ok := k.numbers[v]
	if !ok {
		if last := len(k.free) - 1; last >= 0 {
			i, k.free = k.free[last], k.free[:last]
			k.values[i] = v
		} else {
			i = int32(len(k.nodes))
			k.nodes, k.values = append(k.nodes, 0), append(k.values, v)
		}
		k.numbers[v] = i
	}
	n.topo[k.id] = i
	k.present++
	if k.nodes[i]++; k.nodes[i] == 1 {
		k.domains++
	}
}

// counts are numbers of pods by node and by the value of a topology key. used and
// low serve topology spread, which asks for the least number of pods that a
// domain has: held is kept only from when somebody has asked.
type counts struct {
	key     *topoKey
	byNode  []int32 // by slot
	byValue []int32 // by the value's number
	total   int64   // on nodes that have the key
	used    int     // values with pods
	// held counts values by their number of pods, without those that have none;
	// low is the least of those numbers. Nil: nobody has asked.
	held map[int32]int
	low  int32
}

// at is the pods on a node.
func (c *counts) at(slot int) int32 {
	if slot < len(c.byNode) {
		return c.byNode[slot]
	}
	return 0
}

// of returns the pods with the same value as a node; false: it has none.
func (c *counts) of(n *nodeInfo) (int32, bool) {
	v := n.topo[c.key.id]
	if v == none {
		return 0, false
	}
	if int(v) < len(c.byValue) {
		return c.byValue[v], true
	}
	return 0, true
}

// add counts pods in or out on a node, and so in the domain that it belongs to.
func (c *counts) add(n *nodeInfo, delta int32) {
	for n.slot >= len(c.byNode) {
		c.byNode = append(c.byNode, make([]int32, n.slot+1-len(c.byNode))...)
	}
	c.byNode[n.slot] += delta
	c.shift(n.topo[c.key.id], delta)
}

// shift counts pods in or out of a domain.
func (c *counts) shift(value, delta int32) {
	if value == none {
		return
	}
	for int(value) >= len(c.byValue) {
		c.byValue = append(c.byValue, make([]int32, len(c.key.nodes)-len(c.byValue))...)
	}
	was := c.byValue[value]
	is := was + delta
	c.byValue[value] = is
	c.total += int64(delta)
	if was == 0 && is != 0 {
		c.used++
	} else if was != 0 && is == 0 {
		c.used--
	}
	if c.held != nil {
		c.hold(was, -1)
		c.hold(is, 1)
	}
}

// hold counts a domain in or out of held. A domain without pods is in no one's
// least: it may be one that no node has any more.
func (c *counts) hold(pods int32, sign int) {
	if pods == 0 {
		return
	}
	if c.held[pods] += sign; c.held[pods] == 0 {
		delete(c.held, pods)
	}
	if sign > 0 && (pods < c.low || len(c.held) == 1) {
		c.low = pods
	}
}

// least returns the fewest pods that a value has which has any.
func (c *counts) least() int32 {
	if c.held == nil {
		c.held = map[int32]int{}
		for _, pods := range c.byValue {
			c.hold(pods, 1)
		}
	}
	for len(c.held) > 0 && c.held[c.low] == 0 {
		c.low++
	}
	return c.low
}

// relabel moves a node's pods to the value that it has now.
func (c *counts) relabel(n *nodeInfo, was []int32) {
	if pods := c.at(n.slot); pods != 0 && was[c.key.id] != n.topo[c.key.id] {
		c.shift(was[c.key.id], -pods)
		c.shift(n.topo[c.key.id], pods)
	}
}

// tally counts the pods that all of some terms match.
type tally struct {
	counts
	terms []*term
	// live: pods that are being deleted don't count.
	live bool
}

// matches reports whether all terms mean pods with these labels.
func (t *tally) matches(store *apiserver.Store, ls *labelSet) bool {
	return !slices.ContainsFunc(t.terms, func(m *term) bool { return !m.matches(store, ls) })
}

// share is how many of the pods of a node count.
func (t *tally) share(p population) int32 {
	if t.live {
		return p.live
	}
	return p.live + p.dying
}

// carrier counts the pods that say one thing of others: a term of pod affinity
// or anti-affinity.
type carrier struct {
	counts
	term *term
	kind carried
	// weight: for scores; below 0 for anti-affinity.
	weight int64
	id     string
}

// carried is what a carrier's term asks for, which decides what its count means
// to a pod that matches.
type carried uint8

const (
	carriesAnti     carried = iota // required anti-affinity
	carriesAffinity                // required affinity
	carriesPreferred
)

// labelIndex counts pods on nodes by their labels, for all who ask by selectors:
// tallies count who is selected, carriers who selects.
type labelIndex struct {
	table *nodeTable
	store *apiserver.Store

	sets        map[string]*labelSet
	byIdentity  map[identity]*labelSet
	tallies     []*tally
	tallyByID   map[string]*tally
	carriers    []*carrier
	carrierByID map[string]*carrier

	// epoch: counts calls of forgetTallies: what labelSets know of carriers is
	// older.
	epoch uint64
	// trimmed: ns, when trim last had something to do.
	trimmed int64
}

// newLabelIndex returns an empty index. Terms with a namespace selector read
// namespaces' labels from the store.
func newLabelIndex(table *nodeTable, store *apiserver.Store) labelIndex {
	return labelIndex{
		table: table, store: store, sets: map[string]*labelSet{}, byIdentity: map[identity]*labelSet{},
		tallyByID: map[string]*tally{}, carrierByID: map[string]*carrier{}, epoch: 1,
	}
}

// of returns the labelSet of a pod. It is found by the address of the labels'
// map, and by its text only the first time.
func (x *labelIndex) of(p *v1.Pod) *labelSet {
	// Maps of labels are shared by replicas and never written to.
	id := identity{p.Namespace, reflect.ValueOf(p.Labels).Pointer()}
	if ls := x.byIdentity[id]; ls != nil {
		return ls
	}
	key := p.Namespace + "/" + labels.Set(p.Labels).String()
	ls := x.sets[key]
	if ls == nil {
		ls = &labelSet{namespace: p.Namespace, labels: p.Labels, key: key, at: map[*nodeInfo]population{}}
		for _, t := range x.tallies {
			if t.matches(x.store, ls) {
				ls.tallies = append(ls.tallies, t)
			}
		}
		x.sets[key] = ls
	}
	// Only the map that the set holds on to keeps its address.
	if reflect.ValueOf(ls.labels).Pointer() == id.labels {
		x.byIdentity[id] = ls
	}
	return ls
}

// identity is a namespace and the address of a map of labels.
type identity struct {
	namespace string
	labels    uintptr
}

// drop forgets a set that no pod has. Whoever may have been the last to use it calls; a
// set with pods, on nodes or waiting, stays.
func (x *labelIndex) drop(ls *labelSet) {
	if len(ls.at) == 0 && ls.waiting == 0 && x.sets[ls.key] == ls {
		delete(x.sets, ls.key)
		delete(x.byIdentity, identity{ls.namespace, reflect.ValueOf(ls.labels).Pointer()})
	}
}

// populate counts a pod in (1) or out (-1) of what looks at labels.
func (x *labelIndex) populate(ls *labelSet, n *nodeInfo, live, dying int32) {
	p := ls.at[n]
	p.live += live
	p.dying += dying
	if p == (population{}) {
		delete(ls.at, n)
	} else {
		ls.at[n] = p
	}
	for _, t := range ls.tallies {
		if d := t.share(population{live, dying}); d != 0 {
			t.add(n, d)
		}
	}
}

// tally returns the count of the pods that terms match, by a topology key. One
// that exists is shared by all classes that mean the same; a new one counts what
// is there and is kept up to date by populate from then on.
func (x *labelIndex) tally(key string, terms []*term, live bool) *tally {
	var b strings.Builder
	b.WriteString(key)
	if live {
		b.WriteString("\x00live")
	}
	for _, m := range terms {
		b.WriteByte(0)
		b.WriteString(m.id)
	}
	id := b.String()
	if t := x.tallyByID[id]; t != nil {
		return t
	}
	t := &tally{counts: counts{key: x.table.topoKey(key)}, terms: terms, live: live}
	x.tallyByID[id] = t
	x.tallies = append(x.tallies, t)
	// What is there already is counted once; from now on populate keeps it.
	for _, ls := range x.sets { //drydock:unordered sums
		if !t.matches(x.store, ls) {
			continue
		}
		ls.tallies = append(ls.tallies, t)
		for n, p := range ls.at { //drydock:unordered sums
			if d := t.share(p); d != 0 {
				t.add(n, d)
			}
		}
	}
	return t
}

// Tallies and carriers are forgotten when there are many for the labels that pods
// have, at most once in a while: all may be in use.
const (
	fewTallies      = 1024
	talliesPerSet   = 8
	trimInterval    = 10 * time.Minute
	maxTallyEntries = 16 << 20 // of all tallies, by node
)

// trim forgets all tallies, and the carriers that no pod has, when they have become
// many: those in use are made again. It reports whether it did; classes hold on to
// tallies and have to be forgotten too.
func (x *labelIndex) trim(now int64) bool {
	switch most := max(fewTallies, talliesPerSet*len(x.sets)); {
	case len(x.tallies)*len(x.table.slots) > maxTallyEntries && len(x.tallies) > 256:
	case max(len(x.tallies), len(x.carriers)) > most && now-x.trimmed >= int64(trimInterval):
	default:
		return false
	}
	// Tallies in use come back with their classes, at the cost of a count each.
	x.trimmed = now
	x.forgetTallies()
	x.carriers = slices.DeleteFunc(x.carriers, func(c *carrier) bool {
		if slices.ContainsFunc(c.byNode, func(pods int32) bool { return pods != 0 }) {
			return false
		}
		delete(x.carrierByID, c.id)
		return true
	})
	return true
}

// forgetTallies is for when a namespace's labels change: who matches has to be
// found out anew. Classes hold tallies, so they have to go as well.
func (x *labelIndex) forgetTallies() {
	x.tallies = nil
	clear(x.tallyByID)
	for _, ls := range x.sets { //drydock:unordered each is emptied
		ls.tallies = nil
		ls.spread = defaultSpread{}
	}
	x.epoch++
}

// carrier returns the count of the pods that say the same of others.
func (x *labelIndex) carrier(kind carried, m *term, weight int64) *carrier {
	id := strings.Join([]string{string(rune('a' + kind)), m.key, m.id, itoa(weight)}, "\x00")
	c := x.carrierByID[id]
	if c == nil {
		c = &carrier{counts: counts{key: x.table.topoKey(m.key)}, term: m, kind: kind, weight: weight, id: id}
		x.carrierByID[id] = c
		x.carriers = append(x.carriers, c)
	}
	return c
}

// carriersOf returns what pods on nodes may say of pods with these labels.
// Carriers are only ever added while the epoch lasts, so a set looks at those
// that came since it last did.
func (x *labelIndex) carriersOf(ls *labelSet) []*carrier {
	if ls.epoch != x.epoch {
		ls.carriers, ls.seen, ls.epoch = nil, 0, x.epoch
	}
	for ; ls.seen < len(x.carriers); ls.seen++ {
		if c := x.carriers[ls.seen]; c.term.matches(x.store, ls) {
			ls.carriers = append(ls.carriers, c)
		}
	}
	return ls.carriers
}

// relabel keeps the counts by topology value when a node's labels change; nil:
// it is gone.
func (x *labelIndex) relabel(n *nodeInfo, node *v1.Node) {
	was := x.table.relabel(n, node)
	for _, t := range x.tallies {
		t.relabel(n, was)
	}
	for _, c := range x.carriers {
		c.relabel(n, was)
	}
}

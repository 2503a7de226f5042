// Package store is the API's state machine: what is stored (State), and the verbs
// over it (Store). It has no loop, no latency and no randomness but the seed; each
// verb takes the time, does all it does before it returns, and tells hooks of each
// change.
//
// It knows kinds by their rows in the table, and by name only those that it has
// something of its own for: pods, nodes, namespaces, services, events, leases and
// budgets.
//
// - store.go: the state, commit; reads.go: what is read of it
// - hooks.go: who is told of changes
// - names.go: UIDs and generated names
// - verbs.go, delete.go, patch.go: the verbs that all kinds have
// - stamp.go: pods made many at a time of one template
// - kubelet_verbs.go, patch_meta.go, scale.go: patches that others write as structs, subresources
// - addresses.go: what services are given
// - eviction.go: evictions within disruption budgets
// - events.go, eventtable.go, leasetable.go: what there is most of, kept small
//
// Objects that it hands out are shared and must never be written to: an update
// makes a new object that shares what did not change.
package store

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/addresses"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/admission"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/quota"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/table"
)

// Options configure a Store.
type Options struct {
	// Seed decides UIDs and generated names.
	Seed uint64
	// Start is the creation time of what exists from the beginning (the
	// system namespaces and priority classes). Zero means loop.Epoch().
	Start time.Time
	// Gates are the feature gates.
	Gates features.Gates
	// EventTTL is how long an event lives after its last write. Zero means one
	// hour, as kube-apiserver's --event-ttl; negative means for ever.
	EventTTL time.Duration
}

// Store is the API's state machine: the verbs, over its State. It is for use by
// one loop at a time.
type Store struct {
	*State
	opts       Options
	leases     *leaseTable
	events     *eventTable
	expiry     expiries
	plugins    *admission.Plugins
	caller     *admission.Caller                       // nil: nobody said
	admitEvent func(now time.Time, ev *v1.Event) error // nil without limits on events
	applied    map[objectKey][]byte                    // manifests as they were last applied

	spareEvent  *v1.Event // memory for PostEvent
	spareLeases spareLeases
}

// State is what is stored, under one version that counts the writes, and who is
// told of its changes. It knows no rules: what is committed has passed them.
type State struct {
	seed    uint64
	version uint64
	uids    uint64
	names   uint64
	refused uint64 // counts names of what was not stored
	classes uint64 // counts the changes of what admission reads: priority and runtime classes

	kinds   *kind.Table
	shelves []*shelf // in the order of kinds
	// The tables of the kinds that the store itself reads.
	pods            *table.Table[*v1.Pod]
	nodes           *table.Table[*v1.Node]
	namespaces      *table.Table[*v1.Namespace]
	priorityClasses *table.Table[*schedulingv1.PriorityClass]
	runtimeClasses  *table.Table[*nodev1.RuntimeClass]

	podsByNode map[string][]*v1.Pod
	nsPods     map[string]*namespacePods
	podVersion uint64 // version of the last write to any pod
	located    int    // how many nodes say their zone or region

	hooks   []*hook
	pending []kind.Change
	telling bool
	dry     bool   // nothing is committed
	dryRuns uint64 // that there were
	// draws are the names and UIDs of a request that may be made again; nil: it isn't.
	draws *admission.Calls

	managedFields bool            // are kept
	addresses     *addresses.Pool // of services; nil: none are given
	through       *kind.View
}

// shelf is what the store has of one kind, found by the kind's place in the table.
type shelf struct {
	*kind.Info
	objects table.Any
	hooks   []*hook // that are told of the kind; nil: not found yet
}

// objectKey names one object.
type objectKey struct {
	kind            kind.Kind
	namespace, name string
}

// namespacePods caches the pods of a namespace as of a version.
type namespacePods struct {
	version uint64
	pods    []*v1.Pod
}

// New returns a store that holds the system namespaces and the two system
// priority classes.
func New(opts Options) *Store {
	if opts.Start.IsZero() {
		opts.Start = loop.Epoch()
	}
	opts.EventTTL = cmp.Or(opts.EventTTL, time.Hour)
	s := &Store{
		opts:    opts,
		leases:  newLeaseTable(),
		events:  newEventTable(opts.Seed),
		applied: map[objectKey][]byte{},
	}
	// Events and leases, of which there are most, have tables of their own.
	s.State = newState(opts.Seed, opts.Gates, map[kind.Kind]table.Any{kinds.Event: s.events, kinds.Lease: s.leases})
	s.plugins = admission.NewPlugins(s)
	begin(s)
	return s
}

// newState returns an empty state. tables are those that are not the kind's.
func newState(seed uint64, on features.Gates, tables map[kind.Kind]table.Any) *State {
	s := &State{seed: seed, kinds: kinds.New(on), podsByNode: map[string][]*v1.Pod{}, nsPods: map[string]*namespacePods{}}
	for _, in := range s.kinds.All() {
		objects := tables[in.Kind]
		if objects == nil {
			objects = in.NewTable()
		}
		s.shelves = append(s.shelves, &shelf{Info: in, objects: objects})
	}
	s.pods = tableOf[*v1.Pod](s, kinds.Pod)
	s.nodes = tableOf[*v1.Node](s, kinds.Node)
	s.namespaces = tableOf[*v1.Namespace](s, kinds.Namespace)
	s.priorityClasses = tableOf[*schedulingv1.PriorityClass](s, kinds.PriorityClass)
	s.runtimeClasses = tableOf[*nodev1.RuntimeClass](s, kinds.RuntimeClass)
	return s
}

// Define has custom resources stored by the rules of a row, which takes the place of
// an earlier one of their kind. What is stored becomes what it would be read as: upstream
// converts, prunes and defaults what it reads, and writes nothing for that. What a webhook
// converts stays as it is, and is converted when it is read.
func (s *State) Define(in *kind.Info) {
	i := s.kinds.Define(in)
	if i < len(s.shelves) {
		s.shelves[i].Info = in
		var all []kind.Object
		s.shelves[i].objects.Each(func(o kind.Object) bool { all = append(all, o); return true })
		for _, o := range all {
			if in.Custom.Hook != nil && o.GetObjectKind().GroupVersionKind().Version != in.Version {
				continue
			}
			if as := in.Custom.Convert(o); !equality.Semantic.DeepEqual(as, o) {
				s.shelves[i].objects.Put(as)
			}
		}
		return
	}
	s.shelves = append(s.shelves, &shelf{Info: in, objects: in.NewTable()})
}

// Undefine has custom resources of a kind not stored any more. There must be none.
func (s *State) Undefine(k kind.Kind) {
	i := s.kinds.Index(k)
	s.kinds.Undefine(i)
	s.shelves = slices.Delete(s.shelves, i, i+1)
}

// tableOf returns the table of a kind whose objects are of type T.
func tableOf[T table.Pointer](s *State, k kind.Kind) *table.Table[T] {
	return s.table(k).(*table.Table[T])
}

// Kinds returns the table of the kinds that are stored.
func (s *State) Kinds() *kind.Table { return s.kinds }

// shelf returns what there is of a kind; nil if it is not served.
func (s *State) shelf(k kind.Kind) *shelf {
	if i := s.kinds.Index(k); i >= 0 {
		return s.shelves[i]
	}
	return nil
}

// info returns the row of a kind that is served.
func (s *State) info(k kind.Kind) *kind.Info { return s.shelf(k).Info }

// table returns the objects of a kind that is served.
func (s *State) table(k kind.Kind) table.Any { return s.shelf(k).objects }

// begin makes what exists in every cluster.
func begin(s *Store) {
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, v1.NamespaceNodeLease, metav1.NamespacePublic} {
		ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.Create(s.opts.Start, ns); err != nil {
			panic(err) // a fault of this package
		}
	}
	for _, pc := range []struct {
		name, text string
		value      int32
	}{
		{"system-cluster-critical", "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.", kinds.SystemCriticalPriority},
		{"system-node-critical", "Used for system critical pods that must not be moved from their current node.", kinds.SystemCriticalPriority + 1000},
	} {
		c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: pc.name}, Value: pc.value, Description: pc.text}
		if _, err := s.create(s.opts.Start, c, s.info(kinds.PriorityClass), true); err != nil {
			panic(err)
		}
	}
}

// AdmitEvents has admit asked of each write of an event.
func (s *Store) AdmitEvents(admit func(now time.Time, ev *v1.Event) error) { s.admitEvent = admit }

// Calling has what fn does admitted as requests of a caller.
func (s *Store) Calling(c *admission.Caller, fn func()) {
	was, drew := s.caller, s.draws
	s.caller, s.draws = c, c.Calls
	defer func() { s.caller, s.draws = was, drew }()
	fn()
}

// CallerName is the user name of who calls; "": nobody said.
func (s *Store) CallerName() string {
	if s.caller == nil {
		return ""
	}
	return s.caller.User.Username
}

// UseTypes is that of the admission plugins.
func (s *Store) UseTypes(t managedfields.TypeConverter) { s.plugins.UseTypes(t) }

// UseServiceAccounts is that of the admission plugins.
func (s *Store) UseServiceAccounts() { s.plugins.UseServiceAccounts() }

// TaintNewNodes is that of the admission plugins.
func (s *Store) TaintNewNodes() { s.plugins.TaintNewNodes() }

// EventTTL returns how long an event lives after its last write; negative: for ever.
func (s *Store) EventTTL() time.Duration { return s.opts.EventTTL }

// Version returns the resource version of the last write.
func (s *State) Version() uint64 { return s.version }

// commit puts a new or changed object in its place under the next version, and
// tells the hooks. The caller must own obj: its resource version is set here.
// Nothing is checked any more.
func (s *State) commit(typ watch.EventType, k kind.Kind, old, obj kind.Object, verb, sub string) {
	if s.dry {
		return
	}
	s.version++
	on := s.shelf(k)
	// Templates admitted before are stale from now on.
	if on.ReadByAdmission {
		s.classes++
	}
	obj.SetResourceVersion(strconv.FormatUint(s.version, 10))
	if typ == watch.Deleted {
		on.objects.Drop(obj.GetNamespace(), obj.GetName())
	} else {
		on.objects.Put(obj)
	}
	switch {
	case k == kinds.Pod:
		s.indexPod(typ, old, obj.(*v1.Pod))
	case k == kinds.Node:
		s.countLocated(typ, old, obj.(*v1.Node))
	case k == kinds.Service && s.addresses != nil:
		s.noteAddresses(typ, old, obj.(*v1.Service))
	}
	s.tell(kind.Change{Type: typ, Kind: k, Old: old, New: obj, Verb: verb, Subresource: sub, Version: s.version})
}

// KeepManagedFields has objects stored with the managed fields that they come with.
// Without, they have none: only who serves clients computes them.
func (s *State) KeepManagedFields() { s.managedFields = true }

// Through has fn write as who comes by a view of a kind, whose rules may be others than
// the kind's own; nil is no view.
func (s *State) Through(view *kind.View, fn func()) {
	s.through = view
	defer func() { s.through = nil }()
	fn()
}

// validate checks an object that is to be stored, but for its metadata.
func (s *State) validate(in *kind.Info, obj kind.Object, system bool) field.ErrorList {
	if s.through != nil && s.through.Check != nil {
		return s.through.Check(obj, nil, "")
	}
	return in.Validate(obj, system)
}

// validateUpdate is validate of what is to take old's place.
func (s *State) validateUpdate(in *kind.Info, obj, old kind.Object, sub string) field.ErrorList {
	if s.through != nil && s.through.Check != nil {
		return s.through.Check(obj, old, sub)
	}
	return in.ValidateUpdate(obj, old, sub)
}

// KeepsManagedFields reports whether that was asked for.
func (s *State) KeepsManagedFields() bool { return s.managedFields }

// DryRun has fn write without anything being stored or told: its verbs return what
// they would make of the objects, or their errors. UIDs that they draw are no write's;
// names are drawn again by the next write.
func (s *State) DryRun(fn func()) {
	uids, names := s.uids, s.names
	s.dry = true
	s.dryRuns++
	defer func() { s.dry, s.uids, s.names = false, uids, names }()
	fn()
}

// countLocated keeps how many nodes say their zone or region, so that nobody has to look
// where none does.
func (s *State) countLocated(typ watch.EventType, old kind.Object, node *v1.Node) {
	if was, _ := old.(*v1.Node); was != nil && typ != watch.Added && located(was) {
		s.located--
	}
	if typ != watch.Deleted && located(node) {
		s.located++
	}
}

// located reports whether a node says its zone or region.
func located(node *v1.Node) bool {
	return node.Labels[v1.LabelTopologyZone] != "" || node.Labels[v1.LabelTopologyRegion] != ""
}

// Located reports whether there are nodes that say their zone or region.
func (s *State) Located() bool { return s.located > 0 }

// indexPod keeps the pods of each node in the order in which they came to it. A pod
// that stays where it is keeps its place.
func (s *State) indexPod(typ watch.EventType, old kind.Object, pod *v1.Pod) {
	s.podVersion = s.version
	node := ""
	was, _ := old.(*v1.Pod)
	if was != nil {
		node = was.Spec.NodeName
	}
	if node != "" {
		list := s.podsByNode[node]
		for i, p := range list {
			if p != was { // the list has the stored ones
				continue
			}
			if typ != watch.Deleted && pod.Spec.NodeName == node {
				list[i] = pod
				return
			}
			copy(list[i:], list[i+1:])
			list[len(list)-1] = nil
			s.podsByNode[node] = list[:len(list)-1]
			break
		}
	}
	if typ != watch.Deleted && pod.Spec.NodeName != "" {
		s.podsByNode[pod.Spec.NodeName] = append(s.podsByNode[pod.Spec.NodeName], pod)
	}
}

// SetQuotaStatus stores a quota that is the stored one but for its status.
func (s *State) SetQuotaStatus(q *v1.ResourceQuota) {
	old, _ := s.table(kinds.ResourceQuota).Find(q.Namespace, q.Name).(*v1.ResourceQuota)
	s.commit(watch.Modified, kinds.ResourceQuota, old, q, "update", "status")
}

// QuotaUsage counts what the namespace of a quota uses of it.
func (s *State) QuotaUsage(q *v1.ResourceQuota, now time.Time) v1.ResourceList {
	return quota.Count(s, q, now)
}

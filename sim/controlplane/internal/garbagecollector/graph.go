package garbagecollector

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// item names an object. It is comparable, and orders for what is walked.
type item struct {
	kind            apiserver.Kind
	namespace, name string
}

func itemOf(k apiserver.Kind, o apiserver.Object) item {
	return item{k, o.GetNamespace(), o.GetName()}
}

func (i item) compare(o item) int {
	if n := strings.Compare(string(i.kind), string(o.kind)); n != 0 {
		return n
	}
	if n := strings.Compare(i.namespace, o.namespace); n != 0 {
		return n
	}
	return strings.Compare(i.name, o.name)
}

// owned is what is known of an owner's dependents. Each node owns its lease, so
// that most have one that is no pod; few have more than a handful.
type owned struct {
	pods   int
	others []item
}

// The lists are short; a set for each owner would be larger than the objects.
func (o *owned) add(it item) {
	if !slices.Contains(o.others, it) {
		o.others = append(o.others, it)
	}
}

func (o *owned) remove(it item) {
	if i := slices.Index(o.others, it); i >= 0 {
		last := len(o.others) - 1
		o.others[i] = o.others[last]
		o.others[last] = item{}
		o.others = o.others[:last]
	}
}

// onChange keeps the counts and notes what is to be looked at (processGraphChanges). It runs
// within each write of the cluster, so it begins with the cheap question whether there are owners
// at all.
func (c *Controller) onChange(ch apiserver.Change) {
	is := ch.New.GetOwnerReferences()
	switch ch.Type {
	case watch.Added:
		if len(is) > 0 {
			c.count(ch.Kind, ch.New, is, 1)
			if c.lacksOwner(ch.New, is) {
				c.later(c.toDelete, itemOf(ch.Kind, ch.New))
			}
		}
		// Its deletion began while nobody collected garbage.
		if c.deletionBegins(nil, ch.New) {
			c.startDeleting(ch.Kind, ch.New)
		}
	case watch.Modified:
		was := ch.Old.GetOwnerReferences()
		// Lists of one version are shared memory, so the address decides mostly.
		if !sameRefs(was, is) {
			c.count(ch.Kind, ch.Old, was, -1)
			c.count(ch.Kind, ch.New, is, 1)
			if c.lacksOwner(ch.New, is) {
				c.later(c.toDelete, itemOf(ch.Kind, ch.New))
			}
			c.unblocked(ch.New, was)
		}
		if c.deletionBegins(ch.Old, ch.New) {
			c.startDeleting(ch.Kind, ch.New)
		}
	case watch.Deleted:
		if len(is) > 0 {
			c.count(ch.Kind, ch.New, is, -1)
			c.unblocked(ch.New, is)
		}
		if dependents := c.dependents(ch.New); len(dependents) > 0 {
			// Noted before its dependents are looked at, so that they need not ask.
			c.isAbsent(ch.New.GetUID(), itemOf(ch.Kind, ch.New))
			for _, d := range dependents {
				c.later(c.toDelete, d)
			}
		}
	}
}

func sameRefs(a, b []metav1.OwnerReference) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool {
		return x.UID == y.UID && blocks(x) == blocks(y)
	}))
}

func blocks(r metav1.OwnerReference) bool {
	return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
}

// A Deleted pod is counted down by the owners of its last version.
func (c *Controller) count(k apiserver.Kind, obj apiserver.Object, refs []metav1.OwnerReference, by int) {
	for i := range refs {
		uid := refs[i].UID
		o := c.owned[uid]
		if o == nil {
			o = &owned{}
			c.owned[uid] = o
		}
		switch {
		case k == apiserver.KindPod:
			o.pods += by
		case by < 0:
			o.remove(itemOf(k, obj))
		default:
			o.add(itemOf(k, obj))
		}
		if o.pods == 0 && len(o.others) == 0 {
			delete(c.owned, uid)
			delete(c.absent, uid)
		}
	}
}

// lacksOwner reports whether one of the owners that a new object names is not
// there. It is what makes an object with a bogus owner go.
func (c *Controller) lacksOwner(obj apiserver.Object, refs []metav1.OwnerReference) (lacks bool) {
	for i := range refs {
		if k := c.kindOf(&refs[i]); k != "" && c.owner(obj, &refs[i], k) == nil {
			c.reportElsewhere(obj, &refs[i], k)
			lacks = true
		}
	}
	return lacks
}

// referenced returns where a dependent says that its owner is; false when it can't be
// there: what has no namespace can't have an owner in one. A namespaced owner is always looked
// for in the dependent's own namespace (ownerReferences has no field for it).
func (c *Controller) referenced(dependent apiserver.Object, r *metav1.OwnerReference, k apiserver.Kind) (item, bool) {
	it := item{k, dependent.GetNamespace(), r.Name}
	if !c.store.Kinds().Namespaced(k) {
		it.namespace = ""
		return it, true
	}
	return it, it.namespace != ""
}

// isAbsent remembers that an owner is not where its dependents say, unless they have
// all gone meanwhile. There may be another with that UID: where it is.
func (c *Controller) isAbsent(uid types.UID, it item) {
	if c.owned[uid] != nil && !slices.Contains(c.absent[uid], it) {
		c.absent[uid] = append(c.absent[uid], it)
	}
}

// reportElsewhere tells of an owner that is there, but not in the dependent's
// namespace (reportInvalidNamespaceOwnerRef). The list over all namespaces is for an error that
// is rare.
func (c *Controller) reportElsewhere(dependent apiserver.Object, r *metav1.OwnerReference, k apiserver.Kind) {
	if !c.store.Kinds().Namespaced(k) {
		return
	}
	list, _ := c.store.List(k, "") // rare enough
	ns := dependent.GetNamespace()
	if slices.ContainsFunc(list, func(o apiserver.Object) bool { return o.GetUID() == r.UID && o.GetNamespace() != ns }) {
		c.recorder.Eventf(controller.Reference(dependent), v1.EventTypeWarning, "OwnerRefInvalidNamespace", "ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			r.APIVersion, r.Kind, ns, r.Name, r.UID, ns)
	}
}

// kindOf returns the kind of an owner; "" for one that the API does not serve,
// about which nothing can be known. As with upstream's REST mapper the reference may be
// to any version.
func (c *Controller) kindOf(r *metav1.OwnerReference) apiserver.Kind {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return ""
	}
	if row := c.store.Kinds().FindGroupKind(gv.WithKind(r.Kind).GroupKind()); row != nil {
		return row.Kind
	}
	return ""
}

// owner returns the owner that is named, nil when it is gone or another has its
// name.
func (c *Controller) owner(dependent apiserver.Object, r *metav1.OwnerReference, k apiserver.Kind) apiserver.Object {
	it, ok := c.referenced(dependent, r, k)
	if !ok {
		return nil
	}
	o := c.store.Lookup(k, it.namespace, r.Name)
	if o == nil || o.GetUID() != r.UID {
		return nil
	}
	return o
}

// deletionBegins reports whether an object has come to be deleted in a way that
// concerns its dependents (startsWaitingForDependentsDeleted, startsWaitingForDependentsOrphaned).
// Only the moment of change counts: later writes of the object begin nothing. There is no old one of
// an object that is seen for the first time.
func (c *Controller) deletionBegins(old, obj apiserver.Object) bool {
	if obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) == 0 {
		return false
	}
	begins := func(f string) bool {
		return slices.Contains(obj.GetFinalizers(), f) && (old == nil || old.GetDeletionTimestamp() == nil || !slices.Contains(old.GetFinalizers(), f))
	}
	return begins(metav1.FinalizerDeleteDependents) || begins(metav1.FinalizerOrphanDependents)
}

// Dependents are looked at before the object, so that it finds them deleted.
func (c *Controller) startDeleting(k apiserver.Kind, obj apiserver.Object) {
	it := itemOf(k, obj)
	if slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		c.later(c.toOrphan, it)
		return
	}
	for _, d := range c.dependents(obj) {
		c.later(c.toDelete, d)
	}
	c.later(c.toDelete, it)
}

// unblocked has the owners looked at that waited for a dependent that is gone. A foreground
// deletion goes on with each dependent that goes.
func (c *Controller) unblocked(dependent apiserver.Object, refs []metav1.OwnerReference) {
	for i := range refs {
		k := c.kindOf(&refs[i])
		if k == "" {
			continue
		}
		if o := c.owner(dependent, &refs[i], k); o != nil && deletingDependents(o) {
			c.later(c.toDelete, itemOf(k, o))
		}
	}
}

// deletingDependents reports whether an object waits for its dependents' deletion.
func deletingDependents(o apiserver.Object) bool {
	return o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// dependents returns what names an object as its owner, pods from the oldest on. Pods are found
// by a walk from the youngest until the count is reached: owners that are deleted are mostly
// young, and a list of pods per owner would cost memory for all of them.
func (c *Controller) dependents(o apiserver.Object) []item {
	own := c.owned[o.GetUID()]
	if own == nil {
		return nil
	}
	out := make([]item, 0, own.pods+len(own.others))
	out = append(out, own.others...)
	slices.SortFunc(out, item.compare)
	var pods []item
	all := c.store.Pods()
	for i := len(all) - 1; i >= 0 && len(pods) < own.pods; i-- {
		if owns(o.GetUID(), all[i]) {
			pods = append(pods, itemOf(apiserver.KindPod, all[i]))
		}
	}
	slices.Reverse(pods)
	return append(out, pods...)
}

func owns(uid types.UID, pod *v1.Pod) bool {
	for i := range pod.OwnerReferences {
		if pod.OwnerReferences[i].UID == uid {
			return true
		}
	}
	return false
}

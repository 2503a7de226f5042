// Package disruption keeps the status of PodDisruptionBudgets: how many pods
// there should be, how many are healthy, and how many more evictions a budget
// allows. It mirrors upstream's pkg/controller/disruption. The evictions
// themselves are the API server's (apiserver.Store.Evict).
//
// The pods of a budget are kept in an index, so that a pod's change costs a
// lookup of its namespace, and a sync costs the budget's pods.
package disruption

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/component-helpers/apps/poddisruptionbudget"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const (
	// DeletionTimeout is how long a pod whose eviction was allowed counts as
	// gone although it is not being deleted. The API server's eviction marks a pod in the
	// budget's status before it deletes it (status.disruptedPods), so that two evictions at once
	// don't both pass.
	DeletionTimeout = 2 * time.Minute
	// StalePodDisruptionTimeout is how long a pod that is not deleted keeps its
	// condition DisruptionTarget.
	StalePodDisruptionTimeout = 2 * time.Minute
)

// Controller is the disruption controller. queue has budgets whose status is to
// be counted, stale pods whose condition DisruptionTarget may be out of date. There is no cache
// of controllers' scales: they are looked up in each sync, in the store.
type Controller struct {
	g        *loop.Group
	api      *apiserver.Component
	l        *loop.Loop
	recorder *record.Recorder
	queue    *controller.Queue
	stale    *controller.Queue

	// "Oldest first" is what makes the arbitrary choice among several budgets the same in each
	// run.
	budgets map[string][]*budget // by namespace, oldest first
}

// budget is a PodDisruptionBudget and the pods that it selects, by name. pods are the versions as
// of their last change.
type budget struct {
	key      controller.Key
	selector labels.Selector
	pods     map[string]*v1.Pod
	// again: a sync comes out otherwise, or says something once more, though no pod has changed in
	// what it counts. Upstream syncs after every write of a pod; here such writes wait for a reason.
	again bool
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{g: opts.Group, api: opts.API, l: opts.Group.Loop(), budgets: map[string][]*budget{}}
	c.recorder = controller.NewRecorder(c.g, c.api, "controllermanager")
	c.queue = controller.NewQueue(controller.QueueOptions{Group: c.g, Name: "sync disruption budget", Delay: c.api.Delivery, Sync: c.sync})
	// This queue has no delay of delivery: noteStale adds it.
	c.stale = controller.NewQueue(controller.QueueOptions{Group: c.g, Name: "clear stale disruption", Sync: c.syncStale})
	c.api.Server().OnChange(c.onChange, apiserver.KindPodDisruptionBudget, apiserver.KindPod)
	c.api.Server().OnChange(c.scaled, apiserver.KindDeployment, apiserver.KindReplicaSet, apiserver.KindStatefulSet, apiserver.KindReplicationController)
	return c
}

// onChange keeps the index and queues the budgets that a change is about. A budget whose selector
// may have changed, which a new generation tells, is indexed anew.
func (c *Controller) onChange(ch apiserver.Change) {
	switch ch.Kind {
	case apiserver.KindPodDisruptionBudget:
		pdb := ch.New.(*policyv1.PodDisruptionBudget)
		if ch.Type == watch.Deleted {
			c.drop(pdb)
			return
		}
		if ch.Type == watch.Added || ch.Old.(*policyv1.PodDisruptionBudget).Generation != pdb.Generation {
			c.index(pdb)
		}
		c.queue.Add(controller.KeyOf(pdb))
	case apiserver.KindPod:
		switch ch.Type {
		case watch.Added: // a new process lists those of the one before
			c.noteStale(&v1.Pod{}, ch.New.(*v1.Pod))
		case watch.Modified:
			c.noteStale(ch.Old.(*v1.Pod), ch.New.(*v1.Pod))
		}
		if list := c.budgets[ch.New.GetNamespace()]; len(list) > 0 {
			c.podChanged(list, ch)
		}
	}
}

// scaled notes that a namespace's budgets may expect another number of pods. Nobody syncs them for
// that: they find out with the next write of one of their pods.
func (c *Controller) scaled(ch apiserver.Change) {
	if ch.Type == watch.Modified && ch.Old.GetGeneration() == ch.New.GetGeneration() {
		return
	}
	for _, b := range c.budgets[ch.New.GetNamespace()] {
		b.again = true
	}
}

// drop takes a budget out of the index.
func (c *Controller) drop(pdb *policyv1.PodDisruptionBudget) {
	list := slices.DeleteFunc(c.budgets[pdb.Namespace], func(b *budget) bool { return b.key.Name == pdb.Name })
	if len(list) == 0 {
		delete(c.budgets, pdb.Namespace)
		return
	}
	c.budgets[pdb.Namespace] = list
}

// index puts a budget, with the pods that it selects now, into the index. An empty selector
// selects every pod of the namespace and a nil one none (policy/v1).
func (c *Controller) index(pdb *policyv1.PodDisruptionBudget) {
	sel, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil { // validation refuses it
		// An invalid one is none that any pod should be protected by.
		sel = labels.Nothing()
	}
	list := c.budgets[pdb.Namespace]
	i := slices.IndexFunc(list, func(b *budget) bool { return b.key.Name == pdb.Name })
	if i < 0 {
		i = len(list)
		list = append(list, &budget{key: controller.KeyOf(pdb)})
		c.budgets[pdb.Namespace] = list
	}
	b := list[i]
	b.selector, b.pods = sel, map[string]*v1.Pod{}
	for _, pod := range c.api.Server().Store().PodsInNamespace(pdb.Namespace) {
		if sel.Matches(labels.Set(pod.Labels)) {
			b.pods[pod.Name] = pod
		}
	}
}

// podChanged keeps the index, and has the first budget that selects the pod
// synced if it may come out otherwise. Only what can change the numbers queues a sync: readiness,
// deletion, labels, the controller. A status write that says nothing of those is most of what
// pods do; it has a budget synced that has reason to be (budget.again). That a pod has several
// budgets is told with each of its writes.
func (c *Controller) podChanged(list []*budget, ch apiserver.Change) {
	pod := ch.New.(*v1.Pod)
	relevant, relabelled := true, true
	if ch.Type == watch.Modified {
		old := ch.Old.(*v1.Pod)
		relabelled = !equality.Semantic.DeepEqual(old.Labels, pod.Labels)
		relevant = relabelled || controller.PodReady(old) != controller.PodReady(pod) ||
			// Pointers are compared: they differ where the list of owners was replaced, which
			// errs on the side of a sync.
			(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) || metav1.GetControllerOfNoCopy(old) != metav1.GetControllerOfNoCopy(pod)
	}
	var first *budget
	n := 0
	for _, b := range list {
		selects := false
		if relabelled {
			selects = b.selector.Matches(labels.Set(pod.Labels))
		} else {
			_, selects = b.pods[pod.Name]
		}
		switch {
		case !selects || ch.Type == watch.Deleted:
			delete(b.pods, pod.Name)
		default:
			b.pods[pod.Name] = pod
		}
		if selects {
			if n++; first == nil {
				first = b
			}
		}
	}
	if first == nil {
		return
	}
	if n > 1 {
		// An eviction of such a pod fails with an internal error
		// (registry/core/pod/storage/eviction.go).
		c.recorder.Event(controller.Reference(pod), v1.EventTypeWarning, "MultiplePodDisruptionBudgets",
			fmt.Sprintf("Pod %q/%q matches multiple PodDisruptionBudgets.  Chose %q arbitrarily.", pod.Namespace, pod.Name, first.key.Name))
	}
	if relevant || first.again {
		c.queue.Add(first.key)
	}
}

// It is nil when the budget went since it was queued.
func (c *Controller) find(key controller.Key) *budget {
	for _, b := range c.budgets[key.Namespace] {
		if b.key == key {
			return b
		}
	}
	return nil
}

// sync brings a budget's status up to date; when that can't be computed, it
// allows nothing. Failing safe is upstream's rule: a budget that cannot be computed blocks
// voluntary disruptions rather than allowing them.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	o := c.api.Server().Store().Lookup(apiserver.KindPodDisruptionBudget, key.Namespace, key.Name)
	b := c.find(key)
	if o == nil || b == nil {
		return nil
	}
	pdb := o.(*policyv1.PodDisruptionBudget)
	err := c.trySync(ctx, pdb, b)
	// Somebody else wrote the budget, an eviction mostly; the retry sees it.
	if err == nil || apierrors.IsConflict(err) {
		return err
	}
	failed := *pdb
	failed.Status.DisruptionsAllowed = 0
	failed.Status.Conditions = slices.Clone(pdb.Status.Conditions)
	meta.SetStatusCondition(&failed.Status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: err.Error(),
		ObservedGeneration: pdb.Status.ObservedGeneration, LastTransitionTime: controller.WireTime(c.l.Now())})
	return c.update(ctx, &failed)
}

// The event NoPods comes in each sync without pods, also at once after a budget is made before
// its pods.
func (c *Controller) trySync(ctx context.Context, pdb *policyv1.PodDisruptionBudget, b *budget) error {
	b.again = false
	if len(b.pods) == 0 {
		c.recorder.Event(controller.Reference(pdb), v1.EventTypeNormal, "NoPods", "No matching pods found")
	}
	expected, desired, unmanaged, err := c.expectedPods(pdb, b)
	if err != nil {
		b.again = true
		c.recorder.Eventf(controller.Reference(pdb), v1.EventTypeWarning, "CalculateExpectedPodCountFailed", "Failed to calculate the number of expected pods: %v", err)
		return err
	}
	if unmanaged {
		b.again = true
		c.recorder.Eventf(controller.Reference(pdb), v1.EventTypeWarning, "UnmanagedPods", "Pods selected by this PodDisruptionBudget (selector: %v) were found "+
			"to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. "+
			"To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.", pdb.Spec.Selector)
	}
	now := c.l.Now()
	disrupted, recheck := c.disruptedPods(pdb, b, now)
	st := policyv1.PodDisruptionBudgetStatus{
		CurrentHealthy: healthyPods(b, disrupted, now), DesiredHealthy: desired, ExpectedPods: expected,
		DisruptedPods: disrupted, ObservedGeneration: pdb.Generation, Conditions: pdb.Status.Conditions,
	}
	// expected 0 allows nothing: a percentage of nothing is no promise.
	if allowed := st.CurrentHealthy - desired; expected > 0 && allowed > 0 {
		st.DisruptionsAllowed = allowed
	}
	if err := c.writeStatus(ctx, pdb, st); err != nil {
		return err
	}
	// An eviction that is not carried out gives its pod back after DeletionTimeout.
	if !recheck.IsZero() {
		c.queue.AddAfter(b.key, recheck.Sub(c.l.Now()))
	}
	return nil
}

// writeStatus writes a status that is not the one there is (updatePdbStatus). Conditions must be
// up to date as well: they carry the observed generation.
func (c *Controller) writeStatus(ctx context.Context, pdb *policyv1.PodDisruptionBudget, st policyv1.PodDisruptionBudgetStatus) error {
	is := &pdb.Status
	if is.CurrentHealthy == st.CurrentHealthy && is.DesiredHealthy == st.DesiredHealthy && is.ExpectedPods == st.ExpectedPods &&
		is.DisruptionsAllowed == st.DisruptionsAllowed && equality.Semantic.DeepEqual(is.DisruptedPods, st.DisruptedPods) &&
		is.ObservedGeneration == pdb.Generation && poddisruptionbudget.ConditionsAreUpToDate(pdb) {
		return nil
	}
	c2 := *pdb
	c2.Status = st
	// The API server has the same function for its own writes to the status.
	apiserver.SetDisruptionAllowed(&c2.Status, c.l.Now())
	return c.update(ctx, &c2)
}

func (c *Controller) update(ctx context.Context, pdb *policyv1.PodDisruptionBudget) error {
	_, err := controller.Update(ctx, c.api, pdb, "status")
	return err
}

// disruptedPods returns the evictions that were allowed and are still to
// come, and when the first of them is given up (buildDisruptedPodMap). A pod that is being
// deleted leaves the list: it isn't healthy any more, so it counts by itself.
func (c *Controller) disruptedPods(pdb *policyv1.PodDisruptionBudget, b *budget, now time.Time) (map[string]metav1.Time, time.Time) {
	var out map[string]metav1.Time
	var recheck time.Time
	names := make([]string, 0, len(pdb.Status.DisruptedPods))
	// Sorted, since events are recorded on the way.
	for name := range pdb.Status.DisruptedPods { //drydock:unordered is sorted
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		pod := b.pods[name]
		if pod == nil || pod.DeletionTimestamp != nil {
			continue
		}
		at := pdb.Status.DisruptedPods[name]
		until := at.Add(DeletionTimeout)
		if until.Before(now) {
			// Upstream names the namespace twice.
			c.recorder.Eventf(controller.Reference(pod), v1.EventTypeWarning, "NotDeleted", "Pod was expected by PDB %s/%s to be deleted but it wasn't", pdb.Namespace, pdb.Namespace)
			continue
		}
		if recheck.IsZero() || until.Before(recheck) {
			recheck = until
		}
		if out == nil {
			out = map[string]metav1.Time{}
		}
		out[name] = at
	}
	return out, recheck
}

// healthyPods counts the pods that are ready and stay (countHealthyPods). A pod whose eviction
// was allowed counts as gone, though it still runs.
func healthyPods(b *budget, disrupted map[string]metav1.Time, now time.Time) (n int32) {
	for name, pod := range b.pods { //drydock:unordered counts
		if at, ok := disrupted[name]; ok && at.Add(DeletionTimeout).After(now) {
			continue
		}
		if pod.DeletionTimestamp == nil && controller.PodReady(pod) {
			n++
		}
	}
	return n
}

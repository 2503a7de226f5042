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
	// gone although it is not being deleted.
	DeletionTimeout = 2 * time.Minute
	// StalePodDisruptionTimeout is how long a pod that is not deleted keeps its
	// condition DisruptionTarget.
	StalePodDisruptionTimeout = 2 * time.Minute
)

// Controller is the disruption controller. queue has budgets whose status is to
// be counted, stale pods whose condition DisruptionTarget may be out of date.
type Controller struct {
	g        *loop.Group
	api      *apiserver.Component
	l        *loop.Loop
	recorder *record.Recorder
	queue    *controller.Queue
	stale    *controller.Queue

	budgets map[string][]*budget // by namespace, oldest first
}

// budget is a PodDisruptionBudget and the pods that it selects, by name.
type budget struct {
	key      controller.Key
	selector labels.Selector
	pods     map[string]*v1.Pod
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{g: opts.Group, api: opts.API, l: opts.Group.Loop(), budgets: map[string][]*budget{}}
	c.recorder = controller.NewRecorder(c.g, c.api, "controllermanager")
	c.queue = controller.NewQueue(controller.QueueOptions{Group: c.g, Name: "sync disruption budget", Delay: c.api.Delivery, Sync: c.sync})
	c.stale = controller.NewQueue(controller.QueueOptions{Group: c.g, Name: "clear stale disruption", Sync: c.syncStale})
	c.api.Server().OnChange(c.onChange, apiserver.KindPodDisruptionBudget, apiserver.KindPod)
	return c
}

// onChange keeps the index and queues the budgets that a change is about.
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
		if ch.Type == watch.Modified {
			c.noteStale(ch.Old.(*v1.Pod), ch.New.(*v1.Pod))
		}
		if list := c.budgets[ch.New.GetNamespace()]; len(list) > 0 {
			c.podChanged(list, ch)
		}
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

// index puts a budget, with the pods that it selects now, into the index.
func (c *Controller) index(pdb *policyv1.PodDisruptionBudget) {
	sel, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil { // validation refuses it
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
// synced if it may come out otherwise.
func (c *Controller) podChanged(list []*budget, ch apiserver.Change) {
	pod := ch.New.(*v1.Pod)
	relevant, relabelled := true, true
	if ch.Type == watch.Modified {
		old := ch.Old.(*v1.Pod)
		relabelled = !equality.Semantic.DeepEqual(old.Labels, pod.Labels)
		relevant = relabelled || controller.PodReady(old) != controller.PodReady(pod) ||
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
	if first == nil || !relevant {
		return
	}
	if n > 1 {
		c.recorder.Event(controller.Reference(pod), v1.EventTypeWarning, "MultiplePodDisruptionBudgets",
			fmt.Sprintf("Pod %q/%q matches multiple PodDisruptionBudgets.  Chose %q arbitrarily.", pod.Namespace, pod.Name, first.key.Name))
	}
	c.queue.Add(first.key)
}

func (c *Controller) find(key controller.Key) *budget {
	for _, b := range c.budgets[key.Namespace] {
		if b.key == key {
			return b
		}
	}
	return nil
}

// sync brings a budget's status up to date; when that can't be computed, it
// allows nothing.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	o := c.api.Server().Store().Lookup(apiserver.KindPodDisruptionBudget, key.Namespace, key.Name)
	b := c.find(key)
	if o == nil || b == nil {
		return nil
	}
	pdb := o.(*policyv1.PodDisruptionBudget)
	err := c.trySync(ctx, pdb, b)
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

func (c *Controller) trySync(ctx context.Context, pdb *policyv1.PodDisruptionBudget, b *budget) error {
	if len(b.pods) == 0 {
		c.recorder.Event(controller.Reference(pdb), v1.EventTypeNormal, "NoPods", "No matching pods found")
	}
	expected, desired, unmanaged, err := c.expectedPods(pdb, b)
	if err != nil {
		c.recorder.Eventf(controller.Reference(pdb), v1.EventTypeWarning, "CalculateExpectedPodCountFailed", "Failed to calculate the number of expected pods: %v", err)
		return err
	}
	if unmanaged {
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
	if allowed := st.CurrentHealthy - desired; expected > 0 && allowed > 0 {
		st.DisruptionsAllowed = allowed
	}
	if err := c.writeStatus(ctx, pdb, st); err != nil {
		return err
	}
	if !recheck.IsZero() {
		c.queue.AddAfter(b.key, recheck.Sub(c.l.Now()))
	}
	return nil
}

// writeStatus writes a status that is not the one there is (updatePdbStatus).
func (c *Controller) writeStatus(ctx context.Context, pdb *policyv1.PodDisruptionBudget, st policyv1.PodDisruptionBudgetStatus) error {
	is := &pdb.Status
	if is.CurrentHealthy == st.CurrentHealthy && is.DesiredHealthy == st.DesiredHealthy && is.ExpectedPods == st.ExpectedPods &&
		is.DisruptionsAllowed == st.DisruptionsAllowed && equality.Semantic.DeepEqual(is.DisruptedPods, st.DisruptedPods) &&
		is.ObservedGeneration == pdb.Generation && poddisruptionbudget.ConditionsAreUpToDate(pdb) {
		return nil
	}
	c2 := *pdb
	c2.Status = st
	apiserver.SetDisruptionAllowed(&c2.Status, c.l.Now())
	return c.update(ctx, &c2)
}

func (c *Controller) update(ctx context.Context, pdb *policyv1.PodDisruptionBudget) error {
	_, err := controller.Update(ctx, c.api, pdb, "status")
	return err
}

// disruptedPods returns the evictions that were allowed and are still to
// come, and when the first of them is given up (buildDisruptedPodMap).
func (c *Controller) disruptedPods(pdb *policyv1.PodDisruptionBudget, b *budget, now time.Time) (map[string]metav1.Time, time.Time) {
	var out map[string]metav1.Time
	var recheck time.Time
	names := make([]string, 0, len(pdb.Status.DisruptedPods))
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

// healthyPods counts the pods that are ready and stay (countHealthyPods).
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

package job

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const (
	// Workers is kube-controller-manager's --concurrent-job-syncs.
	Workers = 5
	// batchPeriod is how long changes of pods are gathered before a sync. maxPerSync and
	// maxUncounted bound one sync's requests and the object's size (MaxPodCreateDeletePerSync,
	// MaxUncountedPods).
	batchPeriod = time.Second
	// Back-off of syncs that fail.
	firstAPIBackoff = time.Second
	lastAPIBackoff  = time.Minute
	// maxUncounted is how many pods a status holds that end and are not counted.
	maxUncounted = 500
	// maxPerSync is how many pods a sync creates or deletes at most.
	maxPerSync = 500
)

// Controller is the Job controller. backoff is by key and not by UID, as upstream's store;
// entries go with the job.
type Controller struct {
	opts  controller.Options
	l     *loop.Loop
	queue *controller.Queue
	// orphans: pods whose finalizer nobody needs any more.
	orphans *controller.Queue
	control *controller.PodControl
	claims  controller.Claims
	backoff map[controller.Key]failures
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{opts: opts, l: opts.Group.Loop(), backoff: map[controller.Key]failures{}}
	c.control = &controller.PodControl{API: opts.API, Events: controller.NewRecorder(opts.Group, opts.API, "job-controller")}
	c.claims = controller.Claims{Pods: opts.Pods(), Control: c.control, Finalizer: batchv1.JobTrackingFinalizer}
	queue := controller.QueueOptions{
		// Upstream's queue has an exponential limiter per key and no bucket over all.
		Group: opts.Group, Name: "job", Workers: Workers, Delay: opts.API.Delivery, Sync: c.sync, BaseDelay: firstAPIBackoff, MaxDelay: lastAPIBackoff, PerKeyOnly: true,
	}
	c.queue = controller.NewQueue(queue)
	queue.Name, queue.Workers, queue.Sync = "job orphan pods", 1, c.syncOrphan
	c.orphans = controller.NewQueue(queue)
	opts.API.Server().OnChange(c.onChange, apiserver.KindJob)
	opts.Pods().OnChange(apiserver.KindJob, c.onPod)
	opts.Pods().OnOrphan(c.onOrphan)
	return c
}

// onChange queues a job: at once when a user has changed it, else after
// batchPeriod, so that many pods which end together are one sync. A job that is
// over wants nothing but its pods' finalizers off. The deadline's timer is set anew when a user
// has changed it; a change of the start is the sync's.
func (c *Controller) onChange(ch apiserver.Change) {
	job := ch.New.(*batchv1.Job)
	key := controller.KeyOf(job)
	switch {
	case ch.Type == "ADDED":
		c.claims.Review(key)
		c.queue.Add(key)
	case ch.Type == "DELETED":
		c.control.Forget(job.UID)
		c.claims.Forget(key)
		delete(c.backoff, key)
		c.freePods(job.UID)
	case finished(job):
		c.freePods(job.UID)
		c.queue.AddAfter(key, batchPeriod)
	case job.Generation != ch.Old.GetGeneration():
		c.queue.Add(key)
	default:
		c.queue.AddAfter(key, batchPeriod)
	}
	if ch.Type == "MODIFIED" && job.Status.StartTime != nil && job.Spec.ActiveDeadlineSeconds != nil {
		if was := ch.Old.(*batchv1.Job).Spec.ActiveDeadlineSeconds; was == nil || *was != *job.Spec.ActiveDeadlineSeconds {
			c.queue.AddAfter(key, time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second-c.l.Since(job.Status.StartTime.Time))
		}
	}
}

// freePods has the finalizers looked at of the pods of a job that has ended. Pods without the
// finalizer have been counted.
func (c *Controller) freePods(uid types.UID) {
	for _, p := range c.opts.Pods().Of(uid).All() {
		if tracked(p) {
			c.orphans.Add(controller.KeyOf(p))
		}
	}
}

// onPod queues a pod's job if its counts may have changed. A pod whose job is
// gone or over can't be counted any more; it only has to lose its finalizer. The old and the new
// version are compared for what counts; a status write that changes nothing of that is not worth
// a sync.
func (c *Controller) onPod(owner controller.Key, uid types.UID, ch controller.PodChange) {
	job, ok := c.get(owner)
	if !ok || job.UID != uid || finished(job) {
		if ch.New != nil && tracked(ch.New) {
			c.orphans.Add(controller.KeyOf(ch.New))
		}
		if !ok || job.UID != uid {
			return
		}
	}
	if ch.Relabeled() {
		c.claims.Review(owner)
	}
	if ch.Matters() || tracked(ch.Old) != tracked(ch.New) || ch.Deleted() ||
		job.Spec.Template.Spec.RestartPolicy == v1.RestartPolicyOnFailure && restarts(ch.Old) != restarts(ch.New) {
		c.queue.AddAfter(owner, batchPeriod)
	}
}

// onOrphan finds who might adopt a pod; whoever does, one with a finalizer is
// looked at. A walk over all jobs: pods without a controller that carry labels of a job are rare.
func (c *Controller) onOrphan(pod *v1.Pod) {
	if tracked(pod) {
		c.orphans.Add(controller.KeyOf(pod))
	}
	for _, job := range apiserver.Objects[*batchv1.Job](c.opts.API.Server().Store(), apiserver.KindJob) {
		if job.Namespace == pod.Namespace && controller.Selects(job.Spec.Selector, pod.Labels) {
			c.claims.Review(controller.KeyOf(job))
			c.queue.AddAfter(controller.KeyOf(job), batchPeriod)
		}
	}
}

// get returns a job as the API has it now.
func (c *Controller) get(key controller.Key) (*batchv1.Job, bool) {
	return controller.Lookup[*batchv1.Job](c.opts.API, apiserver.KindJob, key)
}

// syncOrphan takes the finalizer off a pod whose job is gone or has ended.
// Without it such a pod would stay for ever: nobody else knows the finalizer
// (syncOrphanPod). A job that is managed elsewhere has somebody else's controller to count.
func (c *Controller) syncOrphan(ctx context.Context, key controller.Key) error {
	pod := c.opts.API.Server().Pod(key.Namespace, key.Name)
	if pod == nil || !tracked(pod) {
		return nil
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		if ref.Kind != string(apiserver.KindJob) {
			return nil
		}
		job, ok := c.get(controller.Key{Namespace: pod.Namespace, Name: ref.Name})
		if ok && job.UID == ref.UID && (!finished(job) || managedElsewhere(job)) {
			return nil
		}
	}
	return c.untrack(ctx, pod)
}

// untrack takes the finalizer off a pod; it may be gone.
func (c *Controller) untrack(ctx context.Context, pod *v1.Pod) error {
	if !tracked(pod) {
		return nil
	}
	err := c.control.PatchMeta(ctx, pod, func(m *metav1.ObjectMeta) {
		m.Finalizers = slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// tracked reports whether a pod waits to be counted. A nil pod is no pod: onPod asks for both
// versions.
func tracked(p *v1.Pod) bool {
	return p != nil && slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)
}

// managedElsewhere reports whether another controller looks after the job. KEP-4368.
func managedElsewhere(j *batchv1.Job) bool {
	return j.Spec.ManagedBy != nil && *j.Spec.ManagedBy != batchv1.JobControllerName
}

// suspended reports whether a job wants no pods for now.
func suspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// indexed reports whether each pod has an index of its own to complete.
func indexed(j *batchv1.Job) bool {
	return j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion
}

// perIndex reports whether each index has a limit of failures of its own.
func perIndex(j *batchv1.Job) bool { return indexed(j) && j.Spec.BackoffLimitPerIndex != nil }

// replacesFailedOnly reports whether pods are replaced only when they have ended. With a failure
// policy the API allows nothing else: a pod that is still terminating cannot be judged.
func replacesFailedOnly(j *batchv1.Job) bool {
	return j.Spec.PodFailurePolicy != nil || j.Spec.PodReplacementPolicy != nil && *j.Spec.PodReplacementPolicy == batchv1.Failed
}

// failed reports whether a pod counts as failed. One that is being deleted counts
// before it has ended, unless pods are replaced only then.
func failed(p *v1.Pod, j *batchv1.Job) bool {
	if p.Status.Phase == v1.PodFailed {
		return true
	}
	return !replacesFailedOnly(j) && p.DeletionTimestamp != nil && p.Status.Phase != v1.PodSucceeded
}

// condition is one of a job's conditions in place, or nil. It points into the status.
func condition(j *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		if j.Status.Conditions[i].Type == t {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

// isTrue returns the condition if its status is True.
func isTrue(j *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	if c := condition(j, t); c != nil && c.Status == v1.ConditionTrue {
		return c
	}
	return nil
}

// finished reports whether a job is over: no sync changes it any more.
func finished(j *batchv1.Job) bool {
	return isTrue(j, batchv1.JobComplete) != nil || isTrue(j, batchv1.JobFailed) != nil
}

// restarts counts the restarts of a pod's containers.
func restarts(p *v1.Pod) int32 {
	n := int32(0)
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			n += list[i].RestartCount
		}
	}
	return n
}

package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Times of kubectl drain (k8s.io/kubectl/pkg/drain/drain.go).
const (
	evictRetry     = 5 * time.Second // after a refusal
	drainGoneEvery = time.Second     // between looks whether a pod is gone
)

func podMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// evictPod asks the API to evict a pod.
func (r *run) evictPod(p *v1.Pod, grace *int64) error {
	return r.cluster.API().Evict(p.Namespace, p.Name, metav1.DeleteOptions{GracePeriodSeconds: grace})
}

// refusedByBudget tells whether an eviction may be asked for again.
func refusedByBudget(err error) bool { return apierrors.IsTooManyRequests(err) }

// withBudget adds to the error of an eviction which budget refused it, and why.
func withBudget(err error) error {
	cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !ok {
		return err
	}
	return fmt.Errorf("%w %s", err, cause.Message)
}

// drain cordons the nodes and begins to empty them, one after another.
func (r *run) drain(d *Drain, pos Position) error {
	nodes := r.s.SelectNodes(d.Node)
	if err := r.cordon(nodes, true); err != nil {
		return err
	}
	r.cluster.API().Loop().Root().Go("kubectl drain", func(ctx context.Context) {
		for _, n := range nodes {
			r.note("node "+n, "drain")
			if err := r.drainNode(ctx, d, n); err != nil {
				r.errorLater(pos, fmt.Errorf("unable to drain node %q due to error: %w", n, err))
				continue
			}
			r.note("node "+n, "drained")
		}
	})
	return nil
}

// drainNode empties one node. What keeps pods from going is told of all of them
// together.
func (r *run) drainNode(ctx context.Context, d *Drain, node string) error {
	pods, err := r.toDrain(d, node)
	if err != nil {
		return err
	}
	l := r.cluster.API().Loop()
	var deadline time.Time
	if d.Timeout > 0 {
		deadline = l.Now().Add(d.Timeout)
	}
	if d.DisableEviction {
		return r.deletePods(ctx, d, pods, deadline)
	}
	errs := make([]error, len(pods))
	var wg loop.WaitGroup
	for i, p := range pods {
		wg.Add(1)
		l.Root().Go("kubectl drain", func(ctx context.Context) {
			defer wg.Done()
			errs[i] = r.drainPod(ctx, d, p, deadline)
		})
	}
	if err := wg.Wait(ctx); err != nil {
		return err
	}
	return utilerrors.NewAggregate(errs)
}

// deletePods deletes the pods, one after another, and waits until all are gone.
func (r *run) deletePods(ctx context.Context, d *Drain, pods []*v1.Pod, deadline time.Time) error {
	api := r.cluster.API()
	for _, p := range pods {
		err := api.Delete(apiserver.KindPod, p.Namespace, p.Name, metav1.DeleteOptions{GracePeriodSeconds: d.GracePeriodSeconds})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, p := range pods {
		if err := r.untilGone(ctx, p, deadline); err != nil {
			return err
		}
	}
	return nil
}

// drainPod evicts a pod, again and again while a budget refuses or its namespace
// ends, and waits until it is gone.
func (r *run) drainPod(ctx context.Context, d *Drain, p *v1.Pod, deadline time.Time) error {
	api, l := r.cluster.API(), r.cluster.API().Loop()
	for {
		if !deadline.IsZero() && !l.Now().Before(deadline) {
			return fmt.Errorf("error when evicting pods/%q -n %q: global timeout reached: %v", p.Name, p.Namespace, d.Timeout)
		}
		err := r.evictPod(p, d.GracePeriodSeconds)
		switch ends := apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause); {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil, ends && p.DeletionTimestamp != nil:
			if err := r.untilGone(ctx, p, deadline); err != nil {
				return fmt.Errorf("error when waiting for pod %q in namespace %q to terminate: %w", p.Name, p.Namespace, err)
			}
			return nil
		case refusedByBudget(err), ends:
			r.note(objectName("Pod", p.Namespace, p.Name), "eviction refused")
		default:
			return fmt.Errorf("error when evicting pods/%q -n %q: %w", p.Name, p.Namespace, err)
		}
		if err := l.Sleep(ctx, evictRetry); err != nil {
			return err
		}
		if now := api.Pod(p.Namespace, p.Name); now != nil {
			p = now
		}
	}
}

// untilGone waits until a pod is gone. Errors: DeadlineExceeded.
func (r *run) untilGone(ctx context.Context, p *v1.Pod, deadline time.Time) error {
	api, l := r.cluster.API(), r.cluster.API().Loop()
	for {
		if now := api.Pod(p.Namespace, p.Name); now == nil || now.UID != p.UID {
			return nil
		}
		wait := drainGoneEvery
		if !deadline.IsZero() {
			wait = min(wait, deadline.Sub(l.Now()))
		}
		if wait <= 0 {
			return context.DeadlineExceeded
		}
		if err := l.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// toDrain returns the pods of a node that a drain removes, or what keeps it from
// doing so (k8s.io/kubectl/pkg/drain/filters.go).
func (r *run) toDrain(d *Drain, node string) ([]*v1.Pod, error) {
	var out []*v1.Pod
	kept := map[string][]string{} // by what kubectl says of them
	for _, p := range r.cluster.Store().PodsOnNode(node) {
		drains, why := r.drains(d, p)
		if why != "" {
			kept[why] = append(kept[why], p.Namespace+"/"+p.Name)
		} else if drains {
			out = append(out, p)
		}
	}
	if len(kept) == 0 {
		return out, nil
	}
	var errs []error
	for _, why := range sortedKeys(kept) {
		errs = append(errs, fmt.Errorf("cannot delete %s: %s", why, strings.Join(kept[why], ", ")))
	}
	return nil, utilerrors.NewAggregate(errs)
}

// drains tells whether a drain removes a pod, and if that keeps it from draining
// at all, why.
func (r *run) drains(d *Drain, p *v1.Pod) (bool, string) {
	if _, mirror := p.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return false, ""
	}
	if p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
		return true, ""
	}
	ref := metav1.GetControllerOf(p)
	if ref != nil && ref.Kind == "DaemonSet" {
		gone := r.cluster.Store().Lookup(apiserver.KindDaemonSet, p.Namespace, ref.Name) == nil
		switch {
		case gone && !d.Force:
			return false, fmt.Sprintf("daemonsets.apps %q not found", ref.Name)
		case !gone && d.IgnoreDaemonSets:
			return false, ""
		case !gone:
			return false, daemonSetFatal
		}
	}
	switch {
	case !d.DeleteEmptyDirData && slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.EmptyDir != nil }):
		return false, localStorageFatal
	case ref == nil && !d.Force:
		return false, unmanagedFatal
	}
	return true, ""
}

// What kubectl says of pods that it leaves alone.
const (
	daemonSetFatal    = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
	localStorageFatal = "Pods with local storage (use --delete-emptydir-data to override)"
	unmanagedFatal    = "Pods that declare no controller (use --force to override)"
)

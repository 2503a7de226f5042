package action

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Times of kubectl drain (k8s.io/kubectl/pkg/drain/drain.go).
const (
	evictRetry     = 5 * time.Second // after a refusal
	drainGoneEvery = time.Second     // between looks whether a pod is gone
)

// Drain empties nodes as kubectl drain does: it cordons them all, then evicts the pods of one after another, asking again every 5s where a budget refuses.
//
// In the timeline: empties nodes, as kubectl drain does.
type Drain struct {
	OnNodes `json:",inline"`
	// Also pods that no controller would replace: kubectl's --force.
	Force bool `json:"force,omitempty"`
	// Leave the pods of DaemonSets where they are, rather than refusing to drain: kubectl's --ignore-daemonsets.
	IgnoreDaemonSets bool `json:"ignoreDaemonSets,omitempty"`
	// Also pods with emptyDir volumes: kubectl's --delete-emptydir-data.
	DeleteEmptyDirData bool `json:"deleteEmptyDirData,omitempty"`
	// Delete the pods rather than evicting them, so that no budget counts: kubectl's --disable-eviction.
	DisableEviction bool `json:"disableEviction,omitempty"`
	// How many seconds each pod has to end. The pod's own grace period unless said.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// How long each node may take; then the drain fails. For ever unless said.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Check fills in the only node.
func (d *Drain) Check(at Place) {
	d.OnNodes.Check(at)
	checkGrace(at.Place, d.GracePeriodSeconds)
	value.NotNegative(at.Field("timeout"), d.Timeout)
}

// Do cordons the nodes and begins to empty them, one after another.
func (d *Drain) Do(s Stage) error {
	nodes := d.Node.Select(s.Nodes())
	if err := cordon(s, nodes, true); err != nil {
		return err
	}
	s.Cluster().API().Loop().Root().Go("kubectl drain", func(ctx context.Context) {
		for _, n := range nodes {
			note(s, "node "+n, "drain")
			if err := d.drainNode(ctx, s, n); err != nil {
				s.Fail("", fmt.Errorf("unable to drain node %q due to error: %w", n, err))
				continue
			}
			note(s, "node "+n, "drained")
		}
	})
	return nil
}

// drainNode empties one node. What keeps pods from going is told of all of them
// together.
func (d *Drain) drainNode(ctx context.Context, s Stage, node string) error {
	pods, err := d.toDrain(s, node)
	if err != nil {
		return err
	}
	l := s.Cluster().API().Loop()
	var deadline time.Time
	if d.Timeout > 0 {
		deadline = l.Now().Add(d.Timeout)
	}
	if d.DisableEviction {
		return d.deletePods(ctx, s, pods, deadline)
	}
	errs := make([]error, len(pods))
	var wg loop.WaitGroup
	for i, p := range pods {
		wg.Add(1)
		l.Root().Go("kubectl drain", func(ctx context.Context) {
			defer wg.Done()
			errs[i] = d.drainPod(ctx, s, p, deadline)
		})
	}
	if err := wg.Wait(ctx); err != nil {
		return err
	}
	return utilerrors.NewAggregate(errs)
}

// deletePods deletes the pods, one after another, and waits until all are gone.
func (d *Drain) deletePods(ctx context.Context, s Stage, pods []*v1.Pod, deadline time.Time) error {
	api := s.Cluster().API()
	for _, p := range pods {
		err := api.Delete(apiserver.KindPod, p.Namespace, p.Name, metav1.DeleteOptions{GracePeriodSeconds: d.GracePeriodSeconds})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, p := range pods {
		if err := untilGone(ctx, s, p, deadline); err != nil {
			return err
		}
	}
	return nil
}

// drainPod evicts a pod, again and again while a budget refuses or its namespace
// ends, and waits until it is gone.
func (d *Drain) drainPod(ctx context.Context, s Stage, p *v1.Pod, deadline time.Time) error {
	api, l := s.Cluster().API(), s.Cluster().API().Loop()
	for {
		if !deadline.IsZero() && !l.Now().Before(deadline) {
			return fmt.Errorf("error when evicting pods/%q -n %q: global timeout reached: %v", p.Name, p.Namespace, d.Timeout)
		}
		err := evict(s, p.Namespace, p.Name, d.GracePeriodSeconds)
		switch ends := apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause); {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil, ends && p.DeletionTimestamp != nil:
			if err := untilGone(ctx, s, p, deadline); err != nil {
				return fmt.Errorf("error when waiting for pod %q in namespace %q to terminate: %w", p.Name, p.Namespace, err)
			}
			return nil
		case refusedByBudget(err), ends:
			note(s, objectName("Pod", p.Namespace, p.Name), "eviction refused")
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
func untilGone(ctx context.Context, s Stage, p *v1.Pod, deadline time.Time) error {
	api, l := s.Cluster().API(), s.Cluster().API().Loop()
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
func (d *Drain) toDrain(s Stage, node string) ([]*v1.Pod, error) {
	var out []*v1.Pod
	kept := map[string][]string{} // by what kubectl says of them
	for _, p := range s.Cluster().Store().PodsOnNode(node) {
		drains, why := d.drains(s, p)
		if why != "" {
			kept[why] = append(kept[why], p.Namespace+"/"+p.Name)
		} else if drains {
			out = append(out, p)
		}
	}
	if len(kept) == 0 {
		return out, nil
	}
	errs := lists.Map(decode.SortedKeys(kept), func(why string) error {
		return fmt.Errorf("cannot delete %s: %s", why, strings.Join(kept[why], ", "))
	})
	return nil, utilerrors.NewAggregate(errs)
}

// drains reports whether a drain removes a pod, and if that keeps it from draining
// at all, why.
func (d *Drain) drains(s Stage, p *v1.Pod) (bool, string) {
	if _, mirror := p.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return false, ""
	}
	if p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
		return true, ""
	}
	ref := metav1.GetControllerOf(p)
	if ref != nil && ref.Kind == "DaemonSet" {
		gone := s.Cluster().Store().Lookup(apiserver.KindDaemonSet, p.Namespace, ref.Name) == nil
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

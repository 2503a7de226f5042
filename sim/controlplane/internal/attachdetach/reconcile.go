package attachdetach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Waits for what an attacher does (waitForVolumeAttachDetachStatusWithLister), without their
// jitter.
const (
	pollFirst  = 500 * time.Millisecond
	pollFactor = 1.05
	pollMax    = 7 * time.Second
	pollLimit  = 2 * time.Minute
)

// reconcile is one pass: what is wanted no more is detached, then what is wanted attached.
func (c *Controller) reconcile() {
	c.open = slices.DeleteFunc(c.open, func(a *attachment) bool {
		if len(a.pods) == 0 && !a.attached && !a.busy {
			c.forget(a)
			a.open = false
			return true
		}
		return false
	})
	look := slices.Clone(c.open)
	for _, a := range look {
		if len(a.pods) == 0 {
			c.detach(a)
		} else {
			a.unwanted = time.Time{}
		}
	}
	for _, a := range look {
		if len(a.pods) > 0 {
			c.attach(a)
		}
	}
	c.open = slices.DeleteFunc(c.open, func(a *attachment) bool {
		a.open = a.busy || len(a.pods) == 0 || !a.attached || !a.reported
		return !a.open
	})
}

// ready reports whether an operation on a place may begin: none runs on the volume, and after
// one that failed the pause is over.
func (c *Controller) ready(a *attachment, detaching bool) bool {
	if a.busy { // as most are that a pass looks at
		return false
	}
	for _, o := range c.byVolume[a.volume] {
		if o.busy && !a.shared {
			return false // its end wakes the reconciler
		}
	}
	if left := a.wait - c.g.Loop().Since(a.failed); a.wait > 0 && a.detaching == detaching && left >= 0 {
		c.wake(left)
		return false
	}
	return true
}

// run runs an operation on a place in a task. After one that failed there is a pause, which
// doubles.
func (c *Controller) run(a *attachment, detaching bool, do func(ctx context.Context) error) {
	a.busy = true
	c.g.Go("attach or detach", func(ctx context.Context) {
		err := do(ctx)
		a.busy = false
		switch {
		case err == nil:
			a.wait = 0
		case a.wait == 0 || a.detaching != detaching:
			a.wait, a.failed = backoffInitial, c.g.Loop().Now()
		default:
			a.wait, a.failed = min(2*a.wait, backoffMax), c.g.Loop().Now()
		}
		a.detaching = detaching
		c.wake(0)
	})
}

// detach takes a volume off a node, once that no longer has it in use; after six minutes off
// one that is not ready, and at once off one that is out of service.
func (c *Controller) detach(a *attachment) {
	if !a.attached || !c.ready(a, true) {
		return
	}
	now := c.g.Loop().Now()
	if a.unwanted.IsZero() {
		a.unwanted = now
	}
	node := c.api.Server().Node(a.node)
	waited := now.Sub(a.unwanted)
	forced := waited > maxUnmount && !healthy(node)
	if inUse(node, a.volume) && !forced && !outOfService(node) {
		if waited <= maxUnmount {
			c.wake(maxUnmount - waited + 1)
		}
		return
	}
	c.run(a, true, func(ctx context.Context) error {
		a.reported = false
		if err := c.report(ctx, a.node); err != nil {
			a.reported = true
			return err
		}
		va, ok := controller.Lookup[*storagev1.VolumeAttachment](c.api, apiserver.KindVolumeAttachment, controller.Key{Name: a.name()})
		if ok {
			if err := controller.Delete(ctx, c.api, va, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete VolumeAttachment %s: %w", va.Name, err)
			}
			err := c.poll(ctx, func() (bool, error) {
				va, ok := controller.Lookup[*storagev1.VolumeAttachment](c.api, apiserver.KindVolumeAttachment, controller.Key{Name: a.name()})
				if ok && va.Status.DetachError != nil {
					return false, errors.New(va.Status.DetachError.Message)
				}
				return !ok, nil
			})
			if err != nil {
				return err // it may be going: who wants it again asks anew
			}
		}
		a.attached, a.unwanted = false, time.Time{}
		return nil
	})
}

// attach brings a volume to a node, unless it is on another one and may be on one alone.
func (c *Controller) attach(a *attachment) {
	if a.attached && a.reported || !c.ready(a, false) || !managed(c.api.Server().Node(a.node)) {
		return
	}
	if !a.shared {
		for _, o := range c.byVolume[a.volume] {
			if o != a && o.attached {
				if !a.told {
					a.told = true
					c.tellElsewhere(a, o)
				}
				return
			}
		}
	}
	pods := c.scheduled(a) // which are told, also if they are gone by then
	c.run(a, false, func(ctx context.Context) error {
		err := c.askFor(ctx, a)
		for _, pod := range pods {
			if err != nil {
				c.recorder.Eventf(controller.Reference(pod), v1.EventTypeWarning, "FailedAttachVolume", "AttachVolume.Attach failed for volume %q : %v", a.pv, err)
				continue
			}
			c.recorder.Eventf(controller.Reference(pod), v1.EventTypeNormal, "SuccessfulAttachVolume", "AttachVolume.Attach succeeded for volume %q ", a.pv)
		}
		if err != nil {
			return err
		}
		a.reported, a.told = true, false
		return c.report(ctx, a.node)
	})
}

// askFor makes the VolumeAttachment and waits until the attacher has acted on it. From then on
// the volume may be attached, also if the wait fails.
func (c *Controller) askFor(ctx context.Context, a *attachment) error {
	name := a.pv
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: a.name()},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: a.driver, NodeName: a.node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}},
	}
	if _, err := controller.Create(ctx, c.api, va); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create VolumeAttachment %s: %w", va.Name, err)
	}
	a.attached = true
	return c.poll(ctx, func() (bool, error) {
		va, ok := controller.Lookup[*storagev1.VolumeAttachment](c.api, apiserver.KindVolumeAttachment, controller.Key{Name: va.Name})
		switch {
		case !ok:
			return false, nil
		case va.DeletionTimestamp != nil:
			return false, errors.New("volume attachment is being deleted")
		case va.Status.AttachError != nil:
			return false, errors.New(va.Status.AttachError.Message)
		}
		return va.Status.Attached, nil
	})
}

// poll looks with growing pauses until done says so, or two minutes are over.
func (c *Controller) poll(ctx context.Context, done func() (bool, error)) error {
	l := c.g.Loop()
	end, pause := l.Now().Add(pollLimit), pollFirst
	for {
		left := end.Sub(l.Now())
		if err := l.Sleep(ctx, min(pause, left)); err != nil {
			return err
		}
		if left <= pause {
			return errors.New("timed out waiting for external-attacher of the CSI driver")
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		pause = min(time.Duration(float64(pause)*pollFactor), pollMax)
	}
}

// report writes what is attached to a node into its status (nodeutil.PatchNodeStatus). Whatever
// else the versions of a node have in common they share.
func (c *Controller) report(ctx context.Context, name string) error {
	node := c.api.Server().Node(name)
	if node == nil {
		return nil
	}
	var list []v1.AttachedVolume
	for _, a := range c.byNode[name] {
		if a.attached && a.reported {
			list = append(list, v1.AttachedVolume{Name: a.volume})
		}
	}
	if slices.Equal(list, node.Status.VolumesAttached) {
		return nil
	}
	next := *node
	next.Status.VolumesAttached = list
	err := c.api.Do(ctx, apiserver.Request{Verb: "patch", Resource: "nodes/status", Name: name}, func(s *apiserver.Server) error {
		_, err := apiserver.PatchNode(s, name, node, &next)
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("status of node %s: %w", name, err)
	}
	return nil
}

// scheduled are the pods that want a volume where they run.
func (c *Controller) scheduled(a *attachment) []*v1.Pod {
	var out []*v1.Pod
	for _, key := range a.pods {
		if p := c.api.Server().Pod(key.Namespace, key.Name); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// tellElsewhere tells pods that their volume is on another node (reportMultiAttachError).
func (c *Controller) tellElsewhere(a, other *attachment) {
	for _, pod := range c.scheduled(a) {
		said := "Volume is already exclusively attached to one node and can't be attached to another"
		if users := c.scheduled(other); len(users) > 0 {
			said = usedBy(pod, users)
		}
		c.recorder.Eventf(controller.Reference(pod), v1.EventTypeWarning, "FailedAttachVolume", "Multi-Attach error for volume %q %s", a.pv, said)
	}
}

// usedBy names the pods of a pod's own namespace; of others only their number is told.
func usedBy(pod *v1.Pod, users []*v1.Pod) string {
	var names []string
	others := 0
	for _, u := range users {
		if u.Namespace == pod.Namespace {
			names = append(names, u.Name)
		} else {
			others++
		}
	}
	switch {
	case len(names) == 0:
		return fmt.Sprintf("Volume is already used by %d pod(s) in different namespaces", others)
	case others > 0:
		return fmt.Sprintf("Volume is already used by pod(s) %s and %d pod(s) in different namespaces", strings.Join(names, ", "), others)
	}
	return "Volume is already used by pod(s) " + strings.Join(names, ", ")
}

// inUse reports whether a node says that it has a volume in use. A node that is gone can't
// say any more that it has not.
func inUse(node *v1.Node, name v1.UniqueVolumeName) bool {
	return node == nil || slices.Contains(node.Status.VolumesInUse, name)
}

// managed reports whether volumes are attached to a node by the controller, which its kubelet
// says in an annotation (addNodeToDswp).
func managed(node *v1.Node) bool {
	if node == nil {
		return false
	}
	_, ok := node.Annotations["volumes.kubernetes.io/controller-managed-attach-detach"]
	return ok
}

func healthy(node *v1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

func outOfService(node *v1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool {
		return t.Key == v1.TaintNodeOutOfService && t.Effect == v1.TaintEffectNoExecute
	})
}

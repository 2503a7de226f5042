package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Claims brings pods' controller references in line with selectors
// (pkg/controller/controller_ref_manager.go). It looks only at controllers for
// which something has happened that can matter: they came, an orphan came that
// they select, or a pod of theirs got other labels.
type Claims struct {
	Pods    *Pods
	Control *PodControl
	// Finalizer, if not "", is put on pods that are adopted and taken off those
	// that are released.
	Finalizer string
	// Active: pods that have ended or are being deleted are neither adopted nor released.
	Active bool

	due map[Key]struct{}
}

// Review has the controller's claims looked at in its next sync.
func (c *Claims) Review(key Key) {
	if c.due == nil {
		c.due = map[Key]struct{}{}
	}
	c.due[key] = struct{}{}
}

// Forget drops what is due for a controller that is gone.
func (c *Claims) Forget(key Key) { delete(c.due, key) }

// Selects reports whether a selector matches labels; none and one that is empty
// match nothing.
func Selects(sel *metav1.LabelSelector, set map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(sel)
	return err == nil && !s.Empty() && s.Matches(labels.Set(set))
}

// Sync adopts and releases pods for the owner, if there is reason to look.
// wanted says which pods it may own besides those that the selector matches; nil
// is all.
func (c *Claims) Sync(ctx context.Context, owner apiserver.Object, sel *metav1.LabelSelector, wanted func(*v1.Pod) bool) error {
	key := KeyOf(owner)
	if _, ok := c.due[key]; !ok {
		return nil
	}
	delete(c.due, key)
	err := c.claim(ctx, owner, sel, wanted)
	if err != nil {
		c.Review(key)
	}
	return err
}

// claim does what Sync found due. An owner that is being deleted neither adopts
// nor releases: its pods are the garbage collector's, which goes by the
// references.
func (c *Claims) claim(ctx context.Context, owner apiserver.Object, sel *metav1.LabelSelector, wanted func(*v1.Pod) bool) error {
	s, err := metav1.LabelSelectorAsSelector(sel)
	if err != nil {
		return nil // upstream only logs it
	}
	match := func(p *v1.Pod) bool { return s.Matches(labels.Set(p.Labels)) && (wanted == nil || wanted(p)) }
	var release, adopt []*v1.Pod
	for _, p := range c.Pods.Of(owner.GetUID()).All() {
		if !match(p) && (!c.Active || StateOf(p)&PodActive != 0) {
			release = append(release, p)
		}
	}
	// Most namespaces have no pod without a controller, and are not searched.
	if c.Pods.Orphans(owner.GetNamespace()) > 0 {
		for _, p := range c.Control.API.Server().Store().PodsInNamespace(owner.GetNamespace()) {
			if metav1.GetControllerOfNoCopy(p) == nil && p.DeletionTimestamp == nil && match(p) && (!c.Active || StateOf(p)&PodActive != 0) {
				adopt = append(adopt, p)
			}
		}
	}
	if owner.GetDeletionTimestamp() != nil {
		return nil
	}
	var errs []error
	for _, p := range release {
		err := c.Control.PatchMeta(ctx, p, func(m *metav1.ObjectMeta) {
			m.OwnerReferences = slices.DeleteFunc(slices.Clone(m.OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
			if c.Finalizer != "" {
				m.Finalizers = slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == c.Finalizer })
			}
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
			errs = append(errs, err)
		}
	}
	for _, p := range adopt {
		if err := c.adopt(ctx, owner, p); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// adopt makes the owner a pod's controller. It asks the API first whether the
// owner still lives, because an adopted pod would be deleted with it; the error
// texts are what an event shows.
func (c *Claims) adopt(ctx context.Context, owner apiserver.Object, p *v1.Pod) error {
	fresh, err := c.fresh(ctx, owner)
	if err != nil {
		return fmt.Errorf("can't adopt Pod %v/%v (%v): %w", p.Namespace, p.Name, p.UID, err)
	}
	if fresh.GetDeletionTimestamp() != nil {
		return fmt.Errorf("can't adopt Pod %v/%v (%v): %v/%v has just been deleted at %v", p.Namespace, p.Name, p.UID, owner.GetNamespace(), owner.GetName(), fresh.GetDeletionTimestamp())
	}
	err = c.Control.PatchMeta(ctx, p, func(m *metav1.ObjectMeta) {
		m.OwnerReferences = append(slices.Clone(m.OwnerReferences), OwnerReference(owner))
		if c.Finalizer != "" && !slices.Contains(m.Finalizers, c.Finalizer) {
			m.Finalizers = append(slices.Clone(m.Finalizers), c.Finalizer)
		}
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// fresh reads the owner from the API (RecheckDeletionTimestamp).
func (c *Claims) fresh(ctx context.Context, owner apiserver.Object) (obj apiserver.Object, err error) {
	k := kindOf(c.Control.API, owner).Kind
	obj, err = Get[apiserver.Object](ctx, c.Control.API, k, KeyOf(owner))
	if err == nil && obj.GetUID() != owner.GetUID() {
		err = fmt.Errorf("original %v %v/%v is gone: got uid %v, wanted %v", k, owner.GetNamespace(), owner.GetName(), obj.GetUID(), owner.GetUID())
	}
	return obj, err
}

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// PodControl creates and deletes a controller's pods and tells of it in events
// (pkg/controller/controller_utils.go RealPodControl). The pods of one template
// share their spec.
type PodControl struct {
	API    *apiserver.Component
	Events *record.Recorder

	templates map[types.UID]*template
}

// template is an owner's, as long as it stays the same. The server has defaulted
// and admitted made once, so that creating a replica is a matter of stamping: of
// 150,000 pods of one owner all share one spec.
type template struct {
	src  *v1.PodTemplateSpec
	made *apiserver.Template
}

// OwnerReference returns the reference that makes owner, as the API has it, an
// object's controller.
func OwnerReference(owner apiserver.Object) metav1.OwnerReference {
	version, kind := owner.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	yes := true
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}
}

// PodPrefix is what generated names of an owner's pods begin with.
func PodPrefix(owner string) string {
	if prefix := owner + "-"; len(validation.NameIsDNSSubdomain(prefix, true)) == 0 {
		return prefix
	}
	return owner
}

// Forget drops an owner's template.
func (p *PodControl) Forget(owner types.UID) { delete(p.templates, owner) }

// Create creates a pod of the owner's template that differs by the stamp.
func (p *PodControl) Create(ctx context.Context, owner apiserver.Object, t *v1.PodTemplateSpec, st apiserver.Stamp) (pod *v1.Pod, err error) {
	if len(t.Labels) == 0 {
		return nil, errors.New("unable to create pods, no labels")
	}
	err = p.API.Do(ctx, apiserver.Request{Verb: "create", Resource: "pods", Namespace: owner.GetNamespace(), Name: st.Name}, func(s *apiserver.Server) error {
		made, err := p.template(s, owner, t, st)
		if err == nil {
			pod, err = s.CreateFromTemplate(made, st)
		}
		return err
	})
	if err != nil {
		if !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
			p.Events.Eventf(Reference(owner), v1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		}
		return nil, err
	}
	p.Events.Eventf(Reference(owner), v1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
	return pod, nil
}

// template returns the owner's template as the server has admitted it. The stamp
// is for errors: they name the pod that was to be. It is made anew when the
// owner's template or what admission depends on has changed (Server.Stale).
func (p *PodControl) template(s *apiserver.Server, owner apiserver.Object, t *v1.PodTemplateSpec, st apiserver.Stamp) (*apiserver.Template, error) {
	if c := p.templates[owner.GetUID()]; c != nil && !s.Stale(c.made) && (c.src == t || equality.Semantic.DeepEqual(c.src, t)) {
		c.src = t
		return c.made, nil
	}
	made, err := s.NewTemplate(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: st.Name, GenerateName: cmp.Or(st.GenerateName, PodPrefix(owner.GetName())),
			Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
			OwnerReferences: []metav1.OwnerReference{OwnerReference(owner)},
		},
		Spec: t.Spec,
	})
	if err != nil {
		return nil, err
	}
	if p.templates == nil {
		p.templates = map[types.UID]*template{}
	}
	p.templates[owner.GetUID()] = &template{src: t, made: made}
	return made, nil
}

// Delete deletes a pod of the owner's. A pod that is gone is a NotFound error.
func (p *PodControl) Delete(ctx context.Context, owner apiserver.Object, name string) error {
	ns := owner.GetNamespace()
	err := p.API.Do(ctx, apiserver.Request{Verb: "delete", Resource: "pods", Namespace: ns, Name: name}, func(s *apiserver.Server) error {
		return s.Delete(apiserver.KindPod, ns, name, metav1.DeleteOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err != nil:
		p.Events.Eventf(Reference(owner), v1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("unable to delete pods: %w", err)
	}
	p.Events.Eventf(Reference(owner), v1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", name)
	return nil
}

// PatchMeta changes a pod's metadata. edit gets a copy of the struct whose
// fields it may replace.
func (p *PodControl) PatchMeta(ctx context.Context, pod *v1.Pod, edit func(*metav1.ObjectMeta)) error {
	return p.API.Do(ctx, apiserver.Request{Verb: "patch", Resource: "pods", Namespace: pod.Namespace, Name: pod.Name}, func(s *apiserver.Server) error {
		_, err := s.PatchPodMeta(pod.Namespace, pod.Name, pod.UID, edit)
		return err
	})
}

// Parallel runs n calls at once and returns the errors there were, in order. The
// calls are tasks of the group: they die with the controller, and one alone needs
// no task. An error of waiting itself is returned alone.
func Parallel(ctx context.Context, g *loop.Group, name string, n int, call func(ctx context.Context, i int) error) []error {
	var errs []error
	if n == 1 {
		if err := call(ctx, 0); err != nil {
			errs = append(errs, err)
		}
		return errs
	}
	all := make([]error, n)
	var wg loop.WaitGroup
	wg.Add(n)
	for i := range n {
		g.Go(name, func(ctx context.Context) {
			defer wg.Done()
			all[i] = call(ctx, i)
		})
	}
	if err := wg.Wait(ctx); err != nil {
		return []error{err}
	}
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// SlowStart runs n calls in batches of 1, 2, 4, ...: after a batch in which one
// failed it stops. It returns how many succeeded and the first error
// (pkg/controller/replicaset slowStartBatch).
func SlowStart(ctx context.Context, g *loop.Group, name string, n int, call func(ctx context.Context, i int) error) (int, error) {
	done := 0
	for batch := min(n, 1); batch > 0; batch = min(2*batch, n-done) {
		if errs := Parallel(ctx, g, name, batch, func(ctx context.Context, i int) error { return call(ctx, done+i) }); len(errs) > 0 {
			return done + batch - len(errs), errs[0]
		}
		done += batch
	}
	return done, nil
}

package scale

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// kindOfController is a controller's kind.
func kindOfController(o apiserver.Object) string {
	switch o.(type) {
	case *appsv1.Deployment:
		return "Deployment"
	case *appsv1.ReplicaSet:
		return "ReplicaSet"
	case *appsv1.StatefulSet:
		return "StatefulSet"
	case *batchv1.Job:
		return "Job"
	}
	return "DaemonSet"
}

// hasController reports whether a controller is in the file.
func (s *Snapshot) hasController(kind, namespace, name string) bool {
	return slices.ContainsFunc(s.Controllers, func(o apiserver.Object) bool {
		return kindOfController(o) == kind && o.GetNamespace() == namespace && o.GetName() == name
	})
}

// settleControllers brings controllers to what a client would create them from, and leaves out
// those that could not find their pods again.
func (s *Snapshot) settleControllers(notes map[string]int) {
	owned := map[string]bool{} // Deployments of which a ReplicaSet is there
	for _, o := range s.Controllers {
		o.SetNamespace(cmp.Or(o.GetNamespace(), metav1.NamespaceDefault))
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil && kindOfController(o) == "ReplicaSet" {
			owned[o.GetNamespace()+"/"+owner.Name] = true
		}
	}
	all := slices.Clone(s.Controllers)
	s.Controllers = slices.DeleteFunc(s.Controllers, func(o apiserver.Object) bool {
		owner := metav1.GetControllerOfNoCopy(o)
		switch kind := kindOfController(o); {
		case o.GetDeletionTimestamp() != nil:
			notes["controllers that are being deleted are left out"]++
		case kind == "Deployment" && !owned[o.GetNamespace()+"/"+o.GetName()]:
			notes["deployments whose replica sets are not in the file are left out"]++
		case kind == "Job" && jobIsOver(o.(*batchv1.Job)):
			notes["jobs that are over are left out"]++
		case kind == "ReplicaSet" && owner != nil && !slices.ContainsFunc(all, func(d apiserver.Object) bool {
			return kindOfController(d) == owner.Kind && d.GetNamespace() == o.GetNamespace() && d.GetName() == owner.Name
		}):
			notes["replica sets whose deployments are not in the file stand by themselves"]++
			return false
		default:
			return false
		}
		return true
	})
	for _, o := range s.Controllers {
		stripController(o, notes)
	}
	// Deployments last: their ReplicaSets are there then.
	slices.SortStableFunc(s.Controllers, func(a, b apiserver.Object) int {
		rank := func(o apiserver.Object) int {
			if kindOfController(o) == "Deployment" {
				return 1
			}
			return 0
		}
		return rank(a) - rank(b)
	})
}

// jobIsOver reports whether nothing is left of a Job to be done: it has ended, or as many pods
// have succeeded as it wants.
func jobIsOver(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue {
			return true
		}
	}
	return j.Spec.Completions != nil && j.Status.Succeeded >= *j.Spec.Completions
}

// stripJob leaves of a Job what it has yet to do. It keeps its selector, by which it finds its
// pods: the one that the API server would make for a Job of this cluster selects others
// (pkg/registry/batch/job generateSelector).
func stripJob(j *batchv1.Job, notes map[string]int) {
	if c := j.Spec.Completions; c != nil && j.Status.Succeeded > 0 {
		if m := j.Spec.CompletionMode; m != nil && *m == batchv1.IndexedCompletion {
			notes["indexed jobs run the indexes again that have succeeded"]++
		} else {
			left := *c - j.Status.Succeeded
			j.Spec.Completions = &left
		}
	}
	manual := true
	j.Spec.ManualSelector = &manual
	j.Status = batchv1.JobStatus{}
}

// stripController takes off what the API server gives, and has pods be replaced as they end and
// not because a revision of this cluster is called otherwise.
func stripController(o apiserver.Object, notes map[string]int) {
	meta := metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), Labels: o.GetLabels(), Annotations: o.GetAnnotations()}
	template := func(t *v1.PodTemplateSpec) {
		p := &v1.Pod{Spec: t.Spec}
		strip(p, notes)
		t.Spec = p.Spec
	}
	switch x := o.(type) {
	case *appsv1.Deployment:
		x.ObjectMeta, x.Status = meta, appsv1.DeploymentStatus{}
		template(&x.Spec.Template)
	case *appsv1.ReplicaSet:
		x.ObjectMeta, x.Status = meta, appsv1.ReplicaSetStatus{}
		template(&x.Spec.Template)
	case *appsv1.StatefulSet:
		x.ObjectMeta, x.Status = meta, appsv1.StatefulSetStatus{}
		x.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		if len(x.Spec.VolumeClaimTemplates) > 0 {
			notes["stateful sets want claims: their new pods do without"]++
			for i := range x.Spec.VolumeClaimTemplates {
				x.Spec.Template.Spec.Volumes = append(x.Spec.Template.Spec.Volumes, v1.Volume{
					Name: x.Spec.VolumeClaimTemplates[i].Name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}},
				})
			}
			x.Spec.VolumeClaimTemplates = nil
		}
		template(&x.Spec.Template)
	case *batchv1.Job:
		x.ObjectMeta = meta
		stripJob(x, notes)
		template(&x.Spec.Template)
	case *appsv1.DaemonSet:
		x.ObjectMeta, x.Status = meta, appsv1.DaemonSetStatus{}
		x.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		template(&x.Spec.Template)
	}
}

// adoptAfter is how long after its pods a snapshot's controllers come, so that they find them.
const adoptAfter = time.Second

// control creates the controllers: they adopt the pods that they select.
func (f *snapshotFeed) control() {
	create := func(deployments bool) {
		for _, o := range f.s.Controllers {
			if (kindOfController(o) == "Deployment") != deployments {
				continue
			}
			obj := o.DeepCopyObject().(apiserver.Object)
			if _, err := f.r.cluster.API().Create(obj); err != nil {
				f.r.warn(fmt.Sprintf("%s %s/%s: %v", kindOfController(o), o.GetNamespace(), o.GetName(), err))
			}
		}
	}
	f.r.after(adoptAfter, func() { create(false) })
	f.r.after(2*adoptAfter, func() { create(true) })
}

// newController returns an empty controller of a kind.
func newController(kind string) apiserver.Object {
	switch kind {
	case "Deployment":
		return &appsv1.Deployment{}
	case "ReplicaSet":
		return &appsv1.ReplicaSet{}
	case "StatefulSet":
		return &appsv1.StatefulSet{}
	case "Job":
		return &batchv1.Job{}
	}
	return &appsv1.DaemonSet{}
}

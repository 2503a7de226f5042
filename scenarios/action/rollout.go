package action

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

const (
	restartedAt        = "kubectl.kubernetes.io/restartedAt" // k8s.io/kubectl polymorphichelpers/objectrestarter.go
	revisionAnnotation = "deployment.kubernetes.io/revision" // pkg/controller/deployment/util.RevisionAnnotation
	lastApplied        = "kubectl.kubernetes.io/last-applied-configuration"
)

// Rollout is one of kubectl's rollout commands.
//
// In the timeline: restarts, undoes, pauses or resumes a workload's rollout, as
// kubectl rollout does.
type Rollout struct {
	// The command. pause and resume are for Deployments only.
	Command string `json:"command" required:"" enum:"restart,undo,pause,resume"`
	// The workload's kind. Deployment unless said.
	Kind string `json:"kind,omitempty" enum:"Deployment,StatefulSet,DaemonSet"`
	// The workload's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The workload's name.
	Name string `json:"name" required:""`
	// The revision that undo goes back to. The one before the current one unless said.
	ToRevision int64 `json:"toRevision,omitempty"`
}

// Check fills in the kind and the namespace, and wants a command that goes with
// the kind.
func (o *Rollout) Check(at Place) {
	o.Kind = cmp.Or(o.Kind, string(apiserver.KindDeployment))
	o.Namespace = value.Namespace(at.Place, o.Kind, o.Namespace)
	if (o.Command == "pause" || o.Command == "resume") && o.Kind != string(apiserver.KindDeployment) {
		at.Field("command").Errorf("a %s cannot be %sd, only a Deployment can", o.Kind, o.Command)
	}
	switch revision := at.Field("toRevision"); {
	case o.ToRevision < 0:
		revision.Errorf("%d is negative", o.ToRevision)
	case o.ToRevision > 0 && o.Command != "undo":
		revision.Errorf("goes with undo only")
	}
}

// Do does what kubectl does for the command, with its errors.
func (o *Rollout) Do(s Stage) error {
	note(s, objectName(o.Kind, o.Namespace, o.Name), "rollout "+o.Command)
	obj, err := s.Cluster().API().Get(apiserver.Kind(o.Kind), o.Namespace, o.Name)
	if err != nil {
		return err
	}
	d, _ := obj.(*appsv1.Deployment)
	paused := d != nil && d.Spec.Paused
	switch o.Command {
	case "restart":
		if paused {
			return fmt.Errorf("deployments.apps %q can't restart paused deployment (run rollout resume first)", o.Name)
		}
		return o.patch(s, map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{restartedAt: s.Cluster().API().Loop().Now().UTC().Format(time.RFC3339)}}}})
	case "pause":
		if paused {
			return fmt.Errorf("deployments.apps %q is already paused", o.Name)
		}
		return o.patch(s, map[string]any{"paused": true})
	case "resume":
		if !paused {
			return fmt.Errorf("deployments.apps %q is not paused", o.Name)
		}
		return o.patch(s, map[string]any{"paused": nil})
	}
	if d != nil {
		return o.undoDeployment(s, d)
	}
	return o.undoRevision(s, obj)
}

// patch patches the workload's spec.
func (o *Rollout) patch(s Stage, spec map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return fmt.Errorf("rollout %s of %s %s/%s: %w", o.Command, o.Kind, o.Namespace, o.Name, err)
	}
	_, err = s.Cluster().API().Patch(apiserver.Kind(o.Kind), o.Namespace, o.Name, types.StrategicMergePatchType, patch, "")
	return err
}

// undoDeployment gives a Deployment the template of one of its ReplicaSets
// (k8s.io/kubectl/pkg/polymorphichelpers/rollback.go).
func (o *Rollout) undoDeployment(s Stage, d *appsv1.Deployment) error {
	if d.Spec.Paused {
		return fmt.Errorf("you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again")
	}
	rs, err := o.revisionOf(s, d)
	if err != nil {
		return err
	}
	template := rs.Spec.Template
	template.Labels = maps.Clone(template.Labels)
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	if equality.Semantic.DeepEqual(template, d.Spec.Template) {
		note(s, objectName(o.Kind, o.Namespace, o.Name), "skipped rollback", trace.Int("revision", revision(rs)))
		return nil
	}
	up := *d
	up.Spec.Template = template
	up.Annotations = map[string]string{}
	own := func(k string) bool { // annotations that don't go with a revision
		switch k {
		case lastApplied, revisionAnnotation, "deployment.kubernetes.io/revision-history", "deployment.kubernetes.io/desired-replicas",
			"deployment.kubernetes.io/max-replicas", appsv1.DeprecatedRollbackTo:
			return true
		}
		return false
	}
	for k, v := range d.Annotations { //drydock:unordered copies a map
		if own(k) {
			up.Annotations[k] = v
		}
	}
	for k, v := range rs.Annotations { //drydock:unordered copies a map
		if !own(k) {
			up.Annotations[k] = v
		}
	}
	_, err = s.Cluster().API().Update(&up, "")
	return err
}

// revision is the number of a ReplicaSet's revision; 0 if it has none.
func revision(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0 // kubectl leaves such a ReplicaSet out
	}
	return n
}

// revisionOf returns the ReplicaSet of the revision that undo goes back to.
func (o *Rollout) revisionOf(s Stage, d *appsv1.Deployment) (*appsv1.ReplicaSet, error) {
	var last, previous *appsv1.ReplicaSet
	for _, rs := range apiserver.Objects[*appsv1.ReplicaSet](s.Cluster().Store(), apiserver.KindReplicaSet) {
		n := revision(rs)
		if !metav1.IsControlledBy(rs, d) || n == 0 {
			continue
		}
		switch {
		case o.ToRevision > 0:
			if n == o.ToRevision {
				return rs, nil
			}
		case last == nil || n > revision(last):
			last, previous = rs, last
		case previous == nil || n > revision(previous):
			previous = rs
		}
	}
	switch {
	case o.ToRevision > 0:
		return nil, fmt.Errorf("unable to find specified revision %d in history", o.ToRevision)
	case previous == nil:
		return nil, fmt.Errorf("no rollout history found for deployment %q", o.Name)
	}
	return previous, nil
}

// undoRevision applies a ControllerRevision's patch to a StatefulSet or a
// DaemonSet.
func (o *Rollout) undoRevision(s Stage, owner apiserver.Object) error {
	var last, previous *appsv1.ControllerRevision
	for _, c := range apiserver.Objects[*appsv1.ControllerRevision](s.Cluster().Store(), apiserver.KindControllerRevision) {
		switch {
		case !metav1.IsControlledBy(c, owner):
		case o.ToRevision > 0:
			if c.Revision == o.ToRevision {
				previous = c
			}
		case last == nil || c.Revision > last.Revision:
			last, previous = c, last
		case previous == nil || c.Revision > previous.Revision:
			previous = c
		}
	}
	switch {
	case previous == nil && o.ToRevision > 0:
		return fmt.Errorf("unable to find specified revision %d in history", o.ToRevision)
	case previous == nil:
		return fmt.Errorf("no last revision to roll back to")
	}
	_, err := s.Cluster().API().Patch(apiserver.Kind(o.Kind), o.Namespace, o.Name, types.StrategicMergePatchType, previous.Data.Raw, "")
	return err
}

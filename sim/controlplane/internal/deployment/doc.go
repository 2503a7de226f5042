// Package deployment rolls Deployments out: it makes and scales their
// ReplicaSets. It mirrors pkg/controller/deployment at v1.36.
//
// A sync looks at the Deployment and its ReplicaSets only; pods are the
// ReplicaSets' business, and just Recreate asks whether any are left. It takes at
// most one step and leaves the next to the change that this one causes, so a
// rollout is a chain of syncs that can be cut anywhere: what goes on is read off
// the ReplicaSets' sizes and annotations, never remembered.
//
// deployment.go is the controller, claiming and rollback; rollout.go is the new
// ReplicaSet, RollingUpdate and Recreate; scale.go is scaling, also in the middle
// of a rollout, and pausing; status.go is the status and the progress deadline;
// replicasets.go has what is said of single ReplicaSets.
package deployment

// Package deployment rolls Deployments out: it makes and scales their
// ReplicaSets. It mirrors pkg/controller/deployment at v1.36.
package deployment

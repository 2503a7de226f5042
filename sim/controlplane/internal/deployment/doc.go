// Package deployment rolls Deployments out: it makes and scales their
// ReplicaSets. It answers to pkg/controller/deployment at v1.36.
package deployment

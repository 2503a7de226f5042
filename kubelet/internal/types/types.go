// Package types holds what the kubelet's parts say to each other about pods
// and their sources: annotations, operations, kinds of sync. It mirrors
// upstream's pkg/kubelet/types.
package types

import (
	v1 "k8s.io/api/core/v1"
)

// Annotations that the kubelet puts on pods.
const (
	ConfigSourceAnnotationKey    = "kubernetes.io/config.source"
	ConfigMirrorAnnotationKey    = v1.MirrorPodAnnotationKey
	ConfigFirstSeenAnnotationKey = "kubernetes.io/config.seen"
	ConfigHashAnnotationKey      = "kubernetes.io/config.hash"
)

// The sources of pods.
const (
	FileSource      = "file"
	HTTPSource      = "http"
	ApiserverSource = "api"
)

// SystemCriticalPriority is the least priority of a critical pod
// (pkg/apis/scheduling).
const SystemCriticalPriority int32 = 2_000_000_000

// PodOperation says what a source's update means for its pods.
type PodOperation uint8

// The operations.
const (
	// ADD: pods that are new.
	ADD PodOperation = iota
	// UPDATE: pods whose wanted state changed.
	UPDATE
	// DELETE: pods that changed and are to be deleted gracefully.
	DELETE
	// REMOVE: pods that are gone from their source.
	REMOVE
	// RECONCILE: pods of which only the status changed in the source.
	RECONCILE
)

func (o PodOperation) String() string {
	return [...]string{"ADD", "UPDATE", "DELETE", "REMOVE", "RECONCILE"}[o]
}

// PodUpdate is one message from the pod configuration to the sync loop.
type PodUpdate struct {
	// Pods are shared with other holders and never written to.
	Pods   []*v1.Pod
	Op     PodOperation
	Source string
}

// SyncPodType says why a pod is synced.
type SyncPodType uint8

// The kinds of sync.
const (
	// SyncPodSync: the pod is brought to its wanted state again.
	SyncPodSync SyncPodType = iota
	// SyncPodUpdate: the pod changed at its source.
	SyncPodUpdate
	// SyncPodCreate: the pod is new.
	SyncPodCreate
	// SyncPodKill: the pod is to be killed.
	SyncPodKill
)

func (t SyncPodType) String() string {
	return [...]string{"sync", "update", "create", "kill"}[t]
}

// IsStaticPod reports whether the pod comes from a file or a URL.
func IsStaticPod(pod *v1.Pod) bool {
	s, ok := pod.Annotations[ConfigSourceAnnotationKey]
	return ok && s != ApiserverSource
}

// IsMirrorPod reports whether the pod is the API's image of a static pod.
func IsMirrorPod(pod *v1.Pod) bool {
	_, ok := pod.Annotations[ConfigMirrorAnnotationKey]
	return ok
}

// IsCriticalPod reports whether the pod is static, a mirror, or of a system
// critical priority.
func IsCriticalPod(pod *v1.Pod) bool {
	return IsStaticPod(pod) || IsMirrorPod(pod) ||
		pod.Spec.Priority != nil && *pod.Spec.Priority >= SystemCriticalPriority
}

// IsTerminalPhase reports whether the phase is Succeeded or Failed.
func IsTerminalPhase(p v1.PodPhase) bool { return p == v1.PodSucceeded || p == v1.PodFailed }

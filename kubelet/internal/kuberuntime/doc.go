// Package kuberuntime drives the container runtime through the CRI: it brings
// a pod's sandbox and containers to what the pod's spec says, kills them, reads
// them back and collects the dead. It mirrors upstream's
// pkg/kubelet/kuberuntime.
//
// What a sync has to do is computed by a pure function from the pod and its cached
// status ([Manager.SyncPod], computePodActions). The manager keeps nothing of a pod
// but what replicas share (sandboxTemplate) and, of a [ChangeLister], what its
// listings last showed (pictures). CRI messages are built when they are sent; a
// [LeanRuntime] keeps what they are built from instead.
//
// What a container has beside what its spec says by itself, its environment and
// mounts, comes from [RuntimeHelper].
package kuberuntime

// Package kuberuntime drives the container runtime through the CRI: it brings
// a pod's sandbox and containers to what the pod's spec says, kills them, reads
// them back and collects the dead. It answers to upstream's
// pkg/kubelet/kuberuntime.
//
// The manager keeps nothing per pod. What a sync has to do is computed by a
// pure function from the pod and its cached status ([Manager.SyncPod],
// computePodActions); CRI messages are built when they are sent, from shared
// strings.
//
// What a container has beside what its spec says by itself, its environment and
// mounts, comes from [RuntimeHelper]. Places left open: devices
// (generateContainerConfig), links to logs in /var/log/containers, evented
// status.
package kuberuntime

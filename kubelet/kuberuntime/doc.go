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
// Places left open: lifecycle hooks (killContainer, startContainer), volumes
// and devices (generateContainerConfig), environment from other objects
// (environment), in-place resize (SyncPod, between init and regular
// containers), image volumes, evented status.
package kuberuntime

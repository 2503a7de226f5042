package kubelet

import "slices"

// lockedGates are the feature gates of v1.36 that cannot be switched off.
var lockedGates = []string{
	"CPUManagerPolicyOptions", "DisableNodeKubeProxyVersion", "DynamicResourceAllocation", "ExecProbeTimeout",
	"ImageMaximumGCAge", "ImageVolume", "InPlacePodVerticalScaling", "KubeletCgroupDriverFromCRI",
	"KubeletFineGrainedAuthz", "KubeletPSI", "KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet",
	"KubeletServiceAccountTokenForCredentialProviders", "KubeletTracing", "MutableCSINodeAllocatableCount",
	"NodeLogQuery", "NodeSwap", "PodLifecycleSleepAction", "PodLifecycleSleepActionAllowZero",
	"PodObservedGenerationTracking", "ProcMountType", "RecoverVolumeExpansionFailure", "RecursiveReadOnlyMounts",
	"SELinuxChangePolicy", "SELinuxMountReadWriteOncePod", "SidecarContainers", "SupplementalGroupsPolicy",
	"SystemdWatchdog", "TopologyManagerPolicyOptions", "UserNamespacesSupport", "VolumeAttributesClass",
}

func gateLocked(name string) bool { return slices.Contains(lockedGates, name) }

// Package events holds the reason strings of the events that a kubelet sends
// (upstream pkg/kubelet/events/event.go and, for reasons without a constant
// there, their callers).
package events

// Reasons of events about containers.
const (
	CreatedContainer        = "Created"
	StartedContainer        = "Started"
	FailedToCreateContainer = "Failed"
	FailedToStartContainer  = "Failed"
	KillingContainer        = "Killing"
	PreemptContainer        = "Preempting"
	BackOffStartContainer   = "BackOff"
	ExceededGracePeriod     = "ExceededGracePeriod"
	FailedPostStartHook     = "FailedPostStartHook"
	FailedPreStopHook       = "FailedPreStopHook"
	ContainerUnhealthy      = "Unhealthy"
	ContainerProbeWarning   = "ProbeWarning"
	LifecycleHTTPFallback   = "LifecycleHTTPFallback"
	FailedPreCreateHook     = "Failed"
	FailedPreStartHook      = "Failed"
)

// Reasons of events about images.
const (
	PullingImage            = "Pulling"
	PulledImage             = "Pulled"
	FailedToPullImage       = "Failed"
	FailedToInspectImage    = "InspectFailed"
	ErrImageNeverPullPolicy = "ErrImageNeverPull"
	BackOffPullImage        = "BackOff"
	InvalidImageID          = "InvalidImageID"
)

// Reasons of events about pods.
const (
	FailedToKillPod                 = "FailedKillPod"
	FailedToCreatePodContainer      = "FailedCreatePodContainer"
	FailedToMakePodDataDirectories  = "Failed"
	NetworkNotReady                 = "NetworkNotReady"
	FailedSync                      = "FailedSync"
	FailedValidation                = "FailedValidation"
	FailedPrepareDynamicResources   = "FailedPrepareDynamicResources"
	FailedToRetrieveImagePullSecret = "FailedToRetrieveImagePullSecret"
	SandboxChanged                  = "SandboxChanged"
	FailedCreatePodSandBox          = "FailedCreatePodSandBox"
	FailedStatusPodSandBox          = "FailedPodSandBoxStatus"
	DeadlineExceeded                = "DeadlineExceeded"
	CertificateOverdueForRefresh    = "CertificateOverdueForRefresh"
	CertificateExpired              = "CertificateExpired"
	Evicted                         = "Evicted"
	DNSConfigForming                = "DNSConfigForming"
	MissingClusterDNS               = "MissingClusterDNS"
	FailedNodeDeclaredFeatures      = "FailedNodeDeclaredFeaturesCheck"
	ResizeStarted                   = "ResizeStarted"
	ResizeCompleted                 = "ResizeCompleted"
	ResizeDeferred                  = "ResizeDeferred"
	ResizeInfeasible                = "ResizeInfeasible"
	ResizeError                     = "ResizeError"
)

// Reasons of events about volumes.
const (
	FailedMountVolume                = "FailedMount"
	FailedAttachVolume               = "FailedAttachVolume"
	SuccessfulAttachVolume           = "SuccessfulAttachVolume"
	FailedMapVolume                  = "FailedMapVolume"
	SuccessfulMountVolume            = "SuccessfulMountVolume"
	VolumeResizeFailed               = "VolumeResizeFailed"
	FileSystemResizeFailed           = "FileSystemResizeFailed"
	FileSystemResizeSuccessful       = "FileSystemResizeSuccessful"
	FailedMountOnFilesystemMismatch  = "FailedMountOnFilesystemMismatch"
	VolumePermissionChangeInProgress = "VolumePermissionChangeInProgress"
	AlreadyMountedVolume             = "AlreadyMountedVolume"
	VolumeConditionAbnormal          = "VolumeConditionAbnormal"
)

// Reasons of events about the node.
const (
	StartingKubelet                   = "Starting"
	KubeletSetupFailed                = "KubeletSetupFailed"
	NodeReady                         = "NodeReady"
	NodeNotReady                      = "NodeNotReady"
	NodeSchedulable                   = "NodeSchedulable"
	NodeNotSchedulable                = "NodeNotSchedulable"
	NodeHasSufficientMemory           = "NodeHasSufficientMemory"
	NodeHasInsufficientMemory         = "NodeHasInsufficientMemory"
	NodeHasNoDiskPressure             = "NodeHasNoDiskPressure"
	NodeHasDiskPressure               = "NodeHasDiskPressure"
	NodeHasSufficientPID              = "NodeHasSufficientPID"
	NodeHasInsufficientPID            = "NodeHasInsufficientPID"
	NodeRebooted                      = "Rebooted"
	NodeShutdown                      = "Shutdown"
	PossibleMemoryBackedVolumesOnDisk = "PossibleMemoryBackedVolumesOnDisk"
	ContainerGCFailed                 = "ContainerGCFailed"
	ImageGCFailed                     = "ImageGCFailed"
	InvalidDiskCapacity               = "InvalidDiskCapacity"
	FreeDiskSpaceFailed               = "FreeDiskSpaceFailed"
	EvictionThresholdMet              = "EvictionThresholdMet"
	NodeAllocatableEnforced           = "NodeAllocatableEnforced"
	FailedNodeAllocatableEnforcement  = "FailedNodeAllocatableEnforcement"
	SystemOOM                         = "SystemOOM"
	CheckLimitsForResolvConf          = "CheckLimitsForResolvConf"
	CgroupV1                          = "CgroupV1"
)

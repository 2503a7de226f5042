package expect

import (
	"fmt"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// Reference is an object that an expression names, or a namespace whose objects it asks for,
// and where. An expectation about one that is never there says nothing.
type Reference struct {
	ObjectRef
	// Line and Column are 1-based positions within the expression.
	Line, Column int
}

// KindEventTarget is the kind of what events() names: a pod or a node.
const KindEventTarget Kind = "object"

// References are the objects and namespaces that the expression names as texts, each once, but
// for those of which it asks only whether they exist.
func (x *Expectation) References() []Reference {
	var out []Reference
	asked := map[int64]bool{} // what exists() is asked of
	visit(x.checked, func(e celast.Expr) {
		if c := callOf(e, "exists"); c != nil && !c.IsMemberFunction() && len(c.Args()) == 1 {
			asked[c.Args()[0].ID()] = true
		}
	})
	visit(x.checked, func(e celast.Expr) {
		if e.Kind() != celast.CallKind || asked[e.ID()] {
			return
		}
		for _, id := range x.checked.GetOverloadIDs(e.ID()) {
			f := x.c.funcs[id]
			if f == nil || len(e.AsCall().Args()) == 0 {
				continue
			}
			ref, ok := f.reference(e.AsCall().Args()[0])
			if ok && !slices.ContainsFunc(out, func(r Reference) bool { return r.ObjectRef == ref }) {
				at := x.checked.SourceInfo().GetStartLocation(e.AsCall().Args()[0].ID())
				out = append(out, Reference{ref, at.Line(), at.Column() + 1})
			}
		}
	})
	return out
}

// reference is what a text as the function's first argument means.
func (f *stateFunc) reference(arg celast.Expr) (ObjectRef, bool) {
	if arg.Kind() != celast.LiteralKind {
		return ObjectRef{}, false
	}
	name, ok := arg.AsLiteral().Value().(string)
	if !ok {
		return ObjectRef{}, false
	}
	named := f.reads&readsNamed != 0
	switch f.reads &^ readsNamed {
	case readsPods, readsPodHistory:
		if !named {
			return ObjectRef{Kind: KindNamespace, Name: name}, true
		}
		k := podKey(name)
		return ObjectRef{KindPod, k.ns, k.name}, true
	case readsNodes, readsNodeHistory, readsLeases:
		return ObjectRef{Kind: KindNode, Name: name}, true
	case readsResources:
		k := podKey(name)
		return ObjectRef{KindPod, k.ns, k.name}, true
	case readsEvents:
		k := podKey(name)
		return ObjectRef{KindEventTarget, k.ns, k.name}, true
	case readsObjects:
		if !named {
			return ObjectRef{Kind: KindNamespace, Name: name}, true
		}
		k := namedKey(f.kind, name)
		return ObjectRef{f.kind, k.ns, k.name}, true
	}
	return ObjectRef{}, false
}

// Unknown is a text that an expression compares with what never has that value.
type Unknown struct {
	Message string
	// Line and Column are 1-based positions within the expression.
	Line, Column int
}

// Unknowns are the phases, reasons, states and conditions in the expression that nothing in
// Kubernetes has.
func (x *Expectation) Unknowns() []Unknown {
	var out []Unknown
	check := func(v *vocabulary, of celast.Expr) {
		if v == nil {
			return
		}
		for _, e := range texts(of) {
			word := e.AsLiteral().Value().(string)
			if word == "" || slices.Contains(v.words, word) {
				continue
			}
			at := x.checked.SourceInfo().GetStartLocation(e.ID())
			out = append(out, Unknown{fmt.Sprintf("%s %q%s", v.missing, word, suggest.Suffix(word, v.words)), at.Line(), at.Column() + 1})
		}
	}
	visit(x.checked, func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals, operators.In:
			check(x.vocabularyOf(args[0]), args[1])
			check(x.vocabularyOf(args[1]), args[0])
		case "condition":
			if len(args) == 2 && x.checked.GetType(args[0].ID()).TypeName() == nodeType.TypeName() {
				check(&vocabulary{"no node has a condition", nodeConditionTypes()}, args[1])
			}
		}
	})
	return out
}

// vocabulary is the words that there are for something.
type vocabulary struct {
	missing string
	words   []string
}

// vocabularyOf is that of the values of a part of an expression; nil: any text may come.
func (x *Expectation) vocabularyOf(e celast.Expr) *vocabulary {
	if c := callOf(e, "phases"); c != nil {
		return podPhases()
	}
	if e.Kind() != celast.SelectKind || e.AsSelect().IsTestOnly() {
		return nil
	}
	of := x.checked.GetType(e.AsSelect().Operand().ID())
	if of.Kind() != types.StructKind {
		return nil
	}
	switch field, t := e.AsSelect().FieldName(), of.TypeName(); {
	case field == "phase" && (t == "v1.PodStatus" || t == transType.TypeName()):
		return podPhases()
	case field == "phase" && t == "v1.NamespaceStatus":
		return &vocabulary{"no namespace has the phase", []string{string(v1.NamespaceActive), string(v1.NamespaceTerminating)}}
	case field == "phase" && t == "v1.PersistentVolumeClaimStatus":
		return &vocabulary{"no claim has the phase", []string{string(v1.ClaimPending), string(v1.ClaimBound), string(v1.ClaimLost)}}
	case field == "phase" && t == "v1.PersistentVolumeStatus":
		return &vocabulary{"no volume has the phase", []string{string(v1.VolumePending), string(v1.VolumeAvailable), string(v1.VolumeBound), string(v1.VolumeReleased), string(v1.VolumeFailed)}}
	case field == "state" && t == cTransType.TypeName():
		return &vocabulary{"no container has the state", []string{"waiting", "running", "terminated"}}
	case field == "reason":
		return &vocabulary{"nothing in Kubernetes has the reason", strings.Fields(knownReasons)}
	}
	return nil
}

func podPhases() *vocabulary {
	return &vocabulary{"no pod has the phase", []string{string(v1.PodPending), string(v1.PodRunning), string(v1.PodSucceeded), string(v1.PodFailed), string(v1.PodUnknown)}}
}

func nodeConditionTypes() []string {
	return []string{string(v1.NodeReady), string(v1.NodeMemoryPressure), string(v1.NodeDiskPressure), string(v1.NodePIDPressure), string(v1.NodeNetworkUnavailable)}
}

// texts are the literal texts that an operand is, or the elements of the list that it is.
func texts(e celast.Expr) []celast.Expr {
	switch e.Kind() {
	case celast.LiteralKind:
		if _, ok := e.AsLiteral().Value().(string); ok {
			return []celast.Expr{e}
		}
	case celast.ListKind:
		var out []celast.Expr
		for _, x := range e.AsList().Elements() {
			out = append(out, texts(x)...)
		}
		return out
	}
	return nil
}

// callOf returns the call that e is of a function; nil if it is something else.
func callOf(e celast.Expr, function string) celast.CallExpr {
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == function {
		return e.AsCall()
	}
	return nil
}

func visit(a *celast.AST, f func(celast.Expr)) {
	celast.PostOrderVisit(a.Expr(), celast.NewExprVisitor(f))
}

// knownReasons are those of events, of conditions, of pods' statuses and of containers' states
// that upstream's kubelet, scheduler and controllers write.
const knownReasons = `
CertificateExpired CertificateOverdueForRefresh Denied
ClaimMisbound ExternalExpanding FileSystemResizeRequired Provisioning Resizing
AmbiguousSelector BackOff BackoffLimitExceeded BackoffLimitPerIndex CalculateExpectedPodCountFailed CheckLimitsForResolvConf CIDRAssignmentFailed CIDRNotAvailable
CompletionsReached Completed ConflictingController ConfigMapNotFound ContainerCannotRun ContainerCreating ContainerGCFailed ContainerStatusUnknown ContainersNotInitialized ContainersNotReady
CPUThrottlingHigh CreateContainerConfigError CreateContainerError Created Deferred DeadlineExceeded DeletionByDeviceTaintManager DeletionByPodGC DeletionByTaintManager DeploymentPaused
DeploymentResumed DeploymentRollback DeploymentRollbackRevisionNotFound DesiredWithinRange DNSConfigForming ErrImageNeverPull ErrImagePull Error Evicted EvictionByEvictionAPI
EvictionThresholdMet ExceededGracePeriod ExternalProvisioning FailedAttachVolume FailedBinding FailedBuildScheduling FailedComputeMetricsReplicas FailedCreate
FailedCreatePodContainer FailedCreatePodSandBox FailedDaemonPod FailedDelete FailedGet FailedGetExternalMetric FailedGetObjectMetric FailedGetPodsMetric FailedGetResourceMetric FailedGetScale
FailedIndexes FailedKillPod FailedMapVolume FailedMount FailedNodeAllocatableEnforcement FailedPodSandBoxStatus FailedPostStartHook FailedPrepareDynamicResources FailedResourceClaimCreation
FailedPreStopHook FailedRescale FailedScheduling FailedSync FailedToCreateEndpoint FailedToCreateEndpointSlices FailedToRetrieveImagePullSecret FailedToUpdateEndpoint FailedToUpdateEndpointSlices
FailedUnmount FailedUpdate FailedUpdateScale FailedUpdateStatus FailedValidation FileSystemResizeSuccessful FoundNewReplicaSet Failed FreeDiskSpaceFailed HostPortConflict
ImageGCFailed ImageInspectError ImagePullBackOff Infeasible InspectFailed InsufficientFreeCPUs InsufficientPods InvalidDiskCapacity InvalidEnvironmentVariableNames InvalidImageName
InvalidMetricSourceType InvalidSchedule InvalidSelector InvalidTypeMeta JobAlreadyActive JobResumed JobSuspended KubeletHasDiskPressure KubeletHasInsufficientMemory KubeletHasInsufficientPID
KubeletHasNoDiskPressure KubeletHasSufficientMemory KubeletHasSufficientPID KubeletNotReady KubeletReady KubeletSetupFailed Killing KillPodSandboxError CrashLoopBackOff PreCreateHookError PreStartHookError
PostStartHookError CreatePodSandboxError ConfigPodSandboxError RegistryUnavailable SignatureValidationFailed RunContainerError KillContainerError VerifyNonRootError LivenessProbe StartupProbe
ManifestNotFound MaxFailedIndexesExceeded MinimumReplicasAvailable MinimumReplicasUnavailable MissingClusterDNS MissingJob MissSchedule MultiplePodDisruptionBudgets
NamespacedNameMissing NetworkNotReady NewReplicaSetAvailable NewReplicaSetCreated NewReplicaSetReason NilContainer NoControllers NoPods NoVolumeInformation NodeAddressNotMatched NodeAffinity NodeAllocatableEnforced
NodeAssigned NodeConfigError NodeControllerEviction NodeHasDiskPressure NodeHasInsufficientMemory NodeHasInsufficientPID NodeHasNoDiskPressure NodeHasSufficientMemory NodeHasSufficientPID
NodeName NodeNotReady NodeNotSchedulable NodePorts NodeReady NodeSchedulable NodeShutdown NodeStatusNeverUpdated NodeStatusUnknown NodeSelectorMismatching NodeUnschedulable NotDeleted NotReady NotTriggerScaleUp
OOMKilled OutOfcpu OutOfephemeral-storage OutOfmemory OutOfpods OutOfDisk OwnerRefInvalidNamespace PodAdmissionFailed PodCompleted PodDisruptionBudgetNotFound PodFailed PodFailurePolicy PodFeatureUnsupported
PodInitializing PodLevelResourcesNotSupported PodOSNotSupported PodOSSelectorNodeLabelDoesNotMatch Preempted Preempting PreemptionByScheduler PreemptionByKubeScheduler ProbeWarning ProgressDeadlineExceeded
ProvisioningFailed ProvisioningSucceeded Pulled Pulling PVCNotFound ReadinessGatesNotReady ReadyForNewScale Rebooted RecreatingFailedPod RecreatingTerminatedPod RegisteredNode RemovingNode ReplicaSetCreateError
ReplicaSetNotAvailable ReplicaSetUpdated ReplicaSetProgressing ReschedulingRequired ResizeCompleted ResizeDeferred ResizeError ResizeInfeasible ResizeStarted RestartAllContainers RestartAllContainersStarted
RestartingAllContainers Resumed RollbackDone RollbackRevisionNotFound RollbackTemplateUnchanged RotatedServingCertificate SandboxChanged SawCompletedJob ScaleDown ScaleDownLimit ScaleDownStabilized ScaleUp ScaleUpLimit
ScaleUpStabilized ScalingDisabled ScalingReplicaSet Scheduled SchedulerError SchedulingGated SelectorOverlap SelectorRequired ServerError ShutDown Shutdown SMTAlignmentError SomeResourcesRemain
SomeFinalizersRemain Started StartError Starting SucceededDaemonPod SucceededRescale Successful SuccessCriteriaMet SuccessfulAttachVolume SuccessfulCreate SuccessfulDelete SuccessfulMountVolume
SuccessfulRescale SuccessfulUpdate SuccessPolicy SufficientPods Suspended SynchronizedPodIPs SyncFailed SysctlForbidden SystemOOM SystemResourceUsage TaintManagerEviction TaintToleration Terminated
TerminatedPod Terminating Terminate TerminationByKubelet TolerationTime TooManyActivePods TooManyMissedTimes TooManyReplicas TooManySucceededPods TooFewReplicas TopologyAffinityError TopologyAwareHintsDisabled TopologyAwareHintsEnabled
TriggeredScaleUp UnexpectedAdmissionError UnexpectedJob UnfinishedPreStopHook Unhealthy Unknown UnknownContainerStatuses UnmanagedPods UnparseableSchedule Unschedulable UnsupportedMountOption ValidMetricFound
VolumeBinding VolumeConditionAbnormal VolumeFailedDelete VolumeFailedRecycle VolumeMismatch VolumeRecycled VolumeResizeFailed VolumeResizeSuccessful WaitForFirstConsumer WaitForPodScheduled WaitForDeletion
AlreadyExists AllPodsSelected BindingConditionsPending ActiveDeadlineExceeded ContentDeleted ContentDeletionFailed ContentHasNoFinalizers ContentRemoved DeviceTaintManagerEviction DiscoveryFailed GroupVersionParsingFailed ResourcesDiscovered ParsedGroupVersions DiskPressure
MemoryPressure PIDPressure PodDeletionFailed HandledEvent FailedGetContainerResourceMetric ReplicaSetCreateSuccessful InvalidNodeName Running Cancelled PodIPsNotAllocated Drain
AutoApproved KubectlApprove KubectlDeny SignerValidationFailure`

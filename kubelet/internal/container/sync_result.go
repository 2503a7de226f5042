package container

import (
	"errors"
	"fmt"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// The reasons that a container waits for, and their short error texts
// (upstream pkg/kubelet/container/sync_result.go, images/types.go,
// kuberuntime). They are the Waiting reasons of the API.
var (
	ErrCrashLoopBackOff      = errors.New("CrashLoopBackOff")
	ErrContainerNotFound     = errors.New("no matching container")
	ErrKillContainer         = errors.New("KillContainerError")
	ErrRemoveContainer       = errors.New("RemoveContainerError")
	ErrCreatePodSandbox      = errors.New("CreatePodSandboxError")
	ErrConfigPodSandbox      = errors.New("ConfigPodSandboxError")
	ErrResizePodInPlace      = errors.New("ResizePodInPlaceError")
	ErrKillPodSandbox        = errors.New("KillPodSandboxError")
	ErrCreateContainerConfig = errors.New("CreateContainerConfigError")
	ErrPreCreateHook         = errors.New("PreCreateHookError")
	ErrCreateContainer       = errors.New("CreateContainerError")
	ErrPreStartHook          = errors.New("PreStartHookError")
	ErrRunContainer          = errors.New("RunContainerError")
	ErrPostStartHook         = errors.New("PostStartHookError")
	ErrImagePull             = errors.New("ErrImagePull")
	ErrImagePullBackOff      = errors.New("ImagePullBackOff")
	ErrImageInspect          = errors.New("ImageInspectError")
	ErrImageNeverPull        = errors.New("ErrImageNeverPull")
	ErrInvalidImageName      = errors.New("InvalidImageName")
	ErrRegistryUnavailable   = errors.New("RegistryUnavailable")
	ErrSignatureValidation   = errors.New("SignatureValidationFailed")
)

// SyncAction names a step of a pod sync in results.
type SyncAction string

// The actions of a pod sync.
const (
	StartContainer   SyncAction = "StartContainer"
	KillContainer    SyncAction = "KillContainer"
	InitContainer    SyncAction = "InitContainer"
	CreatePodSandbox SyncAction = "CreatePodSandbox"
	ConfigPodSandbox SyncAction = "ConfigPodSandbox"
	KillPodSandbox   SyncAction = "KillPodSandbox"
	RemoveContainer  SyncAction = "RemoveContainer"
	ResizePodInPlace SyncAction = "ResizePodInPlace"
)

// SyncResult is the result of one action; Error nil means success.
type SyncResult struct {
	Action  SyncAction
	Target  string // container name, PodDesc (sandbox creation) or pod UID (sandbox kill)
	Error   error  // one of the short errors above
	Message string
}

// Fail records a failure.
func (r *SyncResult) Fail(err error, message string) { r.Error, r.Message = err, message }

// BackoffError is a short error that knows when it is worth trying again.
type BackoffError struct {
	Err    error
	Expiry time.Time
}

func (e *BackoffError) Error() string { return e.Err.Error() }
func (e *BackoffError) Unwrap() error { return e.Err }

// PodSyncResult collects the results of a pod sync.
type PodSyncResult struct {
	SyncResults []*SyncResult
	SyncError   error
}

// Add appends a result.
func (p *PodSyncResult) Add(r ...*SyncResult) { p.SyncResults = append(p.SyncResults, r...) }

// Error returns nil or the aggregate of what failed, with upstream's texts.
// BackoffErrors can be found in it with errors.As.
func (p *PodSyncResult) Error() error {
	var errs []error
	if p.SyncError != nil {
		errs = append(errs, fmt.Errorf("failed to SyncPod: %w", p.SyncError))
	}
	for _, r := range p.SyncResults {
		if r.Error != nil {
			errs = append(errs, fmt.Errorf("failed to %q for %q with %w: %q", r.Action, r.Target, r.Error, r.Message))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return tree{utilerrors.NewAggregate(errs)}
}

// tree is an aggregate in which errors.As finds its way too.
type tree struct{ utilerrors.Aggregate }

func (t tree) Unwrap() []error { return t.Errors() }

// Package volume declares what the volume manager asks of a volume plugin, and
// what a plugin may use of the kubelet. It mirrors upstream's pkg/volume.
// The plugins are in the packages below it; they do with the node's files what
// upstream's do, under the same names.
package volume

import (
	"context"
	"path"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// Objects reads objects of a kind (configMaps, secrets) that registered pods
// refer to.
type Objects[T any] interface {
	Get(ctx context.Context, namespace, name string) (T, error)
	// Peek is Get without waiting; nil for none, false if it would wait.
	Peek(namespace, name string) (T, bool)
}

// Tokens gets service account tokens.
type Tokens interface {
	GetServiceAccountToken(ctx context.Context, namespace, name string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
	DeleteServiceAccountToken(podUID types.UID)
	// NextRefresh is the earliest time at which another token could be had;
	// zero if none is kept.
	NextRefresh(namespace, name string, tr *authenticationv1.TokenRequest) time.Time
}

// TrustAnchors are certificates to trust, as PEM. They are never written to: what changes
// is another one.
type TrustAnchors struct{ PEM []byte }

// TrustBundles finds the certificates of ClusterTrustBundles.
type TrustBundles interface {
	// Get returns those of a projection's bundles; none if it is optional and there are no
	// bundles.
	Get(ctx context.Context, s *v1.ClusterTrustBundleProjection) (*TrustAnchors, error)
	// Peek is Get without waiting; false if it would wait, or fail.
	Peek(s *v1.ClusterTrustBundleProjection) (*TrustAnchors, bool)
}

// Credentials are a pod's private key (PKCS#8) and its certificate with what it was signed
// by, as PEM. They are never written to: what changes is another one.
type Credentials struct{ Key, Chain []byte }

// PodCertificates has the certificates of pods' projections.
type PodCertificates interface {
	// GetPodCertificateCredentialBundle returns that of a source of a pod's volume. The error
	// says that there is none yet, or why there will be none. It does not wait.
	GetPodCertificateCredentialBundle(pod *v1.Pod, volume string, source int) (*Credentials, error)
}

// Host is what plugins may use of the kubelet and its node.
type Host struct {
	FS      filesystem.FS
	Mounter filesystem.Mounter
	// PodsDir is where the pods' directories are.
	PodsDir string
	// ConfigMaps, Secrets and Tokens are nil in standalone mode.
	ConfigMaps Objects[*v1.ConfigMap]
	Secrets    Objects[*v1.Secret]
	Tokens     Tokens
	// TrustBundles and PodCertificates are nil if the feature gate of the projection
	// (ClusterTrustBundleProjection, PodCertificateRequest) is off, or there is no API.
	TrustBundles    TrustBundles
	PodCertificates PodCertificates
	// NodeAllocatable returns what the node's pods may use.
	NodeAllocatable func() v1.ResourceList
	// Annotated returns a pod with the annotations that containers see; nil: it
	// bears them.
	Annotated func(pod *v1.Pod) *v1.Pod
	// Now is the time by the node's clock.
	Now func() time.Time
	// Random draws a number for an object, of which it is the n-th.
	Random func(object string, n uint64) uint32
	Log    func(format string, args ...any)
}

// Request asks a plugin to set up a volume of a pod.
type Request struct {
	Pod    *v1.Pod
	Volume *v1.Volume
	// Dir is where the volume is to be, as Plugin.Path says.
	Dir string
	// FSGroup is the pod's fsGroup; FSUser the user that all its containers run
	// as, if they agree.
	FSGroup, FSUser *int64
	// PV is what the pod's claim is bound to, of a DeviceMounter's volume and of one that is
	// in the pod's directory; nil: the volume is the pod's own. ReadOnly is as the pod uses the
	// claim, of a DeviceMounter's.
	PV       *v1.PersistentVolume
	ReadOnly bool
	// Present: the volume may be at Dir already, as an earlier kubelet or an earlier SetUp
	// left it, so a SetUp that fails leaves what is there (MounterArgs.ReconstructedVolume
	// and IsRemount).
	Present bool
	// Inputs is set by a plugin that requires remounts: the objects that it
	// made the content of, see Remounter.
	Inputs []any
}

// Plugin is a kind of volume. Only SetUp and TearDown of a Waiter wait, and SetUp of a
// Remounter.
type Plugin interface {
	// Name is the plugin's, as kubernetes.io/empty-dir.
	Name() string
	// CanSupport reports whether a volume is of this kind.
	CanSupport(v *v1.Volume) bool
	// Path is where a pod's volume is on the node; "" if it is nowhere.
	Path(uid types.UID, v *v1.Volume) string
	// ReadOnly reports whether containers can't write to a volume.
	ReadOnly(v *v1.Volume) bool
	// SetUp makes the volume, or brings it up to date. It may be repeated.
	SetUp(ctx context.Context, r *Request) error
	// TearDown removes the volume of that name. It may be repeated.
	TearDown(ctx context.Context, uid types.UID, name string) error
	// InPodDir reports whether the volumes are in the pods' directories, where a
	// new kubelet finds them.
	InPodDir() bool
}

// Remounter is a Plugin whose volumes are set up again at each sync of their
// pod, since what they show can change; SetUp may wait.
type Remounter interface {
	Plugin
	// Inputs returns what a SetUp now would make the content of (pointers to
	// objects, which are replaced when they change); false if that can't be
	// told without waiting. The pod itself is not among them.
	Inputs(pod *v1.Pod, v *v1.Volume) ([]any, bool)
}

// Waiter is a Plugin whose SetUp and TearDown may wait: for a driver.
type Waiter interface {
	Plugin
	Waits()
}

// DeviceMounter is a Waiter that has volumes of their own, PersistentVolumes: they are
// attached to the node, if they can be, and mounted for the node (staged) before they are
// mounted for pods. It is upstream's AttachableVolumePlugin and DeviceMountableVolumePlugin.
type DeviceMounter interface {
	Waiter
	// HasVolume reports whether a volume is of this kind.
	HasVolume(pv *v1.PersistentVolume) bool
	// VolumeName is a volume's name in the node's status.
	VolumeName(pv *v1.PersistentVolume) v1.UniqueVolumeName
	// Facts asks what is to be done with a pod's volume; pv is nil of the pod's own. Of
	// those it may wait.
	Facts(ctx context.Context, v *v1.Volume, pv *v1.PersistentVolume) (Facts, error)
	// MountedPath is where a volume is for a pod.
	MountedPath(uid types.UID, pv *v1.PersistentVolume) string
	// MountDevice mounts a volume for the node. It may be repeated.
	MountDevice(ctx context.Context, r *Request, attached bool) error
	// UnmountDevice undoes MountDevice.
	UnmountDevice(ctx context.Context, d Device) error
	// MapPaths are where a volume that is a block device is seen: for the node, and for a pod,
	// below which the link to it has the volume's name.
	MapPaths(uid types.UID, pv *v1.PersistentVolume) (global, pod string)
	// Reconstruct reads what an earlier kubelet noted of a pod's volume by the name of its
	// directory: the name that it has in the node's status, "" of a pod's own.
	Reconstruct(uid types.UID, name string, block bool) (v1.UniqueVolumeName, error)
	// Staged lists the volumes that an earlier kubelet mounted for the node, or was about to: of those
	// that are no block devices Volume is empty, since nobody noted it.
	Staged() []Device
	// Expand makes a volume larger that a pod uses; false: there is nothing to do.
	Expand(ctx context.Context, r *Request) (bool, error)
	// Stats asks how much there is in a volume that is mounted for a pod by its name; false:
	// nobody can tell.
	Stats(ctx context.Context, uid types.UID, name string) (Stats, bool, error)
}

// Stats is how much there is in a volume, in bytes and inodes.
type Stats struct {
	Capacity, Used, Available      int64
	Inodes, InodesUsed, InodesFree int64
	// Abnormal and Message are what the driver says of the volume's condition; nil: it doesn't,
	// or nobody wants to know (gate CSIVolumeHealth).
	Abnormal *bool
	Message  string
}

// Device is a PersistentVolume on a node, as it is known also to a new kubelet.
type Device struct {
	Name v1.UniqueVolumeName
	// Volume is the PersistentVolume's name; "" if it is not known.
	Volume string
	// Block: it is a block device.
	Block bool
}

// Facts of a volume of a DeviceMounter.
type Facts struct {
	// Attaches: it has to be attached before it is mounted.
	Attaches bool
	// Republish: it is set up again at each sync of its pod.
	Republish bool
}

// UncertainError is that of an operation which may still have its effect.
type UncertainError struct{ Err error }

func (e *UncertainError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UncertainError) Unwrap() error { return e.Err }

// TransientError is that of an operation which was not begun.
type TransientError struct{ Err error }

func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TransientError) Unwrap() error { return e.Err }

// EscapeName is a plugin's name as that of a directory.
func EscapeName(plugin string) string { return strings.ReplaceAll(plugin, "/", "~") }

// PodDir is the directory of a pod.
func (h *Host) PodDir(uid types.UID) string { return path.Join(h.PodsDir, string(uid)) }

// VolumeDir is the directory of a pod's volume.
func (h *Host) VolumeDir(uid types.UID, plugin, name string) string {
	return path.Join(h.PodsDir, string(uid), "volumes", EscapeName(plugin), name)
}

// PluginDir is where a plugin keeps what it has to note of a pod.
func (h *Host) PluginDir(uid types.UID, plugin string) string {
	return path.Join(h.PodsDir, string(uid), "plugins", EscapeName(plugin))
}

// CleanSubPaths takes away what containers have mounted by subPath, below a
// directory, which goes, too.
func (h *Host) CleanSubPaths(dir string) error {
	if s, ok := h.Mounter.(filesystem.SubPather); ok {
		return s.CleanSubPaths(dir)
	}
	return h.FS.RemoveAll(dir)
}

// Logf makes a log line, if anybody takes them.
func (h *Host) Logf(format string, args ...any) {
	if h.Log != nil {
		h.Log(format, args...)
	}
}

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
	// Inputs is set by a plugin that requires remounts: the objects that it
	// made the content of, see Remounter.
	Inputs []any
}

// Plugin is a kind of volume. Its methods but SetUp never wait.
type Plugin interface {
	// Name is the plugin's, as kubernetes.io/empty-dir.
	Name() string
	// CanSupport reports whether a volume is of this kind.
	CanSupport(v *v1.Volume) bool
	// Path is where a pod's volume is on the node; "" if it is nowhere.
	Path(uid types.UID, v *v1.Volume) string
	// ReadOnly reports whether containers can't write to the volumes.
	ReadOnly() bool
	// SetUp makes the volume, or brings it up to date. It may be repeated.
	SetUp(ctx context.Context, r *Request) error
	// TearDown removes the volume of that name. It may be repeated.
	TearDown(uid types.UID, name string) error
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

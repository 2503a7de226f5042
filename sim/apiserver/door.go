package apiserver

import (
	"crypto"
	"crypto/x509"
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/flow"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/stats"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/admission"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/table"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// What the API knows of kinds. [NewKinds] returns the table; the API's own is
// [Store.Kinds].
type (
	// Object is an API object of one of the kinds that the API stores.
	Object = kind.Object
	// Kind names a kind of object as manifests do.
	Kind = kind.Kind
	// Kinds is the table of kinds, KindInfo a row of it.
	Kinds    = kind.Table
	KindInfo = kind.Info
	// KindView is a group and version in which a kind is served, KindInfo apart.
	KindView = kind.View
	// Change is one committed write.
	Change = kind.Change
)

// The kinds that others name in code. There may be more in the table.
const (
	KindPod                     = kinds.Pod
	KindNode                    = kinds.Node
	KindLease                   = kinds.Lease
	KindEvent                   = kinds.Event
	KindConfigMap               = kinds.ConfigMap
	KindSecret                  = kinds.Secret
	KindNamespace               = kinds.Namespace
	KindService                 = kinds.Service
	KindPriorityClass           = kinds.PriorityClass
	KindRuntimeClass            = kinds.RuntimeClass
	KindDeployment              = kinds.Deployment
	KindReplicaSet              = kinds.ReplicaSet
	KindReplicationController   = kinds.ReplicationController
	KindEndpoints               = kinds.Endpoints
	KindPersistentVolume        = kinds.PersistentVolume
	KindPersistentVolumeClaim   = kinds.PersistentVolumeClaim
	KindCSINode                 = kinds.CSINode
	KindCSIDriver               = kinds.CSIDriver
	KindVolumeAttachment        = kinds.VolumeAttachment
	KindStorageClass            = kinds.StorageClass
	KindCSIStorageCapacity      = kinds.CSIStorageCapacity
	KindResourceClaim           = kinds.ResourceClaim
	KindResourceClaimTemplate   = kinds.ResourceClaimTemplate
	KindResourceSlice           = kinds.ResourceSlice
	KindDeviceClass             = kinds.DeviceClass
	KindStatefulSet             = kinds.StatefulSet
	KindDaemonSet               = kinds.DaemonSet
	KindControllerRevision      = kinds.ControllerRevision
	KindJob                     = kinds.Job
	KindCronJob                 = kinds.CronJob
	KindPodDisruptionBudget     = kinds.PodDisruptionBudget
	KindHorizontalPodAutoscaler = kinds.HorizontalPodAutoscaler
	KindEndpointSlice           = kinds.EndpointSlice
	KindServiceAccount          = kinds.ServiceAccount
	KindLimitRange              = kinds.LimitRange
	KindResourceQuota           = kinds.ResourceQuota

	KindAPIService                = kinds.APIService
	KindCertificateSigningRequest = kinds.CertificateSigningRequest

	// These are served with the gates of their names only.
	KindClusterTrustBundle    = kinds.ClusterTrustBundle
	KindPodCertificateRequest = kinds.PodCertificateRequest

	KindCustomResourceDefinition = kinds.CustomResourceDefinition
)

// UnsetReplicas is the number of a scale whose custom resource doesn't say how many are
// asked for.
const UnsetReplicas = kind.UnsetReplicas

// Finalizers that admission gives volumes and claims, which stay while they are used.
const (
	VolumeProtection = admission.VolumeProtection
	ClaimProtection  = admission.ClaimProtection
)

// DefaultStorageClass is the name of the class that claims get which name none; "": they get
// none.
func DefaultStorageClass(s *Store) string {
	var class *storagev1.StorageClass
	for _, c := range Objects[*storagev1.StorageClass](s, KindStorageClass) {
		class = kinds.BetterDefault(class, c)
	}
	if class == nil {
		return ""
	}
	return class.Name
}

// What is behind the server. Its parts are packages below internal.
type (
	// Store is the state machine: the verbs, over what is stored.
	Store = store.Store
	// Template is a pod that was checked once, to be stamped many times as Stamps
	// say.
	Template = store.Template
	Stamp    = store.Stamp
	// MetaPatch is what controllers change of any object's metadata.
	MetaPatch = store.MetaPatch
	// Hooks are functions that were given to OnChange together.
	Hooks = store.Hooks
	// EventLimit is a limit of the admission plugin EventRateLimit.
	EventLimit     = admission.EventLimit
	EventLimitType = admission.EventLimitType
)

// What the server counts, and the model of what requests cost it.
type (
	// Stats is what the server has had to do since the start of the run.
	Stats           = stats.Stats
	RequestStats    = stats.RequestStats
	RequestInterval = stats.RequestInterval
	CodeCount       = stats.CodeCount
	LevelStats      = stats.LevelStats
	// Histogram counts durations.
	Histogram = stats.Histogram
	// Load says what requests cost the server.
	Load = flow.Load
	// Asker is who makes a request, as flow schemas see it.
	Asker = flow.Asker
	// Fault is something wrong with the API as nodes see it.
	Fault = wire.Fault
)

// Objects returns the objects of a kind of type T, oldest first. The slice is
// good until the next write. It panics when T is not the kind's type.
func Objects[T table.Pointer](s *Store, k Kind) []T { return store.Objects[T](s, k) }

// SetDisruptionAllowed sets the condition DisruptionAllowed of a
// PodDisruptionBudget to what disruptionsAllowed says.
func SetDisruptionAllowed(st *policyv1.PodDisruptionBudgetStatus, now time.Time) {
	store.SetDisruptionAllowed(st, now)
}

// GoNames is a value of an error as upstream prints it.
func GoNames(v any) any { return fields.GoNames(v) }

// CheckUID refuses an update of another object than the stored one (Conflict).
func CheckUID(in *KindInfo, stored Object, uid types.UID, dry bool) error {
	return store.CheckUID(in, stored, uid, dry)
}

// ParseCertificateRequest reads a request as a CertificateSigningRequest holds it.
func ParseCertificateRequest(text []byte) (*x509.CertificateRequest, error) {
	return kinds.ParseCertificateRequest(text)
}

// NewKinds returns the table of the kinds that the API serves by default: it decodes
// and checks manifests without a cluster.
func NewKinds() *Kinds { return NewKindsWith(Gates{}) }

// NewKindsWith is NewKinds for an API with those gates.
func NewKindsWith(on Gates) *Kinds { return kinds.New(on) }

// Gates are the API server's feature gates that can be set. The zero value has the
// defaults.
type Gates = features.Gates

// AllGates has all of them on.
func AllGates() Gates { return features.All() }

// ResolveGates makes a set of gates of what is said of them, by name. The error says
// which can't be set so; GateOf finds the name in it.
func ResolveGates(said map[string]bool) (Gates, error) { return features.Resolve(said) }

// GateOf is features.GateOf.
func GateOf(err error) string { return features.GateOf(err) }

// GateNames returns the gates that can be set, sorted.
func GateNames() []string { return features.Names() }

// GateOfKind returns the gate without which a kind is not served; "": it always is.
func GateOfKind(k Kind) string {
	switch k {
	case KindClusterTrustBundle:
		return features.ClusterTrustBundle
	case KindPodCertificateRequest:
		return features.PodCertificateRequest
	}
	return ""
}

// PodCertificateKey returns the public key that a request for a pod's certificate shows.
func PodCertificateKey(r *certificatesv1beta1.PodCertificateRequest) (crypto.PublicKey, error) {
	return kinds.PodCertificateKey(r)
}

// SetPodDefaults fills in what a pod's manifest left out, in place, as the API
// server's decoding does: also static pods get it. Admission's defaults
// (tolerations, priority, service account) are not among them.
func SetPodDefaults(pod *v1.Pod) { podspec.SetDefaults(pod) }

// ValidatePod checks a defaulted pod as the API server does on creation
// (pkg/apis/core/validation ValidatePodCreate); static pods go through it too.
// The errors name the fields.
func ValidatePod(pod *v1.Pod) field.ErrorList {
	in := kind.Info{Kind: KindPod, Namespaced: true}
	return append(in.ValidateMeta(pod), podspec.Validate(pod)...)
}

// ScaleUpRules completes a HorizontalPodAutoscaler's rules for scaling up.
func ScaleUpRules(rules *autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	return kinds.ScaleUpRules(rules)
}

// ScaleDownRules completes the rules for scaling down.
func ScaleDownRules(rules *autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	return kinds.ScaleDownRules(rules)
}

// UserKubelet is the user of all kubelets' requests in Stats.
const UserKubelet = stats.UserKubelet

package admission

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

const (
	defaultServiceAccount = "default"

	// tokenVolume is the prefix of the volume with a pod's token; tokenPath is where
	// containers have it.
	tokenVolume = "kube-api-access-"
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is a token's life. Nobody asks for just that, so that it shows where
	// the token comes from (WarnOnlyBoundTokenExpirationSeconds of pkg/serviceaccount).
	tokenSeconds = int64(60*60 + 7)

	// enforceMountable is the annotation of an account whose pods may use its own
	// secrets only.
	enforceMountable = "kubernetes.io/enforce-mountable-secrets"
)

// UseServiceAccounts has the plugin ServiceAccount ask for a pod's account, and mount
// its token, from now on. Without, a pod names its account and that is all: in
// simulations without clients nobody uses one.
func (p *Plugins) UseServiceAccounts() { p.serviceAccounts = true }

// ServiceAccounts reports whether accounts are asked for.
func (p *Plugins) ServiceAccounts() bool { return p.serviceAccounts }

// admitServiceAccount is the plugin ServiceAccount (plugin/pkg/admission/serviceaccount).
func (p *Plugins) admitServiceAccount(r *Request) error {
	pod := r.Object.(*v1.Pod)
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return nil // the kubelet's, as it stands; Validate looks at it
	}
	pod.Spec.ServiceAccountName = cmp.Or(pod.Spec.ServiceAccountName, defaultServiceAccount)
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	if !p.serviceAccounts {
		return nil
	}
	account, err := p.accountOf(pod)
	if err != nil {
		return err
	}
	if automounts(account, pod) {
		p.mountToken(pod)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
	return p.validateServiceAccount(r)
}

// validateServiceAccount refuses a pod that uses what its account doesn't allow.
func (p *Plugins) validateServiceAccount(r *Request) error {
	if !p.serviceAccounts {
		return nil
	}
	pod := r.Object.(*v1.Pod)
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror && r.Subresource == "" {
		return validateMirrorPod(pod)
	}
	account, err := p.accountOf(pod)
	if err != nil {
		return err
	}
	if enforce, _ := strconv.ParseBool(account.Annotations[enforceMountable]); !enforce {
		return nil
	}
	if r.Subresource == "ephemeralcontainers" {
		why := forbiddenSecret(account, lists.Map(pod.Spec.EphemeralContainers, func(c v1.EphemeralContainer) v1.Container {
			return v1.Container(c.EphemeralContainerCommon)
		}), "ephemeral container")
		if why == "" {
			return nil
		}
		// Upstream returns an error without a status here.
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: why}}
	}
	if why := forbiddenReference(account, pod); why != "" {
		return forbidden(pod, why)
	}
	return nil
}

// validateMirrorPod keeps a static pod from what only the API could give it.
func validateMirrorPod(pod *v1.Pod) error {
	if pod.Spec.ServiceAccountName != "" {
		return forbidden(pod, "a mirror pod may not reference service accounts")
	}
	if usesSecrets(&pod.Spec) {
		return forbidden(pod, "a mirror pod may not reference secrets")
	}
	for _, v := range pod.Spec.Volumes {
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s v1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			return forbidden(pod, "a mirror pod may not use ServiceAccountToken volume projections")
		}
	}
	return nil
}

// accountOf returns a pod's account.
func (p *Plugins) accountOf(pod *v1.Pod) (*v1.ServiceAccount, error) {
	name := pod.Spec.ServiceAccountName
	if name == "" {
		return nil, forbidden(pod, fmt.Sprintf("no service account specified for pod %s/%s", pod.Namespace, pod.Name))
	}
	account, ok := p.cluster.Lookup(kinds.ServiceAccount, pod.Namespace, name).(*v1.ServiceAccount)
	if !ok {
		err := apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccount"}, name)
		return nil, forbidden(pod, fmt.Sprintf("error looking up service account %s/%s: %v", pod.Namespace, name, err))
	}
	return account, nil
}

// automounts reports whether a pod gets its token without asking for it: the pod's own
// word counts more than its account's.
func automounts(account *v1.ServiceAccount, pod *v1.Pod) bool {
	own := cmp.Or(pod.Spec.AutomountServiceAccountToken, account.AutomountServiceAccountToken)
	return own == nil || *own
}

// mountToken mounts the volume with the token wherever nothing else is mounted there.
func (p *Plugins) mountToken(pod *v1.Pod) {
	name, has := "", false
	for _, v := range pod.Spec.Volumes {
		if strings.HasPrefix(v.Name, tokenVolume) {
			name, has = v.Name, true
			break
		}
	}
	if !has {
		name = p.cluster.GenerateName(tokenVolume)
	}
	mounted := false
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			if !slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.MountPath == tokenPath }) {
				c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: name, ReadOnly: true, MountPath: tokenPath})
				mounted = true
			}
		}
	}
	if mounted && !has {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Projected: tokenSource()}})
	}
}

// tokenSource is what is in the volume: the token, whom to trust, and the namespace.
func tokenSource() *v1.ProjectedVolumeSource {
	return &v1.ProjectedVolumeSource{
		DefaultMode: new(v1.ProjectedVolumeSourceDefaultMode),
		Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(tokenSeconds)}},
			{ConfigMap: &v1.ConfigMapProjection{
				LocalObjectReference: v1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []v1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}
}

// forbiddenReference says what a pod refers to that its account doesn't; "": nothing.
func forbiddenReference(account *v1.ServiceAccount, pod *v1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil && !mountable(account, v.Secret.SecretName) {
			return fmt.Sprintf("volume with secret.secretName=%q is not allowed because service account %s does not reference that secret", v.Secret.SecretName, account.Name)
		}
	}
	if why := cmp.Or(forbiddenSecret(account, pod.Spec.InitContainers, "init container"), forbiddenSecret(account, pod.Spec.Containers, "container")); why != "" {
		return why
	}
	for i, s := range pod.Spec.ImagePullSecrets {
		if !slices.Contains(account.ImagePullSecrets, s) {
			return fmt.Sprintf("imagePullSecrets[%d].name=%q is not allowed because service account %s does not reference that imagePullSecret", i, s.Name, account.Name)
		}
	}
	return ""
}

// mountable reports whether an account has a secret.
func mountable(account *v1.ServiceAccount, secret string) bool {
	return slices.ContainsFunc(account.Secrets, func(ref v1.ObjectReference) bool { return ref.Name == secret })
}

// forbiddenSecret says which secret an environment has that the account doesn't.
func forbiddenSecret(account *v1.ServiceAccount, list []v1.Container, what string) string {
	for _, c := range list {
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && !mountable(account, e.ValueFrom.SecretKeyRef.Name) {
				return fmt.Sprintf("%s %s with envVar %s referencing secret.secretName=%q is not allowed because service account %s does not reference that secret", what, c.Name, e.Name, e.ValueFrom.SecretKeyRef.Name, account.Name)
			}
		}
		for _, e := range c.EnvFrom {
			if e.SecretRef != nil && !mountable(account, e.SecretRef.Name) {
				return fmt.Sprintf("%s %s with envFrom referencing secret.secretName=%q is not allowed because service account %s does not reference that secret", what, c.Name, e.SecretRef.Name, account.Name)
			}
		}
	}
	return ""
}

// usesSecrets reports whether a pod names a secret anywhere (VisitPodSecretNames of
// pkg/api/v1/pod).
func usesSecrets(spec *v1.PodSpec) bool {
	env := func(c *v1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e v1.EnvVar) bool { return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil }) ||
			slices.ContainsFunc(c.EnvFrom, func(e v1.EnvFromSource) bool { return e.SecretRef != nil })
	}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if env(&list[i]) {
				return true
			}
		}
	}
	return len(spec.ImagePullSecrets) > 0 || slices.ContainsFunc(spec.Volumes, volumeUsesSecret)
}

// volumeUsesSecret reports whether a volume's source names a secret.
func volumeUsesSecret(v v1.Volume) bool {
	switch s := v.VolumeSource; {
	case s.Secret != nil, s.AzureFile != nil:
		return true
	case s.Projected != nil:
		return slices.ContainsFunc(s.Projected.Sources, func(p v1.VolumeProjection) bool { return p.Secret != nil })
	case s.CSI != nil:
		return s.CSI.NodePublishSecretRef != nil
	case s.CephFS != nil:
		return s.CephFS.SecretRef != nil
	case s.Cinder != nil:
		return s.Cinder.SecretRef != nil
	case s.FlexVolume != nil:
		return s.FlexVolume.SecretRef != nil
	case s.RBD != nil:
		return s.RBD.SecretRef != nil
	case s.ISCSI != nil:
		return s.ISCSI.SecretRef != nil
	case s.ScaleIO != nil:
		return s.ScaleIO.SecretRef != nil
	case s.StorageOS != nil:
		return s.StorageOS.SecretRef != nil
	}
	return false
}

package config

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// maxManifest is the greatest size of a static pod manifest in bytes.
const maxManifest = 10 << 20

// StaticPods makes pods of manifests (pkg/kubelet/config/common.go).
type StaticPods struct {
	// NodeName is the node's name; static pods carry it in theirs.
	NodeName string
	// Defaulter fills in the defaults of the v1 API; nil means none.
	Defaulter func(*v1.Pod)
	// Validator judges a defaulted pod as the API would; nil means none.
	Validator func(*v1.Pod) error
}

// Decode makes a pod of one manifest, YAML or JSON, that came from a file:
// defaults, name, UID, annotations. Unknown fields are ignored, as upstream
// ignores them.
// The size is bounded before the parsing, which takes many times as much
// memory.
func (d *StaticPods) Decode(data []byte, path string) (*v1.Pod, error) {
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%s: manifest is larger than %d bytes", path, maxManifest)
	}
	js, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%s: couldn't parse as pod(%w), please check config file", path, err)
	}
	pod := &v1.Pod{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(js, pod); err != nil {
		return nil, fmt.Errorf("%s: couldn't parse as pod(%w), please check config file", path, err)
	}
	if pod.Kind != "Pod" || pod.APIVersion != "v1" {
		return nil, fmt.Errorf("%s: couldn't parse as pod(it is %q of %q, not a v1 Pod), please check config file", path, pod.Kind, pod.APIVersion)
	}
	if err := d.finish(pod, origin{path: path}); err != nil {
		return nil, err
	}
	return pod, nil
}

// origin says where a manifest came from: one of them is set.
type origin struct{ path, url string }

// finish makes a pod of what a manifest says: the API's defaults, its own, and
// all that has to be true of it.
func (d *StaticPods) finish(pod *v1.Pod, from origin) error {
	if d.Defaulter != nil {
		d.Defaulter(pod)
	}
	if err := d.applyDefaults(pod, from); err != nil {
		return err
	}
	if d.Validator != nil {
		if err := d.Validator(pod); err != nil {
			return fmt.Errorf("invalid pod: %w", err)
		}
	}
	return checkReferences(pod)
}

// applyDefaults gives a pod what makes it a static one: a name that says its
// node, so that mirrors of several nodes don't collide, and a UID that changes
// with the manifest, so that a changed pod is another.
func (d *StaticPods) applyDefaults(pod *v1.Pod, from origin) error {
	if pod.UID == "" {
		uid, err := d.uid(pod, from)
		if err != nil {
			return err
		}
		pod.UID = uid
	}
	if pod.Name == "" {
		return errors.New("invalid pod: name is needed for the pod")
	}
	pod.Name += "-" + strings.ToLower(d.NodeName)
	pod.Namespace = cmp.Or(pod.Namespace, v1.NamespaceDefault)
	pod.Spec.NodeName = d.NodeName
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[kubetypes.ConfigHashAnnotationKey] = string(pod.UID)
	if from.url == "" {
		addNoExecute(pod)
	}
	pod.Status.Phase = v1.PodPending
	return nil
}

// uid hashes the whole manifest, the node's name and the file's path, or the
// URL alone, into 32 hex digits. Upstream hashes a dump of its internal types,
// so the digits differ from upstream's.
func (d *StaticPods) uid(pod *v1.Pod, from origin) (types.UID, error) {
	h := fnv.New128a()
	if err := json.NewEncoder(h).Encode(pod); err != nil {
		return "", err
	}
	if from.url == "" {
		fmt.Fprintf(h, "host:%s", d.NodeName)
		fmt.Fprintf(h, "file:%s", from.path)
	} else {
		fmt.Fprintf(h, "url:%s", from.url)
	}
	return types.UID(hex.EncodeToString(h.Sum(nil))), nil
}

// addNoExecute lets a pod from a file stay whatever NoExecute taint comes.
func addNoExecute(pod *v1.Pod) {
	t := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for i := range pod.Spec.Tolerations {
		if o := &pod.Spec.Tolerations[i]; o.MatchToleration(&t) {
			*o = t
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
}

// checkReferences refuses static pods that need the API (gate
// PreventStaticPodAPIReferences, on).
func checkReferences(pod *v1.Pod) error {
	if what := apiReference(&pod.Spec); what != "" {
		return fmt.Errorf("static pods may not reference %s", what)
	}
	return nil
}

// apiReference is what a pod refers to that only the API has; "" if nothing.
func apiReference(spec *v1.PodSpec) string {
	switch {
	case spec.ServiceAccountName != "":
		return "serviceaccounts"
	case referencesSecret(spec):
		return "secrets"
	case referencesConfigMap(spec):
		return "configmaps"
	case len(spec.ResourceClaims) > 0:
		return "resourceclaims"
	}
	for i := range spec.Volumes {
		if what := volumeReference(&spec.Volumes[i].VolumeSource); what != "" {
			return what
		}
	}
	return ""
}

// volumeReference is what a volume refers to, "" if nothing.
func volumeReference(v *v1.VolumeSource) string {
	switch {
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)"
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)"
	case v.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims"
	case v.Ephemeral != nil:
		return "persistentvolumeclaims (via ephemeral volumes)"
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			switch {
			case s.ServiceAccountToken != nil:
				return "serviceaccounts (via projected volumes)"
			case s.ClusterTrustBundle != nil:
				return "clustertrustbundles"
			case s.PodCertificate != nil:
				return "podcertificates"
			}
		}
	}
	return ""
}

// referencesSecret reports whether anything of the pod names a secret.
func referencesSecret(spec *v1.PodSpec) bool {
	if slices.ContainsFunc(spec.ImagePullSecrets, func(r v1.LocalObjectReference) bool { return r.Name != "" }) {
		return true
	}
	for i := range spec.Volumes {
		if volumeSecret(&spec.Volumes[i].VolumeSource) {
			return true
		}
	}
	return anyContainer(spec, func(c *v1.Container) bool {
		for _, e := range c.EnvFrom {
			if e.SecretRef != nil && e.SecretRef.Name != "" {
				return true
			}
		}
		return slices.ContainsFunc(c.Env, func(e v1.EnvVar) bool {
			return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name != ""
		})
	})
}

// volumeSecret reports whether a volume names one, also of kinds that are not
// built: upstream refuses those, too.
func volumeSecret(v *v1.VolumeSource) bool {
	named := func(r *v1.LocalObjectReference) bool { return r != nil && r.Name != "" }
	switch {
	case v.Secret != nil:
		return v.Secret.SecretName != ""
	case v.AzureFile != nil:
		return v.AzureFile.SecretName != ""
	case v.CephFS != nil:
		return named(v.CephFS.SecretRef)
	case v.Cinder != nil:
		return named(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		return named(v.FlexVolume.SecretRef)
	case v.RBD != nil:
		return named(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		return named(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		return named(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		return named(v.StorageOS.SecretRef)
	case v.CSI != nil:
		return named(v.CSI.NodePublishSecretRef)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.Secret != nil && s.Secret.Name != "" {
				return true
			}
		}
	}
	return false
}

// referencesConfigMap reports whether anything of the pod names a configMap.
func referencesConfigMap(spec *v1.PodSpec) bool {
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.ConfigMap != nil && v.ConfigMap.Name != "" {
			return true
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil && s.ConfigMap.Name != "" {
				return true
			}
		}
	}
	return anyContainer(spec, func(c *v1.Container) bool {
		for _, e := range c.EnvFrom {
			if e.ConfigMapRef != nil && e.ConfigMapRef.Name != "" {
				return true
			}
		}
		return slices.ContainsFunc(c.Env, func(e v1.EnvVar) bool {
			return e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil && e.ValueFrom.ConfigMapKeyRef.Name != ""
		})
	})
}

// anyContainer reports whether f is true of a container of any kind.
func anyContainer(spec *v1.PodSpec, f func(*v1.Container) bool) bool {
	for c := range kubecontainer.Containers(spec) {
		if f(c) {
			return true
		}
	}
	return false
}

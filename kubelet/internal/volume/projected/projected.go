// Package projected is the volume that shows several sources in one directory,
// in memory. It mirrors upstream's pkg/volume/projected.
package projected

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/downwardapi"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/emptydir"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/keyed"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// PluginName is the plugin's name.
const PluginName = "kubernetes.io/projected"

// privateMode is the mode of tokens and certificates where their reader is known by user
// or group.
const privateMode = 0o600

// Plugin is the plugin.
type Plugin struct {
	host       *volume.Host
	configMaps keyed.Reader[*v1.ConfigMap]
	secrets    keyed.Reader[*v1.Secret]
}

// New returns the plugin.
func New(host *volume.Host) *Plugin {
	return &Plugin{host, keyed.ConfigMaps(host), keyed.Secrets(host)}
}

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return PluginName }

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool { return v.Projected != nil }

// Path implements volume.Plugin.
func (p *Plugin) Path(uid types.UID, v *v1.Volume) string {
	return p.host.VolumeDir(uid, PluginName, v.Name)
}

// ReadOnly implements volume.Plugin.
func (p *Plugin) ReadOnly(*v1.Volume) bool { return true }

// InPodDir implements volume.Plugin.
func (p *Plugin) InPodDir() bool { return true }

// SetUp implements volume.Plugin.
// Everything is read before anything is written: a source that is missing
// leaves the volume as it was.
func (p *Plugin) SetUp(ctx context.Context, r *volume.Request) error {
	if p.host.ConfigMaps == nil || p.host.Secrets == nil {
		return fmt.Errorf("cannot setup projected volume %v because kube client is not configured", r.Volume.Name)
	}
	data, err := p.collectData(ctx, r)
	if err != nil {
		p.host.Logf("Error preparing data for projected volume %v for pod %v/%v: %v", r.Volume.Name, r.Pod.Namespace, r.Pod.Name, err)
		return err
	}
	return util.SetUpContent(p.host, r, func() error {
		return emptydir.SetUpWrapped(p.host, r, v1.StorageMediumMemory)
	}, func() error { return p.TearDown(ctx, r.Pod.UID, r.Volume.Name) }, data)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(_ context.Context, uid types.UID, name string) error {
	if err := emptydir.TearDownWrapped(p.host, uid, p.host.VolumeDir(uid, PluginName, name), name); err != nil {
		return err
	}
	if p.host.Tokens != nil {
		p.host.Tokens.DeleteServiceAccountToken(uid)
	}
	return nil
}

// collectData reads all sources; later ones replace paths of earlier ones. If
// any fails, all errors are returned.
func (p *Plugin) collectData(ctx context.Context, r *volume.Request) (map[string]util.FileProjection, error) {
	source := r.Volume.Projected
	if source.DefaultMode == nil {
		return nil, errors.New("no defaultMode used, not even the default value for it")
	}
	var errs []error
	payload := map[string]util.FileProjection{}
	for i := range source.Sources {
		part, err := p.collect(ctx, r, i, source.DefaultMode)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		maps.Copy(payload, part)
	}
	return payload, utilerrors.NewAggregate(errs)
}

// collect reads one source and notes what it read.
// A source of a kind that is switched off is an error, never nothing.
func (p *Plugin) collect(ctx context.Context, r *volume.Request, source int, mode *int32) (map[string]util.FileProjection, error) {
	s := &r.Volume.Projected.Sources[source]
	switch {
	case s.Secret != nil:
		return p.secrets.Payload(ctx, r, keyed.Source{Name: s.Secret.Name, Items: s.Secret.Items, Mode: mode, Optional: s.Secret.Optional})
	case s.ConfigMap != nil:
		return p.configMaps.Payload(ctx, r, keyed.Source{Name: s.ConfigMap.Name, Items: s.ConfigMap.Items, Mode: mode, Optional: s.ConfigMap.Optional})
	case s.DownwardAPI != nil:
		r.Inputs = append(r.Inputs, downwardapi.Inputs(p.host, s.DownwardAPI.Items, r.Pod)...)
		return downwardapi.CollectData(p.host, s.DownwardAPI.Items, r.Pod, mode)
	case s.ServiceAccountToken != nil:
		return p.token(ctx, r, s.ServiceAccountToken, *mode)
	case s.ClusterTrustBundle != nil:
		return p.trustBundle(ctx, r, s.ClusterTrustBundle, *mode)
	case s.PodCertificate != nil:
		return p.certificate(r, source, *mode)
	}
	return nil, nil
}

// trustBundle reads whom to trust.
func (p *Plugin) trustBundle(ctx context.Context, r *volume.Request, s *v1.ClusterTrustBundleProjection, mode int32) (map[string]util.FileProjection, error) {
	if p.host.TrustBundles == nil {
		return nil, errors.New("ClusterTrustBundle projection is disabled: the feature gate ClusterTrustBundleProjection is off")
	}
	anchors, err := p.host.TrustBundles.Get(ctx, s)
	if err != nil {
		return nil, err
	}
	r.Inputs = append(r.Inputs, anchors)
	return map[string]util.FileProjection{s.Path: ownFile(r, anchors.PEM, mode)}, nil
}

// certificate reads a certificate of the pod's own, with its key, which is for the files
// that the source names: both in one, or apart.
func (p *Plugin) certificate(r *volume.Request, source int, mode int32) (map[string]util.FileProjection, error) {
	if p.host.PodCertificates == nil {
		return nil, errors.New("PodCertificate projection is disabled: the feature gate PodCertificateRequest is off")
	}
	c, err := p.host.PodCertificates.GetPodCertificateCredentialBundle(r.Pod, r.Volume.Name, source)
	if err != nil {
		return nil, err
	}
	r.Inputs = append(r.Inputs, c)
	out, s := map[string]util.FileProjection{}, r.Volume.Projected.Sources[source].PodCertificate
	if s.CredentialBundlePath != "" {
		out[s.CredentialBundlePath] = ownFile(r, slices.Concat(c.Key, c.Chain), mode)
	}
	if s.KeyPath != "" {
		out[s.KeyPath] = ownFile(r, c.Key, mode)
	}
	if s.CertificateChainPath != "" {
		out[s.CertificateChainPath] = ownFile(r, c.Chain, mode)
	}
	return out, nil
}

// ownFile is a file that nobody else needs to read where its owner or group is known.
func ownFile(r *volume.Request, data []byte, mode int32) util.FileProjection {
	if r.FSUser != nil || r.FSGroup != nil {
		mode = privateMode
	}
	return util.FileProjection{Data: data, Mode: mode, FSUser: r.FSUser}
}

// tokenRequest is what a pod's token is asked for with.
// The token is bound to the pod, so that it is worth nothing after the pod's
// end (KEP-1205).
func tokenRequest(pod *v1.Pod, s *v1.ServiceAccountTokenProjection) *authenticationv1.TokenRequest {
	tr := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: s.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if s.Audience != "" {
		tr.Spec.Audiences = []string{s.Audience}
	}
	return tr
}

// token reads a service account token.
func (p *Plugin) token(ctx context.Context, r *volume.Request, s *v1.ServiceAccountTokenProjection, mode int32) (map[string]util.FileProjection, error) {
	if p.host.Tokens == nil {
		return nil, errors.New("cannot use TokenManager when kubelet is in standalone mode")
	}
	tr, err := p.host.Tokens.GetServiceAccountToken(ctx, r.Pod.Namespace, r.Pod.Spec.ServiceAccountName, tokenRequest(r.Pod, s))
	if err != nil {
		return nil, err
	}
	r.Inputs = append(r.Inputs, true)
	return map[string]util.FileProjection{s.Path: ownFile(r, []byte(tr.Status.Token), mode)}, nil
}

// Inputs implements volume.Remounter. A token is an input for as long as it is
// certainly not renewed.
func (p *Plugin) Inputs(pod *v1.Pod, v *v1.Volume) ([]any, bool) {
	var out []any
	for i := range v.Projected.Sources {
		s := &v.Projected.Sources[i]
		var input any
		ok := false
		switch {
		case s.Secret != nil:
			input, ok = p.secrets.Peek(pod.Namespace, s.Secret.Name)
		case s.ConfigMap != nil:
			input, ok = p.configMaps.Peek(pod.Namespace, s.ConfigMap.Name)
		case s.DownwardAPI != nil:
			out = append(out, downwardapi.Inputs(p.host, s.DownwardAPI.Items, pod)...)
			continue
		case s.ServiceAccountToken != nil && p.host.Tokens != nil:
			at := p.host.Tokens.NextRefresh(pod.Namespace, pod.Spec.ServiceAccountName, tokenRequest(pod, s.ServiceAccountToken))
			input, ok = true, p.host.Now().Before(at)
		case s.ClusterTrustBundle != nil && p.host.TrustBundles != nil:
			input, ok = p.host.TrustBundles.Peek(s.ClusterTrustBundle)
		case s.PodCertificate != nil && p.host.PodCertificates != nil:
			c, err := p.host.PodCertificates.GetPodCertificateCredentialBundle(pod, v.Name, i)
			input, ok = c, err == nil
		}
		if !ok {
			return nil, false
		}
		out = append(out, input)
	}
	return out, true
}

package plugin

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/credentialprovider"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// Validate judges a configuration for kubelets with those feature gates, of which
// KubeletServiceAccountTokenForCredentialProviders counts
// (validateCredentialProviderConfig). As upstream, the errors' paths don't say which
// provider it is.
func Validate(c *kubeletconfigv1.CredentialProviderConfig, gates map[string]bool) field.ErrorList {
	on, err := features.Resolve(gates)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("featureGates"), gates, err.Error())}
	}
	v := &validator{tokens: on.Enabled(features.KubeletServiceAccountTokenForCredentialProviders), path: field.NewPath("providers")}
	if len(c.Providers) == 0 {
		v.add(field.Required(v.path, "at least 1 item in plugins is required"))
	}
	seen := map[string]bool{}
	for i := range c.Providers {
		p := &c.Providers[i]
		v.name(p.Name)
		if seen[p.Name] {
			v.add(field.Duplicate(v.path.Child("name"), p.Name))
		}
		seen[p.Name] = true
		v.provider(p)
		if p.TokenAttributes != nil {
			v.attributes(p.APIVersion, p.TokenAttributes)
		}
	}
	return v.errs
}

type validator struct {
	tokens bool
	path   *field.Path
	errs   field.ErrorList
}

func (v *validator) add(err *field.Error) { v.errs = append(v.errs, err) }

// name is that of a program in a directory.
func (v *validator) name(name string) {
	at := v.path.Child("name")
	if strings.Contains(name, "/") {
		v.add(field.Invalid(at, name, "provider name cannot contain '/'"))
	}
	if strings.Contains(name, " ") {
		v.add(field.Invalid(at, name, "provider name cannot contain spaces"))
	}
	if name == "." || name == ".." {
		v.add(field.Invalid(at, name, fmt.Sprintf("provider name cannot be '%s'", name)))
	}
}

func (v *validator) provider(p *kubeletconfigv1.CredentialProvider) {
	switch at := v.path.Child("apiVersion"); {
	case p.APIVersion == "":
		v.add(field.Required(at, ""))
	case !slices.Contains(apiVersions(), p.APIVersion):
		v.add(field.NotSupported(at, p.APIVersion, apiVersions()))
	}
	at := v.path.Child("matchImages")
	if len(p.MatchImages) == 0 {
		v.add(field.Required(at, "at least 1 item in matchImages is required"))
	}
	for _, m := range p.MatchImages {
		if _, err := credentialprovider.ParseSchemelessURL(m); err != nil {
			v.add(field.Invalid(at, m, fmt.Sprintf("match image is invalid: %s", err.Error())))
		}
	}
	switch at, d := v.path.Child("defaultCacheDuration"), p.DefaultCacheDuration; {
	case d == nil:
		v.add(field.Required(at, ""))
	case d.Duration < 0:
		v.add(field.Invalid(at, d, "must be greater than or equal to 0"))
	}
}

// attributes judges what tokens of service accounts a plugin wants.
func (v *validator) attributes(apiVersion string, a *kubeletconfigv1.ServiceAccountTokenAttributes) {
	at := v.path.Child("tokenAttributes")
	if !v.tokens {
		v.add(field.Forbidden(at, "tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is disabled"))
	}
	if a.ServiceAccountTokenAudience == "" {
		v.add(field.Required(at.Child("serviceAccountTokenAudience"), ""))
	}
	if a.RequireServiceAccount == nil {
		v.add(field.Required(at.Child("requireServiceAccount"), ""))
	}
	if want := credentialproviderv1.SchemeGroupVersion.String(); apiVersion != want {
		v.add(field.Forbidden(at, fmt.Sprintf("tokenAttributes is only supported for %s API version", want)))
	}
	required, optional := a.RequiredServiceAccountAnnotationKeys, a.OptionalServiceAccountAnnotationKeys
	if a.RequireServiceAccount != nil && !*a.RequireServiceAccount && len(required) > 0 {
		v.add(field.Forbidden(at.Child("requiredServiceAccountAnnotationKeys"), "requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set"))
	}
	v.keys(at.Child("requiredServiceAccountAnnotationKeys"), required)
	v.keys(at.Child("optionalServiceAccountAnnotationKeys"), optional)
	if both := sets.New(required...).Intersection(sets.New(optional...)); both.Len() > 0 {
		v.add(field.Invalid(at, sets.List(both), "annotation keys cannot be both required and optional"))
	}
	types := []string{string(kubeletconfigv1.ServiceAccountServiceAccountTokenCacheType), string(kubeletconfigv1.TokenServiceAccountTokenCacheType)}
	switch at := at.Child("cacheType"); {
	case a.CacheType == "":
		v.add(field.Required(at, fmt.Sprintf("cacheType is required to be set when tokenAttributes is specified. Supported values are: %s", strings.Join(types, ", "))))
	case !slices.Contains(types, string(a.CacheType)):
		v.add(field.NotSupported(at, a.CacheType, types))
	}
}

// keys are those of annotations, whose case does not matter.
func (v *validator) keys(at *field.Path, keys []string) {
	seen := map[string]bool{}
	for _, k := range keys {
		for _, msg := range validation.IsQualifiedName(strings.ToLower(k)) {
			v.add(field.Invalid(at, k, msg))
		}
		if seen[k] {
			v.add(field.Duplicate(at, k))
		}
		seen[k] = true
	}
}

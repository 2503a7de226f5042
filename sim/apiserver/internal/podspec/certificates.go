package podspec

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// This file has the rules for certificates in files: sources clusterTrustBundle and
// podCertificate of projected volumes, and what the kinds behind them share with those.

// The bounds of the life that a pod's certificate may be asked for, in seconds
// (pkg/apis/certificates/types.go). Kubernetes' own signers give a day.
const (
	minCertificateLife        = 60 * 60
	maxCertificateLife        = 91 * 24 * 60 * 60
	maxCertificateLifeOfOwner = 24 * 60 * 60
)

// CertificateLife returns the least and the most time, in seconds, that a certificate
// of a signer's may be asked for (IsKubernetesSignerName).
func CertificateLife(signer string) (least, most int32) {
	domain, _, _ := strings.Cut(signer, "/")
	if domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		return minCertificateLife, maxCertificateLifeOfOwner
	}
	return minCertificateLife, maxCertificateLife
}

// BundleName says what is wrong with the name of a ClusterTrustBundle, which tells of
// its signer's, "" for none (ValidateClusterTrustBundleName of
// pkg/apis/core/validation/names.go). prefix: it is generateName.
func BundleName(signer, name string, prefix bool) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		}
		return apivalidation.NameIsDNSSubdomain(name, prefix)
	}
	begins := strings.ReplaceAll(signer, "/", ":") + ":"
	rest, ok := strings.CutPrefix(name, begins)
	if !ok {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, begins)}
	}
	return apivalidation.NameIsDNSSubdomain(rest, prefix)
}

// UserAnnotations checks what pods tell signers (ValidateUserAnnotations).
func UserAnnotations(m map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, k := range fields.SortedKeys(m) {
		errs = append(errs, validation.IsDomainPrefixedKey(path, strings.ToLower(k))...)
	}
	if err := apivalidation.ValidateAnnotationsSize(m); err != nil {
		errs = append(errs, field.TooLong(path, "", apivalidation.TotalAnnotationSizeLimitB))
	}
	return errs
}

// validateTrustBundleSource checks a source that is a ClusterTrustBundle by name, or all
// of a signer's that a selector selects.
func validateTrustBundleSource(s *v1.ClusterTrustBundleProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case s.Name != nil && s.SignerName != nil:
		errs = append(errs, field.Invalid(path, fields.GoNames(s), "only one of name and signerName may be used"))
	case s.Name != nil:
		name, signer := *s.Name, ""
		if name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be a valid object name"))
		}
		if at := strings.LastIndex(name, ":"); at >= 0 { // it looks like one of a signer's
			signer = strings.ReplaceAll(name[:at], ":", "/")
		}
		for _, text := range BundleName(signer, name, false) {
			errs = append(errs, field.Invalid(path.Child("name"), name, "not a valid clustertrustbundlename: "+text))
		}
		if s.LabelSelector != nil {
			errs = append(errs, field.Invalid(path.Child("labelSelector"), s.LabelSelector, "labelSelector must be unset if name is specified"))
		}
	case s.SignerName != nil:
		if *s.SignerName == "" {
			errs = append(errs, field.Required(path.Child("signerName"), "must be a valid signer name"))
		}
		errs = append(errs, ValidateSignerName(*s.SignerName, path.Child("signerName"))...)
		errs = append(errs, metavalidation.ValidateLabelSelector(s.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, path.Child("labelSelector"))...)
	default:
		errs = append(errs, field.Required(path, "either name or signerName must be specified"))
	}
	if s.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	return append(errs, localPath(s.Path, path.Child("path"))...)
}

// validateCertificateSource checks a source that is a certificate of the pod's own. Of
// each file, takes is told.
func validateCertificateSource(s *v1.PodCertificateProjection, path *field.Path, takes func(file string)) field.ErrorList {
	errs := ValidateSignerName(s.SignerName, path.Child("signerName"))
	errs = append(errs, UserAnnotations(s.UserAnnotations, path.Child("userAnnotations"))...)
	errs = append(errs, fields.Supported(s.KeyType, path.Child("keyType"), "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")...)
	if e := s.MaxExpirationSeconds; e != nil {
		at := path.Child("maxExpirationSeconds")
		least, most := CertificateLife(s.SignerName)
		if *e < least {
			errs = append(errs, field.Invalid(at, *e, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", least)))
		}
		if *e > most {
			errs = append(errs, field.Invalid(at, *e, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most)))
		}
	}
	any := false
	for _, f := range [...]struct{ child, file string }{{"credentialBundlePath", s.CredentialBundlePath}, {"keyPath", s.KeyPath}, {"certificateChainPath", s.CertificateChainPath}} {
		if f.file != "" {
			any = true
			errs = append(errs, localPath(f.file, path.Child(f.child))...)
			takes(f.file)
		}
	}
	if !any {
		errs = append(errs, field.Required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
	return errs
}

// ValidateSignerName checks the name of a signer: a domain and a path
// (pkg/apis/core/validation/names.go).
func ValidateSignerName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	var errs field.ErrorList
	if len(domain) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.TooLong(path, "", validation.DNS1123SubdomainMaxLength))
	}
	// Of the first bad label only is told.
	labels := func(part string, check func(string) []string) {
		for l := range strings.SplitSeq(part, ".") {
			if texts := check(l); len(texts) > 0 {
				for _, text := range texts {
					errs = append(errs, field.Invalid(path, part, fmt.Sprintf("validating label %q: %s", l, text)))
				}
				return
			}
		}
	}
	labels(domain, validation.IsDNS1123Label)
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	labels(rest, validation.IsDNS1123Subdomain)
	if most := 2*validation.DNS1123SubdomainMaxLength + validation.DNS1123LabelMaxLength + 2; len(name) > most {
		errs = append(errs, field.TooLong(path, "", most))
	}
	return errs
}

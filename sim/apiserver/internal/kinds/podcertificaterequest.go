package kinds

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// PodCertificateRequest is the kind of requests for certificates of pods, which kubelets
// make and signers decide through the status. It is served with the gate of its name.
const PodCertificateRequest kind.Kind = "PodCertificateRequest"

type podRequest = certificatesv1beta1.PodCertificateRequest

// podCertificateRequest returns the row of PodCertificateRequest
// (pkg/registry/certificates/podcertificaterequest/strategy.go). Who may sign for a
// signer is not asked: there is no authorization.
func podCertificateRequest() *kind.Info {
	return &kind.Info{
		Kind: PodCertificateRequest, Group: certificatesv1.GroupName, Version: "v1beta1", Resource: "podcertificaterequests", Namespaced: true, Watch: kind.ByNode,
		NeedsVersion: true, Unwritten: true, StatusKeeps: kind.KeepsMeta, ResetFields: map[string][]string{"": {}, "status": {"spec"}},
		Strategy: &kind.Typed[podRequest, *podRequest]{
			Defaults: func(r *podRequest) { fields.DefaultPtr(&r.Spec.MaxExpirationSeconds, defaultCertificateLife) },
			Halves: kind.SpecAndStatus(func(r *podRequest) (*certificatesv1beta1.PodCertificateRequestSpec, *certificatesv1beta1.PodCertificateRequestStatus) {
				return &r.Spec, &r.Status
			}),
			Check: validatePodRequest,
			CheckUpdate: func(r, old *podRequest, sub string) field.ErrorList {
				if sub == "" {
					return fields.Immutable(r.Spec, old.Spec, field.NewPath("spec"))
				}
				return validatePodRequestStatus(r, old)
			},
			Fields: func(r *podRequest) selectable.Set {
				return selectable.Set{"spec.signerName": r.Spec.SignerName, "spec.podName": r.Spec.PodName, "spec.nodeName": string(r.Spec.NodeName)}
			},
			Node: func(r *podRequest) string { return string(r.Spec.NodeName) },
			Entry: func(n *kind.Notes, c kind.Change, r *podRequest) {
				if c.Old == nil {
					n.Add("signer", r.Spec.SignerName)
				} else {
					n.Add("state", podRequestState(r))
				}
			},
			Table: podRequestTable(),
		},
	}
}

// defaultCertificateLife is what certificates are asked for, in seconds.
const defaultCertificateLife int32 = 24 * 60 * 60

func podRequestTable() []kind.Column[podRequest] {
	doc := certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()
	text := func(name, field string, cell func(r *podRequest) string) kind.Column[podRequest] {
		return kind.Column[podRequest]{Name: name, Type: "string", Description: doc[field], Cell: func(r *podRequest, _ time.Time) any { return cell(r) }}
	}
	state := text("State", "", podRequestState)
	state.Description = "Is the request Pending, Issued, Denied, or Failed?"
	return []kind.Column[podRequest]{
		kind.NameColumn[podRequest](),
		text("PodName", "podName", func(r *podRequest) string { return r.Spec.PodName }),
		text("ServiceAccountName", "serviceAccountName", func(r *podRequest) string { return r.Spec.ServiceAccountName }),
		text("NodeName", "nodeName", func(r *podRequest) string { return string(r.Spec.NodeName) }),
		text("SignerName", "signerName", func(r *podRequest) string { return r.Spec.SignerName }),
		state,
		text("UnverifiedUserAnnotations", "unverifiedUserAnnotations", func(r *podRequest) string { return labels.FormatLabels(r.Spec.UnverifiedUserAnnotations) }),
	}
}

// podRequestState is what tables say of a request.
func podRequestState(r *podRequest) string {
	state := "Pending"
	for _, c := range r.Status.Conditions {
		if decides(c.Type) {
			state = c.Type
		}
	}
	return state
}

// decides reports whether a condition of that type ends a request.
func decides(condition string) bool { return slices.Contains(decisions(), condition) }

func decisions() []string {
	return []string{certificatesv1beta1.PodCertificateRequestConditionTypeIssued, certificatesv1beta1.PodCertificateRequestConditionTypeDenied, certificatesv1beta1.PodCertificateRequestConditionTypeFailed}
}

// decided returns what has ended a request; "": nothing yet.
func decided(r *podRequest) string {
	for _, c := range r.Status.Conditions {
		if decides(c.Type) && c.Status == metav1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// The most bytes of fields of requests (pkg/apis/certificates/types.go).
const (
	maxPodRequestKey   = 10 << 10
	maxPodRequestChain = 100 << 10
	maxUID             = 128
)

// validatePodRequest is ValidatePodCertificateRequestCreate
// (pkg/apis/certificates/validation).
func validatePodRequest(r *podRequest) field.ErrorList {
	s, spec := &r.Spec, field.NewPath("spec")
	errs := podspec.ValidateSignerName(s.SignerName, spec.Child("signerName"))
	errs = append(errs, podspec.UserAnnotations(s.UnverifiedUserAnnotations, spec.Child("unverifiedUserAnnotations"))...)
	for _, of := range [...]struct {
		name, uid string
		value     string
		id        string
		of        any
	}{
		{"podName", "podUID", s.PodName, string(s.PodUID), s.PodUID},
		{"serviceAccountName", "serviceAccountUID", s.ServiceAccountName, string(s.ServiceAccountUID), s.ServiceAccountUID},
		{"nodeName", "nodeUID", string(s.NodeName), string(s.NodeUID), s.NodeUID},
	} {
		errs = append(errs, fields.Invalid(spec.Child(of.name), of.value, apivalidation.NameIsDNSSubdomain(of.value, false))...)
		if of.id == "" {
			errs = append(errs, field.Invalid(spec.Child(of.uid), of.of, "must not be empty"))
		}
		if len(of.id) > maxUID {
			errs = append(errs, field.TooLong(spec.Child(of.uid), of.of, maxUID))
		}
	}
	at := spec.Child("maxExpirationSeconds")
	if s.MaxExpirationSeconds == nil {
		return append(errs, field.Required(at, "must be set"))
	}
	if least, most := podspec.CertificateLife(s.SignerName); *s.MaxExpirationSeconds < least || *s.MaxExpirationSeconds > most {
		errs = append(errs, field.Invalid(at, *s.MaxExpirationSeconds, fmt.Sprintf("must be in the range [%d, %d]", least, most)))
	}
	if err := validateProof(s, spec); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// validateProof wants a public key, and proof that who asks has the private one: a
// request as others are, or the older two fields.
func validateProof(s *certificatesv1beta1.PodCertificateRequestSpec, spec *field.Path) *field.Error {
	key, proof, stub := len(s.PKIXPublicKey), len(s.ProofOfPossession), len(s.StubPKCS10Request)
	switch {
	case stub > 0 && key == 0 && proof == 0:
		at := spec.Child("stubPKCS10Request")
		if stub > maxPodRequestKey {
			return field.TooLong(at, s.StubPKCS10Request, maxPodRequestKey)
		}
		request, err := x509.ParseCertificateRequest(s.StubPKCS10Request)
		if err != nil {
			return field.Invalid(at, field.OmitValueType{}, "must be a valid PKCS#10 CSR")
		}
		if err := validatePublicKey(request.PublicKey, field.OmitValueType{}, "P256, P384, or P521", at); err != nil {
			return err
		}
		if err := request.CheckSignature(); err != nil {
			return field.Invalid(at, field.OmitValueType{}, "invalid signature")
		}
		return nil
	case stub == 0 && key > 0 && proof > 0:
		return validateOldProof(s, spec)
	}
	return field.Invalid(spec, field.OmitValueType{}, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")
}

// validatePublicKey wants a key of a kind that pods may have; value is the field's, as
// errors have it.
func validatePublicKey(key, value any, curves string, at *field.Path) *field.Error {
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, k.Curve) {
			return field.Invalid(at, "curve "+k.Curve.Params().Name, "elliptic public keys must use curve "+curves)
		}
	case *rsa.PublicKey:
		if bits := k.Size() * 8; bits != 3072 && bits != 4096 {
			return field.Invalid(at, fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")
		}
	default:
		return field.Invalid(at, value, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")
	}
	return nil
}

// validateOldProof is validateDeprecatedPKIXPublicKey: a key, with which the pod's UID is
// signed.
func validateOldProof(s *certificatesv1beta1.PodCertificateRequestSpec, spec *field.Path) *field.Error {
	key, proof := s.PKIXPublicKey, s.ProofOfPossession
	at := spec.Child("pkixPublicKey")
	if len(key) > maxPodRequestKey {
		return field.TooLong(at, key, maxPodRequestKey)
	}
	if len(proof) > maxPodRequestKey {
		return field.TooLong(spec.Child("proofOfPossession"), proof, maxPodRequestKey)
	}
	public, err := x509.ParsePKIXPublicKey(key)
	if err != nil {
		return field.Invalid(at, key, "must be a valid PKIX-serialized public key")
	}
	if err := validatePublicKey(public, key, "P256 or P384", at); err != nil {
		return err
	}
	ok, sum := false, sha256.Sum256([]byte(s.PodUID))
	switch k := public.(type) {
	case ed25519.PublicKey:
		ok = ed25519.Verify(k, []byte(s.PodUID), proof)
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(k, sum[:], proof)
	case *rsa.PublicKey:
		ok = rsa.VerifyPSS(k, crypto.SHA256, sum[:], proof, nil) == nil
	}
	if !ok {
		return field.Invalid(spec.Child("proofOfPossession"), field.OmitValueType{}, "could not verify proof-of-possession signature")
	}
	return nil
}

// validatePodRequestStatus is ValidatePodCertificateRequestStatusUpdate: a request is
// decided once, by one condition. That notBefore is within five minutes of the API's time
// is not checked here.
func validatePodRequestStatus(r, old *podRequest) field.ErrorList {
	var errs field.ErrorList
	status := field.NewPath("status")
	known := 0
	for i, c := range r.Status.Conditions {
		at := status.Child("conditions", fmt.Sprintf("[%d]", i))
		if !decides(c.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), c.Type, decisions()))
			continue
		}
		if known++; known > 1 {
			errs = append(errs, field.Invalid(at.Child("type"), c.Type, `There may be at most one condition with type "Issued", "Denied", or "Failed"`))
		}
		if c.Status != metav1.ConditionTrue {
			errs = append(errs, field.NotSupported(at.Child("status"), c.Status, []metav1.ConditionStatus{metav1.ConditionTrue}))
		}
	}
	errs = append(errs, metavalidation.ValidateConditions(r.Status.Conditions, status.Child("conditions"))...)
	if len(errs) > 0 { // the rest goes by the conditions
		return errs
	}
	same := func(want certificatesv1beta1.PodCertificateRequestStatus, text string) field.ErrorList {
		if equality.Semantic.DeepEqual(r.Status, want) {
			return nil
		}
		return field.ErrorList{field.Invalid(status, field.OmitValueType{}, text)}
	}
	if decided(old) != "" {
		return same(old.Status, "immutable after PodCertificateRequest is issued, denied, or failed")
	}
	switch decided(r) {
	case "":
		return same(old.Status, `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	case certificatesv1beta1.PodCertificateRequestConditionTypeIssued:
		if err := validateChain(r, old, status); err != nil {
			return field.ErrorList{err}
		}
		return nil
	}
	return same(certificatesv1beta1.PodCertificateRequestStatus{Conditions: r.Status.Conditions}, "non-condition status fields must be empty when denying or failing the PodCertificateRequest")
}

// validateChain checks what was issued for a request. Of several mistakes it tells one.
func validateChain(r, old *podRequest, status *field.Path) *field.Error {
	at, chain := status.Child("certificateChain"), r.Status.CertificateChain
	if len(chain) > maxPodRequestChain {
		return field.TooLong(at, chain, maxPodRequestChain)
	}
	bad := func(text string) *field.Error { return field.Invalid(at, chain, text) }
	block, rest := pem.Decode([]byte(chain))
	switch {
	case block == nil:
		return bad("issued certificate chain must contain at least one certificate")
	case block.Type != "CERTIFICATE":
		return bad("issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return bad("leaf certificate does not parse as valid X.509")
	}
	if err := validateNames(leaf, at); err != nil {
		return err
	}
	if !issuedTo(leaf, &old.Spec) {
		return bad("leaf certificate was not issued to the requested public key")
	}
	if err := validateChainTimes(r, leaf, status); err != nil {
		return err
	}
	for block, rest = pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return bad("issued certificate chain must consist entirely of CERTFICATE PEM blocks") // sic
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return bad("intermediate certificate does not parse as valid X.509")
		}
	}
	return nil
}

// validateNames checks those of a certificate.
func validateNames(leaf *x509.Certificate, at *field.Path) *field.Error {
	for _, n := range leaf.DNSNames {
		switch {
		case n == "":
			return field.Invalid(at, n, "leaf certificate should not contain empty DNSName")
		case strings.Contains(n, ".."):
			return field.Invalid(at, n, "leaf certificate's DNSName should not contain '..'")
		case strings.HasPrefix(n, ".") || strings.HasSuffix(n, "."):
			return field.Invalid(at, n, "leaf certificate's DNSName should not start or end with '.'")
		}
	}
	for _, a := range leaf.EmailAddresses {
		if _, err := mail.ParseAddress(a); err != nil {
			return field.Invalid(at, a, "leaf certificate should not contain invalid EmailAddress")
		}
	}
	return nil
}

// issuedTo reports whether a certificate is of the key that was shown.
func issuedTo(leaf *x509.Certificate, s *certificatesv1beta1.PodCertificateRequestSpec) bool {
	key, err := publicKeyOf(s)
	if err != nil {
		return false
	}
	k, ok := key.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(leaf.PublicKey)
}

// publicKeyOf is the key that a request asks a certificate for.
func publicKeyOf(s *certificatesv1beta1.PodCertificateRequestSpec) (crypto.PublicKey, error) {
	if len(s.StubPKCS10Request) == 0 {
		return x509.ParsePKIXPublicKey(s.PKIXPublicKey)
	}
	request, err := x509.ParseCertificateRequest(s.StubPKCS10Request)
	if err != nil {
		return nil, err
	}
	return request.PublicKey, nil
}

// PodCertificateKey returns the public key that a request asks a certificate for.
func PodCertificateKey(r *certificatesv1beta1.PodCertificateRequest) (crypto.PublicKey, error) {
	return publicKeyOf(&r.Spec)
}

// Times of pods' certificates: the least life, and how far from both ends the kubelet may
// begin to ask for the next.
const (
	minIssuedLife  = time.Hour
	refreshMargins = 10 * time.Minute
)

// validateChainTimes compares what a status says with its certificate.
func validateChainTimes(r *podRequest, leaf *x509.Certificate, status *field.Path) *field.Error {
	st := &r.Status
	before, after, refresh := status.Child("notBefore"), status.Child("notAfter"), status.Child("beginRefreshAt")
	switch {
	case st.NotBefore == nil:
		return field.Required(before, "must be present and consistent with the issued certificate")
	case st.NotAfter == nil:
		return field.Required(after, "must be present and consistent with the issued certificate")
	case st.BeginRefreshAt == nil:
		return field.Required(refresh, "must be present and in the range [notbefore+10min, notafter-10min]")
	case !st.NotBefore.Time.Equal(leaf.NotBefore):
		return field.Invalid(before, st.NotBefore.Time, "must be set to the NotBefore time encoded in the leaf certificate")
	case !st.NotAfter.Time.Equal(leaf.NotAfter):
		return field.Invalid(after, st.NotAfter.Time, "must be set to the NotAfter time encoded in the leaf certificate")
	}
	switch life := leaf.NotAfter.Sub(leaf.NotBefore); {
	case life < minIssuedLife:
		return field.Invalid(status.Child("certificateChain"), life, "leaf certificate lifetime must be >= 1 hour")
	case life > time.Duration(*r.Spec.MaxExpirationSeconds)*time.Second:
		return field.Invalid(status.Child("certificateChain"), life, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%v)", *r.Spec.MaxExpirationSeconds))
	case st.BeginRefreshAt.Time.Before(st.NotBefore.Add(refreshMargins)):
		return field.Invalid(refresh, st.BeginRefreshAt.Time, "must be at least 10 minutes after status.notBefore")
	case st.BeginRefreshAt.Time.After(st.NotAfter.Add(-refreshMargins)):
		return field.Invalid(refresh, st.BeginRefreshAt.Time, "must be at least 10 minutes before status.notAfter")
	}
	return nil
}

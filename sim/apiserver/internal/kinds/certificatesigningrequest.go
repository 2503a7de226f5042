package kinds

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// CertificateSigningRequest is the kind of requests for certificates. Who approves
// one writes through the subresource approval, who signs it through status.
const CertificateSigningRequest kind.Kind = "CertificateSigningRequest"

// certificateSigningRequest returns the row of CertificateSigningRequest
// (pkg/registry/certificates/certificates/strategy.go). Its name may be any.
func certificateSigningRequest() *kind.Info {
	return &kind.Info{
		Kind: CertificateSigningRequest, Group: certificatesv1.GroupName, Version: "v1", Resource: "certificatesigningrequests", ShortNames: []string{"csr"}, Watch: kind.ByName,
		CheckName: func(string, bool) []string { return nil }, Subresources: []string{subApproval},
		ResetFields: map[string][]string{"": {"spec", "status"}, "status": {"spec", "status.conditions"}, subApproval: {"spec", "status.certificate"}},
		Strategy: &kind.Typed[certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequest]{
			Reset: func(c *certificatesv1.CertificateSigningRequest) {
				c.Status = certificatesv1.CertificateSigningRequestStatus{}
			},
			Keep:    keepOfCSR,
			Updated: stampCSR,
			Check:   func(c *certificatesv1.CertificateSigningRequest) field.ErrorList { return validateCSR(c, nil) },
			CheckUpdate: func(c, old *certificatesv1.CertificateSigningRequest, sub string) field.ErrorList {
				return append(validateCSR(c, old), validateCSRUpdate(c, old, sub)...)
			},
			Fields: func(c *certificatesv1.CertificateSigningRequest) selectable.Set {
				return selectable.Set{"spec.signerName": c.Spec.SignerName}
			},
			Entry: func(n *kind.Notes, c kind.Change, obj *certificatesv1.CertificateSigningRequest) {
				if c.Old == nil {
					n.Add("signer", obj.Spec.SignerName)
				} else {
					n.Add("state", csrState(obj))
				}
			},
			Table: csrTable(),
		},
	}
}

const subApproval = "approval"

func csrTable() []kind.Column[certificatesv1.CertificateSigningRequest] {
	type csr = certificatesv1.CertificateSigningRequest
	spec, status := certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc(), certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()
	return []kind.Column[csr]{
		kind.NameColumn[csr](),
		kind.AgeColumn[csr](),
		{Name: "SignerName", Type: "string", Description: spec["signerName"], Cell: func(c *csr, _ time.Time) any { return c.Spec.SignerName }},
		{Name: "Requestor", Type: "string", Description: spec["request"], Cell: func(c *csr, _ time.Time) any { return c.Spec.Username }},
		{Name: "RequestedDuration", Type: "string", Description: spec["expirationSeconds"], Cell: func(c *csr, _ time.Time) any {
			if c.Spec.ExpirationSeconds == nil {
				return none
			}
			return duration.HumanDuration(time.Duration(*c.Spec.ExpirationSeconds) * time.Second)
		}},
		{Name: "Condition", Type: "string", Description: status["conditions"], Cell: func(c *csr, _ time.Time) any { return csrState(c) }},
	}
}

// csrState is extractCSRStatus.
func csrState(c *certificatesv1.CertificateSigningRequest) string {
	has := func(t certificatesv1.RequestConditionType) bool { return len(conditionsOf(c, t)) > 0 }
	out := "Pending"
	switch {
	case has(certificatesv1.CertificateDenied):
		out = "Denied"
	case has(certificatesv1.CertificateApproved):
		out = "Approved"
	}
	if has(certificatesv1.CertificateFailed) {
		out += ",Failed"
	}
	if len(c.Status.Certificate) > 0 {
		out += ",Issued"
	}
	return out
}

// conditionsOf returns the conditions of a type.
func conditionsOf(c *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
	var out []certificatesv1.CertificateSigningRequestCondition
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == t {
			out = append(out, c.Status.Conditions[i])
		}
	}
	return out
}

// keepOfCSR has an approval write the conditions only, and the status all but whether
// the request is approved. Nothing else of a request ever changes.
func keepOfCSR(c, old *certificatesv1.CertificateSigningRequest, sub string) bool {
	c.Spec = old.Spec
	switch sub {
	case "":
		c.Status = old.Status
	case subApproval:
		conditions := c.Status.Conditions
		c.Status = old.Status
		c.Status.Conditions = conditions
	case "status":
		keepConditions(c, old, certificatesv1.CertificateApproved)
		keepConditions(c, old, certificatesv1.CertificateDenied)
	default:
		return false
	}
	return true
}

// keepConditions is preserveConditionInstances: as many conditions of a type as before
// are what they were. More or fewer are refused later.
func keepConditions(c, old *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) {
	was := conditionsOf(old, t)
	if len(was) != len(conditionsOf(c, t)) {
		return
	}
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == t {
			c.Status.Conditions[i], was = was[0], was[1:]
		}
	}
}

// stampCSR is populateConditionTimestamps: conditions that come without times have
// that of the write.
func stampCSR(now time.Time, c, old *certificatesv1.CertificateSigningRequest, sub string) {
	if sub == "" {
		return
	}
	for i := range c.Status.Conditions {
		one := &c.Status.Conditions[i]
		if one.LastUpdateTime.IsZero() {
			one.LastUpdateTime = asjson.Time(now)
		}
		if !one.LastTransitionTime.IsZero() {
			continue
		}
		one.LastTransitionTime = asjson.Time(now)
		for _, was := range old.Status.Conditions {
			if was.Type == one.Type && was.Status == one.Status && !was.LastTransitionTime.IsZero() {
				one.LastTransitionTime = was.LastTransitionTime
				break
			}
		}
	}
}

// ParseCertificateRequest reads a request as a CertificateSigningRequest holds it
// (ParseCSR of pkg/apis/certificates).
func ParseCertificateRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

// keyUsages are all that there are, sorted.
func keyUsages() []string {
	return []string{
		"any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only",
		"digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement",
		"key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping",
	}
}

const (
	legacySigner = "kubernetes.io/legacy-unknown"
	// minExpirationSeconds is the shortest life that a certificate may be asked for.
	minExpirationSeconds = 600
)

// validateCSR is validateCertificateSigningRequest (pkg/apis/certificates/validation).
// What an old request got away with, it may keep.
func validateCSR(c, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	request, err := ParseCertificateRequest(c.Spec.Request)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		errs = append(errs, field.Invalid(spec.Child("request"), c.Spec.Request, err.Error()))
	}
	if len(c.Spec.Usages) == 0 {
		errs = append(errs, field.Required(spec.Child("usages"), ""))
	}
	if old == nil { // they don't change
		for i, u := range c.Spec.Usages {
			if !slices.Contains(keyUsages(), string(u)) {
				errs = append(errs, field.NotSupported(spec.Child("usages").Index(i), u, keyUsages()))
			}
		}
		for i, u := range c.Spec.Usages {
			if slices.Contains(c.Spec.Usages[:i], u) {
				errs = append(errs, field.Duplicate(spec.Child("usages").Index(i), u))
			}
		}
	}
	if c.Spec.SignerName == legacySigner {
		if old == nil || old.Spec.SignerName != legacySigner {
			errs = append(errs, field.Invalid(spec.Child("signerName"), c.Spec.SignerName, "the legacy signerName is not allowed via this API version"))
		}
	} else {
		errs = append(errs, podspec.ValidateSignerName(c.Spec.SignerName, spec.Child("signerName"))...)
	}
	if s := c.Spec.ExpirationSeconds; s != nil && *s < minExpirationSeconds {
		errs = append(errs, field.Invalid(spec.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	errs = append(errs, validateCSRConditions(c.Status.Conditions)...)
	if old == nil || !bytes.Equal(c.Status.Certificate, old.Status.Certificate) {
		if err := validateCertificates(c.Status.Certificate); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("status", "certificate"), "<certificate data>", err.Error()))
		}
	}
	return errs
}

// validateCSRConditions is validateConditions: what is decided stays decided, so that
// those conditions are true or not there.
func validateCSRConditions(list []certificatesv1.CertificateSigningRequestCondition) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "conditions")
	var approved, denied bool
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, c := range list {
		at := path.Index(i)
		if c.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), ""))
		}
		allowed := []v1.ConditionStatus{v1.ConditionFalse, v1.ConditionTrue, v1.ConditionUnknown}
		switch c.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			allowed = []v1.ConditionStatus{v1.ConditionTrue}
		}
		errs = append(errs, fields.OneOf(c.Status, at.Child("status"), allowed...)...)
		approved = approved || c.Type == certificatesv1.CertificateApproved
		denied = denied || c.Type == certificatesv1.CertificateDenied
		if approved && denied && (c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied) {
			errs = append(errs, field.Invalid(path, c.Type, "Approved and Denied conditions are mutually exclusive"))
		}
		if seen[c.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen[c.Type] = true
	}
	return errs
}

// validateCertificates is validateCertificate: PEM blocks of certificates and nothing
// else, or nothing.
func validateCertificates(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	any := false
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) > 0 {
			return errors.New("no PEM block headers are permitted")
		}
		certs, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certs) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
		any, text = true, rest
	}
	if !any {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}

// validateCSRUpdate is the rest of validateCertificateSigningRequestUpdate: what is
// decided is not undone, and each subresource writes its own.
func validateCSRUpdate(c, old *certificatesv1.CertificateSigningRequest, sub string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "conditions")
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
		if len(conditionsOf(c, t)) < len(conditionsOf(old, t)) {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("updates may not remove a condition of type %q", t)))
		}
	}
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied} {
		now, was := conditionsOf(c, t), conditionsOf(old, t)
		switch {
		case sub == subApproval || len(now) < len(was):
		case len(now) > len(was):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("updates may not add a condition of type %q", t)))
		case !equality.Semantic.DeepEqual(now, was):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("updates may not modify a condition of type %q\n%v", t, fields.Diff(was, now))))
		}
	}
	if !bytes.Equal(c.Status.Certificate, old.Status.Certificate) {
		switch path := field.NewPath("status", "certificate"); {
		case sub != "status":
			errs = append(errs, field.Forbidden(path, "updates may not set certificate content"))
		case len(old.Status.Certificate) > 0:
			errs = append(errs, field.Forbidden(path, "updates may not modify existing certificate content"))
		}
	}
	return errs
}

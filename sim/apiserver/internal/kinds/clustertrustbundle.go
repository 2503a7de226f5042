package kinds

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// ClusterTrustBundle is the kind of lists of certificates to trust, of a signer's or
// of nobody's. It is served with the gate of its name.
const ClusterTrustBundle kind.Kind = "ClusterTrustBundle"

type bundle = certificatesv1beta1.ClusterTrustBundle

// clusterTrustBundle returns the row of ClusterTrustBundle
// (pkg/registry/certificates/clustertrustbundle/strategy.go). Its name goes by the
// signer, so that the kind's own rules check it.
func clusterTrustBundle() *kind.Info {
	return &kind.Info{
		Kind: ClusterTrustBundle, Group: certificatesv1.GroupName, Version: "v1beta1", Resource: "clustertrustbundles", Watch: kind.Whole, NeedsVersion: true, Meta: kind.MetaAgain,
		CheckName: func(string, bool) []string { return nil },
		Strategy: &kind.Typed[bundle, *bundle]{
			Check:       func(b *bundle) field.ErrorList { return validateBundle(b, nil) },
			CheckUpdate: func(b, old *bundle, _ string) field.ErrorList { return validateBundle(b, old) },
			Fields:      func(b *bundle) selectable.Set { return selectable.Set{"spec.signerName": b.Spec.SignerName} },
			Entry: func(n *kind.Notes, _ kind.Change, b *bundle) {
				n.Add("signer", b.Spec.SignerName)
			},
			Table: []kind.Column[bundle]{
				kind.NameColumn[bundle](),
				{Name: "SignerName", Type: "string", Description: certificatesv1beta1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"], Cell: func(b *bundle, _ time.Time) any {
					if b.Spec.SignerName == "" {
						return none
					}
					return b.Spec.SignerName
				}},
			},
		},
	}
}

// validateBundle is ValidateClusterTrustBundle and ValidateClusterTrustBundleUpdate
// (pkg/apis/certificates/validation); old is nil for a new one. What is trusted is
// parsed when it changes only.
func validateBundle(b, old *bundle) field.ErrorList {
	var errs field.ErrorList
	meta, spec := field.NewPath("metadata"), field.NewPath("spec")
	if prefix := b.GenerateName; prefix != "" {
		errs = append(errs, fields.Invalid(meta.Child("generateName"), prefix, podspec.BundleName(b.Spec.SignerName, prefix, true))...)
	}
	if b.Name != "" {
		errs = append(errs, fields.Invalid(meta.Child("name"), b.Name, podspec.BundleName(b.Spec.SignerName, b.Name, false))...)
	}
	if b.Spec.SignerName != "" {
		errs = append(errs, podspec.ValidateSignerName(b.Spec.SignerName, spec.Child("signerName"))...)
	}
	if old == nil || b.Spec.TrustBundle != old.Spec.TrustBundle {
		errs = append(errs, validateTrustBundle(b.Spec.TrustBundle, spec.Child("trustBundle"))...)
	}
	if old != nil {
		errs = append(errs, fields.Immutable(b.Spec.SignerName, old.Spec.SignerName, spec.Child("signerName"))...)
	}
	return errs
}

// maxTrustBundle is MaxTrustBundleSize, in bytes.
const maxTrustBundle = 1 << 20

// validateTrustBundle wants certificates of authorities, each once, and nothing else.
func validateTrustBundle(text string, path *field.Path) field.ErrorList {
	if len(text) > maxTrustBundle {
		return field.ErrorList{field.TooLong(path, "", maxTrustBundle)}
	}
	var errs field.ErrorList
	bad := func(format string, args ...any) {
		errs = append(errs, field.Invalid(path, "<value omitted>", fmt.Sprintf(format, args...)))
	}
	at := map[string][]int{}
	var order []string
	block, rest := pem.Decode([]byte(text))
	for i := 0; block != nil; i++ {
		if err := authorityIn(block); err != "" {
			bad("entry %d %s", i, err)
		} else {
			der := string(block.Bytes)
			if at[der] == nil {
				order = append(order, der)
			}
			at[der] = append(at[der], i)
		}
		block, rest = pem.Decode(rest)
	}
	if len(errs) > 0 { // what is malformed may be why one is missing, or there twice
		return errs
	}
	if len(order) == 0 {
		bad("at least one trust anchor must be provided")
	}
	for _, der := range order {
		if len(at[der]) > 1 {
			bad("duplicate trust anchor (indices %v)", at[der])
		}
	}
	return errs
}

// authorityIn says what is wrong with a block as an authority's certificate; "": nothing.
func authorityIn(block *pem.Block) string {
	if block.Type != "CERTIFICATE" {
		return "has bad block type: " + block.Type
	}
	if len(block.Headers) > 0 {
		return "has PEM block headers"
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "does not parse as X.509"
	case !cert.IsCA:
		return "does not have the CA bit set"
	case !cert.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}

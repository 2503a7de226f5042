package admission

import (
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// restrictSubject refuses to have somebody made an administrator by a client's
// certificate (plugin/pkg/admission/certificates/subjectrestriction).
func restrictSubject(r *Request) error {
	c := r.Object.(*certificatesv1.CertificateSigningRequest)
	if c.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	refuse := func(err error) error { return apierrors.NewForbidden(r.Kind.GroupResource(), c.Name, err) }
	request, err := kinds.ParseCertificateRequest(c.Spec.Request)
	if err != nil {
		return refuse(fmt.Errorf("failed to parse CSR: %w", err))
	}
	if slices.Contains(request.Subject.Organization, user.SystemPrivilegedGroup) {
		return refuse(errors.New("use of " + c.Spec.SignerName + " signer with " + user.SystemPrivilegedGroup + " group is not allowed"))
	}
	return nil
}

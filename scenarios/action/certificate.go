package action

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Certificate is one of kubectl's certificate commands, for nodes' requests that are not decided yet.
//
// In the timeline: approves or denies nodes' requests for certificates, as
// kubectl certificate does.
type Certificate struct {
	// The command.
	Command string `json:"command" required:"" enum:"approve,deny"`
	// The nodes whose requests are meant: a name, a pattern with * and ?, or a list of them. All unless said.
	Node value.Nodes `json:"node,omitempty"`
	// Whose requests: their spec.signerName. Any unless said.
	Signer string `json:"signer,omitempty" enum:"kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving"`
}

// OnlySimulated is because a machine outside has no such requests.
func (*Certificate) OnlySimulated() {}

// Check wants nodes that there are.
func (a *Certificate) Check(at Place) { a.Node.Check(at.Field("node"), at.Scope, false) }

// Do decides the requests that there are, in the order of their names.
func (a *Certificate) Do(s Stage) error {
	names, any := a.Node.Select(s.Nodes()), false
	for _, c := range apiserver.Objects[*certificatesv1.CertificateSigningRequest](s.Cluster().Store(), apiserver.KindCertificateSigningRequest) {
		request, err := apiserver.ParseCertificateRequest(c.Spec.Request)
		if err != nil || len(c.Status.Conditions) > 0 || a.Signer != "" && c.Spec.SignerName != a.Signer || len(a.Node) > 0 && !slices.Contains(names, nodeOf(request)) {
			continue
		}
		any = true
		note(s, objectName(string(apiserver.KindCertificateSigningRequest), "", c.Name), "certificate "+a.Command)
		if err := a.decide(s, c); err != nil {
			return fmt.Errorf("certificate %s of %s: %w", a.Command, c.Name, err)
		}
	}
	if !any {
		s.Missed("certificate " + a.Command + " found no request that was not decided")
	}
	return nil
}

// nodeOf is the node that a request is for.
func nodeOf(r *x509.CertificateRequest) string {
	return strings.TrimPrefix(r.Subject.CommonName, "system:node:")
}

// decide writes what kubectl does (k8s.io/kubectl/pkg/cmd/certificates).
func (a *Certificate) decide(s Stage, c *certificatesv1.CertificateSigningRequest) error {
	condition := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: v1.ConditionTrue, Reason: "KubectlApprove", Message: "This CSR was approved by kubectl certificate approve."}
	if a.Command == "deny" {
		condition.Type, condition.Reason, condition.Message = certificatesv1.CertificateDenied, "KubectlDeny", "This CSR was denied by kubectl certificate deny."
	}
	own := c.DeepCopy()
	own.Status.Conditions = append(own.Status.Conditions, condition)
	_, err := s.Cluster().API().Update(own, "approval")
	return err
}

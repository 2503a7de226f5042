package facade

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/ground/loop"
)

// TestReviews asks all that can be asked.
func TestReviews(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		clients := kubernetes.NewForConfigOrDie(config)
		access := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "u", ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "pods",
				LabelSelector: &authorizationv1.LabelSelectorAttributes{RawSelector: "a in"}}}}
		answer, err := clients.AuthorizationV1().LocalSubjectAccessReviews("default").Create(t.Context(), access, metav1.CreateOptions{})
		if err != nil || !answer.Status.Allowed || answer.Status.EvaluationError != "spec.resourceAttributes.labelSelector ignored due to parse error" {
			t.Errorf("local access: %v, %v", answer, err)
		}
		if at := answer.ManagedFields[0].Time; at.Sub(loop.Epoch()) < ahead {
			t.Errorf("managed at %v, not the cluster's time", at)
		}
		bad := &authorizationv1.SubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{}, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/"}}}
		_, err = clients.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), bad, metav1.CreateOptions{})
		for _, want := range []string{`spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":""}: cannot be specified in combination with resourceAttributes`,
			"spec.user: Invalid value: \"\": at least one of user or group must be specified", "must be empty"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		who, err := clients.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || who.Status.UserInfo.Username != "admin" {
			t.Errorf("who am I: %v, %v", who, err)
		}
		token, err := clients.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}}, metav1.CreateOptions{})
		if err != nil || token.Status.Authenticated || token.Status.Error != "invalid bearer token" {
			t.Errorf("token: %v, %v", token, err)
		}
		if err := clients.AuthorizationV1().RESTClient().Get().Resource("subjectaccessreviews").Do(t.Context()).Error(); err == nil || !strings.Contains(err.Error(), "does not allow this method") {
			t.Errorf("a list of questions: %v", err)
		}
	})
}

// TestApproval: a request for a certificate says who made it, and is approved by a
// subresource.
func TestApproval(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		requests := kubernetes.NewForConfigOrDie(config).CertificatesV1().CertificateSigningRequests()
		der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "u"}}, ed25519.NewKeyFromSeed(make([]byte, 32)))
		if err != nil {
			t.Fatal(err)
		}
		made, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), Username: "somebody else",
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}}}, metav1.CreateOptions{})
		if err != nil || made.Spec.Username != "admin" {
			t.Fatalf("made %v, %v", made, err)
		}
		made.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: v1.ConditionTrue}}
		if _, err := requests.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err == nil {
			t.Error("the status approves")
		}
		got, err := requests.UpdateApproval(t.Context(), "a", made, metav1.UpdateOptions{})
		if err != nil || len(got.Status.Conditions) != 1 || got.Status.Conditions[0].LastTransitionTime.Sub(loop.Epoch()) < ahead {
			t.Errorf("approved %v, %v", got, err)
		}
	})
}

package podcertificate

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var errNoKeys = errors.New("this kubelet has nothing to make keys with")

// ask makes a request for a source's certificate, with a new key. which says of errors
// whether it is the first one ("initial") or a later ("refresh").
func (m *Manager) ask(ctx context.Context, pod *v1.Pod, k key, s *v1.PodCertificateProjection, r *record, which string) error {
	account, err := m.o.Client.GetServiceAccount(ctx, pod.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return fmt.Errorf("while fetching service account: %w", err)
	}
	node := m.o.Node()
	if node == nil {
		return fmt.Errorf("while getting node object from local cache: %w", apierrors.NewNotFound(v1.Resource("node"), m.o.NodeName))
	}
	private, request, err := m.newRequest(ctx, pod, k, s)
	if err != nil {
		return fmt.Errorf("while creating %s PodCertificateRequest: %w", which, err)
	}
	request.Spec.ServiceAccountUID, request.Spec.NodeUID = account.UID, node.UID
	made, err := m.o.Client.CreatePodCertificateRequest(ctx, request)
	if err != nil {
		return fmt.Errorf("while creating %s PodCertificateRequest: while creating on API: %w", which, err)
	}
	r.request, r.key = nameOf(made), private
	r.abandonAt = made.CreationTimestamp.Add(abandonAfter + m.jitter())
	return nil
}

// newRequest makes a private key, as PEM, and the request that goes with it.
func (m *Manager) newRequest(ctx context.Context, pod *v1.Pod, k key, s *v1.PodCertificateProjection) ([]byte, *certificatesv1beta1.PodCertificateRequest, error) {
	if m.o.Keys == nil {
		return nil, nil, fmt.Errorf("while generating keypair: %w", errNoKeys)
	}
	private, err := m.o.Keys.NewPodKey(ctx, s.KeyType, fmt.Sprintf("%s/%s/%d/%d", k.PodUID, k.VolumeName, k.SourceIndex, m.l.UnixNano()))
	if err != nil {
		return nil, nil, fmt.Errorf("while generating keypair: %w", err)
	}
	// Without a source of randomness signatures follow from the key (RFC 6979).
	proof, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("while generating keypair: while generating stub PKCS#10 request: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("while PEM-encoding private key: while marshaling key to PKCS#8: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), &certificatesv1beta1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: "req-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: certificatesv1beta1.PodCertificateRequestSpec{
			SignerName: s.SignerName, PodName: pod.Name, PodUID: pod.UID, ServiceAccountName: pod.Spec.ServiceAccountName, NodeName: types.NodeName(m.o.NodeName),
			MaxExpirationSeconds: s.MaxExpirationSeconds, StubPKCS10Request: proof, UnverifiedUserAnnotations: s.UserAnnotations,
		},
	}, nil
}

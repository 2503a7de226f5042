// Package certificate gives a kubelet on a machine its identity: the certificate that it shows to
// the API, and the one that it serves with. Both come from CertificateSigningRequests, are kept in
// --cert-dir, and are asked for anew at 70 to 90% of their life. It mirrors upstream's
// pkg/kubelet/certificate; requests, files and times of rotation are client-go's
// (k8s.io/client-go/util/certificate).
//
//   - bootstrap.go: the first certificate, by the credentials of --bootstrap-kubeconfig
//   - client.go: the client's certificate, and connections that change with it
//   - serving.go: the server's certificate, for the node's addresses
//   - metrics.go: what /metrics tells of both
package certificate

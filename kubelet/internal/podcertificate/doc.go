// Package podcertificate gets pods the certificates that their volumes ask for (sources
// podCertificate), and the next ones in time. It mirrors upstream's
// pkg/kubelet/podcertificate: for each source of a pod's volume it makes a private key,
// asks with a PodCertificateRequest for a certificate, and waits for whoever signs for
// the signer.
//
// States of a source, as upstream has them:
//
//	initial ──► wait ──► fresh ◄──► waitrefresh
//	             │                      │
//	             ├──► denied ◄──────────┤
//	             └──► failed ◄──────────┘
//
// Denied and failed are for good. Nothing is kept across restarts of the kubelet: it asks
// for all certificates anew.
//
//   - manager.go: who is asked about, the queue, what the volumes are given
//   - state.go: what a look at a source does
//   - request.go: the request
package podcertificate

// Package certmanager runs cert-manager's controllers of issuers, certificates and their
// requests, as their module has them, in virtual time: a day in which a certificate is
// renewed passes in seconds. It is a module of its own, so that cert-manager is no
// dependency of Drydock's.
//
//	cd examples/certmanager && go test ./...
package certmanager

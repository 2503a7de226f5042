// Package plugin has image credential provider plugins give the credentials for
// pulls: programs that are told an image on their standard input and answer on their
// standard output. It mirrors upstream's pkg/credentialprovider/plugin at v1.36.
//
// A [Config] is what a CredentialProviderConfig says, read and valid; kubelets share
// it. A [Manager] belongs to one kubelet: it asks the plugins whose images match,
// keeps their answers, and gets the tokens of service accounts that some of them want.
// How a program is run is a [Runner]'s: kubelet/real/credentialprovider starts a
// process, package sim answers as a scenario says.
package plugin

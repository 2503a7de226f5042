// Package conformance holds the scenarios that also run in real time against
// a container runtime outside: what `drydock conformance` checks with a kubelet.
package conformance

import "embed"

// Files are the scenario files.
//
//go:embed *.yaml
var Files embed.FS

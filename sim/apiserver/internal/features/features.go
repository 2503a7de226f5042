// Package features has the API server's feature gates that can be set: those whose
// effect is built. All others are as they are by default at v1.36. It mirrors
// upstream's pkg/features, without its global state: a set of gates is a value.
package features

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The gates that can be set. All are off unless said.
const (
	ClusterTrustBundle           = "ClusterTrustBundle"
	ClusterTrustBundleProjection = "ClusterTrustBundleProjection"
	PodCertificateRequest        = "PodCertificateRequest"
)

// Names returns the gates that can be set, sorted.
func Names() []string {
	return []string{ClusterTrustBundle, ClusterTrustBundleProjection, PodCertificateRequest}
}

// Gates says which gates are on. The zero value has the defaults.
type Gates struct {
	// ClusterTrustBundle has the kind served.
	ClusterTrustBundle bool
	// ClusterTrustBundleProjection leaves such sources in pods' volumes.
	ClusterTrustBundleProjection bool
	// PodCertificateRequest has the kind served, and leaves sources of kind
	// podCertificate in pods' volumes.
	PodCertificateRequest bool
}

// All has all gates on, for who reads manifests of whichever cluster.
func All() Gates { return Gates{true, true, true} }

// Error is what is wrong with one gate.
type Error struct{ Gate, Text string }

func (e *Error) Error() string { return e.Text }

// Resolve makes a set of gates of what is said of them, by name. The error is an
// *Error about the first gate, by name, that can't be set so.
func Resolve(said map[string]bool) (Gates, error) {
	names := make([]string, 0, len(said))
	for name := range said { //drydock:unordered sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	var g Gates
	for _, name := range names {
		switch name {
		case ClusterTrustBundle:
			g.ClusterTrustBundle = said[name]
		case ClusterTrustBundleProjection:
			g.ClusterTrustBundleProjection = said[name]
		case PodCertificateRequest:
			g.PodCertificateRequest = said[name]
		default:
			return Gates{}, &Error{name, fmt.Sprintf("the simulated API server can't set the feature gate %s, only %s: others are as by default at v1.36", name, strings.Join(Names(), ", "))}
		}
	}
	if g.ClusterTrustBundleProjection && !g.ClusterTrustBundle {
		return Gates{}, &Error{ClusterTrustBundleProjection, fmt.Sprintf("%s is enabled, but depends on features that are disabled: [%s]", ClusterTrustBundleProjection, ClusterTrustBundle)}
	}
	return g, nil
}

// GateOf returns the gate that an error of Resolve is about; "": none.
func GateOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Gate
	}
	return ""
}

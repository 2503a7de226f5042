package features

import "testing"

func TestResolve(t *testing.T) {
	for _, tc := range []struct {
		said      map[string]bool
		want      Gates
		gate, err string
	}{
		{nil, Gates{}, "", ""},
		{map[string]bool{"PodCertificateRequest": true, "ClusterTrustBundle": true}, Gates{ClusterTrustBundle: true, PodCertificateRequest: true}, "", ""},
		{map[string]bool{"ClusterTrustBundleProjection": true, "ClusterTrustBundle": true}, Gates{ClusterTrustBundle: true, ClusterTrustBundleProjection: true}, "", ""},
		{map[string]bool{"ClusterTrustBundle": false}, Gates{}, "", ""},
		{map[string]bool{"ClusterTrustBundleProjection": true}, Gates{}, "ClusterTrustBundleProjection", "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]"},
		{map[string]bool{"MemoryQoS": true, "PodCertificateRequest": true}, Gates{}, "MemoryQoS",
			"the simulated API server can't set the feature gate MemoryQoS, only ClusterTrustBundle, ClusterTrustBundleProjection, PodCertificateRequest: others are as by default at v1.36"},
	} {
		got, err := Resolve(tc.said)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tc.want || text != tc.err || GateOf(err) != tc.gate {
			t.Errorf("%v: %+v, %q of %q", tc.said, got, text, GateOf(err))
		}
	}
}

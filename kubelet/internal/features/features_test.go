package features

import (
	"slices"
	"strings"
	"testing"
)

func TestKnownIsSorted(t *testing.T) {
	if !slices.IsSortedFunc(known, func(a, b gate) int { return strings.Compare(a.name, b.name) }) {
		t.Error("find needs the gates sorted by name")
	}
	for _, k := range known {
		for _, n := range k.needs {
			if _, ok := find(n); !ok {
				t.Errorf("%s needs %s, which there is not", k.name, n)
			}
		}
	}
	for _, name := range used {
		if _, ok := find(name); !ok {
			t.Errorf("there is no gate %s", name)
		}
	}
	if _, err := Resolve(nil); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestResolve(t *testing.T) {
	for _, tc := range []struct {
		set  map[string]bool
		err  string
		on   string
		want bool
	}{
		{nil, "", MemoryQoS, false},
		{nil, "", GracefulNodeShutdown, true},
		{nil, "", "NoSuchGate", false},
		{map[string]bool{MemoryQoS: true}, "", MemoryQoS, true},
		{map[string]bool{allAlpha: true}, "", MemoryQoS, true},
		{map[string]bool{allAlpha: true, MemoryQoS: false}, "", MemoryQoS, false},
		{map[string]bool{allAlpha: true}, "", GracefulNodeShutdown, true},
		{map[string]bool{"KubeletPSI": true}, "", "KubeletPSI", true},
		{map[string]bool{"Nope": true, "Never": false}, "[unrecognized feature gate: Never, unrecognized feature gate: Nope]", "", false},
		{map[string]bool{"KubeletPSI": false}, "cannot set feature gate KubeletPSI to false, feature is locked to true", "", false},
		{map[string]bool{"ClusterTrustBundleProjection": true}, "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]", "", false},
	} {
		g, err := Resolve(tc.set)
		switch {
		case tc.err != "" && (err == nil || err.Error() != tc.err), tc.err == "" && err != nil:
			t.Errorf("%v: %v, want %q", tc.set, err, tc.err)
		case err == nil && g.Enabled(tc.on) != tc.want:
			t.Errorf("%v: %s is %t", tc.set, tc.on, !tc.want)
		}
	}
}

func TestWarningsAndUnused(t *testing.T) {
	m := map[string]bool{CPUCFSQuotaPeriod: false, "AllowDNSOnlyNodeCSR": true, MemoryQoS: true, EventedPLEG: true, "CRIListStreaming": true, "PodLevelResources": true, allBeta: true}
	w := strings.Join(Warnings(m), "\n")
	if !strings.Contains(w, "deprecated feature gate. It will be removed in a future release. featureGate=AllowDNSOnlyNodeCSR value=true") ||
		!strings.Contains(w, "GA feature gate. It will be removed in a future release. featureGate=CustomCPUCFSQuotaPeriod value=false") || strings.Count(w, "\n") != 1 {
		t.Errorf("warnings\n%s", w)
	}
	if got := Unused(m); !slices.Equal(got, []string{"AllowDNSOnlyNodeCSR=true", "CRIListStreaming=true"}) {
		t.Errorf("unused %v", got)
	}
}

// Package noeffect tells which fields of a KubeletConfiguration are accepted and
// checked, and have no effect yet.
package noeffect

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// field is a field without effect: a path in the configuration's JSON, "a.b". Its
// value at the default is not worth a word.
type field struct{ path, why string }

const (
	noSocket = "a simulated kubelet is asked without a socket"
	noEffect = "it has none in upstream's kubelet either"
	noPlugin = "volume plugins are not run yet"
	noFetch  = "a simulated kubelet fetches nothing"
	// noCertificate is told of nodes that state no certificates.
	noCertificate = "a simulated kubelet has certificates only where its group of nodes states them"
	noHealthz     = "a simulated kubelet serves no health checks"
)

// always returns the fields that have no effect anywhere, in the order in which
// they are told. A subsystem that gets built takes its fields off this list.
func always() []field {
	return []field{
		{"streamingConnectionIdleTimeout", noEffect},
		{"kubeletCgroups", "the kubelet stays in the cgroups it was started in"},
		{"systemCgroups", "processes are not moved between cgroups"},
		{"hairpinMode", noEffect},
		{"iptablesMasqueradeBit", noEffect},
		{"iptablesDropBit", noEffect},
		{"showHiddenMetricsForVersion", "no metric is hidden"},
		{"volumePluginDir", noPlugin},
	}
}

// inSimulations returns those that have none besides on a simulated machine.
func inSimulations() []field {
	return []field{
		{"rotateCertificates", noCertificate},
		{"serverTLSBootstrap", noCertificate},
		{"staticPodURL", noFetch},
		{"staticPodURLHeader", noFetch},
		{"healthzPort", noHealthz},
		{"healthzBindAddress", noHealthz},
		{"address", noSocket},
		{"port", noSocket},
		{"readOnlyPort", noSocket},
		{"tlsCertFile", noSocket},
		{"tlsPrivateKeyFile", noSocket},
		{"tlsCipherSuites", noSocket},
		{"tlsCurvePreferences", noSocket},
		{"tlsMinVersion", noSocket},
		{"authentication.x509.clientCAFile", noSocket},
		{"authentication.webhook.cacheTTL", noSocket},
		{"authorization.webhook.cacheAuthorizedTTL", noSocket},
		{"authorization.webhook.cacheUnauthorizedTTL", noSocket},
		{"enableContentionProfiling", noSocket},
		{"enableSystemLogHandler", noSocket},
		{"enableSystemLogQuery", noSocket},
		{"enableProfilingHandler", noSocket},
		{"enableDebugFlagsHandler", noSocket},
		{"cgroupDriver", "the runtime's is used"},
		{"protectKernelDefaults", "a simulated kernel has no such settings"},
		{"maxOpenFiles", "open files are not counted"},
		{"contentType", "nothing is encoded for the API"},
		{"logging", "what is shown of the log does not depend on it"},
		{"tracing", "a simulation has a timeline and traces of its own"},
		{"failCgroupV1", "no simulated machine has cgroup v1"},
	}
}

// Told names, one line each, what a configuration asks for that a kubelet on a
// machine does not do. base is what is there without being asked for. Both must
// have their defaults.
func Told(c, base *kubeletconfig.KubeletConfiguration) []string { return tell(c, base, always()) }

// ToldOfSimulation is Told for a kubelet on a simulated machine.
func ToldOfSimulation(c, base *kubeletconfig.KubeletConfiguration) []string {
	return tell(c, base, append(always(), inSimulations()...))
}

// tell makes a line for each field that was set to something that has no
// effect.
func tell(c, base *kubeletconfig.KubeletConfiguration, fields []field) []string {
	var out []string
	now, def := asJSON(c), asJSON(base)
	for _, f := range fields {
		v, was := lookup(now, f.path), lookup(def, f.path)
		// What is unset or switched off asks for nothing.
		if v == nil || v == false && was == true || reflect.DeepEqual(v, was) {
			continue
		}
		text, _ := json.Marshal(v)
		out = append(out, fmt.Sprintf("%s: %s has no effect: %s", f.path, text, f.why))
	}
	if gates := features.Unused(c.FeatureGates); len(gates) > 0 {
		out = append(out, fmt.Sprintf("featureGates: %s has no effect: this kubelet has what is on by default", strings.Join(gates, ",")))
	}
	return out
}

// asJSON is a configuration by its fields' names, as users know them.
func asJSON(c *kubeletconfig.KubeletConfiguration) map[string]any {
	data, err := json.Marshal(c)
	if err != nil {
		return nil
	}
	var m map[string]any
	_ = json.Unmarshal(data, &m)
	return m
}

// lookup returns what a path leads to; an empty value is as good as none.
func lookup(m map[string]any, path string) any {
	head, rest, more := strings.Cut(path, ".")
	v := m[head]
	if more {
		sub, _ := v.(map[string]any)
		return lookup(sub, rest)
	}
	switch x := v.(type) {
	case string:
		if x == "" {
			return nil
		}
	case []any:
		if len(x) == 0 {
			return nil
		}
	case map[string]any:
		if len(x) == 0 {
			return nil
		}
	}
	return v
}

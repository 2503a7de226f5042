package app

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/features"
)

// ignoredField is a field of a configuration that is accepted, checked, and has
// no effect yet. Its value at the default is not worth a word.
type ignoredField struct {
	// field is a path in the configuration's JSON, "a.b".
	field, why string
	// works are values that do have their effect.
	works []any
}

const (
	noServer  = "the kubelet's API is not served yet"
	noMetrics = "there are no metrics yet"
	noEffect  = "it has none in upstream's kubelet either"
	noPlugin  = "volume plugins are not run yet"
)

// ignoredFields are told in this order. A subsystem that gets built takes its
// fields off this list.
var ignoredFields = []ignoredField{
	{"address", noServer, nil},
	{"readOnlyPort", noServer, nil},
	{"tlsCertFile", noServer, nil},
	{"tlsPrivateKeyFile", noServer, nil},
	{"tlsCipherSuites", noServer, nil},
	{"tlsCurvePreferences", noServer, nil},
	{"tlsMinVersion", noServer, nil},
	{"rotateCertificates", "certificates are not rotated yet", nil},
	{"serverTLSBootstrap", noServer, nil},
	{"authentication.x509.clientCAFile", noServer, nil},
	{"authentication.webhook.cacheTTL", noServer, nil},
	{"authorization.webhook.cacheAuthorizedTTL", noServer, nil},
	{"authorization.webhook.cacheUnauthorizedTTL", noServer, nil},
	{"enableDebuggingHandlers", noServer, nil},
	{"enableContentionProfiling", noServer, nil},
	{"enableSystemLogHandler", noServer, nil},
	{"enableSystemLogQuery", noServer, nil},
	{"enableProfilingHandler", noServer, nil},
	{"enableDebugFlagsHandler", noServer, nil},
	{"streamingConnectionIdleTimeout", noEffect, nil},
	{"kubeletCgroups", "the kubelet stays in the cgroups it was started in", nil},
	{"systemCgroups", "processes are not moved between cgroups", nil},
	{"hairpinMode", noEffect, nil},
	{"podCIDR", "the container runtime's network decides", nil},
	{"makeIPTablesUtilChains", "iptables rules are not made", nil},
	{"iptablesMasqueradeBit", noEffect, nil},
	{"iptablesDropBit", noEffect, nil},
	{"showHiddenMetricsForVersion", noMetrics, nil},
	{"volumePluginDir", noPlugin, nil},
	{"tracing", "nothing is traced", nil},
}

// ignoredFlags are flags that are no fields.
var ignoredFlags = []struct{ name, why string }{
	{"bootstrap-kubeconfig", "there is no certificate bootstrap yet"},
	{"cert-dir", noServer},
	{"cloud-provider", "nodes are registered as without a cloud provider"},
	{"runtime-cgroups", "there are no statistics of the runtime yet"},
	{"image-credential-provider-config", "image credential provider plugins are not run yet"},
	{"image-credential-provider-bin-dir", "image credential provider plugins are not run yet"},
	{"experimental-mounter-path", "the system's mount is used"},
	{"housekeeping-interval", "there is no cAdvisor in this kubelet"},
}

// Ignored names, one line each, what the configuration and the flags ask for
// that this kubelet does not do.
func Ignored(c *kubeletconfig.KubeletConfiguration, fs *pflag.FlagSet) []string {
	var out []string
	if c.EnableServer == nil || *c.EnableServer {
		out = append(out, "enableServer (--enable-server): "+noServer+"; --enable-server=false says the same")
	}
	base := NewConfiguration()
	if fs.Changed("config") { // a file's defaults are others
		base = &kubeletconfig.KubeletConfiguration{}
		kubelet.SetDefaults(base)
	}
	now, def := asJSON(c), asJSON(base)
	for _, f := range ignoredFields {
		v, was := lookup(now, f.field), lookup(def, f.field)
		// What is unset or switched off asks for nothing.
		if v == nil || v == false && was == true || reflect.DeepEqual(v, was) || slices.ContainsFunc(f.works, func(w any) bool { return reflect.DeepEqual(v, w) }) {
			continue
		}
		text, _ := json.Marshal(v)
		out = append(out, fmt.Sprintf("%s: %s has no effect: %s", f.field, text, f.why))
	}
	if gates := features.Unused(c.FeatureGates); len(gates) > 0 {
		out = append(out, fmt.Sprintf("featureGates: %s has no effect: this kubelet has what is on by default", strings.Join(gates, ",")))
	}
	for _, f := range ignoredFlags {
		if fs.Changed(f.name) {
			out = append(out, fmt.Sprintf("--%s has no effect: %s", f.name, f.why))
		}
	}
	for _, f := range cadvisorFlags {
		if fs.Changed(f.name) {
			out = append(out, fmt.Sprintf("--%s has no effect: there is no cAdvisor in this kubelet", f.name))
		}
	}
	if v := fs.Lookup("version"); v != nil && strings.HasPrefix(v.Value.String(), "v") {
		out = append(out, fmt.Sprintf("--version: the node reports %s", kubelet.Version))
	}
	return out
}

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

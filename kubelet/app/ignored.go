//go:build linux

package app

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet"
	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/noeffect"
)

// ignoredFlags are flags that are no fields. What is built loses its line. The texts are for
// warnings, so they say what is not there rather than which package.
var ignoredFlags = []struct{ name, why string }{
	{"runtime-cgroups", "there are no statistics of the runtime yet"},
	{"experimental-mounter-path", "the system's mount is used"},
	{"housekeeping-interval", "there is no cAdvisor in this kubelet"},
}

// Ignored names, one line each, what the configuration and the flags ask for
// that this kubelet does not do.
// A default that nobody chose is not named: only what differs from what an
// empty configuration would have. It is called after files and flags were put together.
func Ignored(c *kubeletconfig.KubeletConfiguration, fs *pflag.FlagSet) []string {
	var out []string
	base := NewConfiguration()
	if fs.Changed("config") { // a file's defaults are others
		base = &kubeletconfig.KubeletConfiguration{}
		kubeletcfg.SetDefaults(base)
	}
	out = append(out, noeffect.Told(c, base)...)
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

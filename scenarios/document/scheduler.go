package document

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfigv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
)

// checkScheduler decodes the arguments of plugins, each into its plugin's type, and asks what a
// scheduler would refuse of its configuration.
func checkScheduler(at decode.Place, c *schedulerconfigv1.KubeSchedulerConfiguration) {
	before := at.Errors()
	for _, x := range []struct{ name, is, want string }{
		{"apiVersion", c.APIVersion, schedulerconfigv1.SchemeGroupVersion.String()}, {"kind", c.Kind, "KubeSchedulerConfiguration"},
	} {
		if x.is != "" && x.is != x.want {
			at.Field(x.name).Errorf("must be %s, not %q", x.want, decode.Short(x.is))
		}
	}
	profiles := at.Field("profiles")
	for i := range c.Profiles {
		list := profiles.Index(i).Field("pluginConfig")
		for j := range c.Profiles[i].PluginConfig {
			pc, at := &c.Profiles[i].PluginConfig[j], list.Index(j).Field("args")
			args := schedulerconfig.NewArgs(pc.Name)
			if args == nil {
				continue
			}
			if at.Written() {
				at.Decode(args)
			}
			if text := schedulerconfig.KindError(pc.Name, args); text != "" {
				at.Errorf("%s", text)
			}
			pc.Args.Object, pc.Args.Raw = args, nil
		}
	}
	if at.Errors() > before {
		return
	}
	for _, e := range refusedByScheduler(c) {
		at.Path(e.Field).Errorf("%s%s", e.ErrorBody(), nearPlugin(e))
	}
}

// refusedByScheduler is what a scheduler would refuse of its configuration, whose arguments are
// decoded.
func refusedByScheduler(c *schedulerconfigv1.KubeSchedulerConfiguration) field.ErrorList {
	c = c.DeepCopy()
	schedulerconfig.SetDefaults(c)
	return decode.FieldErrors(schedulerconfig.Validate(c))
}

// nearPlugin is what somebody meant who misspelt a plugin.
func nearPlugin(e *field.Error) string {
	name, ok := e.BadValue.(string)
	if !ok || !strings.HasSuffix(e.Detail, "does not exist") {
		return ""
	}
	return suggest.Suffix(name, schedulerconfig.Names())
}

// ParseKubeSchedulerConfiguration reads a kubescheduler.config.k8s.io/v1
// KubeSchedulerConfiguration strictly. Errors are decode.Errors.
func ParseKubeSchedulerConfiguration(file string, data []byte) (*schedulerconfigv1.KubeSchedulerConfiguration, error) {
	c := &schedulerconfigv1.KubeSchedulerConfiguration{}
	doc, err := DecodeOther(file, data, nil, schedulerconfigv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration", c)
	if err != nil {
		return nil, err
	}
	if doc.Err() == nil {
		checkScheduler(doc.at, c)
	}
	return c, doc.Err()
}

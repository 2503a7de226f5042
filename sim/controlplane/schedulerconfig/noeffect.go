package schedulerconfig

import (
	"fmt"
	"reflect"
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// NoEffect tells what a configuration asks for that a simulated scheduler accepts and doesn't act
// on, a line each. What is at its default is not worth a word. The configuration may be without
// its defaults; it was found right.
func NoEffect(cfg *configv1.KubeSchedulerConfiguration) []string {
	if cfg == nil {
		return nil
	}
	is, base := clone(cfg), &configv1.KubeSchedulerConfiguration{}
	if err := DecodeArgs(is); err != nil {
		return nil
	}
	SetDefaults(is)
	SetDefaults(base)
	var out []string
	say := func(field, why string) { out = append(out, field+" has no effect: "+why) }
	for _, x := range []struct {
		field    string
		is, base any
		why      string
	}{
		{"parallelism", is.Parallelism, base.Parallelism, "one node is looked at after another, as by one worker"},
		{"leaderElection", is.LeaderElection, base.LeaderElection, "there is one scheduler"},
		{"clientConnection.kubeconfig", is.ClientConnection.Kubeconfig, base.ClientConnection.Kubeconfig, "the scheduler calls the simulated API in process"},
		{"clientConnection.acceptContentTypes", is.ClientConnection.AcceptContentTypes, base.ClientConnection.AcceptContentTypes, "nothing is encoded for the API"},
		{"clientConnection.contentType", is.ClientConnection.ContentType, base.ClientConnection.ContentType, "nothing is encoded for the API"},
		{"enableProfiling", is.EnableProfiling, base.EnableProfiling, "the scheduler serves nothing"},
		{"enableContentionProfiling", is.EnableContentionProfiling, base.EnableContentionProfiling, "the scheduler serves nothing"},
		{"delayCacheUntilActive", is.DelayCacheUntilActive, base.DelayCacheUntilActive, "there is one scheduler"},
	} {
		if !reflect.DeepEqual(x.is, x.base) {
			say(x.field, x.why)
		}
	}
	for i := range cfg.Profiles {
		for _, w := range profileNoEffect(&cfg.Profiles[i], &is.Profiles[i]) {
			out = append(out, fmt.Sprintf("profiles[%d].%s", i, w))
		}
	}
	return out
}

// profileNoEffect is of one profile, as written and with defaults.
func profileNoEffect(written, is *configv1.KubeSchedulerProfile) []string {
	var out []string
	points, _ := expand(nil, is.Plugins)
	runs := func(name string) bool {
		return slices.ContainsFunc(points[:], func(list []string) bool { return slices.Contains(list, name) })
	}
	for i, c := range written.PluginConfig {
		at, args := fmt.Sprintf("pluginConfig[%d]", i), is.PluginConfig[i].Args.Object
		switch a := args.(type) {
		case nil:
			out = append(out, fmt.Sprintf("%s has no effect: %s takes no arguments", at, c.Name))
			continue
		case *configv1.DynamicResourcesArgs:
			d := NewArgs(DynamicResources).(*configv1.DynamicResourcesArgs)
			setArgsDefaults(d)
			if *a.FilterTimeout != *d.FilterTimeout {
				out = append(out, at+".args.filterTimeout has no effect: filtering takes no time")
			}
		}
		if !runs(c.Name) {
			out = append(out, fmt.Sprintf("%s has no effect: %s is switched off", at, c.Name))
		}
	}
	if written.Plugins == nil {
		return out
	}
	defaults := defaultPlugins().MultiPoint.Enabled
	tell := func(name string, set *configv1.PluginSet, point Point) {
		for i, p := range set.Disabled {
			known := pluginOf(p.Name)
			isDefault := slices.ContainsFunc(defaults, func(d configv1.Plugin) bool { return d.Name == p.Name })
			if p.Name != "*" && (known == nil || !isDefault || point < numPoints && !slices.Contains(known.points, point)) {
				out = append(out, fmt.Sprintf("plugins.%s.disabled[%d] has no effect: %s is not there by default", name, i, p.Name))
			}
		}
		for i, p := range set.Enabled {
			known := pluginOf(p.Name)
			if value(p.Weight) != 0 && known != nil && (!slices.Contains(known.points, Score) || point < numPoints && point != Score) {
				out = append(out, fmt.Sprintf("plugins.%s.enabled[%d].weight has no effect: nothing is scored there", name, i))
			}
		}
	}
	tell("multiPoint", &written.Plugins.MultiPoint, numPoints)
	for p := range numPoints {
		tell(pointNames[p], p.set(written.Plugins), p)
	}
	return out
}

package schedulerconfig

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// expansion is which plugins run at each point of a profile, in order.
type expansion [numPoints][]string

// fault is what upstream's framework refuses of a profile, and the field that it is about.
type fault struct {
	at   *field.Path
	name string
	text string
}

// expand spreads the plugins of multiPoint over the points that they have, under those that are
// named at a point (framework/runtime/framework.go, expandMultiPointPlugins). path is the
// profile's plugins.
func expand(path *field.Path, p *configv1.Plugins) (expansion, []fault) {
	var out expansion
	var faults []fault
	for point := range numPoints {
		set, what := point.set(p), pointInterfaces[point]
		at := path.Child(pointNames[point], "enabled")
		var named []string
		for i, x := range set.Enabled {
			known := pluginOf(x.Name)
			text := ""
			switch {
			case known == nil:
				text = fmt.Sprintf("%s %q does not exist", what, x.Name)
			case !slices.Contains(known.points, point):
				text = fmt.Sprintf("plugin %q does not extend %s plugin", x.Name, what)
			case slices.Contains(named, x.Name):
				text = fmt.Sprintf("plugin %q already registered as %q", x.Name, what)
			}
			if text != "" {
				faults = append(faults, fault{at.Index(i).Child("name"), x.Name, text})
				continue
			}
			named = append(named, x.Name)
		}
		disabled := func(name string) bool {
			return slices.ContainsFunc(set.Disabled, func(d configv1.Plugin) bool { return d.Name == name })
		}
		if disabled("*") {
			out[point] = named
			continue
		}
		var overridden, multi []string
		for i, x := range p.MultiPoint.Enabled {
			known, text := pluginOf(x.Name), ""
			switch {
			case known == nil && point == 0: // once is enough
				text = fmt.Sprintf("%s %q does not exist", what, x.Name)
			case known == nil, !slices.Contains(known.points, point), disabled(x.Name):
			case slices.Contains(named, x.Name):
				overridden = append(overridden, x.Name)
			case slices.Contains(multi, x.Name):
				text = fmt.Sprintf("plugin %q already registered as %q", x.Name, what)
			default:
				multi = append(multi, x.Name)
			}
			if text != "" {
				faults = append(faults, fault{path.Child("multiPoint", "enabled").Index(i).Child("name"), x.Name, text})
			}
		}
		// Those that a point names and multiPoint has as well come first, the others of the point
		// last.
		var before, after []string
		for _, name := range named {
			if slices.Contains(overridden, name) {
				before = append(before, name)
			} else {
				after = append(after, name)
			}
		}
		out[point] = slices.Concat(before, multi, after)
	}
	return out, faults
}

// maxTotalScore bounds the sum of all weights, times the best score (framework.MaxTotalScore).
const (
	maxTotalScore = math.MaxInt64
	maxNodeScore  = 100
)

// scoreWeights are the weights of the plugins with scores; false: together they are too much. A
// weight at score goes before one at multiPoint.
func scoreWeights(p *configv1.Plugins) (map[string]int64, bool) {
	out, total := map[string]int64{}, int64(0)
	for _, x := range slices.Concat(p.Score.Enabled, p.MultiPoint.Enabled) {
		known := pluginOf(x.Name)
		if _, done := out[x.Name]; done || known == nil || !slices.Contains(known.points, Score) {
			continue
		}
		w := int64(value(x.Weight))
		if w == 0 {
			w = 1
		}
		if w*maxNodeScore > maxTotalScore-total {
			return nil, false
		}
		out[x.Name], total = w, total+w*maxNodeScore
	}
	return out, true
}

// profilePlugins judges what upstream refuses when it makes a profile (NewFramework).
func (v *validator) profilePlugins(path *field.Path, p *configv1.KubeSchedulerProfile) {
	at := path.Child("plugins")
	name := value(p.SchedulerName)
	say := func(at *field.Path, value any, text string) {
		v.add(field.Invalid(at, value, fmt.Sprintf("creating profile for scheduler name %s: %s", name, text)))
	}
	points, faults := expand(at, p.Plugins)
	for _, f := range faults {
		say(f.at, f.name, f.text)
	}
	if len(faults) > 0 {
		return
	}
	if k := len(points[QueueSort]); k != 1 {
		say(at.Child("queueSort"), k, fmt.Sprintf("only one queue sort plugin required for profile with scheduler name %q, but got %d", name, k))
	}
	if len(points[Bind]) == 0 {
		say(at.Child("bind"), 0, fmt.Sprintf("at least one bind plugin is needed for profile with scheduler name %q", name))
	}
	if _, ok := scoreWeights(p.Plugins); !ok {
		say(at.Child("score"), "weights", "score plugins: total score of Score plugins could overflow")
	}
}

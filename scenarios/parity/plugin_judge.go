package parity

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// The aspects of cases with plugins, beside those of pods.
const (
	AspectConfig       Aspect = "config"
	AspectPlugins      Aspect = "plugins"
	AspectPluginTiming Aspect = "plugin-timing"
	AspectTokens       Aspect = "tokens"
	AspectFiles        Aspect = "files"
)

// PluginAspects are all aspects of cases with plugins. A verdict has them in this order.
var PluginAspects = []Aspect{
	AspectStatus, AspectEvents, AspectCRI, AspectTiming, AspectConfig, AspectPlugins, AspectPluginTiming, AspectTokens, AspectNode, AspectFiles,
}

// JudgePlugins compares a replay of a case with plugins with its recorded runs. Its rules
// are those of judge_plugins.py beside the recordings.
func JudgePlugins(c *PluginCase, replay *PluginObservation) (Verdict, error) {
	rep, err := asObject(replay)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	return judgePlugins(c.runs, rep), nil
}

// judgePlugins is judge by the rules for plugins.
func judgePlugins(runs []object, rep object) Verdict {
	var first Verdict
	for i, rec := range runs {
		v := comparePluginRuns(rec, rep)
		if i == 0 {
			first = v
			continue
		}
		first = slices.DeleteFunc(first, func(d Difference) bool {
			return !slices.ContainsFunc(v, func(o Difference) bool { return o.Aspect == d.Aspect })
		})
	}
	return first
}

// mountEvents are the reasons of events that say that something is tried again until a
// volume or a claim is there.
var mountEvents = []string{"FailedMount", "FailedAttachVolume", reasonPrepare, "FailedMapVolume"}

const (
	reasonPrepare = "FailedPrepareDynamicResources"
	// prepareSlack is for what is tried again at the pod's next resync, 60 to 90 s later.
	prepareSlack = 16
)

// comparePluginRuns returns the first difference per aspect of a replay to one recorded
// run.
func comparePluginRuns(rec, rep object) Verdict {
	found := map[Aspect]string{}
	note := func(a Aspect, text string) {
		if text != "" && found[a] == "" {
			found[a] = text
		}
	}
	for _, name := range decode.SortedKeys(child(rec, "pods")) {
		p := child(child(rec, "pods"), name)
		q, ok := child(rep, "pods")[name].(object)
		if !ok {
			note(AspectStatus, name+" is missing")
			continue
		}
		comparePluginPods(note, name+": ", p, q)
	}
	note(AspectConfig, configDiff(rec, rep))
	note(AspectPlugins, pluginCallsDiff(rec, rep))
	note(AspectPluginTiming, pluginTimingDiff(rec, rep))
	note(AspectTokens, tokensDiff(rec, rep))
	for _, s := range nodeSteps {
		note(AspectNode, s.diff(rec, rep))
	}
	note(AspectFiles, snapshotsDiff(rec, rep))
	var out Verdict
	for _, a := range PluginAspects {
		if found[a] != "" {
			out = append(out, Difference{a, found[a]})
		}
	}
	return out
}

func comparePluginPods(note func(Aspect, string), prefix string, rec, rep object) {
	allowed := slack
	add := func(a Aspect, text string) {
		if text != "" {
			note(a, prefix+text)
		}
	}
	add(AspectStatus, statusDiff(rec, rep))
	add(AspectEvents, eventsDiff(rec, rep))
	add(AspectCRI, callsDiff(rec, rep))
	if mountsWaited(rec, reasonPrepare) {
		allowed = prepareSlack
	}
	add(AspectTiming, timingDiff(rec, rep, mountsWaited(rec, mountEvents...), allowed))
}

// Show writes the replay as JSON.
func (c *PluginCase) Show(w io.Writer, seen *PluginObservation) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(seen); err != nil {
		return fmt.Errorf("case %s: %w", c.Name, err)
	}
	return nil
}

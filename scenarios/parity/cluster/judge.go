package cluster

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drydock-sim/drydock/scenarios/parity"
)

// The aspects that are compared, in the order in which differences are told.
const (
	AspectObjects   parity.Aspect = "objects"
	AspectPods      parity.Aspect = "pods"
	AspectNodes     parity.Aspect = "nodes"
	AspectEndpoints parity.Aspect = "endpoints"
	AspectEvents    parity.Aspect = "events"
	AspectRefusals  parity.Aspect = "refusals"
	AspectTiming    parity.Aspect = "timing"
)

// Aspects are all of them.
var Aspects = []parity.Aspect{AspectObjects, AspectPods, AspectNodes, AspectEndpoints, AspectEvents, AspectRefusals, AspectTiming}

// What is allowed to a replay whose nodes are whole kubelets (judge_cluster.py --kubelet), in
// seconds.
const (
	// short is how long a status lives at most that may be there or not; passing is the same of a
	// reason for not being scheduled.
	short   = 2.6
	passing = 0.6
	// slack and share of the time passed are how far off a controller's reaction may be. Where more
	// than 50 pods share a client's rate limit it is slackOfMany instead of slack.
	slack       = 4.0
	slackOfMany = 4.0
	share       = 0.10
	// nodeSlack is that of node lifecycle, gcSlack what is added where pods are collected.
	nodeSlack = 14.0
	nodeShare = 0.02
	gcSlack   = 40.0
	// forGood is how long the last status lives.
	forGood = 1e6
)

// run is what one run showed, as decoded JSON, and in which order the names of its objects stand:
// where several differ, the first is told, and times are compared up to it.
type run struct {
	object
	order map[string][]string
}

// names are the keys of a field that is an object, as they stand in the file.
func (r run) names(field string) []string { return r.order[field] }

// readRun reads a run.
func readRun(data []byte) (run, error) {
	r := run{order: map[string][]string{}}
	if err := json.Unmarshal(data, &r.object); err != nil {
		return r, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return r, err
	}
	for _, f := range []string{"objects", "nodes", "endpoints"} {
		if len(child(r.object, f)) == 0 {
			continue
		}
		keys, err := keysOf(fields[f])
		if err != nil {
			return r, err
		}
		r.order[f] = keys
	}
	return r, nil
}

// Judge compares a replay with a case's recorded runs. An aspect passes if it agrees with at least
// one of them. Where statuses differ, times can't be compared, and count as equal unless they differ
// from another run.
func Judge(c *Case, replay *Observation) (parity.Verdict, error) {
	data, err := json.Marshal(replay)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	rep, err := readRun(data)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	return judge(c.raw, c.runs, rep), nil
}

// judge is Judge of what was decoded already.
func judge(raw object, runs []run, rep run) parity.Verdict {
	if len(runs) == 0 {
		return nil
	}
	rules := newRules(raw)
	// What differs from each run; "" is that it can't be told.
	tries := make([]map[parity.Aspect]string, len(runs))
	for i, rec := range runs {
		found := rules.compare(rec, rep)
		if _, told := found[AspectTiming]; !told {
			for _, a := range []parity.Aspect{AspectObjects, AspectPods, AspectNodes, AspectEndpoints} {
				if _, differs := found[a]; differs {
					found[AspectTiming] = ""
				}
			}
		}
		tries[i] = found
	}
	var out parity.Verdict
	for _, a := range Aspects {
		text := ""
		for _, t := range tries {
			s, differs := t[a]
			if !differs {
				text = ""
				break
			}
			if text == "" {
				text = s
			}
		}
		if text != "" {
			out = append(out, parity.Difference{Aspect: a, Text: text})
		}
	}
	return out
}

// compare returns the first difference per aspect of a replay to one recorded run.
func (r *rules) compare(rec, rep run) map[parity.Aspect]string {
	var timing []string
	out := map[parity.Aspect]string{}
	for _, a := range []struct {
		aspect parity.Aspect
		diff   func(rec, rep run, timing *[]string) string
	}{
		{AspectObjects, r.objectsDiff}, {AspectPods, r.podsDiff}, {AspectNodes, r.nodesDiff},
		{AspectEndpoints, r.endpointsDiff}, {AspectEvents, r.eventsDiff}, {AspectRefusals, r.responsesDiff},
	} {
		if d := a.diff(rec, rep, &timing); d != "" {
			out[a.aspect] = d
		}
	}
	if len(timing) > 0 {
		out[AspectTiming] = timing[0]
	}
	for a := range out { //drydock:unordered deletes what is not asked for
		if slices.Contains(r.racy, string(a)) {
			delete(out, a)
		}
	}
	return out
}

// responsesDiff compares what was refused, and the answers to evictions.
func (r *rules) responsesDiff(rec, rep run, _ *[]string) string {
	a, b := children(rec.object, "responses"), children(rep.object, "responses")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("answer %v to %s at %vs was not recorded", b[i]["code"], text(b[i], "do"), b[i]["at"])
		case i >= len(b):
			return fmt.Sprintf("answer %v to %s at %vs is missing: %s", a[i]["code"], text(a[i], "do"), a[i]["at"], text(a[i], "message"))
		}
		for _, k := range []string{"causes", "code", "do", "message", "reason"} {
			if !same(a[i][k], b[i][k]) {
				return fmt.Sprintf("answer to %s at %vs: %s: recorded %s, replayed %s", text(a[i], "do"), a[i]["at"], k, cut(dump(a[i][k])), cut(dump(b[i][k])))
			}
		}
	}
	return ""
}

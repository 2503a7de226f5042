package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// outcome is what is compared of a pod.
type outcome struct {
	fields object
	edge   bool // something happened to it as the recording ended
	new    bool // it came as the recording ended
}

// key is all that is compared.
func (o *outcome) key() string { return dump(o.fields) }

// loose is what is compared of a pod to which something happened as the recording ended.
func (o *outcome) loose() string {
	x := object{}
	for _, k := range []string{"name", "image", "revision", "index", "unscheduled", "owners"} {
		x[k] = o.fields[k]
	}
	return dump(x)
}

// outcomeOf is what became of a pod. Reasons and nominations that passed are left out.
func (r *rules) outcomeOf(p object) *outcome {
	end := r.duration
	// until is when the i-th of a list of changes was over: at the next, or when otherwise says.
	until := func(l []any, i int, otherwise ...string) float64 {
		if i+1 < len(l) {
			return timeOf(l[i+1])
		}
		for _, k := range otherwise {
			if has(p, k) {
				return number(p, k)
			}
		}
		return end
	}
	unscheduled, nominated, ready, owners := []any{}, []any{}, []any{}, []any{}
	l := list(p, "unscheduled")
	for i, x := range l {
		if until(l, i, "bound", "gone")-timeOf(x) > passing {
			why, _ := x.([]any)
			texts := []any{}
			for _, t := range why[1:] {
				s, _ := t.(string)
				texts = append(texts, r.text(s))
			}
			unscheduled = append(unscheduled, texts)
		}
	}
	l = list(p, "nominated")
	for i, x := range l {
		if until(l, i, "bound")-timeOf(x) > passing {
			nominated = append(nominated, r.node(valueOf(x)))
		}
	}
	for _, x := range list(p, "ready") {
		ready = append(ready, valueOf(x))
	}
	for _, x := range list(p, "ownerChanges") {
		owners = append(owners, valueOf(x))
	}
	var disruption any
	if t := list(p, "disruptionTarget"); len(t) > 0 {
		texts := []any{}
		for _, x := range t {
			s, _ := x.(string)
			texts = append(texts, r.text(s))
		}
		disruption = texts
	}
	o := &outcome{
		new: number(p, "created") > end-short,
		fields: object{
			"name": podNumber.ReplaceAllString(text(p, "name"), "#*"), "node": r.node(p["node"]), "image": p["image"], "revision": p["revision"], "phase": p["phase"],
			"unscheduled": unscheduled, "nominated": nominated, "disruption": disruption, "deleted": has(p, "deleting") || has(p, "gone"), "grace": p["grace"],
			"gone": has(p, "gone"), "reason": p["reason"], "ready": ready, "owners": owners, "index": p["index"],
		},
	}
	for _, k := range []string{"created", "bound", "running", "ended", "gone", "deleting"} {
		o.edge = o.edge || has(p, k) && number(p, k) > end-short
	}
	for _, x := range list(p, "ready") {
		o.edge = o.edge || timeOf(x) > end-short
	}
	return o
}

// timeOf and valueOf are the time and the value of a change, a pair of them.
func timeOf(change any) float64 {
	l, _ := change.([]any)
	if len(l) == 0 {
		return 0
	}
	f, _ := l[0].(float64)
	return f
}

func valueOf(change any) any {
	l, _ := change.([]any)
	if len(l) < 2 {
		return nil
	}
	return l[1]
}

// byOwner are pods by their owner, or name if they have none, and the owners in order.
func byOwner(of run) (owners []string, pods map[string][]object) {
	pods = map[string][]object{}
	for _, p := range children(of.object, "pods") {
		o := text(p, "owner")
		if o == "" {
			o = podNumber.ReplaceAllString(text(p, "name"), "")
		}
		if o == "" || text(p, "owner") == "" && !strings.Contains(text(p, "name"), "#") {
			o = text(p, "name")
		}
		if pods[o] == nil {
			owners = append(owners, o)
		}
		pods[o] = append(pods[o], p)
	}
	return owners, pods
}

// podsDiff compares what became of pods, per owner as a multiset.
func (r *rules) podsDiff(rec, rep run, timing *[]string) string {
	ownersA, a := byOwner(rec)
	ownersB, b := byOwner(rep)
	all := slices.Clone(ownersA)
	for _, o := range ownersB {
		if a[o] == nil {
			all = append(all, o)
		}
	}
	for _, o := range all {
		if d := r.ownersPodsDiff(o, a[o], b[o], timing); d != "" {
			return d
		}
	}
	return ""
}

// ownersPodsDiff compares the pods of one owner.
func (r *rules) ownersPodsDiff(owner string, a, b []object, timing *[]string) string {
	late := slices.ContainsFunc(slices.Concat(a, b), func(p object) bool { return number(p, "created") > r.duration-short })
	if len(a) != len(b) && !late {
		return fmt.Sprintf("%d pods of %s, recorded %d", len(b), owner, len(a))
	}
	var miss, left []*outcome
	for _, p := range b {
		left = append(left, r.outcomeOf(p))
	}
	take := func(fits func(y *outcome) bool) bool {
		i := slices.IndexFunc(left, fits)
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
		return i >= 0
	}
	for _, p := range a {
		x := r.outcomeOf(p)
		if !take(func(y *outcome) bool { return y.key() == x.key() }) {
			miss = append(miss, x)
		}
	}
	miss = slices.DeleteFunc(miss, func(x *outcome) bool {
		return take(func(y *outcome) bool { return (x.edge || y.edge) && x.loose() == y.loose() })
	})
	isNew := func(o *outcome) bool { return o.new }
	miss, left = slices.DeleteFunc(miss, isNew), slices.DeleteFunc(left, isNew)
	switch {
	case len(miss) > 0 && len(left) == 0:
		return fmt.Sprintf("a pod of %s is missing: %s", owner, cut(miss[0].key()))
	case len(miss) > 0:
		nearest := slices.MinFunc(left, func(x, y *outcome) int { return distance(miss[0], x) - distance(miss[0], y) })
		return fmt.Sprintf("a pod of %s: %s", owner, differ(miss[0].fields, nearest.fields, ""))
	case len(left) > 0:
		return fmt.Sprintf("a pod of %s is one too many: %s", owner, cut(left[0].key()))
	}
	for _, k := range []string{"created", "bound", "running", "ended", "deleting", "gone"} {
		x, y := times(a, k), times(b, k)
		if len(x) != len(y) {
			continue
		}
		for i := range x {
			if math.Abs(x[i]-y[i]) > r.sinceStart(x[i]) {
				*timing = append(*timing, fmt.Sprintf("pods of %s: %s at %vs, recorded at %vs", owner, k, y[i], x[i]))
				break
			}
		}
	}
	return ""
}

// distance is in how many fields two outcomes differ.
func distance(x, y *outcome) int {
	n := 0
	for k := range x.fields { //drydock:unordered counts
		if !same(x.fields[k], y.fields[k]) {
			n++
		}
	}
	return n
}

// times are those of a field of pods, sorted.
func times(pods []object, field string) []float64 {
	var out []float64
	for _, p := range pods {
		if has(p, field) {
			out = append(out, number(p, field))
		}
	}
	slices.Sort(out)
	return out
}

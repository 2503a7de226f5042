package cluster

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// objectsDiff compares the statuses of objects.
func (r *rules) objectsDiff(rec, rep run, timing *[]string) string {
	a, b := child(rec.object, "objects"), child(rep.object, "objects")
	for _, k := range rec.names("objects") {
		if !has(b, k) {
			return k + " is missing"
		}
		if d := r.statesDiff(k, r.clean(children(a, k)), r.clean(children(b, k)), timing); d != "" {
			return d
		}
	}
	for _, k := range rep.names("objects") {
		if !has(a, k) {
			return k + " was not recorded"
		}
	}
	return ""
}

// nodesDiff compares the statuses of nodes. Of nodes that are interchangeable those are compared that
// are most alike: in the order of what lasted.
func (r *rules) nodesDiff(rec, rep run, timing *[]string) string {
	a, b := child(rec.object, "nodes"), child(rep.object, "nodes")
	for _, k := range rec.names("nodes") {
		if !has(b, k) {
			return fmt.Sprintf("node %s is missing", k)
		}
	}
	for _, k := range rep.names("nodes") {
		if !has(a, k) {
			return fmt.Sprintf("node %s was not recorded", k)
		}
	}
	mine := func(names []string, of object, group any) []string {
		var out []string
		for _, k := range names {
			if r.node(k) == group {
				out = append(out, k)
			}
		}
		slices.SortStableFunc(out, func(x, y string) int {
			lastingX, timesX := r.course(children(of, x))
			lastingY, timesY := r.course(children(of, y))
			return cmp.Or(cmp.Compare(lastingX, lastingY), slices.Compare(timesX, timesY))
		})
		return out
	}
	done := map[any]bool{}
	for _, k := range rec.names("nodes") {
		group := r.node(k)
		if done[group] {
			continue
		}
		done[group] = true
		xs, ys := mine(rec.names("nodes"), a, group), mine(rep.names("nodes"), b, group)
		for i := range min(len(xs), len(ys)) {
			if d := r.statesDiff("node "+xs[i], children(a, xs[i]), children(b, ys[i]), timing); d != "" {
				return d
			}
		}
	}
	return ""
}

// course is what lasted of a node's statuses, and the times of all, the last first.
func (r *rules) course(rows []object) (lasting string, times []float64) {
	kept := []any{}
	for _, s := range r.states(rows) {
		if s.lives > short {
			kept = append(kept, s.value)
		}
	}
	for _, row := range rows {
		times = append(times, number(row, "at"))
	}
	slices.Reverse(times)
	return dump(kept), times
}

var (
	sliceNumber = regexp.MustCompile(`-slice\d+$`)
	podNumber   = regexp.MustCompile(`#\d+$`)
)

// endpointsDiff compares the endpoints of Services, all slices of one together.
func (r *rules) endpointsDiff(rec, rep run, timing *[]string) string {
	namesA, a := r.endpoints(rec)
	namesB, b := r.endpoints(rep)
	for _, k := range namesA {
		if b[k] == nil {
			return fmt.Sprintf("endpoints of %s are missing", k)
		}
		if d := r.statesDiff("endpoints of "+k, a[k], b[k], timing); d != "" {
			return d
		}
	}
	for _, k := range namesB {
		if a[k] == nil {
			return fmt.Sprintf("endpoints of %s were not recorded", k)
		}
	}
	return ""
}

// endpoints are the states of each Service's endpoints, with the names of the Services in order.
func (r *rules) endpoints(of run) (names []string, states map[string][]object) {
	all := child(of.object, "endpoints")
	slicesOf := map[string][][]object{}
	for _, k := range of.names("endpoints") {
		service := sliceNumber.ReplaceAllString(k, "")
		if slicesOf[service] == nil {
			names = append(names, service)
		}
		slicesOf[service] = append(slicesOf[service], children(all, k))
	}
	states = map[string][]object{}
	for _, service := range names {
		var times []float64
		for _, rows := range slicesOf[service] {
			for _, row := range rows {
				times = append(times, number(row, "at"))
			}
		}
		slices.Sort(times)
		rows := []object{}
		for _, t := range slices.Compact(times) {
			row := r.endpointsAt(slicesOf[service], t)
			row["at"] = t
			rows = append(rows, row)
		}
		states[service] = rows
	}
	return names, states
}

// endpointsAt is the state of a Service's slices at a time: how many endpoints each has, unless there
// are many, and which there are.
func (r *rules) endpointsAt(all [][]object, t float64) object {
	var lengths []float64
	count, ports, total := object{}, []string{}, 0.0
	for _, rows := range all {
		var now object
		for _, row := range rows {
			if number(row, "at") <= t {
				now = row
			}
		}
		if now == nil || truth(now, "deleted") {
			continue
		}
		for _, e := range children(now, "endpoints") {
			x := object{}
			for k, v := range e { //drydock:unordered fills a map
				switch k {
				case "n":
				case "node":
					x[k] = r.node(v)
				case "pod":
					s, _ := v.(string)
					x[k] = podNumber.ReplaceAllString(s, "#*")
				default:
					x[k] = v
				}
			}
			n := 1.0
			if has(e, "n") {
				n = number(e, "n")
			}
			key := dump(x)
			count[key] = number(count, key) + n
			total += n
		}
		lengths = append(lengths, float64(len(children(now, "endpoints"))))
		ports = append(ports, dump(now["ports"]))
	}
	slices.Sort(ports)
	row := object{"ports": slices.Compact(ports), "endpoints": count, "slices": nil}
	switch {
	case total > 100:
		row["slices"] = float64(len(lengths))
	case total <= 30:
		slices.Sort(lengths)
		row["slices"] = lengths
	}
	return row
}

// keysOfBoth are the keys of two objects, sorted.
func keysOfBoth(a, b object) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(decode.SortedKeys(a), decode.SortedKeys(b)))))
}

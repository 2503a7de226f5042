package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/lists"
)

// Figure is one number of a report by a name that stays: "podStartup.p99". Unit is "s" for
// seconds, "" for a count.
type Figure struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// Text writes the figure's value.
func (f Figure) Text() string {
	if f.Unit == "s" {
		return round(time.Duration(f.Value * float64(time.Second))).String()
	}
	return strconv.FormatFloat(f.Value, 'f', -1, 64)
}

// figureParts are the names of startup.csv's parts in figures, in the order of Summary. podStartup
// is what the SLO is about.
func figureParts() []string {
	return []string{"podStartupAll", "podStartup", "scheduling", "sandbox", "imagePull", "init", "containers", "reporting"}
}

// Figures are the numbers that thresholds and comparisons are about, in the order in which they
// are shown. What there was none of has no percentiles: those figures are left out.
func (r *Report) Figures() []Figure {
	var out []Figure
	add := func(name, unit string, v float64) { out = append(out, Figure{name, unit, v}) }
	s := r.Summary()
	for i, p := range s.Startup {
		name := figureParts()[i]
		add(name+".count", "", float64(p.Count))
		if p.Count > 0 {
			for _, x := range []struct {
				name string
				v    float64
			}{{"mean", p.Mean}, {"p50", p.P50}, {"p90", p.P90}, {"p99", p.P99}, {"max", p.Max}} {
				add(name+"."+x.name, "s", x.v)
			}
		}
	}
	for i, name := range []string{"apiMutating", "apiGet", "apiList"} {
		if x := s.SLOs[i+1]; x.P99 != nil {
			add(name+".p99", "s", *x.P99)
		}
	}
	t, last := &r.Totals, r.last()
	for _, x := range []struct {
		name string
		n    uint64
	}{
		{"podsCreated", t.Created}, {"podsScheduled", t.Scheduled}, {"podsStarted", t.Started}, {"podsDeleted", t.Deleted}, {"podsRejected", t.Rejected}, {"podsOnTheirWay", uint64(s.Waiting)},
		{"podsRunning", uint64(last.Pods[Running])}, {"podsUnscheduled", uint64(last.Pods[Unscheduled])}, {"nodesReady", uint64(last.Nodes[Ready])},
		{"restarts", t.Restarts}, {"oomKills", t.OOMKills}, {"evictions", t.Evicted()}, {"apiRequests", r.requests(func(int) bool { return true })},
		{"apiErrors", r.requests(func(code int) bool { return code == 0 || code >= 400 })}, {"apiRejected", r.requests(func(code int) bool { return code == 429 })},
	} {
		add(x.name, "", float64(x.n))
	}
	return out
}

// requests counts the API's requests with certain codes; 0 is no answer.
func (r *Report) requests(of func(code int) bool) (n uint64) {
	for i := range r.API.Requests {
		for _, c := range r.API.Requests[i].Codes {
			if of(int(c.Code)) {
				n += c.Count
			}
		}
	}
	return n
}

// Threshold is a bound that a figure is to keep: "podStartup.p99 < 5s".
type Threshold struct {
	Figure, Op string
	Limit      float64
	text       string
}

// ParseThreshold reads a threshold: a figure's name, one of < <= > >= == and a number, or for
// times a duration. The error says what was meant.
func ParseThreshold(text string) (Threshold, error) {
	i := strings.IndexAny(text, "<>=")
	if i < 0 {
		return Threshold{}, fmt.Errorf("%q is no threshold such as podStartup.p99 < 5s", text)
	}
	name, rest := strings.TrimSpace(text[:i]), text[i:]
	op := rest[:len(rest)-len(strings.TrimLeft(rest, "<>="))]
	if !slices.Contains([]string{"<", "<=", ">", ">=", "=="}, op) {
		return Threshold{}, fmt.Errorf("%q: %s is none of < <= > >= ==", text, op)
	}
	limit := strings.TrimSpace(rest[len(op):])
	t := Threshold{Figure: name, Op: op, text: strings.TrimSpace(text)}
	isTime := false
	if d, err := time.ParseDuration(limit); err == nil {
		t.Limit, isTime = d.Seconds(), limit != "0"
	} else if t.Limit, err = strconv.ParseFloat(limit, 64); err != nil {
		return Threshold{}, fmt.Errorf("%q: %q is neither a number nor a time such as 5s", text, limit)
	}
	names := figureNames()
	at := slices.IndexFunc(names, func(f Figure) bool { return f.Name == name })
	switch {
	case at < 0:
		return Threshold{}, fmt.Errorf("%q: there is no figure %q; there are %s", text, name, strings.Join(lists.Map(names, func(f Figure) string { return f.Name }), ", "))
	case (names[at].Unit == "s") != isTime && t.Limit != 0:
		return Threshold{}, fmt.Errorf("%q: %s is %s", text, name, map[bool]string{true: "a time: 5s", false: "a number"}[names[at].Unit == "s"])
	}
	return t, nil
}

// figureNames are all figures that there may be.
func figureNames() []Figure {
	var out []Figure
	for _, part := range figureParts() {
		out = append(out, Figure{Name: part + ".count"})
		for _, x := range []string{"mean", "p50", "p90", "p99", "max"} {
			out = append(out, Figure{Name: part + "." + x, Unit: "s"})
		}
	}
	for _, x := range []string{"apiMutating.p99", "apiGet.p99", "apiList.p99"} {
		out = append(out, Figure{Name: x, Unit: "s"})
	}
	for _, x := range []string{
		"podsCreated", "podsScheduled", "podsStarted", "podsDeleted", "podsRejected", "podsOnTheirWay", "podsRunning", "podsUnscheduled", "nodesReady",
		"restarts", "oomKills", "evictions", "apiRequests", "apiErrors", "apiRejected",
	} {
		out = append(out, Figure{Name: x})
	}
	return out
}

// Judge returns whether the figures keep the threshold, and a line that says so. A figure that
// there is none of keeps nothing.
func (t Threshold) Judge(figures []Figure) (kept bool, line string) {
	i := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == t.Figure })
	if i < 0 {
		return false, t.text + ": there is no such figure: nothing of it happened, or it is not modelled"
	}
	switch f := figures[i]; t.Op {
	case "<":
		kept = f.Value < t.Limit
	case "<=":
		kept = f.Value <= t.Limit
	case ">":
		kept = f.Value > t.Limit
	case ">=":
		kept = f.Value >= t.Limit
	case "==":
		kept = f.Value == t.Limit
	}
	return kept, fmt.Sprintf("%s: it is %s", t.text, figures[i].Text())
}

// FiguresFile is the file of a report's directory with its figures and facts, which comparing reads.
const FiguresFile = "figures.json"

// Figured is what FiguresFile holds.
type Figured struct {
	Facts   []Fact   `json:"facts"`
	Figures []Figure `json:"figures"`
}

// writeFigures writes FiguresFile.
func (r *Report) writeFigures(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(Figured{r.Facts, r.Figures()})
}

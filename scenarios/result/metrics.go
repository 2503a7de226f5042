package result

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/sim"
)

// Metrics is what a run did to its pods and nodes.
type Metrics struct{ sim.Metrics }

// podEndJSON is a pod's end that was not its own doing.
type podEndJSON struct {
	At      float64 `json:"atSeconds"`
	Pod     string  `json:"pod"`
	Of      string  `json:"workload,omitempty"`
	Node    string  `json:"node"`
	QoS     string  `json:"qos,omitempty"`
	Reason  string  `json:"reason"`
	Message string  `json:"message"`
}

// oomKillJSON is a container that the kernel killed for want of memory.
type oomKillJSON struct {
	At        float64 `json:"atSeconds"`
	Pod       string  `json:"pod"`
	Of        string  `json:"workload,omitempty"`
	Container string  `json:"container"`
	Node      string  `json:"node"`
}

// podCountJSON is a count of something for one pod.
type podCountJSON struct {
	Pod   string `json:"pod"`
	Of    string `json:"workload,omitempty"`
	Count int64  `json:"count"`
}

// pressureJSON is how often and how long a node was under pressure.
type pressureJSON struct {
	Node      string  `json:"node"`
	Condition string  `json:"condition"`
	Times     int64   `json:"times"`
	Seconds   float64 `json:"seconds"`
}

// pullsJSON is how often an image was pulled on all nodes.
type pullsJSON struct {
	Image string `json:"image"`
	Pulls int64  `json:"pulls"`
	Bytes int64  `json:"bytes"`
}

// availabilityJSON is for how long of the time for which a workload's replicas were wanted they
// were ready.
type availabilityJSON struct {
	Kind  string  `json:"kind,omitempty"`
	Name  string  `json:"name,omitempty"`
	QoS   string  `json:"qos,omitempty"`
	Ready float64 `json:"readySeconds"`
	Asked float64 `json:"askedSeconds"`
}

// kubeletSeriesJSON is a series of the kubelets' own metrics, over all nodes.
type kubeletSeriesJSON struct {
	Name   string   `json:"name"`
	Labels string   `json:"labels,omitempty"`
	Type   string   `json:"type"`
	Value  float64  `json:"value"`
	Sum    *float64 `json:"sum,omitempty"`
	P50    *float64 `json:"p50,omitempty"`
	P99    *float64 `json:"p99,omitempty"`
}

// MarshalJSON writes the metrics; times are seconds.
func (m *Metrics) MarshalJSON() ([]byte, error) {
	out := struct {
		Evictions    []podEndJSON       `json:"evictions"`
		Preemptions  []podEndJSON       `json:"preemptions"`
		Shutdowns    []podEndJSON       `json:"shutdowns"`
		Rejections   []podEndJSON       `json:"rejections"`
		OOMKills     []oomKillJSON      `json:"oomKills"`
		SystemOOMs   int64              `json:"systemOOMs"`
		Restarts     []podCountJSON     `json:"restarts"`
		Pressure     []pressureJSON     `json:"pressure"`
		Pulls        []pullsJSON        `json:"imagePulls"`
		Availability availabilityJSON   `json:"availability"`
		ByWorkload   []availabilityJSON `json:"availabilityByWorkload"`

		Kubelets []kubeletSeriesJSON `json:"kubelets"`
	}{
		Evictions: podEnds(m.Evictions), Preemptions: podEnds(m.Preemptions), Shutdowns: podEnds(m.Shutdowns), Rejections: podEnds(m.Rejections),
		OOMKills: []oomKillJSON{}, SystemOOMs: m.SystemOOMs, Restarts: []podCountJSON{}, Pressure: []pressureJSON{}, Pulls: []pullsJSON{}, ByWorkload: []availabilityJSON{}, Kubelets: []kubeletSeriesJSON{},
	}
	for _, k := range m.OOMKills {
		out.OOMKills = append(out.OOMKills, oomKillJSON{seconds(k.At), k.Pod, k.Workload.String(), k.Container, k.Node})
	}
	for _, r := range m.Restarts {
		out.Restarts = append(out.Restarts, podCountJSON{r.Pod, r.Workload.String(), r.Restarts})
	}
	for _, p := range m.Pressure {
		out.Pressure = append(out.Pressure, pressureJSON{p.Node, p.Condition, p.Times, seconds(p.For)})
	}
	for _, p := range m.Pulls {
		out.Pulls = append(out.Pulls, pullsJSON(p))
	}
	var ready, asked time.Duration
	for _, a := range m.Availability {
		ready, asked = ready+a.Ready, asked+a.Asked
		out.ByWorkload = append(out.ByWorkload, availabilityJSON{a.Kind, a.Name, string(a.QoS), seconds(a.Ready), seconds(a.Asked)})
	}
	for _, k := range m.Kubelets {
		x := kubeletSeriesJSON{Name: k.Name, Labels: k.Labels, Type: k.Type, Value: k.Value}
		if k.Type == sim.HistogramSeries {
			x.Sum, x.P50, x.P99 = new(k.Sum), new(k.P50), new(k.P99)
		}
		out.Kubelets = append(out.Kubelets, x)
	}
	out.Availability = availabilityJSON{"", "", "", seconds(ready), seconds(asked)}
	return text.JSON(out)
}

// podEnds writes ends; a list without any is [], so that readers need no case of
// their own.
func podEnds(list []sim.PodEnd) []podEndJSON {
	out := []podEndJSON{}
	for _, e := range list {
		out = append(out, podEndJSON{seconds(e.At), e.Pod, e.Workload.String(), e.Node, string(e.QoS), e.Reason, strings.TrimSpace(e.Message)})
	}
	return out
}

// Measure says how a figure is written.
type Measure int

const (
	Counted Measure = iota
	Timed           // seconds
	Sized           // bytes
	Shared          // a part of 1
)

// Figure is one number of the metrics. Those with a part are parts of the figure
// of the same name without.
type Figure struct {
	Name, Part string
	In         Measure
	Value      float64
}

// Figures are the metrics in the order in which they are shown; those with a
// part only if there is something.
func (m *Metrics) Figures() []Figure {
	var out []Figure
	add := func(name string, in Measure, v float64) { out = append(out, Figure{name, "", in, v}) }
	parts := func(name string, in Measure, of map[string]float64) {
		for _, k := range decode.SortedKeys(of) {
			out = append(out, Figure{name, k, in, of[k]})
		}
	}
	ends := func(name string, list []sim.PodEnd, by func(*sim.PodEnd) []string) {
		add(name, Counted, float64(len(list)))
		of := map[string]float64{}
		for i := range list {
			for _, k := range by(&list[i]) {
				of[k]++
			}
		}
		parts(name, Counted, of)
	}
	ends("evictions", m.Evictions, func(e *sim.PodEnd) []string { return []string{cmp.Or(string(e.QoS), "unknown QoS"), lowText(e.Reason)} })
	add("OOM kills", Counted, float64(len(m.OOMKills)))
	add("SystemOOM events", Counted, float64(m.SystemOOMs))
	restarts := 0.0
	for _, r := range m.Restarts {
		restarts += float64(r.Restarts)
	}
	add("container restarts", Counted, restarts)
	ends("preemptions", m.Preemptions, func(e *sim.PodEnd) []string { return nil })
	ends("ended by a shutdown", m.Shutdowns, func(e *sim.PodEnd) []string { return nil })
	ends("rejected pods", m.Rejections, func(e *sim.PodEnd) []string { return []string{e.Reason} })
	pressure, begins := map[string]float64{}, map[string]float64{}
	for _, p := range m.Pressure {
		pressure[p.Condition] += p.For.Seconds()
		begins[p.Condition] += float64(p.Times)
	}
	for _, k := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "NotReady"} {
		name := "time in " + k
		if k == "NotReady" {
			name = "time not Ready"
		}
		add(name, Timed, pressure[k])
		if begins[k] > 0 {
			parts(name, Counted, map[string]float64{"times": begins[k]})
		}
	}
	pulls, size := 0.0, 0.0
	for _, p := range m.Pulls {
		pulls, size = pulls+float64(p.Pulls), size+float64(p.Bytes)
	}
	add("image pulls", Counted, pulls)
	add("pulled bytes", Sized, size)
	add("pod availability", Shared, m.available())
	return out
}

// lowText is why a pod was evicted.
func lowText(reason string) string {
	if reason == sim.OverItsLimit {
		return "over its own limit"
	}
	return "low on " + reason
}

// available is the part of the time for which replicas were wanted in which they were ready;
// 1 if none was wanted.
func (m *Metrics) available() float64 {
	var ready, asked time.Duration
	for _, a := range m.Availability {
		ready, asked = ready+a.Ready, asked+a.Asked
	}
	if asked == 0 {
		return 1
	}
	return ready.Seconds() / asked.Seconds()
}

// Text writes a number of the figure's kind.
func (in Measure) Text(v float64) string {
	switch in {
	case Timed:
		return text.ShortTime(time.Duration(v * float64(time.Second)).Round(100 * time.Millisecond))
	case Sized:
		return sizeText(v)
	case Shared:
		return fmt.Sprintf("%.2f%%", 100*v)
	}
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// sizeText writes bytes as container registries do: in powers of 1000.
func sizeText(v float64) string {
	q := resource.NewQuantity(int64(math.Abs(v)), resource.DecimalSI)
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if math.Abs(v) >= u.size {
			return fmt.Sprintf("%.1f %s", v/u.size, u.name)
		}
	}
	if v < 0 {
		return "-" + q.String() + " B"
	}
	return q.String() + " B"
}

// shownEnds is how many evictions and the like a text shows.
const shownEnds = 20

// writeText writes the metrics of one run for a reader.
func (m *Metrics) writeText(w io.Writer) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, f := range m.Figures() {
		name := f.Name
		if f.Part != "" {
			name = "  " + f.Part
		}
		fmt.Fprintf(t, "%s\t%s\n", name, f.In.Text(f.Value))
	}
	t.Flush()
	for _, l := range []struct {
		what string
		ends []sim.PodEnd
	}{{"evicted", m.Evictions}, {"preempted", m.Preemptions}, {"ended by a shutdown", m.Shutdowns}, {"rejected", m.Rejections}} {
		for i, e := range l.ends {
			if i == shownEnds {
				fmt.Fprintf(w, "%s: and %d more\n", l.what, len(l.ends)-i)
				break
			}
			fmt.Fprintf(w, "%s: %s  %s (%s) on %s: %s\n", l.what, text.Stamp(int64(e.At)), e.Pod, e.QoS, e.Node, strings.TrimSpace(e.Message))
		}
	}
	for i, k := range m.OOMKills {
		if i == shownEnds {
			fmt.Fprintf(w, "OOM killed: and %d more\n", len(m.OOMKills)-i)
			break
		}
		fmt.Fprintf(w, "OOM killed: %s  container %s of %s on %s\n", text.Stamp(int64(k.At)), k.Container, k.Pod, k.Node)
	}
	m.writeShort(w)
	m.writeKubelets(w)
}

// writeShort writes which workloads had fewer ready pods than they wanted, those that were short of
// most first.
func (m *Metrics) writeShort(w io.Writer) {
	var list []sim.Availability
	for _, a := range m.Availability {
		if a.Ready < a.Asked {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b sim.Availability) int { return cmp.Compare(b.Asked-b.Ready, a.Asked-a.Ready) })
	for i, a := range list {
		if i == shownEnds {
			fmt.Fprintf(w, "not ready: and %d more\n", len(list)-i)
			break
		}
		fmt.Fprintf(w, "not ready: %s for %s, of all its replicas together (available %s)\n", a.Workload, text.ShortTime((a.Asked - a.Ready).Round(100*time.Millisecond)), Shared.Text(a.Ready.Seconds()/a.Asked.Seconds()))
	}
}

// writeKubelets writes what the kubelets counted themselves, a line a series.
func (m *Metrics) writeKubelets(w io.Writer) {
	if len(m.Kubelets) == 0 {
		return
	}
	fmt.Fprintf(w, "\ncounted by the kubelets (%d series; of histograms the number of values and percentiles)\n", len(m.Kubelets))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, k := range m.Kubelets {
		labels := ""
		if k.Labels != "" {
			labels = "{" + k.Labels + "}"
		}
		fmt.Fprintf(t, "  %s%s\t%s", k.Name, labels, number(k.Value))
		if k.Type == sim.HistogramSeries {
			fmt.Fprintf(t, "\tp50 %s\tp99 %s", number(k.P50), number(k.P99))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// number writes a number in as few digits as tell it to a thousandth.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }

// Census counts what is left on the nodes at the end of a run.
type Census struct{ sim.Census }

// leakJSON is something that a node keeps of a pod that is gone.
type leakJSON struct {
	Node string `json:"node"`
	What string `json:"what"`
	Name string `json:"name"`
	Pod  string `json:"pod,omitempty"`
}

// MarshalJSON writes the census; times are seconds.
func (c *Census) MarshalJSON() ([]byte, error) {
	leaks := []leakJSON{}
	for _, l := range c.Leaks {
		leaks = append(leaks, leakJSON(l))
	}
	return text.JSON(struct {
		At           float64    `json:"atSeconds"`
		Pods         int        `json:"pods"`
		Leaving      int        `json:"leaving"`
		Sandboxes    int        `json:"sandboxes"`
		Containers   int        `json:"containers"`
		Images       int        `json:"images"`
		ImageRecords int        `json:"imageRecords"`
		VolumeDirs   int        `json:"volumeDirectories"`
		LogDirs      int        `json:"logDirectories"`
		Mounts       int        `json:"mounts"`
		Workers      int        `json:"workers"`
		Statuses     int        `json:"statuses"`
		Timers       int        `json:"timers"`
		Tasks        int        `json:"tasks"`
		Down         []string   `json:"nodesDown,omitempty"`
		Leaks        []leakJSON `json:"leaks"`
	}{
		seconds(c.At), c.Pods, c.Leaving, c.Sandboxes, c.Containers, c.Images, c.ImageRecords, c.VolumeDirs, c.LogDirs, c.Mounts,
		c.Workers, c.Statuses, c.Timers, c.Tasks, c.Down, leaks,
	})
}

// shownLeaks is how many leaks a text shows.
const shownLeaks = 50

// writeText writes the census for a reader.
func (c *Census) writeText(w io.Writer) {
	fmt.Fprintf(w, "\ncensus: the API has %s (%d left it within the last %s); on the nodes there are %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s\n",
		text.Plural(c.Pods, "pod"), c.Leaving, text.ShortTime(sim.CensusSettles),
		text.Count(c.Sandboxes, "sandbox", "sandboxes"), text.Plural(c.Containers, "container"), text.Plural(c.Images, "image"), text.Plural(c.ImageRecords, "image record"),
		text.Count(c.VolumeDirs, "volume directory", "volume directories"), text.Count(c.LogDirs, "log directory", "log directories"), text.Plural(c.Mounts, "mount"),
		text.Plural(c.Workers, "worker"), text.Count(c.Statuses, "status", "statuses"), text.Plural(c.Timers, "timer"), text.Plural(c.Tasks, "task"))
	if len(c.Down) > 0 {
		fmt.Fprintf(w, "census: not looked at, since their kubelets do not run: %s\n", strings.Join(c.Down[:min(len(c.Down), 10)], ", "))
	}
	if len(c.Leaks) == 0 {
		fmt.Fprintln(w, "census: nothing is left of pods that are gone")
		return
	}
	for i, l := range c.Leaks {
		if i == shownLeaks {
			fmt.Fprintf(w, "census: and %d more leaks\n", len(c.Leaks)-i)
			break
		}
		fmt.Fprintf(w, "LEAK      %s\n", l)
	}
}

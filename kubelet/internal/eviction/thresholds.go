package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/kubelet/internal/eviction/api"
)

// Threshold is an amount of a signal below which the node is low.
type Threshold struct {
	Signal Signal
	Value  api.ThresholdValue
	// Grace is how long it has to be met before pods are evicted; 0 is a hard
	// threshold.
	Grace time.Duration
	// MinReclaim is how much more than Value has to be there for the threshold
	// to count as met no more, once it was acted on; nil: nothing.
	MinReclaim *api.ThresholdValue
	// Inert thresholds are never met: they stand where upstream copies one that
	// was not configured.
	Inert bool
}

// same reports whether thresholds are one and the same (upstream compareThreshold
// and compareThresholdValue); minimum reclaim is no part of it.
func (t *Threshold) same(o *Threshold) bool {
	return t.Signal == o.Signal && t.Inert == o.Inert && t.Grace == o.Grace && t.Value.Equal(&o.Value)
}

// hard reports whether a threshold is acted on at once.
func (t *Threshold) hard() bool { return t.Grace == 0 }

// Config is what a kubelet's configuration says of eviction: maps by the
// signals' names, as in the configuration's fields of these names.
type Config struct {
	Hard, Soft, SoftGracePeriod, MinimumReclaim map[string]string
	// Allocatable says that the pods' cgroup has the limit of what is
	// allocatable (enforceNodeAllocatable has pods): each hard threshold on
	// memory is one on what is left there, too.
	Allocatable bool
	// PressureTransition is evictionPressureTransitionPeriod.
	PressureTransition time.Duration
	// MaxPodGracePeriod is evictionMaxPodGracePeriod, in seconds.
	MaxPodGracePeriod int64
	// LocalStorage is localStorageCapacityIsolation.
	LocalStorage bool
	// MemcgNotification is kernelMemcgNotification.
	MemcgNotification bool
}

// Thresholds returns the configured thresholds: hard ones, soft ones, and the
// hard ones on allocatable memory, each by signal. Errors have upstream's texts
// (ParseThresholdConfig).
func (c *Config) Thresholds() ([]Threshold, error) {
	hard, err := parseStatements(c.Hard)
	if err != nil {
		return nil, err
	}
	soft, err := parseStatements(c.Soft)
	if err != nil {
		return nil, err
	}
	for i := range soft {
		t := &soft[i]
		text, ok := c.SoftGracePeriod[string(t.Signal)]
		if !ok {
			return nil, fmt.Errorf("grace period must be specified for the soft eviction threshold %v", t.Signal)
		}
		if t.Grace, err = parseGrace(text); err != nil {
			return nil, err
		}
	}
	out := append(hard, soft...)
	for i := range out {
		if out[i].MinReclaim, err = parseReclaim(string(out[i].Signal), c.MinimumReclaim); err != nil {
			return nil, err
		}
	}
	if c.Allocatable {
		for i := range out {
			if t := out[i]; t.Signal == MemoryAvailable && t.hard() {
				t.Signal = AllocatableMemoryAvailable
				out = append(out, t)
			}
		}
	}
	return out, nil
}

// parseStatements reads thresholds, in the order of the signals. 0% or 100%
// switches a signal off, such as one with a default.
func parseStatements(m map[string]string) ([]Threshold, error) {
	var out []Threshold
	for name, text := range m { //drydock:unordered sorted below
		t, ok, err := parseStatement(name, text)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Threshold) int { return cmp.Compare(a.Signal.order(), b.Signal.order()) })
	return out, nil
}

// parseStatement reads one threshold; false means that it switches the signal
// off.
func parseStatement(name, text string) (Threshold, bool, error) {
	t := Threshold{Signal: Signal(name)}
	if t.Signal.facts() == nil {
		return t, false, fmt.Errorf("unsupported eviction signal %v", name)
	}
	var on bool
	var err error
	t.Value, on, err = api.ParseThreshold(name, text)
	return t, on, err
}

// parseGrace reads a grace period of a soft threshold; the text of the error is
// upstream's.
func parseGrace(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if d < 0 {
		return 0, fmt.Errorf("invalid eviction grace period specified: %v, must be a positive value", text)
	}
	return d, nil
}

// parseReclaim reads a signal's minimum reclaim; nil: what is under the
// threshold is enough.
func parseReclaim(name string, m map[string]string) (*api.ThresholdValue, error) {
	text, ok := m[name]
	if !ok {
		return nil, nil
	}
	v, err := api.ParseMinimumReclaim(name, text)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// ThresholdSet are the thresholds of a configuration in all forms that a manager
// needs. It is shared and never written to.
type ThresholdSet struct {
	configured []Threshold
	// on are the thresholds once the file systems' layout is known.
	on [len(layouts)]struct {
		thresholds []Threshold
		messages   []string
	}
}

// NewThresholdSet reads a configuration's thresholds; errors are those of
// Config.Thresholds.
func NewThresholdSet(c *Config) (*ThresholdSet, error) {
	configured, err := c.Thresholds()
	if err != nil {
		return nil, err
	}
	s := &ThresholdSet{configured: configured}
	for i, l := range layouts {
		s.on[i].thresholds, s.on[i].messages = withContainerFs(configured, l)
	}
	return s, nil
}

// layouts are all that there are.
var layouts = [...]Layout{{}, {Dedicated: true}, {Split: true}, {Dedicated: true, Split: true}}

// with returns the thresholds on a layout, and what to tell of them.
func (s *ThresholdSet) with(l Layout) (thresholds []Threshold, messages []string) {
	on := &s.on[slices.Index(layouts[:], l)]
	return on.thresholds, on.messages
}

// withContainerFs returns the thresholds with those on the file system of the
// writable layers, which are not configured: they are copies of the root's, or
// with a dedicated, unsplit image file system of that one's. The messages name
// what was configured in vain (UpdateContainerFsThresholds).
func withContainerFs(all []Threshold, layout Layout) (out []Threshold, messages []string) {
	bytes, inodes := NodeFsAvailable, NodeFsInodesFree
	if layout.Dedicated && !layout.Split {
		bytes, inodes = ImageFsAvailable, ImageFsInodesFree
	}
	out = slices.Clone(all)
	for _, c := range [...]struct {
		to, from Signal
		hard     bool
		kind     string
	}{
		{ContainerFsAvailable, bytes, true, "hard"},
		{ContainerFsAvailable, bytes, false, "soft"},
		{ContainerFsInodesFree, inodes, true, "hard"},
		{ContainerFsInodesFree, inodes, false, "soft"},
	} {
		find := func(s Signal) int {
			return slices.IndexFunc(out, func(t Threshold) bool { return t.Signal == s && t.hard() == c.hard && !t.Inert })
		}
		entry := Threshold{Signal: c.to, Inert: true}
		if i := find(c.from); i >= 0 {
			entry = out[i]
			entry.Signal = c.to
		}
		if i := find(c.to); i >= 0 {
			messages = append(messages, fmt.Sprintf("found %s for %s eviction. ignoring", c.to, c.kind))
			out[i] = entry
			continue
		}
		out = append(out, entry)
	}
	return out, messages
}

// met returns the thresholds of all that are met by what was observed. reclaim
// says that the minimum reclaim has to be there besides.
func met(all []Threshold, seen observations, reclaim bool) []Threshold {
	var out []Threshold
	for i := range all {
		t := &all[i]
		o, ok := seen.of(t.Signal)
		if !ok || t.Inert {
			continue
		}
		want := t.Value.Of(o.capacity)
		if reclaim && t.MinReclaim != nil {
			want.Add(t.MinReclaim.Of(o.capacity))
		}
		if want.CmpInt64(o.available) > 0 {
			out = append(out, *t)
		}
	}
	return out
}

// union returns a with what of b is not in it.
func union(a, b []Threshold) []Threshold {
	out := a
	for i := range b {
		if indexOf(out, &b[i]) < 0 {
			out = append(out, b[i])
		}
	}
	return out
}

// indexOf finds a threshold in a list, -1 if it isn't there.
func indexOf(list []Threshold, t *Threshold) int {
	return slices.IndexFunc(list, func(o Threshold) bool { return o.same(t) })
}

// firstObserved is since when a threshold has been met.
type firstObserved struct {
	Threshold
	at int64
}

// since returns for each threshold since when it has been met: as before, or
// now, in ns. Those that are met no more are forgotten.
func since(list []Threshold, before []firstObserved, now int64) []firstObserved {
	if len(list) == 0 {
		return nil
	}
	out := make([]firstObserved, 0, len(list))
	for i := range list {
		f := firstObserved{Threshold: list[i], at: now}
		for k := range before {
			if before[k].same(&list[i]) {
				f.at = before[k].at
			}
		}
		out = append(out, f)
	}
	return out
}

// instant is how far apart times may be, in ns, that count as the same. Passes
// are on a grid, and a span of several of its periods may lack the nanoseconds
// that the steps before the first of them took; upstream's passes drift, so that
// there a span is never short.
const instant = int64(100 * time.Microsecond)

// graceOver returns the thresholds that have been met for their grace period.
func graceOver(list []firstObserved, now int64) []Threshold {
	var out []Threshold
	for i := range list {
		if now-list[i].at+instant >= int64(list[i].Grace) {
			out = append(out, list[i].Threshold)
		}
	}
	return out
}

// updated returns the thresholds of which the statistic is newer than at the
// last pass, so that one statistic does not evict twice.
func updated(list []Threshold, now, last observations) []Threshold {
	var out []Threshold
	for i := range list {
		o, ok := now.of(list[i].Signal)
		if !ok {
			continue
		}
		before, known := last.of(list[i].Signal)
		if !known || o.at == 0 || o.at > before.at {
			out = append(out, list[i])
		}
	}
	return out
}

// byPriority sorts thresholds for reclaiming: memory goes before everything
// else; upstream leaves the rest to chance.
func byPriority(list []Threshold) {
	slices.SortStableFunc(list, func(a, b Threshold) int {
		return cmp.Or(cmp.Compare(a.Signal.order(), b.Signal.order()), cmp.Compare(a.Grace, b.Grace))
	})
}

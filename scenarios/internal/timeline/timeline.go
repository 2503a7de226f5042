package timeline

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
)

// KindService is the kind of lines about the endpoints of a Service. No run records them: whoever
// sees the EndpointSlices makes them, with the fields ready and total.
const KindService trace.Kind = "service"

// Timeline writes records as readable lines in fixed columns that diff well:
// step number, virtual time, node, object, kind, what happened.
type Timeline struct {
	w     io.Writer
	start int64
	step  int
	// keep says which records become lines. It is the journal's choice: by kind, by the number of
	// pods, by verbosity.
	keep func(*trace.Record) bool
	// all has lines too that say nothing new.
	all bool
	// only, if any, says which lines are written: the others are counted.
	only func(*trace.Record) bool
	told Story
	err  error
}

// New returns a timeline whose times count from start. keep says which records
// become lines; w may be nil, for who wants their steps only.
func New(w io.Writer, start time.Time, keep func(*trace.Record) bool, all bool) *Timeline {
	return &Timeline{w: w, start: start.UnixNano(), keep: keep, all: all}
}

// Only has no lines written but of records that it wants.
func (t *Timeline) Only(wants func(*trace.Record) bool) { t.only = wants }

// Take writes the record's line, if it is one that is kept, and reports whether
// it is. Its error, if any, is kept: Err has the first, and lines after it are counted but not
// written.
func (t *Timeline) Take(r *trace.Record) bool {
	if !t.keep(r) || !t.all && t.told.nothingNew(r) {
		return false
	}
	t.step++
	if t.err == nil && t.w != nil && (t.only == nil || t.only(r)) {
		_, t.err = io.WriteString(t.w, t.told.Line(t.step, t.start, r)+"\n")
	}
	t.told.Note(r)
	return true
}

// Step is the number of the last line, Err the writer's first error.
func (t *Timeline) Step() int  { return t.step }
func (t *Timeline) Err() error { return t.err }

// Header names the timeline's columns.
const Header = "  step        time  node         object                                   kind     what"

// Story is what earlier lines of a timeline said, so that a line can say what
// changed. The zero value has said nothing. It holds only what a later line depends on; a removed
// pod is forgotten, since another of the same name begins anew.
type Story struct {
	conditions map[string]string // of pods, by object
	deleting   map[string]bool   // pods
	nodes      map[string]string // conditions of nodes, by object
	faults     map[string]bool   // that have hit, by node and object
}

// Note remembers what a line said. It must be called after Line for the same record, and only for
// records that became lines: a change that was not shown is still news for the next.
func (s *Story) Note(r *trace.Record) {
	if s.conditions == nil {
		s.conditions, s.deleting = map[string]string{}, map[string]bool{}
		s.nodes, s.faults = map[string]string{}, map[string]bool{}
	}
	switch r.Kind {
	case trace.KindPod:
		s.conditions[r.Object] = Field(r.Fields, "conditions")
	case trace.KindNode:
		s.nodes[r.Object] = s.nodeConditions(r)
	case trace.KindFault:
		// A fault that ends and begins again shows its first hit again.
		s.faults[r.Node+" "+r.Object] = r.Verb == "hit"
	case trace.KindAPI:
		switch {
		case Field(r.Fields, "removed") != "":
			delete(s.conditions, r.Object)
			delete(s.deleting, r.Object)
		case r.Verb == "delete":
			s.deleting[r.Object] = true
		}
	}
}

// nothingNew reports that a line would repeat what is known: the kubelet's events
// that all is well with a node, after their first time; a node that stays not
// ready with another message; calls that a fault hits after the first; and the
// end of a grace period, which the removal follows. The kubelet sends these events at every start
// and counts them up (pkg/kubelet/nodestatus setters); of faults there may be one hit per call
// for minutes.
func (s *Story) nothingNew(r *trace.Record) bool {
	switch r.Kind {
	case trace.KindEvent:
		switch r.Verb {
		case "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID":
			return Field(r.Fields, "count") != "1"
		}
	case trace.KindNode:
		return s.nodes[r.Object] != "" && s.nodes[r.Object] == s.nodeConditions(r)
	case trace.KindFault:
		return r.Verb == "hit" && s.faults[r.Node+" "+r.Object]
	case trace.KindAPI:
		return r.Verb == "delete" && Field(r.Fields, "removed") == "" && Field(r.Fields, "grace") == "0"
	}
	return false
}

// Line renders one line of a timeline.
func (s *Story) Line(step int, start int64, r *trace.Record) string {
	// Acts of the control plane have no node; then the column has who did it.
	node := r.Node
	if node == "" {
		node = Field(r.Fields, "by")
	}
	node = cmp.Or(node, "-")
	// A message may have line breaks, a line must not.
	words := strings.ReplaceAll(s.what(r), "\n", " ")
	return strings.TrimRight(fmt.Sprintf("%6d %s  %-12s %-40s %-8s %s", step, text.Stamp(r.At-start), node, r.Object, kindName(r.Kind), words), " ")
}

// kindName is what a timeline calls a kind of act.
func kindName(k trace.Kind) string {
	switch k {
	case trace.KindPod, trace.KindNode, KindService:
		return "status"
	case trace.KindCRIRead:
		return "cri"
	}
	return string(k)
}

// Field returns a record's field, or "". A walk through the slice: records have a handful of
// fields.
func Field(fields []trace.Field, key string) string {
	for _, f := range fields {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

// PodOf returns the pod ("namespace/name") and the container that a record's
// object names, or "". Objects are written "pod namespace/name" and "container
// namespace/pod/container".
func PodOf(r *trace.Record) (pod, container string) {
	kind, name, _ := strings.Cut(r.Object, " ")
	switch kind {
	case "pod":
		return name, ""
	case "container":
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			return name[:i], name[i+1:]
		}
	}
	return "", ""
}

package running

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/scenarios/internal/timeline"
	"github.com/drydock-sim/drydock/sim"
)

// maxLogs bounds the kubelet log lines that are kept for a failed scenario.
const maxLogs = 2000

// journal takes a run's records: it writes the timeline and the trace, and keeps
// what the result needs of them. Three bounds keep its memory in hand: lines of history only of
// what is shown, log lines up to maxLogs, and above ManyPods only what is notable.
type journal struct {
	opts *Options
	// many is set for a run of so many pods that only what is notable is looked
	// at; calls, if the expectations ask for the runtime's calls all the same.
	many, calls bool
	// endless is set for a run of which nothing may be kept, since it has no end.
	endless  bool
	start    int64 // of the virtual time, in Unix nanoseconds
	timeline *timeline.Timeline
	jsonl    *trace.JSONWriter
	// history are the timeline's lines, logs the kubelets' last log lines. Records are kept
	// rather than lines: a line's words depend on those before it, and nearby makes them anew
	// from the start of the run.
	history  []entry
	logs     []string
	warnings []string
	warned   map[string]bool // the same, as a set
	unknown  []string        // images of whose programs nothing is known, sorted
	alike    map[string]alike
	owned    lineage    // nil unless an expectation is about owners
	ready    *readiness // nil if the timeline shows no pods
	onlySeen []bool     // which of Options.Only there was
}

// entry is a record with its step number in the timeline.
type entry struct {
	step int
	r    *trace.Record
}

// open begins the journal of a run that starts at a time.
func (j *journal) open(start time.Time) {
	j.start = start.UnixNano()
	j.timeline = timeline.New(j.opts.Timeline, start, j.shown, j.opts.Verbose)
	if len(j.opts.Only) > 0 {
		j.onlySeen = make([]bool, len(j.opts.Only))
		j.timeline.Only(j.isOnly)
	}
	if j.opts.Trace != nil {
		j.jsonl = trace.NewJSONWriter(j.opts.Trace, start)
	}
}

// close writes what is left, and returns the first error of writing.
func (j *journal) close() error {
	if j.jsonl != nil {
		if err := j.jsonl.Close(); err != nil {
			return fmt.Errorf("writing the trace: %w", err)
		}
	}
	if err := j.timeline.Err(); err != nil {
		return fmt.Errorf("writing the timeline: %w", err)
	}
	return nil
}

// take is called with every record that is kept, in order; also has a look at
// those that are of the scenario. It is called when the cluster flushes its records.
func (j *journal) take(rec *trace.Record, also func(*trace.Record)) {
	if !j.keep(rec.Kind, rec.Verb, rec.Fields) {
		return // somebody else's: of metrics, a report
	}
	if j.jsonl != nil {
		j.jsonl.Write(rec)
	}
	switch rec.Kind {
	case trace.KindWarning:
		if image, ok := strings.CutPrefix(rec.Object, sim.UnknownImage); ok {
			j.warnOfImage(image)
		} else if strings.HasPrefix(rec.Object, sim.Once) {
			j.warnOnce(rec.Object, rec.Verb)
		} else if workload, ok := strings.CutPrefix(rec.Object, sim.OfWorkload); ok {
			j.warnOfWorkload(workload, rec)
		} else {
			j.warn(rec.Verb)
		}
		return
	case trace.KindLog:
		if len(j.logs) == maxLogs {
			// Half is dropped at once, so that the copying is amortized.
			j.logs = append(j.logs[:0], j.logs[maxLogs/2:]...)
		}
		j.logs = append(j.logs, text.Stamp(rec.At-j.start)+"  "+rec.Node+"  "+rec.Verb)
		if !j.opts.Verbose {
			return
		}
	}
	also(rec)
	j.show(rec)
	if r := j.ready.follows(rec); r != nil {
		j.show(r)
	}
}

// show gives a record to the timeline and keeps what became a line.
func (j *journal) show(rec *trace.Record) {
	if j.timeline.Take(rec) && !j.endless {
		j.history = append(j.history, entry{j.timeline.Step(), rec})
	}
}

// warn keeps a warning, each text once.
func (j *journal) warn(text string) {
	if !j.warned[text] {
		j.warned[text] = true
		j.warnings = append(j.warnings, text)
	}
}

// warnOnce keeps a warning, one of each key.
func (j *journal) warnOnce(key, text string) {
	if !j.warned[key] {
		j.warned[key] = true
		j.warn(text)
	}
}

// alike is a warning about pods of one workload, as it was said last, and how many nodes have
// said it.
type alike struct {
	text  string
	nodes int
}

// warnOfWorkload keeps one warning of all pods of a workload of which the same is to be said. Each
// node says it once.
func (j *journal) warnOfWorkload(workload string, rec *trace.Record) {
	container, image, said := timeline.Field(rec.Fields, "container"), timeline.Field(rec.Fields, "image"), timeline.Field(rec.Fields, "text")
	key := strings.Join([]string{workload, container, image, said}, "\x00")
	was := j.alike[key]
	is := alike{rec.Verb, was.nodes + 1}
	if was.nodes > 0 {
		is.text = fmt.Sprintf("container %s of pods of %s on %d nodes, image %s: %s", container, workload, is.nodes, image, said)
	}
	if j.alike == nil {
		j.alike = map[string]alike{}
	}
	j.alike[key] = is
	if was.nodes == 0 {
		j.warn(is.text)
	} else if i := slices.Index(j.warnings, was.text); i >= 0 { // else it has been handed out
		j.warnings[i] = is.text
	}
}

// maxImages is how many unknown images a warning names.
const maxImages = 8

// warnOfImage keeps one warning of all images of whose programs nothing is known.
func (j *journal) warnOfImage(image string) {
	at, known := slices.BinarySearch(j.unknown, image)
	if known {
		return
	}
	before := slices.Index(j.warnings, j.unknownText())
	j.unknown = slices.Insert(j.unknown, at, image)
	if before < 0 {
		j.warnings = append(j.warnings, j.unknownText())
	} else {
		j.warnings[before] = j.unknownText()
	}
}

// unknownText is what is said of unknown images.
func (j *journal) unknownText() string {
	if len(j.unknown) == 0 {
		return ""
	}
	names, more := j.unknown, ""
	if n := len(names) - maxImages; n > 0 {
		names, more = names[:maxImages], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("nobody knows what these images run: %s%s. Their containers serve the ports that they declare and answer their probes; those that a pod doesn't restart exit 0 after 1s. "+
		"State what they do under programs: {match: {image: %q}, runFor: 5s, exit: 1, ports: [...]}", strings.Join(names, ", "), more, names[0])
}

// keep reports which records are worth making: one that nobody looks at is not
// made at all. The trace wants everything. Without it, what many pods would record is decided
// here by kind, before the record is made; the hash of the run covers all of it either way.
func (j *journal) keep(kind trace.Kind, verb string, fields []trace.Field) bool {
	switch {
	case kind == trace.KindWarning:
		return true
	case j.endless && j.opts.Timeline == nil, j.endless && kind == trace.KindLog && !j.opts.Verbose:
		return false
	case kind == trace.KindLog:
		return true
	case j.opts.Trace != nil, !j.many, j.opts.Verbose, kind == trace.KindCRI && j.calls:
		return true
	}
	return notable(kind, verb, fields)
}

// notable reports what a timeline of many pods shows. Failures and what may have caused them:
// actions, faults, nodes' changes, restarts of kubelets.
func notable(kind trace.Kind, verb string, fields []trace.Field) bool {
	switch kind {
	case trace.KindAction, trace.KindFault, trace.KindNode, trace.KindKubelet:
		return true
	case trace.KindPod:
		return timeline.Field(fields, "phase") == "Failed"
	case trace.KindEvent:
		return timeline.Field(fields, "type") == "Warning"
	case trace.KindCRI:
		return timeline.Field(fields, "error") != ""
	}
	return false
}

// shown reports which kept records become lines of the timeline.
func (j *journal) shown(rec *trace.Record) bool {
	switch rec.Kind {
	case trace.KindLog, trace.KindCRIRead:
		return j.opts.Verbose
	case trace.KindAPI:
		// Leases and status writes say little; what they change has kinds of
		// its own, but where the record has a state. One that takes the last finalizer removes the object. Creations, bindings and
		// deletions are shown; they are few and begin stories.
		return j.opts.Verbose || rec.Verb != "update" && rec.Verb != "patch" || timeline.Field(rec.Fields, "removed") != "" || timeline.Field(rec.Fields, "state") != ""
	}
	return !j.many || j.opts.Verbose || notable(rec.Kind, rec.Verb, rec.Fields)
}

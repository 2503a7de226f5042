package running

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/scenarios/internal/timeline"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

const (
	// nearbyLines is how many lines of history a failed expectation gets.
	nearbyLines = 15
	// likeObjects is of how many objects that somebody owns the same event is shown: ten pods
	// that fit nowhere say no more than three.
	likeObjects = 3
)

// lineage has, by an object's name in records, those that it owns, in the order of their
// creation: of a Deployment its ReplicaSets, of these their pods. Who is gone stays in it.
type lineage map[string][]string

// recordName is what records call an object: "pod default/web".
func recordName(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return strings.ToLower(kind) + " " + name
}

// note takes a change of an object that somebody may own.
func (l lineage) note(c *apiserver.Change) {
	if c.Old != nil || removed(c) {
		return
	}
	if owner := metav1.GetControllerOfNoCopy(c.New); owner != nil {
		of := recordName(owner.Kind, c.New.GetNamespace(), owner.Name)
		l[of] = append(l[of], recordName(string(c.Kind), c.New.GetNamespace(), c.New.GetName()))
	}
}

// descendants are the objects that an object owns, and those that these own.
func (l lineage) descendants(name string) []string {
	var out []string
	for _, child := range l[name] {
		out = append(append(out, child), l.descendants(child)...)
	}
	return out
}

// traceOwners has the objects noted that others own, if an expectation is about one that
// may own some: a pod costs an entry then.
func (p *performance) traceOwners() {
	owners := []expect.Kind{expect.KindDeployment, expect.KindReplicaSet, expect.KindStatefulSet, expect.KindDaemonSet, expect.KindJob, expect.KindCronJob}
	if !slices.ContainsFunc(owners, p.engine.Wants) && len(p.opts.Only) == 0 {
		return
	}
	p.journal.owned = lineage{}
	p.cluster.Store().OnChange(func(c apiserver.Change) { p.journal.owned.note(&c) }, apiserver.KindPod, apiserver.KindReplicaSet, apiserver.KindJob)
}

// nearby returns the last lines before a verdict that are about its objects, or, if there are
// none, about anything; of what an object owns those that tell of trouble, and the faults
// and failures of nodes that pods were on. Start-up noise is left out, unless there is nothing else.
func (j *journal) nearby(v expect.Verdict) []string {
	about := aboutOf(v, j.owned)
	shown := lists.Filter(j.history, func(l entry) bool {
		return time.Duration(l.r.At-j.start) <= v.At && about.includes(l.r) && l.r.Verb != "ReopenContainerLog" // of logs that grow, every ten seconds
	})
	if quiet := lists.Filter(shown, func(l entry) bool { return !isNoise(l.r) }); len(quiet) > 0 {
		shown = quiet
	}
	shown = about.thin(shown)
	if n := len(shown) - nearbyLines; n > 0 {
		// A warning that went on to the end belongs to the end, though its line is an early one.
		slices.SortStableFunc(shown, func(a, b entry) int { return cmp.Compare(about.latest[a.step], about.latest[b.step]) })
		shown = shown[n:]
		slices.SortFunc(shown, func(a, b entry) int { return cmp.Compare(a.step, b.step) })
	}
	return j.lines(shown)
}

// lines renders entries of the history. A Story sees all lines before, so they read as in
// the timeline, with the same step numbers.
func (j *journal) lines(shown []entry) []string {
	var out []string
	var told timeline.Story
	for _, l := range j.history {
		if len(out) == len(shown) {
			break
		}
		if l.step == shown[len(out)].step {
			out = append(out, told.Line(l.step, j.start, l.r))
		}
		told.Note(l.r)
	}
	return out
}

// subject is what a failed expectation is about.
type subject struct {
	objects []expect.ObjectRef
	// owned are objects that those own, by their names in records, and nodes where the pods
	// among them were.
	owned, nodes map[string]bool
	// latest is by line the last step that said the same.
	latest map[int]int
}

// aboutOf returns what a verdict is about.
func aboutOf(v expect.Verdict, owners lineage) *subject {
	s := &subject{objects: v.Objects, owned: map[string]bool{}, nodes: map[string]bool{}, latest: map[int]int{}}
	for _, o := range v.Objects {
		for _, name := range owners.descendants(recordName(string(o.Kind), o.Namespace, o.Name)) {
			s.owned[name] = true
		}
	}
	return s
}

// includes reports whether a record belongs to the subject's history. It is called with all
// records in their order.
func (s *subject) includes(r *trace.Record) bool {
	if len(s.objects) == 0 || slices.ContainsFunc(s.objects, func(o expect.ObjectRef) bool { return mentions(r, o) }) {
		return true
	}
	object := r.Object
	if pod, _ := timeline.PodOf(r); pod != "" {
		object = "pod " + pod
	}
	if s.owned[object] {
		if r.Node != "" {
			s.nodes["node "+r.Node] = true
		}
		return isTrouble(r)
	}
	return s.nodes[r.Object] && isTrouble(r)
}

// thin keeps of a warning the first, and the last if that has another message; of another event
// the last count; and of an event about many owned objects those of a few.
func (s *subject) thin(list []entry) []entry {
	type repeats struct{ first, last entry }
	events := map[string]*repeats{} // by event and object
	objects := map[string][]string{}
	key := func(r *trace.Record) string { return r.Verb + " " + r.Object }
	for _, l := range list {
		s.latest[l.step] = l.step
		if l.r.Kind != trace.KindEvent {
			continue
		}
		if e := events[key(l.r)]; e != nil {
			e.last = l
		} else {
			events[key(l.r)] = &repeats{l, l}
		}
	}
	return lists.Filter(list, func(l entry) bool {
		if l.r.Kind != trace.KindEvent {
			return true
		}
		e := events[key(l.r)]
		warning := timeline.Field(l.r.Fields, "type") == "Warning"
		same := timeline.Field(e.first.r.Fields, "message") == timeline.Field(e.last.r.Fields, "message")
		switch l.step {
		case e.first.step:
			if !warning && e.last.step != l.step {
				return false
			}
			if same {
				s.latest[l.step] = e.last.step
			}
		case e.last.step:
			if warning && same {
				return false
			}
		default:
			return false
		}
		of := objects[l.r.Verb]
		if !s.owned[l.r.Object] || slices.Contains(of, l.r.Object) {
			return true
		}
		if len(of) == likeObjects {
			return false
		}
		objects[l.r.Verb] = append(of, l.r.Object)
		return true
	})
}

// isTrouble reports whether a record about an object that others own says more than that all
// goes its way.
func isTrouble(r *trace.Record) bool {
	field := func(name string) string { return timeline.Field(r.Fields, name) }
	switch r.Kind {
	case trace.KindEvent:
		return field("type") == "Warning"
	case trace.KindPod:
		return field("phase") == "Failed"
	case trace.KindNode:
		return field("Ready") != "" && field("Ready") != "True"
	case trace.KindProcess:
		return r.Verb == "exit" && field("code") != "0"
	case trace.KindCRI:
		return field("error") != ""
	case trace.KindAPI:
		return r.Verb == "delete"
	case trace.KindAction, trace.KindFault:
		return true
	case trace.KindKubelet:
		return r.Verb != "starts"
	}
	return false
}

// isNoise reports whether a record is what every start of a kubelet or a container, or the work
// of a controller that makes pods, brings with it.
func isNoise(r *trace.Record) bool {
	switch r.Kind {
	case trace.KindEvent:
		switch r.Verb {
		case "Starting", "InvalidDiskCapacity", "NodeAllocatableEnforced", "RegisteredNode", "Scheduled", "Pulled", "Created", "Started", "SuccessfulCreate":
			return true
		case "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID":
			// Later ones tell that a pressure is over.
			return timeline.Field(r.Fields, "count") == "1"
		}
	case trace.KindCRI:
		if timeline.Field(r.Fields, "error") != "" {
			return false
		}
		switch r.Verb {
		case "RunPodSandbox", "CreateContainer", "StartContainer":
			return true
		}
	}
	return false
}

// mentions reports whether a record is about an object. A node's records include those that
// happened on it, without the runtime's calls, which would push out everything else, and the
// trouble that its kubelet tells of.
func mentions(r *trace.Record, o expect.ObjectRef) bool {
	if o.Kind == expect.KindNode && r.Node == o.Name {
		return r.Kind != trace.KindCRI
	}
	if o.Kind == expect.KindNode && timeline.Field(r.Fields, "by") == o.Name && isTrouble(r) {
		return true
	}
	if o.Kind == expect.KindPod {
		pod, _ := timeline.PodOf(r)
		return pod == o.Namespace+"/"+o.Name
	}
	return r.Object == recordName(string(o.Kind), o.Namespace, o.Name)
}

// isOnly reports whether a record is about an object of Options.Only, or one that such an object
// owns.
func (j *journal) isOnly(r *trace.Record) bool {
	object := r.Object
	if pod, _ := timeline.PodOf(r); pod != "" {
		object = "pod " + pod
	}
	for i, only := range j.opts.Only {
		kind, name := onlyName(only)
		if kind == "node" && r.Node != "" && value.Matches(name, r.Node) || j.owned.comesOf(object, func(o string) bool {
			k, n, _ := strings.Cut(o, " ")
			return k == kind && value.Matches(name, n)
		}) {
			j.onlySeen[i] = true
			return true
		}
	}
	return false
}

// onlyName is the kind and the name that a text of Options.Only has in records.
func onlyName(only string) (kind, name string) {
	kind, name, _ = strings.Cut(only, "/")
	if kind = strings.ToLower(kind); kind != "node" && !strings.Contains(name, "/") {
		name = "default/" + name
	}
	return kind, name
}

// warnOfOnly warns of what the timeline was to show alone and what never was in it.
func (j *journal) warnOfOnly() {
	for i, only := range j.opts.Only {
		if j.onlySeen[i] {
			continue
		}
		kind, name := onlyName(only)
		short := func(n string) string { return kind + "/" + strings.TrimPrefix(n, "default/") }
		var there []string
		for _, l := range j.history {
			if k, n, _ := strings.Cut(l.r.Object, " "); k == kind && !slices.Contains(there, short(n)) {
				there = append(there, short(n))
			}
		}
		hint := suggest.Suffix(short(name), there)
		part := strings.TrimPrefix(short(name), kind+"/") // as of a release's name and a chart's
		if at := slices.IndexFunc(there, func(n string) bool { return strings.Contains(n, part) }); hint == "" && at >= 0 {
			hint = fmt.Sprintf(" (did you mean %q?)", there[at])
		}
		j.warn(fmt.Sprintf("--only %s: nothing in the timeline is about that%s", only, hint))
	}
}

// comesOf reports whether an object, or one of those that own it, is wanted.
func (l lineage) comesOf(object string, wanted func(string) bool) bool {
	for depth := 0; depth < 4; depth++ {
		if wanted(object) {
			return true
		}
		owner := ""
		for o, children := range l { //drydock:unordered an object has one owner
			if slices.Contains(children, object) {
				owner = o
			}
		}
		if owner == "" {
			return false
		}
		object = owner
	}
	return false
}

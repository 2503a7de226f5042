package timeline

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/trace"
)

// what says in words what happened. Kinds without words of their own, such as actions, are the
// verb and the fields.
func (s *Story) what(r *trace.Record) string {
	switch r.Kind {
	case trace.KindEvent:
		return eventText(r)
	case trace.KindPod:
		return s.podStatus(r)
	case trace.KindNode:
		return s.nodeStatus(r)
	case trace.KindCRI, trace.KindCRIRead:
		return callText(r)
	case trace.KindProcess:
		return processText(r)
	case trace.KindAPI:
		return writeText(r)
	case trace.KindFault:
		return faultText(r)
	case KindService:
		return "endpoints: " + Field(r.Fields, "ready") + " ready of " + Field(r.Fields, "total")
	}
	return withFields(r.Verb, r.Fields)
}

// withFields appends fields that have no words of their own: the message last. Empty values, who
// did it (it has a column) and the version, which differs with unrelated writes, are left out.
func withFields(text string, fields []trace.Field, except ...string) string {
	message := ""
fields:
	for _, f := range fields {
		for _, x := range except {
			if f.Key == x {
				continue fields
			}
		}
		switch {
		case f.Value == "" || f.Key == "by" || f.Key == "version":
		case f.Key == "message":
			message = ": " + f.Value
		case f.Key == "grace":
			text += " with a grace period of " + f.Value + "s"
		default:
			text += " " + f.Key + "=" + quoteIfNeeded(f.Value)
		}
	}
	return text + message
}

// quoteIfNeeded quotes what would look like two fields.
func quoteIfNeeded(s string) string {
	if strings.ContainsAny(s, " \t\n\"") {
		return strconv.Quote(s)
	}
	return s
}

// eventText is an event: its type unless it is Normal, its reason, the
// container it is about, its message, its count from 2 on. The field is an event's
// involvedObject.fieldPath, "spec.containers{main}", of which the name in braces is what a reader
// wants.
func eventText(r *trace.Record) string {
	var b strings.Builder
	if t := Field(r.Fields, "type"); t != "Normal" {
		b.WriteString(t + " ")
	}
	b.WriteString(r.Verb)
	if _, c, ok := strings.Cut(Field(r.Fields, "field"), "{"); ok {
		b.WriteString(" (" + strings.TrimSuffix(c, "}") + ")")
	}
	b.WriteString(": " + Field(r.Fields, "message"))
	if n := Field(r.Fields, "count"); n != "1" && n != "0" && n != "" {
		b.WriteString(" (x" + n + ")")
	}
	return b.String()
}

// callText is a call of the container runtime: how long it took, or how it
// failed. Times are those of the call as the kubelet waited for it, to the millisecond.
func callText(r *trace.Record) string {
	text := r.Verb
	if image := Field(r.Fields, "image"); image != "" {
		text += " " + image
	}
	var notes []string
	if n := Field(r.Fields, "attempt"); n != "" && n != "0" {
		notes = append(notes, "attempt "+n)
	}
	if t := Field(r.Fields, "timeout"); t != "" {
		notes = append(notes, "timeout "+t+"s")
	}
	if s := Field(r.Fields, "cpusetCpus"); s != "" {
		notes = append(notes, "CPUs "+s)
	}
	if s := Field(r.Fields, "cpusetMems"); s != "" {
		notes = append(notes, "memory of NUMA nodes "+s)
	}
	if s := Field(r.Fields, "podCIDR"); s != "" {
		notes = append(notes, "pods have "+s)
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	took := Field(r.Fields, "tookMs")
	if ms, err := strconv.ParseInt(took, 10, 64); err == nil {
		took = (time.Duration(ms) * time.Millisecond).String()
	}
	if code := Field(r.Fields, "error"); code != "" {
		text += " failed"
		if took != "" {
			text += " after " + took
		}
		return text + ": " + code + ": " + Field(r.Fields, "message")
	}
	if took != "" {
		text += " took " + took
	}
	return text
}

// processText is the start or the end of a container's process. The attempt is the runtime's
// number of the container, 0 for the first: the kubelet's restart count.
func processText(r *trace.Record) string {
	attempt := Field(r.Fields, "attempt")
	if attempt != "" && attempt != "0" {
		attempt = " (attempt " + attempt + ")"
	} else {
		attempt = ""
	}
	switch r.Verb {
	case "start":
		return "starts" + attempt
	case "exit":
		text := "exits with code " + Field(r.Fields, "code")
		var notes []string
		if reason := Field(r.Fields, "reason"); reason != "" {
			notes = append(notes, reason)
		}
		if signal := Field(r.Fields, "signal"); signal != "" {
			notes = append(notes, "signal "+signal)
		}
		if len(notes) > 0 {
			text += " (" + strings.Join(notes, ", ") + ")"
		}
		if m := Field(r.Fields, "message"); m != "" {
			text += ": " + m
		}
		if said := Field(r.Fields, "stderr"); said != "" {
			text += ", saying " + strconv.Quote(said)
		}
		return text
	}
	return withFields(r.Verb, r.Fields, "attempt") + attempt
}

// writeText is a write to the API. A deletion with a grace period only marks an object:
// deletionTimestamp is set, and the object goes when a deletion with 0 seconds comes, or its last
// finalizer. "removed" tells that it went with this write.
func writeText(r *trace.Record) string {
	text := r.Verb
	node := Field(r.Fields, "node")
	removed := Field(r.Fields, "removed") != ""
	switch r.Verb {
	case "create":
		if text = "created"; node != "" {
			text += " on node " + node
		}
	case "bind":
		text = "bound to node " + node
	case "update":
		text = "updated"
		if state := Field(r.Fields, "state"); state != "" { // of a request for a certificate
			return state
		}
	case "patch":
		text = "patched"
	case "delete":
		switch grace := Field(r.Fields, "grace"); {
		case removed:
			text = "removed"
		case grace != "":
			text = "marked for deletion, grace period " + grace + "s"
		default:
			text = "marked for deletion"
		}
	}
	if removed && r.Verb != "delete" {
		text += ", and removed: that was its last finalizer"
	}
	return withFields(text, r.Fields, "node", "grace", "removed")
}

// faultText is a fault that begins, hits a call, or ends.
func faultText(r *trace.Record) string {
	switch r.Verb {
	case "begin":
		return "begins"
	case "end":
		return "ends"
	case "hit":
		text := "hits a call"
		if pod := Field(r.Fields, "pod"); pod != "" {
			text += " for pod " + pod
		}
		return withFields(text, r.Fields, "pod")
	}
	return withFields(r.Verb, r.Fields)
}

// podStatus is a pod's phase, readiness, containers and IP, and the conditions
// that changed if nothing of that tells them. A first line names no conditions: all of them are
// new and the phase says enough. Ready and ContainersReady are told by "ready".
func (s *Story) podStatus(r *trace.Record) string {
	var b strings.Builder
	b.WriteString(Field(r.Fields, "phase"))
	if x := Field(r.Fields, "reason"); x != "" {
		b.WriteString(" (" + x + ")")
	}
	conditions := strings.Fields(Field(r.Fields, "conditions"))
	for _, c := range conditions {
		switch {
		case c == "Ready=True":
			b.WriteString(", ready")
		case strings.HasPrefix(c, "Ready="):
			b.WriteString(", not ready")
		}
	}
	if s.deleting[r.Object] {
		b.WriteString(", terminating")
	}
	if x := Field(r.Fields, "containers"); x != "" {
		b.WriteString("; " + containersText(x))
	}
	if x := Field(r.Fields, "podIP"); x != "" {
		b.WriteString("; IP " + x)
	}
	if old := strings.Fields(s.conditions[r.Object]); len(old) > 0 {
		for _, c := range changed(old, conditions, "Ready", "ContainersReady") {
			b.WriteString("; " + c)
		}
	}
	if x := Field(r.Fields, "message"); x != "" {
		b.WriteString(": " + x)
	}
	return b.String()
}

// containersText turns "main=running/ready side=Error(1) restarts=2" into
// "main running, side Error(1) after 2 restarts". The field has words separated by spaces
// (sim/apiserver/internal/kinds); names of containers hold none, and a state's reason is one
// word.
func containersText(in string) string {
	var out []string
	for _, word := range strings.Fields(in) {
		name, state, _ := strings.Cut(word, "=")
		if name == "restarts" && len(out) > 0 {
			text := " after " + state + " restarts"
			if state == "1" {
				text = " after 1 restart"
			}
			out[len(out)-1] += text
			continue
		}
		state, ready := strings.CutSuffix(state, "/ready")
		if !ready && state == "running" {
			state += " (not ready)"
		}
		out = append(out, strings.TrimSpace(name+" "+state))
	}
	return strings.Join(out, ", ")
}

// changed returns, as "Type=Status", the conditions ("Type=Status/Reason") whose
// status is new or differs from that of old, without those of some types. Reasons are dropped on
// both sides, since a reason that changes with the status unchanged is mostly a repetition in
// other words.
func changed(old, now []string, except ...string) []string {
	known := make([]string, len(old))
	for i, c := range old {
		known[i], _, _ = strings.Cut(c, "/")
	}
	var out []string
	for _, c := range now {
		c, _, _ = strings.Cut(c, "/")
		if t, _, _ := strings.Cut(c, "="); !slices.Contains(known, c) && !slices.Contains(except, t) {
			out = append(out, c)
		}
	}
	return out
}

// nodeConditions is what is known of a node's conditions after a record, which
// has only those that changed: "MemoryPressure=False ... Ready=True/KubeletReady". A record names
// the conditions that changed, so the whole is kept up from one to the next.
func (s *Story) nodeConditions(r *trace.Record) string {
	known := strings.Fields(s.nodes[r.Object])
	for _, f := range r.Fields {
		if !isCondition(f) {
			continue
		}
		found := false
		for i, k := range known {
			if strings.HasPrefix(k, f.Key+"=") {
				known[i], found = f.Key+"="+f.Value, true
			}
		}
		if !found {
			known = append(known, f.Key+"="+f.Value)
		}
	}
	return strings.Join(known, " ")
}

// isCondition reports whether a field is a condition's: those of the others, whose keys are in
// lower case. Condition types are upper camel case by API convention.
func isCondition(f trace.Field) bool {
	return f.Key != "" && f.Key[0] >= 'A' && f.Key[0] <= 'Z'
}

// nodeStatus is a node's readiness, with its reason if it is not ready, and the
// other conditions that are not as they should be or were not. Conditions other than Ready are
// well when False; a node's first line does not name those that are.
func (s *Story) nodeStatus(r *trace.Record) string {
	old := strings.Fields(s.nodes[r.Object])
	var out []string
	for _, f := range r.Fields {
		if !isCondition(f) {
			continue
		}
		status, reason, _ := strings.Cut(f.Value, "/")
		switch {
		case f.Key == "Ready" && status == "True":
			out = append(out, "Ready")
		case f.Key == "Ready":
			text := "NotReady (" + reason + ")"
			if m := Field(r.Fields, "message"); m != "" {
				text += ": " + m
			}
			out = append(out, text)
		case slices.Contains(old, f.Key+"="+f.Value) || len(old) == 0 && status == "False":
		default:
			out = append(out, f.Key+"="+f.Value)
		}
	}
	if len(out) == 0 {
		return withFields("", r.Fields)
	}
	return strings.Join(out, "; ")
}

package apiserver

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/trace"
)

// record makes the trace record of a write: KindPod for a pod's status,
// KindNode for a node's conditions, KindEvent for events, else KindAPI.
func (s *Server) record(c Change) {
	if s.rec == nil || c.Verb == "expire" {
		return
	}
	switch o := c.New.(type) {
	case *v1.Pod:
		if c.Type == watch.Modified && c.Verb == "patch" && c.Subresource == "status" {
			s.rec.RecordObject(trace.KindPod, objectOf(c.Kind, o), "status", s.fields(c, s.podFields(o))...)
			return
		}
		s.rec.RecordObject(trace.KindAPI, objectOf(c.Kind, o), c.Verb, s.fields(c, podWriteFields(s.own[:0], c, o))...)
	case *v1.Node:
		if c.Type != watch.Deleted {
			var old []v1.NodeCondition
			if c.Old != nil {
				old = c.Old.(*v1.Node).Status.Conditions
			}
			if changed := changedConditions(old, o.Status.Conditions); len(changed) > 0 {
				s.rec.Record(trace.KindNode, "node "+o.Name, c.Verb, s.fields(c, changed)...)
				return
			}
		}
		s.rec.Record(trace.KindAPI, "node "+o.Name, c.Verb, s.fields(c, nil)...)
	case *v1.Event:
		if c.Type == watch.Deleted {
			s.rec.Record(trace.KindAPI, "event "+o.Namespace+"/"+o.Name, c.Verb, s.fields(c, nil)...)
			return
		}
		s.rec.RecordObject(trace.KindEvent, involved(&o.InvolvedObject), o.Reason, s.fields(c, eventFields(s.own[:0], o))...)
	default:
		s.rec.RecordObject(trace.KindAPI, objectOf(c.Kind, c.New), c.Verb, s.fields(c, nil)...)
	}
}

// involved names an event's object as the trace does: "pod default/web-0",
// "node worker-0".
func involved(ref *v1.ObjectReference) trace.Object {
	k := Kind(ref.Kind)
	o := trace.Object{Kind: k.info().object, Name: ref.Name}
	if k.Namespaced() {
		o.Namespace = ref.Namespace
	}
	return o
}

func objectOf(k Kind, o Object) trace.Object {
	return trace.Object{Kind: k.info().object, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// fields adds to a record's own fields what every write's record has.
func (s *Server) fields(c Change, own []trace.Field) []trace.Field {
	if own == nil {
		own = s.own[:0]
	}
	if c.Subresource != "" && c.Subresource != "status" && c.Subresource != "binding" {
		own = append(own, trace.Str("subresource", c.Subresource))
	}
	if c.Type == watch.Deleted {
		own = append(own, trace.Str("removed", "true"))
	}
	if s.by != "" {
		own = append(own, trace.Str("by", s.by))
	}
	own = append(own, trace.Field{Key: "version", Value: c.New.GetResourceVersion()})
	s.own = own[:0] // a recorder keeps a copy, if any
	return own
}

// podFields is a pod's status as a record has it.
func (s *Server) podFields(p *v1.Pod) []trace.Field {
	st := &p.Status
	out := append(s.own[:0], trace.Str("phase", string(st.Phase)))
	if st.Reason != "" {
		out = append(out, trace.Str("reason", st.Reason))
	}
	if st.Message != "" {
		out = append(out, trace.Str("message", st.Message))
	}
	b := s.text[:0]
	for i := range st.Conditions {
		c := &st.Conditions[i]
		b = appendWord(b, string(c.Type))
		b = append(b, '=')
		b = append(b, c.Status...)
		if c.Reason != "" {
			b = append(b, '/')
			b = append(b, c.Reason...)
		}
	}
	out = append(out, trace.Str("conditions", s.sharedText(b)))
	b = b[:0]
	for _, list := range [][]v1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses, st.EphemeralContainerStatuses} {
		for i := range list {
			b = appendContainer(b, &list[i])
		}
	}
	if len(b) > 0 {
		out = append(out, trace.Str("containers", s.sharedText(b)))
	}
	s.text = b
	if st.PodIP != "" {
		out = append(out, trace.Str("podIP", st.PodIP))
	}
	return out
}

// sharedTexts bounds Server.texts.
const sharedTexts = 1024

// sharedText is b as a string: conditions and containers read the same for all
// pods of a kind.
func (s *Server) sharedText(b []byte) string {
	if text, ok := s.texts[string(b)]; ok {
		return text
	}
	if len(s.texts) == sharedTexts {
		clear(s.texts)
	}
	text := string(b)
	s.texts[text] = text
	return text
}

func appendWord(b []byte, w string) []byte {
	if len(b) > 0 {
		b = append(b, ' ')
	}
	return append(b, w...)
}

// appendContainer appends "main=running/ready" or "main=Error(1) restarts=2".
func appendContainer(b []byte, c *v1.ContainerStatus) []byte {
	b = appendWord(b, c.Name)
	b = append(b, '=')
	switch {
	case c.State.Running != nil:
		b = append(b, "running"...)
	case c.State.Terminated != nil:
		b = append(b, c.State.Terminated.Reason...)
		b = append(b, '(')
		b = strconv.AppendInt(b, int64(c.State.Terminated.ExitCode), 10)
		b = append(b, ')')
	case c.State.Waiting != nil:
		b = append(b, c.State.Waiting.Reason...)
	}
	if c.Ready {
		b = append(b, "/ready"...)
	}
	if c.RestartCount > 0 {
		b = append(b, " restarts="...)
		b = strconv.AppendInt(b, int64(c.RestartCount), 10)
	}
	return b
}

// podWriteFields is what a write that is no status patch says of a pod.
func podWriteFields(out []trace.Field, c Change, p *v1.Pod) []trace.Field {
	switch c.Verb {
	case "create", "bind":
		if p.Spec.NodeName != "" {
			out = append(out, trace.Str("node", p.Spec.NodeName))
		}
	case "delete":
		if p.DeletionGracePeriodSeconds != nil {
			out = append(out, trace.Int("grace", *p.DeletionGracePeriodSeconds))
		}
	}
	return out
}

// changedConditions is the conditions that are new or whose status or reason
// changed.
func changedConditions(old, now []v1.NodeCondition) []trace.Field {
	var out []trace.Field
	for i := range now {
		c := &now[i]
		same := false
		for j := range old {
			o := &old[j]
			same = same || o.Type == c.Type && o.Status == c.Status && o.Reason == c.Reason && o.Message == c.Message
		}
		if same {
			continue
		}
		text := string(c.Status)
		if c.Reason != "" {
			text += "/" + c.Reason
		}
		out = append(out, trace.Str(string(c.Type), text))
		if c.Status != v1.ConditionTrue && c.Type == v1.NodeReady {
			out = append(out, trace.Str("message", c.Message))
		}
	}
	return out
}

// eventFields tells of an event. One of events.k8s.io has its count in a series
// and its source in reportingController, which kubectl shows in their places.
func eventFields(out []trace.Field, e *v1.Event) []trace.Field {
	count, source := e.Count, e.Source.Component
	if e.Series != nil {
		count = e.Series.Count
	}
	if source == "" {
		source = e.ReportingController
	}
	out = append(out, trace.Str("type", e.Type), trace.Str("message", e.Message), trace.Int("count", int64(count)))
	if e.InvolvedObject.FieldPath != "" {
		out = append(out, trace.Str("field", e.InvolvedObject.FieldPath))
	}
	return append(out, trace.Str("source", source))
}

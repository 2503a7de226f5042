package apiserver

import (
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// record makes the trace record of a write. Of an event that expires there is
// none: what it told of was recorded when it came.
func (s *Server) record(c Change) {
	if s.rec == nil || c.Verb == "expire" {
		return
	}
	n := s.notes
	n.Write(c, s.by)
	s.rec.RecordObject(n.Kind, n.Object, n.Verb, n.Fields...)
}

// PodStatus returns a pod's status as the fields that a record of it has.
func PodStatus(p *v1.Pod) []trace.Field { return kinds.PodStatus(p) }

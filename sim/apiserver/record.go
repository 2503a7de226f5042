package apiserver

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

package calls

import (
	"time"

	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/trace"
)

// record makes the trace record of a call that began at start. Calls that only
// read are recorded on request.
func (r *Daemon) record(m Method, s *Subject, start int64, err error) {
	kind := trace.KindCRI
	if methods[m].reads {
		kind = trace.KindCRIRead
	}
	if r.Recorder == nil || methods[m].reads && !r.Recorder.TraceReads() {
		return
	}
	fields := r.fields[:0]
	if s.Timeout >= 0 {
		fields = append(fields, trace.Int("timeout", s.Timeout))
	}
	if s.Pod != "" {
		fields = append(fields, trace.Int("attempt", int64(s.Attempt)))
	}
	if s.Image != "" {
		fields = append(fields, trace.Str("image", s.Image))
	}
	if r := s.Resources; r != nil && r.CpusetCpus != "" {
		fields = append(fields, trace.Str("cpusetCpus", r.CpusetCpus))
	}
	if r := s.Resources; r != nil && r.CpusetMems != "" {
		fields = append(fields, trace.Str("cpusetMems", r.CpusetMems))
	}
	if s.PodCIDR != "" {
		fields = append(fields, trace.Str("podCIDR", s.PodCIDR))
	}
	if kind == trace.KindCRI {
		fields = append(fields, trace.Int("tookMs", (r.Loop.UnixNano()-start)/int64(time.Millisecond)))
	}
	if err != nil {
		st, _ := status.FromError(err)
		fields = append(fields, trace.Str("error", st.Code().String()), trace.Str("message", st.Message()))
	}
	r.Recorder.RecordObject(kind, s.Object(), methods[m].name, fields...)
	r.fields = fields[:0] // a recorder keeps a copy, if any
}

// Object names the subject as the trace does.
func (s *Subject) Object() trace.Object {
	switch {
	case s.Container != "" && (s.Pod == "" || s.Namespace == ""): // both places show
		return trace.Object{Name: "container " + s.Namespace + "/" + s.Pod + "/" + s.Container}
	case s.Container != "":
		return trace.Object{Kind: "container", Namespace: s.Namespace, Name: s.Pod, Part: s.Container}
	case s.Pod != "" && s.Namespace == "":
		return trace.Object{Name: "pod /" + s.Pod}
	case s.Pod != "":
		return trace.Object{Kind: "pod", Namespace: s.Namespace, Name: s.Pod}
	case s.Image != "":
		return trace.Object{Kind: "image", Name: s.Image}
	}
	return trace.Object{Name: "runtime"}
}

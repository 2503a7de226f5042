//go:build linux

package server

import (
	"reflect"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// wallTimes returns m with the times in it on the wall clock. Where the loop's
// clock is another, that is a copy: what the runtime hands out is shared. Every answer with a
// time in it passes here, on the way out.
func wallTimes[M proto.Message](s *Server, m M) M {
	if s.opts.Speed == 1 || reflect.ValueOf(m).IsNil() {
		return m
	}
	m = proto.Clone(m).(M)
	s.toWall(m.ProtoReflect())
	return m
}

// timeFields are the fields of the CRI that hold a time, in nanoseconds since
// the Unix epoch.
var timeFields = map[protoreflect.Name]bool{
	"created_at": true, "started_at": true, "finished_at": true, "timestamp": true,
}

// toWall changes a message in place, and all messages in it.
func (s *Server) toWall(m protoreflect.Message) {
	switch x := m.Interface().(type) {
	case *runtimeapi.CpuUsage: // per second of the client's it is the rate that the program has
		if total := x.UsageCoreNanoSeconds; total != nil {
			total.Value = s.wallAmount(total.Value)
		}
	case *runtimeapi.Metric:
		s.metricToWall(x)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		// Maps of the CRI have texts.
		case f.IsMap():
		case f.Kind() == protoreflect.MessageKind && f.IsList():
			for i := range v.List().Len() {
				s.toWall(v.List().Get(i).Message())
			}
		case f.Kind() == protoreflect.MessageKind:
			s.toWall(v.Message())
		case f.Kind() == protoreflect.Int64Kind && timeFields[f.Name()] && !f.IsList():
			m.Set(f, protoreflect.ValueOfInt64(s.loop.Wall(v.Int())))
		}
		return true
	})
}

// wallAmount is the client's share of what adds up with the loop's time. Usage that grows by loop
// time would look Speed times too high to a client that divides by its own seconds.
func (s *Server) wallAmount(v uint64) uint64 { return uint64(float64(v) / s.opts.Speed) }

// metricToWall changes a metric whose value is a time or grows with it. The names are cAdvisor's;
// all but these are not about time.
func (s *Server) metricToWall(m *runtimeapi.Metric) {
	switch {
	case m.Value == nil:
	case m.Name == "container_start_time_seconds", m.Name == "container_last_seen":
		at := time.Duration(m.Value.Value) * time.Second
		m.Value.Value = uint64(time.Duration(s.loop.Wall(int64(at))) / time.Second)
	case strings.HasPrefix(m.Name, "container_cpu_") && m.MetricType == runtimeapi.MetricType_COUNTER:
		m.Value.Value = s.wallAmount(m.Value.Value)
	}
}

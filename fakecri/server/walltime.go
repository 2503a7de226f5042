package server

import (
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// wallTimes returns m with the times in it on the wall clock. Where the loop's
// clock is another, that is a copy: what the runtime hands out is shared.
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

func (s *Server) toWall(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
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

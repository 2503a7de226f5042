// Package trace holds the record of what happened in a run: every observable
// act (a CRI call, an API write, an event, a status change, a fault, the start
// and exit of a process), with its virtual time. Each loop has one [Recorder];
// the records have a canonical encoding that is hashed as they are made, so a
// run has one hash over its whole trace whether or not anybody keeps it.
package trace

import (
	"encoding/binary"
	"strconv"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Kind says what sort of act a record is.
type Kind string

// The kinds of records.
const (
	KindAction  Kind = "action"  // something the scenario's timeline did
	KindFault   Kind = "fault"   // a fault began or ended
	KindCRI     Kind = "cri"     // a CRI call that changes something, at its end
	KindCRIRead Kind = "criread" // any other CRI call; only when reads are traced
	KindProcess Kind = "process" // a process started or exited
	KindAPI     Kind = "api"     // a write to the API
	KindPod     Kind = "pod"     // a pod's status, as the API has it, changed
	KindNode    Kind = "node"    // a node's conditions, as the API has them, changed
	KindEvent   Kind = "event"   // a Kubernetes event, as the API has it
	KindKubelet Kind = "kubelet" // a kubelet started, stopped, exited
	KindLog     Kind = "log"     // a kubelet's own log line; not hashed
	KindWarning Kind = "warning" // what a manifest asks for and nobody acts on; not hashed
)

// Field is one detail of a record. Values are text; numbers are integers.
type Field struct{ Key, Value string }

// Str is a field with a text value.
func Str(key, value string) Field { return Field{key, value} }

// Int is a field with an integer value.
func Int(key string, value int64) Field { return Field{key, strconv.FormatInt(value, 10)} }

// Record is one observable act.
type Record struct {
	// At is the virtual time in nanoseconds since the Unix epoch.
	At int64
	// Node names the node, or is "" for what the API or the scenario did.
	Node string
	// Seq counts the records of one recorder.
	Seq    uint64
	Kind   Kind
	Object string // "pod default/web-0", "container default/web-0/main", "node worker-0", "image app:1"
	Verb   string // "RunPodSandbox", "create", "Pulled", "exit", ...
	Fields []Field
}

// Sink takes the records of a recorder. It must not wait.
type Sink interface {
	// Wants reports whether the sink would take such a record; the record is
	// only made if so. (It is hashed in any case.) It must not keep the fields.
	Wants(kind Kind, verb string, fields []Field) bool
	Take(*Record)
}

// Recorder makes the records of one loop.
type Recorder struct {
	l     *loop.Loop
	node  string
	sink  Sink
	seq   uint64
	hash  uint64
	buf   []byte
	name  []byte
	reads bool
}

// NewRecorder returns a recorder for a node ("" for none). A nil sink keeps
// nothing; the hash is made all the same.
func NewRecorder(l *loop.Loop, node string, sink Sink) *Recorder {
	return &Recorder{l: l, node: node, sink: sink, hash: 14695981039346656037}
}

// Record makes a record of what happens now. A nil Recorder makes none. The
// fields are the caller's again afterwards: a record that is kept has a copy.
func (r *Recorder) Record(kind Kind, object, verb string, fields ...Field) {
	r.RecordObject(kind, Object{Name: object}, verb, fields...)
}

// Object is the object of a record in parts. Part is a part of the one named, as
// a container is of its pod.
type Object struct{ Kind, Namespace, Name, Part string }

// String is how records name the object: "pod default/web-0", "node worker-0",
// "container default/web-0/main".
func (o Object) String() string { return string(o.append(nil)) }

func (o Object) append(b []byte) []byte {
	if o.Kind != "" {
		b = append(append(b, o.Kind...), ' ')
	}
	if o.Namespace != "" {
		b = append(append(b, o.Namespace...), '/')
	}
	b = append(b, o.Name...)
	if o.Part != "" {
		b = append(append(b, '/'), o.Part...)
	}
	return b
}

// RecordObject is Record for an object whose name is put together only if the
// record is kept.
func (r *Recorder) RecordObject(kind Kind, object Object, verb string, fields ...Field) {
	if r == nil {
		return
	}
	r.seq++
	at := r.l.UnixNano()
	if kind != KindLog && kind != KindWarning {
		r.name = object.append(r.name[:0])
		r.buf = appendCanonical(r.buf[:0], at, r.node, kind, r.name, verb, fields)
		for _, b := range r.buf {
			r.hash = (r.hash ^ uint64(b)) * 1099511628211
		}
	}
	if r.sink != nil && r.sink.Wants(kind, verb, fields) {
		name := object.Name
		if object != (Object{Name: name}) {
			name = object.String()
		}
		r.l.Mark() // for who collects records
		r.sink.Take(&Record{At: at, Node: r.node, Seq: r.seq, Kind: kind, Object: name, Verb: verb, Fields: append([]Field(nil), fields...)})
	}
}

// TraceReads says whether CRI calls that only read are recorded too.
func (r *Recorder) TraceReads() bool { return r != nil && r.reads }

// SetTraceReads has CRI calls that only read recorded too.
func (r *Recorder) SetTraceReads(on bool) { r.reads = on }

// Count returns the number of records made.
func (r *Recorder) Count() uint64 { return r.seq }

// Hash returns the hash over all records made so far.
func (r *Recorder) Hash() uint64 { return r.hash }

// appendCanonical appends the one encoding of a record: each part with its
// length before it, so that no two records have the same bytes.
func appendCanonical(b []byte, at int64, node string, kind Kind, object []byte, verb string, fields []Field) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = appendString(b, node)
	b = appendString(b, string(kind))
	b = appendString(b, object)
	b = appendString(b, verb)
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, f := range fields {
		b = appendString(b, f.Key)
		b = appendString(b, f.Value)
	}
	return b
}

func appendString[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

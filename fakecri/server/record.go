//go:build linux

package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// recorder writes a JSON line for every call, on a goroutine of its own. Calls hand over their
// messages, which must not be written to afterwards: no handler does.
type recorder struct {
	entries chan entry
	done    chan struct{}
	warn    func(string)
}

// entry is a call that is over.
type entry struct {
	began    time.Time
	took     time.Duration
	method   string
	req, res any
	streamed int // messages; -1 of a call that isn't a stream
	err      error
}

// recordQueue is how many calls can wait to be written; those after them wait. A disk that stalls
// would otherwise take memory without bound.
const recordQueue = 4096

// newRecorder writes to w on a goroutine of its own: a call waits for that only once
// the queue is full.
func newRecorder(w io.Writer, warn func(string)) *recorder {
	r := &recorder{entries: make(chan entry, recordQueue), done: make(chan struct{}), warn: warn}
	go r.write(w)
	return r
}

// unary notes a call that was answered.
func (r *recorder) unary(began time.Time, method string, req, res any, err error) {
	r.entries <- entry{began, time.Since(began), method, req, res, -1, err}
}

// stream notes a stream that has ended, with the number of its messages.
func (r *recorder) stream(began time.Time, method string, req any, sent int, err error) {
	r.entries <- entry{began, time.Since(began), method, req, nil, sent, err}
}

// close writes what is left. No call may come after it. It waits for the disk.
func (r *recorder) close() {
	close(r.entries)
	<-r.done
}

// write writes lines; when nothing waits it flushes, so that the file can be
// followed. The first error is kept and reported at the end, and later calls are tried all the
// same.
func (r *recorder) write(w io.Writer) {
	defer close(r.done)
	b := bufio.NewWriterSize(w, 1<<16)
	var failed error
	for e := range r.entries {
		line, err := json.Marshal(e.line())
		if err == nil {
			_, err = b.Write(append(line, '\n'))
		}
		if err == nil && len(r.entries) == 0 {
			err = b.Flush()
		}
		if err != nil && failed == nil {
			failed = err
		}
	}
	if err := b.Flush(); failed == nil {
		failed = err
	}
	if failed != nil && r.warn != nil {
		r.warn(fmt.Sprintf("the record is incomplete: %v", failed))
	}
}

// recordedCall is one line. Messages are in protobuf's JSON form; one that is
// longer than maxRecorded is replaced by its beginning, as a text. Fields that are not set are
// left out of the line.
type recordedCall struct {
	// Time is when the call arrived; TookMs how long it took, in milliseconds.
	Time    time.Time       `json:"time"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request,omitempty"`
	// RequestCut and ResponseCut stand for what is too long.
	RequestCut  *cutMessage     `json:"requestCut,omitempty"`
	Response    json.RawMessage `json:"response,omitempty"`
	ResponseCut *cutMessage     `json:"responseCut,omitempty"`
	// Streamed is how many messages a stream sent.
	Streamed *int    `json:"streamed,omitempty"`
	Code     string  `json:"code"`
	Error    string  `json:"error,omitempty"`
	TookMs   float64 `json:"tookMs"`
}

// cutMessage is a message of so many bytes of JSON, and how it begins.
type cutMessage struct {
	Bytes int    `json:"bytes"`
	Begin string `json:"begin"`
}

const (
	// In bytes: of a message as JSON, of the beginning of one that is too long, of each output.
	maxRecorded = 256 << 10
	maxBegin    = 1024
	maxOutput   = 16 << 10
)

// line is the entry as the record has it. The method is its last element: ListContainers and not
// /runtime.v1.RuntimeService/ListContainers.
func (e *entry) line() recordedCall {
	st := status.Convert(e.err)
	out := recordedCall{
		Time:   e.began.UTC(),
		Method: path.Base(e.method),
		Code:   st.Code().String(),
		Error:  st.Message(),
		TookMs: float64(e.took.Microseconds()) / 1000,
	}
	out.Request, out.RequestCut = messageJSON(e.req)
	if e.err == nil {
		out.Response, out.ResponseCut = messageJSON(e.res)
	}
	if e.streamed >= 0 {
		out.Streamed = &e.streamed
	}
	return out
}

// messageJSON is a message as JSON; one that is too long is cut, and said to be.
func messageJSON(v any) (json.RawMessage, *cutMessage) {
	m, ok := bounded(v).(proto.Message)
	if !ok || m == nil || !m.ProtoReflect().IsValid() {
		return nil, nil
	}
	// An invalid message must not make the record fail.
	b, err := protojson.MarshalOptions{AllowPartial: true}.Marshal(m)
	if err != nil {
		return nil, &cutMessage{Begin: err.Error()}
	}
	if len(b) > maxRecorded {
		return nil, &cutMessage{Bytes: len(b), Begin: string(b[:maxBegin])}
	}
	return b, nil
}

// bounded is a message without what a record must not have: credentials, and
// outputs beyond their first 16 KiB. A copy is made only where something is left out.
func bounded(v any) any {
	switch m := v.(type) {
	case *runtimeapi.PullImageRequest:
		if m.GetAuth() != nil {
			m = proto.Clone(m).(*runtimeapi.PullImageRequest)
			m.Auth = &runtimeapi.AuthConfig{Username: "(not recorded)"}
		}
		return m
	case *runtimeapi.ExecSyncResponse:
		if m != nil && (len(m.Stdout) > maxOutput || len(m.Stderr) > maxOutput) {
			return &runtimeapi.ExecSyncResponse{ExitCode: m.ExitCode,
				Stdout: m.Stdout[:min(len(m.Stdout), maxOutput)], Stderr: m.Stderr[:min(len(m.Stderr), maxOutput)]}
		}
	}
	return v
}

//go:build linux

package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// RPC is one call, for the report.
type RPC struct {
	Method string `json:"method"`
	// At is when it began, in seconds since the check's start, Took how long it
	// was.
	At   float64 `json:"atSeconds"`
	Took float64 `json:"tookSeconds"`
	// Request and Response are JSON, cut to maxMessage bytes; Error is the code
	// and the message of a call that failed.
	Request  string `json:"request,omitempty"`
	Response string `json:"response,omitempty"`
	Error    string `json:"error,omitempty"`
}

const (
	// maxRPCs is how many calls of a check are kept.
	maxRPCs = 200
	// reportRPCs is how many of them a report has.
	reportRPCs = 30
	// maxMessage is how much of a message is kept.
	maxMessage = 600
)

// recorder keeps the calls of one check, and what they made. Calls come from
// several goroutines at once. Only the last maxRPCs are kept, since a check that
// polls makes thousands. The ids of what was made are kept without a bound: the cleanup needs
// all.
type recorder struct {
	// start is when the check began: calls are told in seconds since.
	start time.Time

	mu         sync.Mutex
	rpcs       []RPC
	omitted    int
	sandboxes  []string
	containers []string
}

// newRecorder begins to count time.
func newRecorder() *recorder { return &recorder{start: time.Now()} }

// recorderKey is the context's key of a recorder.
type recorderKey struct{}

// recording has the calls of a context recorded.
func recording(ctx context.Context, r *recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// recorderOf returns the context's recorder, or nil.
func recorderOf(ctx context.Context) *recorder {
	r, _ := ctx.Value(recorderKey{}).(*recorder)
	return r
}

// add keeps a call. req and resp are messages or anything that has a text. A call that failed has
// no response.
func (r *recorder) add(method string, began time.Time, req, resp any, err error) {
	c := RPC{Method: method, At: began.Sub(r.start).Seconds(), Took: time.Since(began).Seconds(), Request: text(req)}
	if err != nil {
		st, _ := status.FromError(err)
		c.Error = cut(st.Code().String() + ": " + st.Message())
	} else {
		c.Response = text(resp)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Half are dropped at once, so that a long check does not move the list for
	// each call.
	if len(r.rpcs) == maxRPCs {
		half := maxRPCs / 2
		r.rpcs = append(r.rpcs[:0], r.rpcs[half:]...)
		r.omitted += half
	}
	r.rpcs = append(r.rpcs, c)
}

// madeSandbox and madeContainer note what is to be removed.
func (r *recorder) madeSandbox(id string)   { r.note(&r.sandboxes, id) }
func (r *recorder) madeContainer(id string) { r.note(&r.containers, id) }

// note keeps an id that an answer had.
func (r *recorder) note(list *[]string, id string) {
	if id == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, id)
}

// made returns the IDs of what was made.
func (r *recorder) made() (sandboxes, containers []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.sandboxes...), append([]string(nil), r.containers...)
}

// last returns the last calls, oldest first, and how many there were before.
func (r *recorder) last(n int) ([]RPC, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(0, len(r.rpcs)-n)
	return append([]RPC(nil), r.rpcs[from:]...), r.omitted + from
}

// text is a message or a value as a report shows it.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case proto.Message:
		// The library varies its blanks on purpose.
		return cut(strings.ReplaceAll(protojson.MarshalOptions{}.Format(v), ",  ", ", "))
	default:
		return cut(fmt.Sprint(v))
	}
}

// cut shortens what is too long and says how long it was. The cut may be in the middle of a
// character.
func cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return s[:maxMessage] + fmt.Sprintf("... (%d bytes)", len(s))
}

// methodName is the last part of a full method name.
func methodName(full string) string { return full[strings.LastIndexByte(full, '/')+1:] }

// recordUnary is the interceptor that records. Calls without a recorder, such as the first
// Version, are not kept.
func recordUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	r := recorderOf(ctx)
	if r == nil {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	began := time.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	r.add(methodName(method), began, req, reply, err)
	if err == nil {
		r.noteMade(reply)
	}
	return err
}

// noteMade notes what an answer says was made.
func (r *recorder) noteMade(reply any) {
	switch x := reply.(type) {
	// Answers are known by their accessor, because each call has a type of its
	// own.
	case interface{ GetPodSandboxId() string }:
		r.madeSandbox(x.GetPodSandboxId())
	case interface{ GetContainerId() string }:
		r.madeContainer(x.GetContainerId())
	}
}

// recordStream is recordUnary for streams: their messages are recorded as they
// come. The request is not recorded: it is empty or says nothing.
func recordStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	r := recorderOf(ctx)
	if r == nil || err != nil {
		return s, err
	}
	return &recordedStream{ClientStream: s, r: r, method: methodName(method)}, nil
}

// recordedStream records each message received.
type recordedStream struct {
	grpc.ClientStream
	r      *recorder
	method string
}

// RecvMsg implements grpc.ClientStream.
func (s *recordedStream) RecvMsg(m any) error {
	began := time.Now()
	err := s.ClientStream.RecvMsg(m)
	s.r.add(s.method+" (receive)", began, nil, m, err)
	return err
}

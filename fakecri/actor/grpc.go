package actor

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// The one method that the health server has.
// It is the unary method; Watch is answered as unimplemented, as kubelets don't call it.
const healthCheck = "/grpc.health.v1.Health/Check"

// Codes of gRPC.
const (
	grpcInvalid       = 3
	grpcNotFound      = 5
	grpcUnimplemented = 12
)

// Statuses of grpc.health.v1.
var servingNames = []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

// The two that this server answers with; others only come from foreign servers.
const (
	serving    = 1
	notServing = 2
)

// grpcCall is a call that comes in.
// Its frames are collected until the stream ends, as a unary call is answered as a whole.
type grpcCall struct {
	path string
	data []byte
}

// maxCalls is how many calls may be open on a connection.
// A client that opens more is cut off, so that memory stays bounded.
const maxCalls = 100

// serveGRPC answers calls of a connection.
// Whatever breaks the protocol ends the connection without a GOAWAY: health checks open a
// new one each time.
func (p *servers) serveGRPC(ctx context.Context, c Conn) {
	h := newH2(ctx, c)
	preface := make([]byte, len(h2Preface))
	if _, err := io.ReadFull(h.r, preface); err != nil || string(preface) != h2Preface {
		return
	}
	// A server's SETTINGS must come first (RFC 9113, section 3.4); an empty one keeps
	// defaults.
	if h.send(appendFrame(nil, h2Settings, 0, 0, nil)) != nil {
		return
	}
	calls := map[uint32]*grpcCall{}
	for {
		f, err := h.read()
		if err != nil {
			return
		}
		switch f.kind {
		case h2Headers:
			fields, err := h.headers(f)
			if err != nil || len(calls) >= maxCalls {
				return
			}
			calls[f.stream] = &grpcCall{path: fields[":path"]}
		case h2Data:
			b, err := f.content()
			call := calls[f.stream]
			if err != nil || call == nil || len(call.data)+len(b) > maxHead {
				return
			}
			call.data = append(call.data, b...)
		case h2Reset:
			delete(calls, f.stream)
			// A reset call gets no answer, and flags mean nothing on its frame.
			continue
		default:
			if done, err := h.housekeeping(f); done || err != nil {
				return
			}
			continue
		}
		if call := calls[f.stream]; f.flags&h2EndStream != 0 && call != nil {
			delete(calls, f.stream)
			if h.send(p.answerGRPC(ctx, f.stream, call)) != nil {
				return
			}
		}
	}
}

// answerGRPC returns the frames that answer a call.
// A failure has no message, so one frame of headers is head and trailers at once.
func (p *servers) answerGRPC(ctx context.Context, stream uint32, call *grpcCall) []byte {
	head := appendField(appendField(nil, ":status", "200"), "content-type", "application/grpc")
	status, code, text := p.check(call)
	if p.Options.LogRequests {
		p.print(ctx, call.path, " ", itoa(code), "\n")
	}
	if code != 0 {
		head = appendField(appendField(head, "grpc-status", itoa(code)), "grpc-message", text)
		return appendFrame(nil, h2Headers, h2EndHeaders|h2EndStream, stream, head)
	}
	out := appendFrame(nil, h2Headers, h2EndHeaders, stream, head)
	// Field 1 of HealthCheckResponse is the status, as a varint; it fits one byte.
	out = appendFrame(out, h2Data, 0, stream, grpcMessage([]byte{1 << 3, status}))
	return appendFrame(out, h2Headers, h2EndHeaders|h2EndStream, stream, appendField(nil, "grpc-status", "0"))
}

// check is the health service.
// Without a name it is the server's health as a whole, as the health protocol says.
func (p *servers) check(call *grpcCall) (status byte, code int, text string) {
	if call.path != healthCheck {
		return 0, grpcUnimplemented, "unknown method " + call.path
	}
	body, err := grpcBody(call.data)
	service := ""
	if err == nil {
		service, err = healthService(body)
	}
	switch {
	case err != nil:
		return 0, grpcInvalid, err.Error()
	case service != "" && !slices.Contains(p.Options.Services, service):
		return 0, grpcNotFound, "unknown service"
	case p.health():
		return serving, 0, ""
	}
	return notServing, 0, ""
}

// healthService reads a HealthCheckRequest: field 1 is the service.
func healthService(b []byte) (string, error) {
	service := ""
	for len(b) > 0 {
		// Only length-delimited fields can stand in a request; unknown ones are passed
		// over.
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag&7 != 2 {
			return "", fmt.Errorf("not a HealthCheckRequest")
		}
		size, m := binary.Uvarint(b[n:])
		if m <= 0 || size > uint64(len(b)-n-m) {
			return "", fmt.Errorf("not a HealthCheckRequest")
		}
		if tag>>3 == 1 {
			service = string(b[n+m : n+m+int(size)])
		}
		b = b[n+m+int(size):]
	}
	return service, nil
}

// grpcCheck is the command grpc.
func (p *program) grpcCheck(ctx context.Context) int {
	host, port, _ := parseHostPort(p.Args[0])
	p.deadline(p.Args[0])
	c, err := p.w.Dial(ctx, host, port, p.Options.Timeout)
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	defer func() { _ = c.Close() }()
	status, err := askHealth(newH2(ctx, c), p.Args[0], p.Options.Service)
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	name := itoa(status)
	if status < len(servingNames) {
		name = servingNames[status]
	}
	// The name goes to stdout whatever it is, so that a check sees NOT_SERVING as well.
	p.print(ctx, name, "\n")
	if status != serving {
		return 1
	}
	return 0
}

// CallError is what a server ended a call with.
type CallError struct {
	// Code is one of gRPC's, not 0.
	Code    int
	Message string
}

// Error names the code by its number, as the program knows no names.
func (e *CallError) Error() string { return fmt.Sprintf("code %d: %s", e.Code, e.Message) }

// AskHealth asks whoever is at the other end of a connection for the health of
// a service and returns its name in grpc.health.v1, "SERVING" or another. What
// the server refuses is a *CallError; other errors say that it speaks something
// else, or are the connection's.
func AskHealth(ctx context.Context, c Conn, authority, service string) (string, error) {
	n, err := askHealth(newH2(ctx, c), authority, service)
	if err != nil {
		return "", err
	}
	if n >= len(servingNames) {
		return itoa(n), nil
	}
	return servingNames[n], nil
}

// askHealth makes the one call.
func askHealth(h *h2Conn, authority, service string) (int, error) {
	head := appendField(nil, ":method", "POST")
	// "te: trailers" is what gRPC servers demand of a client.
	for _, x := range [][2]string{{":scheme", "http"}, {":path", healthCheck}, {":authority", authority}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		head = appendField(head, x[0], x[1])
	}
	var req []byte
	// An empty string is a default in proto3, which is left out of the message.
	if service != "" {
		req = append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(service))), service...)
	}
	// All frames go out in one write: the server's SETTINGS need not be awaited.
	out := appendFrame([]byte(h2Preface), h2Settings, 0, 0, nil)
	out = appendFrame(out, h2Headers, h2EndHeaders, 1, head)
	out = appendFrame(out, h2Data, h2EndStream, 1, grpcMessage(req))
	if err := h.send(out); err != nil {
		return 0, err
	}
	var data []byte
	for {
		f, err := h.read()
		if err != nil {
			return 0, err
		}
		switch {
		case f.kind == h2Headers && f.stream == 1:
			// Headers come twice: the head, and the trailers, which end the stream; a
			// server that fails at once sends both in one.
			fields, err := h.headers(f)
			if err != nil {
				return 0, err
			}
			if f.flags&h2EndStream != 0 {
				return healthStatus(fields, data)
			}
		case f.kind == h2Data && f.stream == 1:
			b, err := f.content()
			if err != nil || len(data)+len(b) > maxHead {
				return 0, fmt.Errorf("an answer that makes no sense")
			}
			data = append(data, b...)
		case f.kind == h2Reset:
			return 0, fmt.Errorf("the server reset the call")
		default:
			if done, err := h.housekeeping(f); done || err != nil {
				return 0, fmt.Errorf("the server went away")
			}
		}
	}
}

// healthStatus reads what a call ended with.
func healthStatus(trailers map[string]string, data []byte) (int, error) {
	if text := trailers["grpc-status"]; text != "0" {
		code, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("an answer that makes no sense")
		}
		return 0, &CallError{Code: code, Message: trailers["grpc-message"]}
	}
	b, err := grpcBody(data)
	if err != nil {
		return 0, err
	}
	if len(b) == 0 {
		// An empty message is the status 0, UNKNOWN, by proto3's defaults.
		return 0, nil
	}
	tag, n := binary.Uvarint(b)
	status, m := binary.Uvarint(b[max(n, 0):])
	if n <= 0 || m <= 0 || tag != 1<<3 {
		return 0, fmt.Errorf("not a HealthCheckResponse: %s", strconv.Quote(string(b)))
	}
	return int(status), nil
}

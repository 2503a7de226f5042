package actor

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/net/http2/hpack"
)

// This file is as much of HTTP/2 (RFC 9113) as one unary gRPC call needs, in
// plain text with prior knowledge: no flow control, since nothing here comes
// near a window, no priorities, no push.

// h2Preface is what a client sends first (RFC 9113, section 3.4).
const h2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Types and flags of frames.
const (
	h2Data         = 0
	h2Headers      = 1
	h2Reset        = 3
	h2Settings     = 4
	h2Ping         = 6
	h2GoAway       = 7
	h2Continuation = 9

	h2EndStream  = 1
	h2Ack        = 1
	h2EndHeaders = 4
	h2Padded     = 8
	h2Priority   = 32
)

// maxFrame is the largest frame that may come: what a peer that was told
// nothing else sends.
const maxFrame = 16 << 10

// h2Frame is a frame (RFC 9113, section 4.1).
type h2Frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// h2Conn is a connection.
// Its decoder lives as long as the connection, since headers refer to earlier ones.
type h2Conn struct {
	ctx  context.Context
	c    Conn
	r    *bufio.Reader
	hpck *hpack.Decoder
}

// newH2 reads and writes frames on a connection. What it knows of HTTP/2 is what
// health checks take: there is no flow control, since messages are small.
// The decoder's table has 4096 bytes, which is HTTP/2's default.
func newH2(ctx context.Context, c Conn) *h2Conn {
	return &h2Conn{ctx: ctx, c: c, r: bufio.NewReader(&reader{ctx, c}), hpck: hpack.NewDecoder(4096, nil)}
}

// read reads a frame.
func (h *h2Conn) read() (h2Frame, error) {
	var head [9]byte
	if _, err := io.ReadFull(h.r, head[:]); err != nil {
		return h2Frame{}, err
	}
	// Lengths are 24 bits; of the stream's number the highest bit is reserved.
	n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	if n > maxFrame {
		return h2Frame{}, fmt.Errorf("a frame of %d bytes", n)
	}
	f := h2Frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:]) & 0x7fffffff, payload: make([]byte, n)}
	_, err := io.ReadFull(h.r, f.payload)
	return f, err
}

// appendFrame adds a frame to what is sent.
func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// send writes frames.
func (h *h2Conn) send(b []byte) error {
	_, err := h.c.Write(h.ctx, b)
	return err
}

// content is a frame's payload without padding and priority.
// Padding and priority are only parsed to be dropped.
func (f *h2Frame) content() ([]byte, error) {
	b := f.payload
	pad := 0
	if f.flags&h2Padded != 0 {
		if len(b) < 1 {
			return nil, fmt.Errorf("a padded frame without padding")
		}
		pad, b = int(b[0]), b[1:]
	}
	if f.kind == h2Headers && f.flags&h2Priority != 0 {
		if len(b) < 5 {
			return nil, fmt.Errorf("a frame with half a priority")
		}
		b = b[5:]
	}
	if pad > len(b) {
		return nil, fmt.Errorf("more padding than frame")
	}
	return b[:len(b)-pad], nil
}

// headers reads the headers that begin with a frame.
// Continuation frames follow at once, as no other frame may come between (RFC 9113,
// section 6.10).
func (h *h2Conn) headers(f h2Frame) (map[string]string, error) {
	block, err := f.content()
	if err != nil {
		return nil, err
	}
	for f.flags&h2EndHeaders == 0 {
		next, err := h.read()
		if err != nil {
			return nil, err
		}
		if next.kind != h2Continuation || next.stream != f.stream || len(block) > maxHead {
			return nil, fmt.Errorf("headers that do not end")
		}
		block, f.flags = append(block, next.payload...), f.flags|next.flags&h2EndHeaders
	}
	fields, err := h.hpck.DecodeFull(block)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(fields))
	for _, x := range fields {
		out[x.Name] = x.Value
	}
	return out, nil
}

// housekeeping answers frames that belong to no call; done says that the
// connection is over.
// Unknown types are passed over, as RFC 9113 demands in section 5.5.
func (h *h2Conn) housekeeping(f h2Frame) (done bool, err error) {
	switch {
	case f.kind == h2Settings && f.flags&h2Ack == 0:
		return false, h.send(appendFrame(nil, h2Settings, h2Ack, 0, nil))
	case f.kind == h2Ping && f.flags&h2Ack == 0:
		return false, h.send(appendFrame(nil, h2Ping, h2Ack, 0, f.payload))
	case f.kind == h2GoAway:
		return true, nil
	}
	return false, nil
}

// appendField adds a header as a literal, which leaves no trace in the peer's
// table.
func appendField(b []byte, name, value string) []byte {
	// The 0 is a literal without indexing and with a new name (RFC 7541, section 6.2.2).
	b = append(b, 0)
	b = appendLiteral(b, name)
	return appendLiteral(b, value)
}

// appendLiteral appends a text of a header block that is not compressed.
// Its length is an integer with a prefix of 7 bits, and no Huffman code (RFC 7541,
// sections 5.1 and 5.2).
func appendLiteral(b []byte, s string) []byte {
	if len(s) < 127 {
		return append(append(b, byte(len(s))), s...)
	}
	b = append(b, 127)
	n := len(s) - 127
	for ; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(append(b, byte(n)), s...)
}

// grpcMessage is a message with its prefix: not compressed, the length.
func grpcMessage(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

// grpcBody is the message of a call's data.
func grpcBody(data []byte) ([]byte, error) {
	if len(data) < 5 || data[0] != 0 || int(binary.BigEndian.Uint32(data[1:])) != len(data)-5 {
		return nil, fmt.Errorf("not one plain message")
	}
	return data[5:], nil
}

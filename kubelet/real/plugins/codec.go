//go:build linux

package plugins

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that frames stands on
	"google.golang.org/grpc/mem"
)

// frame is a message as it came: a goroutine may outlive the task that it receives for, so
// it never writes to the task's message.
type frame struct{ data []byte }

// into decodes a frame.
func (f *frame) into(m any) error {
	if err := encoding.GetCodecV2(frames{}.Name()).Unmarshal(mem.BufferSlice{mem.SliceBuffer(f.data)}, m); err != nil {
		return fmt.Errorf("the plugin's answer: %w", err)
	}
	return nil
}

// frames is the codec of protobuf, but for frames, which it leaves as they are.
type frames struct{}

// Name implements encoding.CodecV2.
func (frames) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (frames) Marshal(v any) (mem.BufferSlice, error) {
	return encoding.GetCodecV2(frames{}.Name()).Marshal(v) //nolint:wrapcheck // gRPC's, as it is
}

// Unmarshal implements encoding.CodecV2.
func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		f.data = data.Materialize()
		return nil
	}
	return encoding.GetCodecV2(frames{}.Name()).Unmarshal(data, v) //nolint:wrapcheck // gRPC's, as it is
}

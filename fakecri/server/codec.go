//go:build linux

package server

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// cachedList is the response to an unfiltered listing, and its wire format,
// while the runtime returns the very same slice. A kubelet's PLEG lists everything each second,
// and hardly ever is anything new. The runtime returns the very same slice then, so comparing
// addresses tells.
type cachedList[T any, R any] struct {
	// items and resp are for use on the loop.
	items []*T
	resp  *R
	// sent is what the codec knows: the response above, or one before it. sent is read by gRPC's
	// goroutines, so it is one pointer to both.
	sent atomic.Pointer[encoded[R]]
}

// encoded is a message with its wire format, once somebody has asked for it.
type encoded[R any] struct {
	msg  *R
	wire atomic.Pointer[[]byte]
}

// minCached is how many items a list has that is worth remembering.
const minCached = 16

// of returns the response that has the items of an unfiltered listing: the one
// before if they are the same, else what build returns. It is for use on the
// loop.
func (c *cachedList[T, R]) of(items []*T, filtered bool, build func() *R) *R {
	if filtered || len(items) < minCached {
		return build()
	}
	// Same address and length: the runtime never writes to a slice that it has handed out.
	if len(c.items) == len(items) && &c.items[0] == &items[0] {
		return c.resp
	}
	resp := build()
	c.items, c.resp = items, resp
	c.sent.Store(&encoded[R]{msg: resp})
	return resp
}

// marshal returns the wire format of v if it is the list's response. nil without an error means
// that it is none of its: the caller encodes it as usual.
func (c *cachedList[T, R]) marshal(v *R, items *listCache) ([]byte, error) {
	e := c.sent.Load()
	if e == nil || e.msg != v {
		return nil, nil
	}
	if b := e.wire.Load(); b != nil {
		return *b, nil
	}
	var b []byte
	var err error
	if items.byItem {
		b, err = items.marshalItems(v)
	}
	if b == nil && err == nil {
		b, err = protobuf.Marshal(any(v).(protobuf.Message))
	}
	if err != nil {
		return nil, err
	}
	e.wire.Store(&b)
	return b, nil
}

// itemCache remembers the wire format of items of lists, by their addresses:
// the runtime makes a new item when something about it changes. So a list in which one item has
// changed is encoded by copying the others' bytes. It is used by several goroutines, unlike what
// is kept on the loop.
type itemCache[T any] struct {
	mu   sync.Mutex
	wire map[*T][]byte
}

// spare is how many items that no list has had lately may be remembered. Above it the memory is
// dropped as a whole: a cache of addresses keeps what it points to alive.
const spare = 8192

// marshal returns the wire format of a message whose only field, of that
// number, repeated, is items. Encoding happens outside the lock; two goroutines may do the same
// item, with the same bytes.
func (c *itemCache[T]) marshal(field protowire.Number, items []*T) ([]byte, error) {
	parts := make([][]byte, len(items))
	size := 0
	c.mu.Lock()
	if c.wire == nil || len(c.wire) > 2*len(items)+spare {
		c.wire = make(map[*T][]byte, len(items))
	}
	for i, it := range items {
		parts[i] = c.wire[it]
	}
	c.mu.Unlock()
	var made []int
	for i, it := range items {
		if parts[i] == nil {
			b, err := protobuf.MarshalOptions{}.MarshalAppend(make([]byte, 0, 512), any(it).(protobuf.Message))
			if err != nil {
				return nil, err
			}
			parts[i] = b
			made = append(made, i)
		}
		size += protowire.SizeTag(field) + protowire.SizeBytes(len(parts[i]))
	}
	if made != nil {
		c.mu.Lock()
		for _, i := range made {
			c.wire[items[i]] = parts[i]
		}
		c.mu.Unlock()
	}
	out := make([]byte, 0, size)
	for _, b := range parts {
		out = protowire.AppendTag(out, field, protowire.BytesType)
		out = protowire.AppendBytes(out, b)
	}
	return out, nil
}

// listCache has the lists that clients ask for again and again. byItem is false where times are
// translated, as each answer is a copy there.
type listCache struct {
	// byItem is whether items are remembered, too: where they have the same
	// address the next time.
	byItem         bool
	sandboxItems   itemCache[runtimeapi.PodSandbox]
	containerItems itemCache[runtimeapi.Container]

	sandboxes  cachedList[runtimeapi.PodSandbox, runtimeapi.ListPodSandboxResponse]
	containers cachedList[runtimeapi.Container, runtimeapi.ListContainersResponse]
	images     cachedList[runtimeapi.Image, runtimeapi.ListImagesResponse]
}

// codec is gRPC's protobuf codec, but for lists that are remembered and for
// requests that are malformed: those arrive empty with a mark, so that they can
// be answered InvalidArgument. It is forced on all messages of the server; ForceServerCodecV2 has
// it so.
type codec struct {
	encoding.CodecV2
	lists *listCache
}

// newCodec returns the codec of one server, which knows its encoded lists.
func newCodec(lists *listCache) *codec {
	return &codec{encoding.GetCodecV2(proto.Name), lists}
}

// Marshal hands out lists that are encoded already, and encodes all else.
func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	var (
		b   []byte
		err error
	)
	switch v := v.(type) {
	case *runtimeapi.ListContainersResponse:
		b, err = c.lists.containers.marshal(v, c.lists)
	case *runtimeapi.ListPodSandboxResponse:
		b, err = c.lists.sandboxes.marshal(v, c.lists)
	case *runtimeapi.ListImagesResponse:
		b, err = c.lists.images.marshal(v, c.lists)
	}
	if err != nil {
		return nil, err
	}
	if b == nil && c.lists.byItem {
		b, err = c.lists.marshalItems(v)
	}
	if err != nil {
		return nil, err
	}
	if b != nil {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// marshalItems returns the wire format of a long list whose items are
// remembered; nil for another message. The numbers are those of the fields in the CRI's
// api.proto.
func (c *listCache) marshalItems(v any) ([]byte, error) {
	switch v := v.(type) {
	case *runtimeapi.ListContainersResponse:
		if len(v.Containers) >= minCached {
			return c.containerItems.marshal(1, v.Containers)
		}
	case *runtimeapi.StreamContainersResponse:
		if len(v.Containers) >= minCached {
			return c.containerItems.marshal(1, v.Containers)
		}
	case *runtimeapi.ListPodSandboxResponse:
		if len(v.Items) >= minCached {
			return c.sandboxItems.marshal(1, v.Items)
		}
	case *runtimeapi.StreamPodSandboxesResponse:
		if len(v.PodSandboxes) >= minCached {
			return c.sandboxItems.marshal(1, v.PodSandboxes)
		}
	}
	return nil, nil
}

// malformedField is the number of the unknown field that marks a request that
// could not be decoded; it has the reason. No message has a field of the highest number that
// there may be, so nothing real is taken for it.
const malformedField = protowire.MaxValidNumber

// Unmarshal decodes a request. One that can't be decoded is marked by malformedField,
// and refused where calls are checked. An error returned here would be Internal to the client,
// without a chance to say more.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	m, ok := v.(protobuf.Message)
	if err == nil || !ok {
		return err
	}
	protobuf.Reset(m)
	mark := protowire.AppendTag(nil, malformedField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendString(mark, err.Error()))
	return nil
}

// malformed reports whether a request could not be decoded, and why. Unknown fields of newer
// clients have other numbers, and are ignored as protobuf has it.
func malformed(m protobuf.Message) (string, bool) {
	unknown := m.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return "", false
	}
	num, typ, n := protowire.ConsumeTag(unknown)
	if n < 0 || num != malformedField || typ != protowire.BytesType {
		return "", false
	}
	why, n := protowire.ConsumeString(unknown[n:])
	return why, n >= 0
}

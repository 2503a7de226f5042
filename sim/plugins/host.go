package plugins

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

// Call is one call to a plugin, or of one to the kubelet, as it has ended; on a stream
// each message is one.
type Call struct {
	At     time.Time // its start
	Took   time.Duration
	Plugin string // a resource's name, a driver's
	Method string
	// Volume is of calls of a controller service, which have no Req.
	Volume string
	// Req and Resp may be nil.
	Req, Resp proto.Message
	Err       error // a gRPC status
}

// Host is where a node's plugins run. It is for use on the node's loop.
type Host struct {
	rules
	g *loop.Group
	// observe is told of calls; nil: nobody watches.
	observe func(Call)
	devices map[string]*device // by resource
	order   []string           // of devices
	broken  string             // what claims fail with in the call that is being answered
	// register is that of the kubelet that runs; nil: none does.
	register func(ctx context.Context, req *pluginapi.RegisterRequest) error
	servers  []*Server // in the order in which they came
	drivers  []*driver // in the order in which they came
	fs       *memfs.FS // the node's; nil: drivers mount nothing
	node     string
	stream   uint64 // of messages to storages
	trees    map[volumeKey]*memfs.Tree
	held     map[volumeKey]*heldVolume // of drivers with a Storage, and of servers of NFS
	nfs      []*NFS                    // in the order in which they came
	nfsDown  map[string]bool           // servers that don't answer
	nfsDrawn uint64
	exports  map[string]volumeKey // what is mounted of them, by directory
	watch    *watcher             // of the kubelet that runs; nil: none watches
	client   func() API
	api      API // nil: nobody has asked for one
}

// Options are what a Host is made of.
type Options struct {
	// Observe is told of calls; nil: nobody watches.
	Observe func(Call)
	// FS is the node's, on which drivers of CSI mount volumes.
	FS *memfs.FS
	// API connects drivers to the API; nil: there is none for them.
	API func() API
	// Node is the node's name.
	Node string
}

// NewHost returns a host without plugins.
func NewHost(l *loop.Loop, o Options) *Host {
	return &Host{rules: rules{l: l}, held: map[volumeKey]*heldVolume{}, g: l.NewGroup("plugins"), observe: o.Observe, fs: o.FS, client: o.API, node: o.Node, stream: l.NewStream(), devices: map[string]*device{}}
}

// Serve implements cm.DevicePlugins.
func (h *Host) Serve(register func(ctx context.Context, req *pluginapi.RegisterRequest) error) {
	h.register = register
	for _, name := range h.order {
		h.devices[name].kubeletIsNew()
	}
}

// KubeletGone tells that the kubelet's process has ended.
func (h *Host) KubeletGone() { h.register, h.watch = nil, nil }

// Dial implements cm.DevicePlugins.
func (h *Host) Dial(_ context.Context, endpoint string) (cm.DevicePlugin, error) {
	for _, name := range h.order {
		if d := h.devices[name]; d.o.endpoint() == endpoint && !d.stopped {
			return connection{d, d.generation}, nil
		}
	}
	return nil, status.Error(codes.Unavailable, "connection error: no such socket")
}

// call has a rule act on a call, answers it, and tells who watches.
func call[Resp proto.Message](h *Host, ctx context.Context, plugin, method string, req proto.Message, answer func() (Resp, error)) (Resp, error) {
	c := Call{At: h.l.Now(), Plugin: plugin, Method: method, Req: req}
	resp, err := answerAs(ctx, h.l, h.match(plugin, method, func() string { return protojson.Format(req) }), answer)
	// A claim's error is in the driver's answer, which takes no time.
	var broken claimError
	if errors.As(err, &broken) {
		h.broken = string(broken)
		resp, err = answer()
		h.broken = ""
	}
	if err == nil {
		c.Resp = resp
	}
	c.Took, c.Err = h.l.Since(c.At), err
	h.tell(c)
	return resp, err
}

// rule has the first rule that holds for a stream act on it. The error is the stream's end.
func (h *Host) rule(ctx context.Context, plugin, method string, req proto.Message) error {
	r := h.match(plugin, method, func() string { return protojson.Format(req) })
	if r == nil {
		return nil
	}
	return r.act(ctx, h.l)
}

func (h *Host) tell(c Call) {
	if h.observe != nil {
		h.observe(c)
	}
}

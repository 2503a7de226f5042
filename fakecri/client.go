package fakecri

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// Client is one caller's connection to the runtime. It implements
// RuntimeService and ImageManagerService of k8s.io/cri-api/pkg/apis; its
// methods are called from tasks. Errors are gRPC status errors.
type Client struct {
	r *Runtime
	g *loop.Group
	// prompt is for calls that are made in a callback, see Prompt.
	prompt bool
	lister *lister // nil until it lists changes
}

var (
	_ cri.RuntimeService      = (*Client)(nil)
	_ cri.ImageManagerService = (*Client)(nil)
)

// Client returns a connection for the tasks of g; once g is dead it refuses
// every call.
func (r *Runtime) Client(g *loop.Group) *Client { return &Client{r: r, g: g} }

// Generation grows with every change that a listing of sandboxes or containers
// could show. While listings fail or take time (the daemon is down, a fault
// touches them, they have a latency) no two answers are equal. It is no call
// and takes no time.
func (c *Client) Generation() uint64 { return c.r.generation() }

// OnChange has fn called, on the loop, whenever Generation or StatusGeneration
// has changed, or begins to change with each call, until the client's group
// dies. fn must not wait.
func (c *Client) OnChange(fn func()) { c.r.watch(c.g, fn) }

// StatusGeneration tells whether Version and Status, called now, would be
// answered at once, as they were when it last returned the same number. 0: that
// cannot be told, since the daemon is down, a fault touches them, they take time
// or calls that only read are traced. It is no call and takes no time.
func (c *Client) StatusGeneration() uint64 {
	if !c.r.prompt(mVersion) || !c.r.prompt(mStatus) {
		return 0
	}
	return c.r.gen
}

// ImageListGeneration is StatusGeneration for ListImages.
func (c *Client) ImageListGeneration() uint64 {
	if !c.r.prompt(mListImages) {
		return 0
	}
	return c.r.imageGen
}

// ImageGeneration grows with every change of the images that are present.
func (c *Client) ImageGeneration() uint64 { return c.r.imageGen }

// Close does nothing.
func (c *Client) Close(context.Context) error { return nil }

// subject is what a call is about: it decides which faults match, which
// latencies are drawn, and what the trace says.
type subject struct {
	namespace, pod, container, image string
	attempt                          uint32
	timeout                          int64 // seconds; -1: has none
	// resources are what the call gives to a container.
	resources *runtimeapi.LinuxContainerResources
}

var (
	errDown = status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"`)
	errLost = status.Error(codes.Unavailable, "error reading from server: EOF")
	errDead = status.Error(codes.Canceled, "grpc: the client connection is closing")
)

// IsDown tells whether an error is a call's while the runtime's daemon is down.
func IsDown(err error) bool { return err == errDown }

// ctxError turns a context's error into a status error; others stay.
func ctxError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return err
}

// read runs a call that only reads, up to where its answer is made, in the
// caller's task. It gives way, unless the client is one of Prompt.
func (c *Client) read(ctx context.Context, m method, s subject) error {
	if c.prompt && c.r.prompt(m) {
		if c.g.Dead() {
			return errDead
		}
		return nil
	}
	err := c.r.read(ctx, c.g, m, &s)
	if c.r.rec.TraceReads() {
		c.r.record(trace.KindCRIRead, m, &s, 0, err)
	}
	return err
}

func (r *Runtime) read(ctx context.Context, g *loop.Group, m method, s *subject) error {
	if g.Dead() {
		return errDead
	}
	d := r.daemon
	wait := time.Duration(r.between(r.latency(m), methods[m].name, s))
	if d == nil {
		wait = 0
	}
	if err := r.l.Sleep(ctx, wait); err != nil {
		return ctxError(err)
	}
	if d == nil && r.daemon == nil {
		return errDown
	}
	if d == nil {
		d = r.daemon
	}
	if d.down.Fired() {
		return errLost
	}
	return r.gate(ctx, d, m, s)
}

// change runs a call that changes something as a task of the daemon's group.
func change[T any](ctx context.Context, c *Client, m method, s *subject, fn func(ctx context.Context, d *daemon) (T, error)) (T, error) {
	var zero T
	r := c.r
	if c.g.Dead() {
		return zero, errDead
	}
	start := r.l.UnixNano()
	d := r.daemon
	if d == nil {
		return zero, c.down(ctx, m, s)
	}
	v, err := loop.Call(ctx, d.g, methods[m].name, func(ctx context.Context) (T, error) {
		v, err := fn(ctx, d)
		err = ctxError(err)
		r.record(trace.KindCRI, m, s, r.l.UnixNano()-start, err)
		return v, err
	})
	if errors.Is(err, loop.ErrGroupDead) {
		r.record(trace.KindCRI, m, s, r.l.UnixNano()-start, errLost)
		return zero, errLost
	}
	if err != nil {
		return zero, ctxError(err)
	}
	return v, nil
}

// down is a call that changes something while there is no daemon.
func (c *Client) down(ctx context.Context, m method, s *subject) error {
	start := c.r.l.UnixNano()
	if err := c.r.l.Yield(ctx); err != nil {
		return ctxError(err)
	}
	c.r.record(trace.KindCRI, m, s, c.r.l.UnixNano()-start, errDown)
	return errDown
}

// gate is where faults act: what it returns is the call's error.
func (r *Runtime) gate(ctx context.Context, d *daemon, m method, s *subject) error {
	if len(r.faults) == 0 {
		return nil
	}
	var (
		delay time.Duration
		hangs []*fault
		err   error
	)
	for _, f := range r.faults {
		if !f.matches(m, s) || !f.hit() {
			continue
		}
		r.recordFault(f, "hit", s)
		delay += r.l.Between(f.Latency.Min, f.Latency.Max, "fault", f.Name, uint64(f.seen))
		if f.Hang {
			hangs = append(hangs, f)
		}
		if err == nil && f.Error != nil {
			err = f.Error.err()
		}
	}
	if delay > 0 {
		if serr := r.l.Sleep(ctx, delay); serr != nil {
			return ctxError(serr)
		}
	}
	for _, f := range hangs {
		if _, werr := loop.WaitAny(ctx, &d.down, &f.end); werr != nil {
			return ctxError(werr)
		}
	}
	if d.down.Fired() {
		return errLost
	}
	return err
}

// pause passes a call's latency.
func (r *Runtime) pause(ctx context.Context, m method, s *subject) error {
	return r.l.Sleep(ctx, r.latencyOf(m, s))
}

// latencyOf draws a call's latency.
func (r *Runtime) latencyOf(m method, s *subject) time.Duration {
	return time.Duration(r.between(r.latency(m), methods[m].name, s))
}

// shortPause passes the latency of a stop that found nothing to stop.
func (r *Runtime) shortPause(ctx context.Context, m method, s *subject) error {
	return r.l.Sleep(ctx, time.Duration(r.between(r.latency(m), methods[m].name, s)/repeatShare))
}

// pauseRegardless passes a call's latency also if the call is cancelled.
func (r *Runtime) pauseRegardless(m method, s *subject) {
	ctx := r.daemonGroup().Background()
	_ = r.pause(ctx, m, s)
}

func (r *Runtime) daemonGroup() *loop.Group {
	if r.daemon != nil {
		return r.daemon.g
	}
	return r.l.Root()
}

// record makes a call's trace record.
func (r *Runtime) record(kind trace.Kind, m method, s *subject, took int64, err error) {
	if r.rec == nil {
		return
	}
	fields := r.fields[:0]
	if s.timeout >= 0 {
		fields = append(fields, trace.Int("timeout", s.timeout))
	}
	if s.pod != "" {
		fields = append(fields, trace.Int("attempt", int64(s.attempt)))
	}
	if s.image != "" {
		fields = append(fields, trace.Str("image", s.image))
	}
	if r := s.resources; r != nil && r.CpusetCpus != "" {
		fields = append(fields, trace.Str("cpusetCpus", r.CpusetCpus))
	}
	if r := s.resources; r != nil && r.CpusetMems != "" {
		fields = append(fields, trace.Str("cpusetMems", r.CpusetMems))
	}
	if kind == trace.KindCRI {
		fields = append(fields, trace.Int("tookMs", took/int64(time.Millisecond)))
	}
	if err != nil {
		st, _ := status.FromError(err)
		fields = append(fields, trace.Str("error", st.Code().String()), trace.Str("message", st.Message()))
	}
	r.rec.RecordObject(kind, s.object(), methods[m].name, fields...)
	r.fields = fields[:0] // a recorder keeps a copy, if any
}

// object names the subject as the trace does.
func (s *subject) object() trace.Object {
	switch {
	case s.container != "" && (s.pod == "" || s.namespace == ""): // both places show
		return trace.Object{Name: "container " + s.namespace + "/" + s.pod + "/" + s.container}
	case s.container != "":
		return trace.Object{Kind: "container", Namespace: s.namespace, Name: s.pod, Part: s.container}
	case s.pod != "" && s.namespace == "":
		return trace.Object{Name: "pod /" + s.pod}
	case s.pod != "":
		return trace.Object{Kind: "pod", Namespace: s.namespace, Name: s.pod}
	case s.image != "":
		return trace.Object{Kind: "image", Name: s.image}
	}
	return trace.Object{Name: "runtime"}
}

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
	r      *Runtime
	by     caller
	lister *lister // nil until it lists changes
}

var (
	_ cri.RuntimeService      = (*Client)(nil)
	_ cri.ImageManagerService = (*Client)(nil)
)

// Client returns a connection for the tasks of g; once g is dead it refuses
// every call.
func (r *Runtime) Client(g *loop.Group) *Client { return &Client{r: r, by: caller{r: r.calls, g: g}} }

// Generation grows with every change that a listing of sandboxes or containers
// could show. While listings fail or take time (the daemon is down, a fault
// touches them, they have a latency) no two answers are equal. It is no call
// and takes no time.
func (c *Client) Generation() uint64 { return c.r.generation() }

// OnChange has fn called, on the loop, whenever Generation or StatusGeneration
// has changed, or begins to change with each call, until the client's group
// dies. fn must not wait.
func (c *Client) OnChange(fn func()) { c.r.recs.watchers.add(c.by.g, func(uint64) { fn() }) }

// StatusGeneration tells whether Version and Status, called now, would be
// answered at once, as they were when it last returned the same number. 0: that
// cannot be told, since the daemon is down, a fault touches them, they take time
// or calls that only read are traced. It is no call and takes no time.
func (c *Client) StatusGeneration() uint64 {
	if !c.r.calls.prompt(mVersion) || !c.r.calls.prompt(mStatus) {
		return 0
	}
	return c.r.recs.gen
}

// ImageListGeneration is StatusGeneration for ListImages.
func (c *Client) ImageListGeneration() uint64 {
	if !c.r.calls.prompt(mListImages) {
		return 0
	}
	return c.r.images.gen
}

// ImageGeneration grows with every change of the images that are present.
func (c *Client) ImageGeneration() uint64 { return c.r.images.gen }

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

// gate is where faults act: what it returns is the call's error.
func (r *callDaemon) gate(ctx context.Context, d *daemonLife, m method, s *subject) error {
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
func (r *callDaemon) pause(ctx context.Context, m method, s *subject) error {
	return r.l.Sleep(ctx, r.latencyOf(m, s))
}

// latencyOf draws a call's latency.
func (r *callDaemon) latencyOf(m method, s *subject) time.Duration {
	return time.Duration(s.draw(r.l, r.latency(m), methods[m].name))
}

// shortPause passes the latency of a stop that found nothing to stop.
func (r *callDaemon) shortPause(ctx context.Context, m method, s *subject) error {
	return r.l.Sleep(ctx, time.Duration(s.draw(r.l, r.latency(m), methods[m].name)/repeatShare))
}

// pauseRegardless passes a call's latency also if the call is cancelled.
func (r *callDaemon) pauseRegardless(m method, s *subject) {
	ctx := r.daemonGroup().Background()
	_ = r.pause(ctx, m, s)
}

func (r *callDaemon) daemonGroup() *loop.Group {
	if r.life != nil {
		return r.life.g
	}
	return r.l.Root()
}

// record makes the trace record of a call that began at start. Calls that only
// read are recorded on request.
func (r *callDaemon) record(m method, s *subject, start int64, err error) {
	kind := trace.KindCRI
	if methods[m].reads {
		kind = trace.KindCRIRead
	}
	if r.rec == nil || methods[m].reads && !r.rec.TraceReads() {
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
		fields = append(fields, trace.Int("tookMs", (r.l.UnixNano()-start)/int64(time.Millisecond)))
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

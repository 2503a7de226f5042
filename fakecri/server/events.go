//go:build linux

package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
)

// hub hands the runtime's events out to subscribers. Its fields are for use on
// the loop. With the feature EventedPLEG a kubelet subscribes; crictl events does as well.
type hub struct {
	s    *Server
	subs map[*subscriber]struct{}
	g    *loop.Group // listens while there are subscribers
}

// subscriber is one stream of GetContainerEvents. The hub closes events when
// the stream is to end, having set why. events has room for Options.EventBuffer. why is written
// before the close and read after it.
type subscriber struct {
	events chan *runtimeapi.ContainerEventResponse
	why    error
}

// init has the hub begin without subscribers; it listens only while it has some.
func (h *hub) init(s *Server) {
	h.s = s
	h.subs = map[*subscriber]struct{}{}
}

// add gives a subscriber what happens from now on. The hub subscribes at the runtime with its
// first subscriber, so events cost nothing before.
func (h *hub) add(sub *subscriber) {
	h.subs[sub] = struct{}{}
	if h.g == nil {
		h.g = h.s.loop.NewGroup("events")
		h.s.rt.OnEvent(h.g, h.publish)
		h.s.rt.Client(h.g).OnChange(h.check)
	}
}

// check ends all streams when the daemon has gone down. A client must see that it has missed
// something: it subscribes anew and lists everything.
func (h *hub) check() {
	if !h.s.rt.DaemonUp() {
		for sub := range h.subs {
			h.remove(sub, errDown)
		}
	}
}

// remove ends a subscriber's stream, if it is still there.
func (h *hub) remove(sub *subscriber, why error) {
	if _, ok := h.subs[sub]; !ok {
		return
	}
	delete(h.subs, sub)
	sub.why = why
	close(sub.events)
	// The group's death ends the subscription at the runtime.
	if len(h.subs) == 0 {
		h.g.Kill()
		h.g = nil
	}
}

// publish never waits: a subscriber without room is dropped. It runs on the loop, which a slow
// client must not stop.
func (h *hub) publish(ev *runtimeapi.ContainerEventResponse) {
	for sub := range h.subs {
		select {
		case sub.events <- ev:
		default:
			h.remove(sub, status.Errorf(codes.ResourceExhausted, "the client is more than %d events behind", cap(sub.events)))
			h.s.warn("a subscriber of GetContainerEvents is %d events behind: its stream is ended", cap(sub.events))
		}
	}
}

// GetContainerEvents streams until the client goes. One that falls behind by more than the
// buffer is ended with ResourceExhausted: no event is left out without its knowing.
func (r *runtimeService) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	s, ctx := r.s, stream.Context()
	sub := &subscriber{events: make(chan *runtimeapi.ContainerEventResponse, s.opts.EventBuffer)}
	// The daemon and the faults have a say, as for any other call.
	if _, err := onLoop(ctx, s, "GetContainerEvents", func(ctx context.Context, c *fakecri.Client) (struct{}, error) {
		err := c.EventsAllowed(ctx)
		if err == nil {
			s.events.add(sub)
		}
		return struct{}{}, err
	}); err != nil {
		return err
	}
	// Also when the client goes, the hub must forget it.
	defer s.loop.Post(func() { s.events.remove(sub, nil) })
	// Who has the header knows that no later event will be missed.
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	for {
		select {
		case ev, ok := <-sub.events:
			if !ok {
				return sub.why
			}
			if err := stream.Send(wallTimes(s, ev)); err != nil {
				return err
			}
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-s.quit:
			return errStopping
		}
	}
}

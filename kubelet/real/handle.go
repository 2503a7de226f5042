//go:build linux

package real

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet"
)

// answerTime is how long a Handle waits for the kubelet's loop.
const answerTime = 5 * time.Second

// ErrNoAnswer says that the kubelet's loop is busy for longer than a check waits,
// or ended.
var ErrNoAnswer = errors.New("the kubelet's loop does not answer")

// Handle is a running kubelet for other goroutines. Its methods wait for the
// kubelet's loop, for 5 s at most.
type Handle struct {
	mu sync.Mutex
	l  *loop.Loop // nil while none runs
	g  *loop.Group
	k  *kubelet.Kubelet
	// ended is closed when the loop has ended.
	ended chan struct{}
	// known says that there was a kubelet before.
	known bool
}

// set changes the kubelet; it reports whether this is the first one.
func (h *Handle) set(l *loop.Loop, g *loop.Group, k *kubelet.Kubelet) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.known
	if h.ended != nil {
		close(h.ended)
	}
	h.l, h.g, h.k, h.known = l, g, k, true
	if h.ended = nil; l != nil {
		h.ended = make(chan struct{})
	}
	return first
}

// Do runs fn on the kubelet's loop, as a callback that can't wait, and waits for
// its end.
func (h *Handle) Do(fn func(k *kubelet.Kubelet)) error {
	h.mu.Lock()
	l, k := h.l, h.k
	h.mu.Unlock()
	if l == nil {
		return ErrNoAnswer
	}
	done := make(chan struct{})
	l.Post(func() {
		fn(k)
		close(done)
	})
	t := time.NewTimer(answerTime)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return ErrNoAnswer
	}
}

// Run runs fn on the kubelet's loop, as a task, and returns when it has: fn may wait.
// Its context ends with ctx. The task dies with the kubelet.
func (h *Handle) Run(ctx context.Context, fn func(ctx context.Context, k *kubelet.Kubelet) error) error {
	h.mu.Lock()
	l, g, k, ended := h.l, h.g, h.k, h.ended
	h.mu.Unlock()
	if l == nil {
		return ErrNoAnswer
	}
	reply := make(chan error, 1)
	var end func(error) // on the loop, as over
	var over error
	l.Post(func() {
		t := g.Go("server", func(task context.Context) {
			err := ErrNoAnswer // of a task that is killed
			defer func() { reply <- err }()
			task, end = loop.WithEnd(task)
			if over != nil {
				end(over)
			}
			err = fn(task, k)
		})
		if t.Done() {
			reply <- ErrNoAnswer
		}
	})
	stop := context.AfterFunc(ctx, func() {
		l.Post(func() {
			if over = ctx.Err(); end != nil {
				end(over)
			}
		})
	})
	defer stop()
	select {
	case err := <-reply:
		return err
	case <-ended:
		return ErrNoAnswer
	}
}

// Ping reports whether the kubelet's loop turns.
func (h *Handle) Ping() error { return h.Do(func(*kubelet.Kubelet) {}) }

// SyncLoopHealthy is the syncloop check of /healthz: an error when the sync loop
// has not turned for long.
func (h *Handle) SyncLoopHealthy() error {
	answer := make(chan error, 1)
	if err := h.Do(func(k *kubelet.Kubelet) { answer <- k.Healthy() }); err != nil {
		return err
	}
	return <-answer
}

// Pods are the kubelet's pods with the statuses that it knows. They are shared
// and not to be written to.
func (h *Handle) Pods() ([]*v1.Pod, error) {
	answer := make(chan []*v1.Pod, 1)
	if err := h.Do(func(k *kubelet.Kubelet) { answer <- k.Pods() }); err != nil {
		return nil, err
	}
	return <-answer, nil
}

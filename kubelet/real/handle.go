package real

import (
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
	k  *kubelet.Kubelet
	// known says that there was a kubelet before.
	known bool
}

// set changes the kubelet; it reports whether this is the first one.
func (h *Handle) set(l *loop.Loop, k *kubelet.Kubelet) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.known
	h.l, h.k, h.known = l, k, true
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

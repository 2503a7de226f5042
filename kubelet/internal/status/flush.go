package status

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// flushRetry is after how long Flush has statuses sent again that did not get
// through.
const flushRetry = time.Second

// Flush waits until the API has the last statuses of pods that are ending: those
// after TerminatePod. A static pod without a mirror has none, nor has a pod that
// is not known. One may flush at a time.
func (m *Manager) Flush(ctx context.Context, pods []types.UID) error {
	if m.opts.Client == nil {
		return nil
	}
	m.progress = &loop.Signal{}
	defer func() { m.progress = nil }()
	for !m.flushed(pods) {
		wctx, cancel := loop.WithTimeout(ctx, flushRetry)
		err := m.progress.Wait(wctx)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && len(m.unsent) > 0 {
			m.wantPartial = true
			m.wake()
		}
	}
	return nil
}

// flushed reports whether the API has the last status of each.
func (m *Manager) flushed(pods []types.UID) bool {
	for _, uid := range pods {
		if e := m.pods[uid]; e != nil {
			if to := m.apiUID(e); to != "" && !(e.finished && e.sentTo(to)) {
				return false
			}
		}
	}
	return true
}

// progressed tells Flush that a status was sent or forgotten.
func (m *Manager) progressed() {
	if m.progress != nil {
		m.progress.Notify()
	}
}

package volumemanager

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// reconcile is one run of the reconciler: unmounts first, then mounts
// (reconciler/reconciler.go).
func (m *Manager) reconcile() {
	m.reconciling.begin()
	now := m.l.UnixNano()
	pods := slices.Clone(m.order)
	if m.populated && !m.unsynced {
		for _, p := range pods {
			for _, v := range slices.Clone(p.volumes) {
				if v.desired || v.state == notMounted || v.running || v.driver != nil && v.driver.device != nil && v.driver.device.busy {
					continue
				}
				if t := v.backoff.until(unmountOperation); now <= t {
					m.reconciling.wake(t)
					continue
				}
				m.unmount(p, v)
				if !v.desired && v.state != notMounted && !v.running {
					m.reconciling.wake(v.backoff.until(unmountOperation))
				}
			}
		}
	}
	for _, p := range pods {
		for _, v := range slices.Clone(p.volumes) {
			if v.desired && !v.running && v.driver != nil && v.driver.device != nil {
				m.bringUp(p, v)
				continue
			}
			if !v.desired || v.running || v.state == mounted && !v.remount {
				continue
			}
			if t := v.backoff.until(mountOperation); now <= t {
				m.reconciling.wake(t)
				continue
			}
			m.mount(p, v)
			if !v.running && (v.state != mounted || v.remount) {
				m.reconciling.wake(v.backoff.until(mountOperation))
			}
		}
	}
	if m.populated && !m.unsynced {
		m.tearDown()
	}
	m.reconciling.end()
}

// until is the last instant at which an operation of the kind may not begin; 0
// if it may.
func (b *backoff) until(kind operation) int64 {
	if b.wait == 0 || b.kind != kind {
		return 0
	}
	return b.last + int64(b.wait)
}

// failed notes that an operation has failed
// (pkg/util/goroutinemap/exponentialbackoff).
func (b *backoff) failed(kind operation, now int64) {
	if b.kind != kind {
		*b = backoff{kind: kind}
	}
	b.last = now
	if b.wait == 0 {
		b.wait = backoffInitial
	} else {
		b.wait = min(2*b.wait, backoffMax)
	}
}

// newRequest is what a plugin is asked to set up.
func newRequest(p *podVolumes, v *podVolume) *volume.Request {
	return &volume.Request{Pod: p.pod, Volume: v.spec, Dir: v.path, FSGroup: util.FSGroup(p.pod), FSUser: util.FSUser(p.pod)}
}

// waits reports whether a volume's plugin may wait, and so needs a task.
func (v *podVolume) waits() bool {
	_, waits := v.plugin.(volume.Waiter)
	return waits
}

// mount sets a volume up, at once or, if that may wait, in a task.
func (m *Manager) mount(p *podVolumes, v *podVolume) {
	r := v.request(p)
	if _, remounts := v.plugin.(volume.Remounter); !remounts && !v.waits() {
		m.mountDone(p, v, r, v.plugin.SetUp(m.o.Group.Background(), r))
		return
	}
	v.running = true
	m.o.Group.Go("mount/"+r.Pod.Namespace+"/"+r.Pod.Name+"/"+v.name, func(ctx context.Context) {
		err := v.plugin.SetUp(ctx, r)
		v.running = false
		m.mountDone(p, v, r, err)
		if !v.desired || v.state != mounted || v.remount {
			m.reconciling.wake(v.backoff.until(mountOperation))
		}
	})
}

func (m *Manager) mountDone(p *podVolumes, v *podVolume, r *volume.Request, err error) {
	if err == nil {
		v.backoff = backoff{}
		m.isMounted(p, v, r)
		return
	}
	v.backoff.failed(mountOperation, m.l.UnixNano())
	if v.driver != nil {
		v.state = after(v.state, v.driver.reconstructed, err)
	}
	m.mountFailed(v, r, "MountVolume.SetUp failed", err)
}

// mountFailed tells that a volume could not be mounted.
func (m *Manager) mountFailed(v *podVolume, r *volume.Request, words string, err error) {
	text := fmt.Sprintf("%s for volume %q : %v", words, v.specName(), err)
	m.logf("%s pod=%s/%s durationBeforeRetry=%v", text, r.Pod.Namespace, r.Pod.Name, v.backoff.wait)
	reason := events.FailedMountVolume
	if r.PV != nil && util.IsBlock(r.PV) {
		reason = events.FailedMapVolume
	}
	m.o.Recorder.Event(kubecontainer.PodRef(r.Pod), v1.EventTypeWarning, reason, text)
	if !v.desired {
		m.populating.wake(0) // which forgets it
	}
}

// isMounted notes that a volume has been set up.
func (m *Manager) isMounted(p *podVolumes, v *podVolume, r *volume.Request) {
	v.state = mounted
	v.inputs = r.Inputs
	if v.driver != nil {
		v.driver.reconstructed = false
	}
	// What was asked for while it ran is done with: upstream clears the mark
	// just so.
	v.remount = false
	p.notify()
	if !v.desired || m.o.States.ShouldPodRuntimeBeRemoved(p.uid) {
		m.populating.wake(0)
	}
}

// unmount takes a volume away, at once or, if that may wait, in a task.
func (m *Manager) unmount(p *podVolumes, v *podVolume) {
	// What containers mounted of it by subPath goes first.
	if err := m.o.Host.CleanSubPaths(path.Join(m.o.Host.PodDir(p.uid), "volume-subpaths", v.name)); err != nil {
		m.unmountDone(p, v, err)
		return
	}
	if !v.waits() {
		m.unmountDone(p, v, v.plugin.TearDown(m.o.Group.Background(), p.uid, v.specName()))
		return
	}
	v.running = true
	m.o.Group.Go("unmount/"+string(p.uid)+"/"+v.name, func(ctx context.Context) {
		err := v.plugin.TearDown(ctx, p.uid, v.specName())
		v.running = false
		m.unmountDone(p, v, err)
		m.populating.wake(0) // which forgets it, if it is wanted no more
		m.reconciling.wake(v.backoff.until(unmountOperation))
	})
}

func (m *Manager) unmountDone(p *podVolumes, v *podVolume, err error) {
	if err != nil {
		v.backoff.failed(unmountOperation, m.l.UnixNano())
		m.logf("UnmountVolume.TearDown failed for volume %q podUID=%s durationBeforeRetry=%v: %v", v.specName(), p.uid, v.backoff.wait, err)
		return
	}
	v.backoff = backoff{}
	v.state, v.remount, v.inputs = notMounted, false, nil
	m.prune(p)
	p.notify()
	if m.pods[p.uid] == p && !p.processed {
		m.populating.wake(0)
	}
}

// waiter is somebody who waits for a pod's volumes.
type waiter struct {
	changed *signal
	// mounting: it waits for them to be mounted.
	mounting, cancelled bool
}

// notify says that something of the pod's volumes changed.
func (p *podVolumes) notify() {
	for _, w := range p.waiters {
		w.changed.Notify()
	}
}

// poll calls cond at once, then at those of its instants at which it could have
// changed, as apimachinery's PollUntilContextTimeout does at each. A timeout of
// 0 is none. Errors are those of cond, context.DeadlineExceeded, and
// context.Canceled also when CancelWait was called.
func (m *Manager) poll(ctx context.Context, p *podVolumes, mounting bool, period, timeout time.Duration, cond func() (bool, error)) error {
	if done, err := cond(); done || err != nil {
		return err
	}
	w := &waiter{changed: &signal{}, mounting: mounting}
	p.waiters = append(p.waiters, w)
	defer func() {
		p.waiters = slices.DeleteFunc(p.waiters, func(o *waiter) bool { return o == w })
	}()
	start := m.l.UnixNano()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = withTimeout(ctx, timeout)
		defer cancel()
	}
	for {
		if m.idle != nil {
			if err := m.idle(ctx, w); err != nil {
				return err
			}
		}
		if w.cancelled {
			return context.Canceled
		}
		at := next(start, m.l.UnixNano(), period)
		if err := m.l.Sleep(ctx, time.Duration(at-m.l.UnixNano())); err != nil {
			return err
		}
		if w.cancelled {
			return context.Canceled
		}
		if done, err := cond(); done || err != nil {
			return err
		}
	}
}

// CancelWait has a wait for a pod's volumes to be mounted give up.
func (m *Manager) CancelWait(uid types.UID) {
	p := m.pods[uid]
	if p == nil {
		return
	}
	for _, w := range p.waiters {
		if w.mounting {
			w.cancelled = true
			w.changed.Notify()
		}
	}
}

// isTimeout reports whether a wait ended by its time or by being cancelled.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

package volumemanager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

type signal = loop.Signal

func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return loop.WithTimeout(ctx, d)
}

// WaitError is why a wait for volumes ended without them.
type WaitError struct {
	text string
	err  error
}

func (e *WaitError) Error() string { return e.text + e.err.Error() }

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.err }

// Quiet reports whether the wait ended by its time or was cancelled, of which no
// event tells.
func (e *WaitError) Quiet() bool { return isTimeout(e.err) }

// WaitForAttachAndMount waits until the volumes that a pod uses are mounted, at
// most 2m3s; it looks at once and then every 300 ms. Content volumes are written
// anew meanwhile. A pod that uses none is not waited for. The error is a
// *WaitError.
func (m *Manager) WaitForAttachAndMount(ctx context.Context, pod *v1.Pod) error {
	used := util.UsedVolumes(pod)
	if len(used) == 0 {
		return nil
	}
	p := m.record(pod.UID)
	m.reprocess(p)
	err := m.poll(ctx, p, true, waitPeriod, waitTimeout, func() (bool, error) {
		if len(p.errs) > 0 {
			err := errors.New(strings.Join(p.errs, "; "))
			p.errs = nil
			return true, err
		}
		return len(m.unmounted(p, pod, used)) == 0, nil
	})
	if err == nil {
		return nil
	}
	unmounted := m.unmounted(p, pod, used)
	if len(unmounted) == 0 {
		return nil
	}
	var unprocessed []string
	for i := range pod.Spec.Volumes {
		name := pod.Spec.Volumes[i].Name
		if v := p.volume(name); used[name] && (v == nil || !v.desired) {
			unprocessed = append(unprocessed, name)
		}
	}
	return &WaitError{fmt.Sprintf("unmounted volumes=%s, unattached volumes=[], failed to process volumes=%s: ", names(unmounted), names(unprocessed)), err}
}

// reprocess has the populator work out anew what is wanted.
func (m *Manager) reprocess(p *podVolumes) {
	p.processed = false
	m.populating.wake(0)
}

// unmounted lists the used volumes that are not mounted.
func (m *Manager) unmounted(p *podVolumes, pod *v1.Pod, used map[string]bool) []string {
	var out []string
	for i := range pod.Spec.Volumes {
		name := pod.Spec.Volumes[i].Name
		if v := p.volume(name); used[name] && (v == nil || v.state != mounted) {
			out = append(out, name)
		}
	}
	return out
}

// WaitForUnmount waits until no volume of a pod is mounted any more, at most
// 2m3s; it looks at once and then every 300 ms.
func (m *Manager) WaitForUnmount(ctx context.Context, pod *v1.Pod) error {
	p := m.pods[pod.UID]
	if p == nil {
		return nil
	}
	m.reprocess(p)
	still := func() []string {
		var out []string
		for _, v := range p.volumes {
			if v.state == mounted {
				out = append(out, v.name)
			}
		}
		return out
	}
	err := m.poll(ctx, p, false, waitPeriod, waitTimeout, func() (bool, error) {
		if len(p.errs) > 0 {
			err := errors.New(strings.Join(p.errs, "; "))
			p.errs = nil
			return true, err
		}
		return len(still()) == 0, nil
	})
	if err == nil {
		return nil
	}
	list := still()
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("mounted volumes=%s: %w", names(list), err)
}

// WaitForVolumePaths waits until no path of a pod's volumes is in use, as seen
// every 100 ms.
func (m *Manager) WaitForVolumePaths(ctx context.Context, pod *v1.Pod) error {
	p := m.pods[pod.UID]
	if p == nil {
		return nil
	}
	return m.poll(ctx, p, false, pathsPeriod, 0, func() (bool, error) { return !m.HasPossiblyMountedVolumesForPod(pod.UID), nil })
}

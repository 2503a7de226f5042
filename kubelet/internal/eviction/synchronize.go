package eviction

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/events"
)

// synchronize is one pass: it evicts what has to go and returns it (upstream
// managerImpl.synchronize).
func (m *Manager) synchronize(ctx context.Context) []types.UID {
	if m.quiet {
		return m.limitedPods(ctx)
	}
	before := m.thresholds
	if !m.layoutKnown && !m.detectLayout(ctx) {
		return nil
	}
	active := m.o.ActivePods()
	summary, err := m.o.Stats.Summary(ctx, true)
	if err != nil {
		m.log("Eviction manager: failed to get summary stats: %v", err)
		return nil
	}
	m.refreshNotifiers(summary)
	seen := observe(summary)
	stats := statsOf(summary.Pods)
	// The pass that finds out the layout still judges by what was configured.
	due := m.judge(before, seen)
	if m.o.Config.LocalStorage {
		if evicted := m.localStorageEviction(ctx, active, stats); len(evicted) > 0 {
			return evicted
		}
	}
	if len(due) == 0 {
		return nil
	}
	return m.relieve(ctx, due, seen, active, stats)
}

// limitedPods is a pass while nothing of the node is low.
func (m *Manager) limitedPods(ctx context.Context) []types.UID {
	if len(m.limited) == 0 {
		return nil
	}
	var pods []*v1.Pod
	for _, pod := range m.o.ActivePods() {
		if _, ok := m.limited[pod.UID]; ok {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	stats, err := m.o.Stats.Pods(ctx, pods)
	if err != nil {
		m.log("Eviction manager: failed to get summary stats: %v", err)
		return nil
	}
	return m.localStorageEviction(ctx, pods, statsOf(stats))
}

// detectLayout finds out, once, how images and containers lie on the machine's
// file systems. Without, there is no pass.
func (m *Manager) detectLayout(ctx context.Context) bool {
	fs, err := m.o.Stats.Filesystems(ctx)
	if err != nil {
		m.log("Eviction manager: failed to synchronize: eviction manager: failed to get HasDedicatedImageFs: %v", err)
		return false
	}
	m.layout, m.layoutKnown = Layout{Dedicated: fs.Dedicated, Split: fs.Split}, true
	var messages []string
	m.thresholds, messages = m.o.Thresholds.with(m.layout)
	for _, text := range messages {
		m.log("Eviction manager: %s", text)
	}
	return true
}

// judge notes what is met, sets the node's conditions, and returns the
// thresholds for which a pod has to go now.
func (m *Manager) judge(thresholds []Threshold, seen observations) []Threshold {
	now := m.o.Loop.UnixNano()
	list := met(thresholds, seen, false)
	if len(m.met) > 0 {
		list = union(list, met(m.met, seen, true))
	}
	m.since = since(list, m.since, now)
	if m.pressure.update(list, now, m.o.Config.PressureTransition) && m.o.Changed != nil {
		m.o.Changed()
	}
	due := graceOver(m.since, now)
	m.met = due
	due = updated(due, seen, m.seen)
	m.seen = seen
	return due
}

// relieve frees what nobody needs, or else evicts the first pod that lets
// itself be evicted.
func (m *Manager) relieve(ctx context.Context, due []Threshold, seen observations, active []*v1.Pod, stats podStats) []types.UID {
	byPriority(due)
	t := &due[0]
	name := t.Signal.facts().resource
	m.log("Eviction manager: attempting to reclaim resourceName=%s", name)
	m.o.NodeEvent(v1.EventTypeWarning, events.EvictionThresholdMet, fmt.Sprintf("Attempting to reclaim %s", name))
	if m.reclaim(ctx, t.Signal) {
		m.log("Eviction manager: able to reduce resource pressure without evicting pods. resourceName=%s", name)
		return nil
	}
	if len(active) == 0 {
		m.log("Eviction manager: eviction thresholds have been met, but no pods are active to evict")
		return nil
	}
	if t.Signal.facts().condition == v1.NodeDiskPressure {
		m.watchVolumes(active, stats)
	}
	rank(active, t.Signal, m.layout, stats)
	for _, pod := range active {
		message, annotations := evictionMessage(name, pod, stats(pod), due, seen)
		if m.evict(ctx, pod, m.gracePeriod(t, pod), message, annotations, true) {
			m.count(t.Signal)
			return []types.UID{pod.UID}
		}
	}
	m.log("Eviction manager: unable to evict any pods from the node")
	return nil
}

// gracePeriod is how long a pod gets that is evicted for a threshold, in
// seconds.
func (m *Manager) gracePeriod(t *Threshold, pod *v1.Pod) int64 {
	if t.hard() {
		return hardGracePeriod
	}
	grace := m.o.Config.MaxPodGracePeriod
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = min(grace, *own)
	}
	return grace
}

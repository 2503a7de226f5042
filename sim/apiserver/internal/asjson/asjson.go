// Package asjson cuts what JSON cuts on its way to an API server and back: times to
// whole seconds, UTC, or to microseconds where the field is a MicroTime. Objects
// here cross as structs, and a time that kept its nanoseconds would make what a
// kubelet sends differ from what it reads. What is cut already is returned as it
// is, so that it stays shared.
package asjson

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Time cuts a time to whole seconds, UTC, as a trip through JSON does.
func Time(t time.Time) metav1.Time { return metav1.Time{Time: t.UTC().Truncate(time.Second)} }

// TimePtr is Time for an optional field, copied only if it is not cut yet.
func TimePtr(t *metav1.Time) *metav1.Time {
	if t == nil || IsTime(*t) {
		return t
	}
	return new(Time(t.Time))
}

// InPlace cuts a time where it stands: the caller owns it.
func InPlace(t *metav1.Time) {
	if !IsTime(*t) {
		*t = Time(t.Time)
	}
}

// IsTime reports whether a time is as JSON would leave it.
func IsTime(t metav1.Time) bool {
	return t.Nanosecond() == 0 && (t.IsZero() || t.Location() == time.UTC)
}

// PodCondition cuts a condition's times.
func PodCondition(c v1.PodCondition) v1.PodCondition {
	InPlace(&c.LastTransitionTime)
	InPlace(&c.LastProbeTime)
	return c
}

// NodeCondition cuts a condition's times, of which a node's has a heartbeat's too.
func NodeCondition(c v1.NodeCondition) v1.NodeCondition {
	InPlace(&c.LastTransitionTime)
	InPlace(&c.LastHeartbeatTime)
	return c
}

// ContainerStatuses returns the list with its times in whole seconds; it
// copies only what it must.
func ContainerStatuses(list []v1.ContainerStatus) []v1.ContainerStatus {
	dirty := func(s *v1.ContainerState) bool {
		return s.Running != nil && !IsTime(s.Running.StartedAt) ||
			s.Terminated != nil && (!IsTime(s.Terminated.StartedAt) || !IsTime(s.Terminated.FinishedAt))
	}
	clean := func(s *v1.ContainerState) {
		if s.Running != nil {
			r := *s.Running
			InPlace(&r.StartedAt)
			s.Running = &r
		}
		if s.Terminated != nil {
			t := *s.Terminated
			InPlace(&t.StartedAt)
			InPlace(&t.FinishedAt)
			s.Terminated = &t
		}
	}
	copied := false
	for i := range list {
		a, b := dirty(&list[i].State), dirty(&list[i].LastTerminationState)
		if !a && !b {
			continue
		}
		if !copied {
			list = append([]v1.ContainerStatus(nil), list...)
			copied = true
		}
		if a {
			clean(&list[i].State)
		}
		if b {
			clean(&list[i].LastTerminationState)
		}
	}
	return list
}

// Lease cuts a lease's times to microseconds.
func Lease(spec coordinationv1.LeaseSpec) coordinationv1.LeaseSpec {
	cut := func(t *metav1.MicroTime) *metav1.MicroTime {
		if t == nil || t.Nanosecond()%1000 == 0 {
			return t
		}
		return &metav1.MicroTime{Time: t.UTC().Truncate(time.Microsecond)}
	}
	spec.RenewTime, spec.AcquireTime = cut(spec.RenewTime), cut(spec.AcquireTime)
	return spec
}

// Event cuts an event's times as JSON does.
func Event(ev *v1.Event) {
	if !ev.FirstTimestamp.IsZero() {
		ev.FirstTimestamp = Time(ev.FirstTimestamp.Time)
	}
	if !ev.LastTimestamp.IsZero() {
		ev.LastTimestamp = Time(ev.LastTimestamp.Time)
	}
	if !ev.EventTime.IsZero() {
		ev.EventTime.Time = ev.EventTime.UTC().Truncate(time.Microsecond)
	}
}

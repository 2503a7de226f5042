package calls

import (
	"cmp"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Subject is what a call is about: it decides which faults match, which
// latencies are drawn, and what the trace says.
type Subject struct {
	Namespace, Pod, Container, Image string
	Attempt                          uint32
	Timeout                          int64 // seconds; -1: has none
	// Resources are what the call gives to a container.
	Resources *runtimeapi.LinuxContainerResources
	// PodCIDR is what UpdateRuntimeConfig hands over.
	PodCIDR string
}

// Key spreads what a draw is about over the draws of one pod's name.
func (s *Subject) Key() uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s.Namespace); i++ {
		h = (h ^ uint64(s.Namespace[i])) * 1099511628211
	}
	h = (h ^ '/') * 1099511628211
	for i := 0; i < len(s.Container); i++ {
		h = (h ^ uint64(s.Container[i])) * 1099511628211
	}
	return h + uint64(s.Attempt)
}

// between draws a duration for a purpose and a subject.
func (s *Subject) Draw(l *loop.Loop, d program.Range, purpose string) int64 {
	if d.Max <= d.Min {
		return int64(d.Min)
	}
	object := cmp.Or(s.Pod, s.Image)
	return int64(l.Between(d.Min, d.Max, purpose, object, s.Key()))
}

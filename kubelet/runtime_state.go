package kubelet

import (
	"errors"
	"fmt"
	"math"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/ground/loop"
)

// runtimeDownAfter is how long after the last good runtime status the runtime
// counts as down.
const runtimeDownAfter = 30 * time.Second

// The texts of runtime errors.
var (
	errRuntimeNeverChecked = errors.New("container runtime status check may not have completed yet")
	errRuntimeDown         = errors.New("container runtime is down")
	errNetworkUnknown      = errors.New("network state unknown")
)

// healthCheck is a part whose health the runtime's health includes.
type healthCheck struct {
	name    string
	healthy func() error
	// until is the time (ns since the Unix epoch) before which healthy returns
	// nil unless something is called meanwhile; 0 if it does not now.
	until func() int64
}

// runtimeState is what the kubelet knows of its runtime's health
// (pkg/kubelet/runtime.go).
type runtimeState struct {
	l        *loop.Loop
	lastSync int64 // of the last good runtime status, ns; 0 = never
	// assured: whoever asked the runtime now would get a good status.
	assured      bool
	runtimeError error
	networkError error
	storageError error
	checks       []healthCheck
}

func newRuntimeState(l *loop.Loop) *runtimeState {
	return &runtimeState{l: l, networkError: errNetworkUnknown}
}

func (s *runtimeState) addHealthCheck(name string, healthy func() error, until func() int64) {
	s.checks = append(s.checks, healthCheck{name, healthy, until})
}

// errorsFrom is the time (ns since the Unix epoch) from which on runtimeErrors
// returns something if nothing is heard of the runtime meanwhile; in the past if
// it does now.
func (s *runtimeState) errorsFrom() int64 {
	if s.lastSync == 0 || s.runtimeError != nil {
		return 0
	}
	at := s.lastSync + int64(runtimeDownAfter)
	if s.assured {
		at = math.MaxInt64
	}
	for i := range s.checks {
		at = min(at, s.checks[i].until())
	}
	return at
}

// runtimeErrors returns why pods cannot be synced now, or nil.
func (s *runtimeState) runtimeErrors() error {
	var errs []error
	switch {
	case s.lastSync == 0:
		errs = append(errs, errRuntimeNeverChecked)
	case !s.assured && s.l.UnixNano() >= s.lastSync+int64(runtimeDownAfter):
		errs = append(errs, errRuntimeDown)
	}
	for _, c := range s.checks {
		if err := c.healthy(); err != nil {
			errs = append(errs, fmt.Errorf("%s is not healthy: %w", c.name, err))
		}
	}
	if s.runtimeError != nil {
		errs = append(errs, s.runtimeError)
	}
	if errs == nil {
		return nil
	}
	return utilerrors.NewAggregate(errs)
}

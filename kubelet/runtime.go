package kubelet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

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
}

// runtimeState is what the kubelet knows of its runtime's health
// (pkg/kubelet/runtime.go).
type runtimeState struct {
	l        *loop.Loop
	lastSync int64 // of the last good runtime status, ns; 0 = never
	// version grows when one of the errors may be another.
	version loop.Version
	// catchUp brings lastSync up to date; nil: it always is.
	catchUp      func()
	runtimeError error
	networkError error
	storageError error
	// podCIDR is what the runtime was told last; "" is nothing.
	podCIDR string
	checks  []healthCheck
}

func newRuntimeState(l *loop.Loop) *runtimeState {
	return &runtimeState{l: l, networkError: errNetworkUnknown}
}

// setRuntimeError notes what the runtime said of itself; nil: it is ready.
func (s *runtimeState) setRuntimeError(err error) {
	s.runtimeError = err
	s.version.Grow()
}

// setNetworkError notes what the runtime said of the pod network.
func (s *runtimeState) setNetworkError(err error) {
	s.networkError = err
	s.version.Grow()
}

// setStorageError notes whether volumes can be had.
func (s *runtimeState) setStorageError(err error) {
	s.storageError = err
	s.version.Grow()
}

func (s *runtimeState) addHealthCheck(name string, healthy func() error) {
	s.checks = append(s.checks, healthCheck{name, healthy})
}

// runtimeErrors returns why pods cannot be synced now, or nil.
func (s *runtimeState) runtimeErrors() error {
	if s.catchUp != nil {
		s.catchUp()
	}
	var errs []error
	switch {
	case s.lastSync == 0:
		errs = append(errs, errRuntimeNeverChecked)
	case s.l.UnixNano() >= s.lastSync+int64(runtimeDownAfter):
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

// runtimeFacts are what the last good runtime status told.
type runtimeFacts struct {
	// once: the runtime has been up, and what depends on it was started. Before
	// that, local storage is not known.
	once     bool
	handlers []v1.NodeRuntimeHandler
	features *v1.NodeFeatures
}

// set keeps the handlers, sorted by name, and the features; what did not change
// stays the same object.
func (u *runtimeFacts) set(resp *runtimeapi.StatusResponse) {
	handlers := make([]v1.NodeRuntimeHandler, 0, len(resp.RuntimeHandlers))
	for _, h := range resp.RuntimeHandlers {
		o := v1.NodeRuntimeHandler{Name: h.Name}
		if f := h.Features; f != nil {
			rro, userns := f.RecursiveReadOnlyMounts, f.UserNamespaces
			o.Features = &v1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &rro, UserNamespaces: &userns}
		}
		handlers = append(handlers, o)
	}
	slices.SortFunc(handlers, func(a, b v1.NodeRuntimeHandler) int { return strings.Compare(a.Name, b.Name) })
	if !slices.EqualFunc(handlers, u.handlers, sameHandler) {
		u.handlers = handlers
	}
	if f := resp.Features; f != nil && (u.features == nil || *u.features.SupplementalGroupsPolicy != f.SupplementalGroupsPolicy) {
		policy := f.SupplementalGroupsPolicy
		u.features = &v1.NodeFeatures{SupplementalGroupsPolicy: &policy}
	}
}

func sameHandler(a, b v1.NodeRuntimeHandler) bool {
	if a.Name != b.Name || (a.Features == nil) != (b.Features == nil) {
		return false
	}
	return a.Features == nil || *a.Features.RecursiveReadOnlyMounts == *b.Features.RecursiveReadOnlyMounts &&
		*a.Features.UserNamespaces == *b.Features.UserNamespaces
}

func runtimeCondition(list []*runtimeapi.RuntimeCondition, t string) *runtimeapi.RuntimeCondition {
	for _, c := range list {
		if c.Type == t {
			return c
		}
	}
	return nil
}

func conditionText(c *runtimeapi.RuntimeCondition) string {
	if c == nil {
		return "<nil>"
	}
	return fmt.Sprintf("%s=%t reason:%s message:%s", c.Type, c.Status, c.Reason, c.Message)
}

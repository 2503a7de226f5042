package action

import (
	"context"
	"errors"
	"slices"
	"testing"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stopping is a runtime whose first stops fail.
type stopping struct {
	internalapi.RuntimeService
	failures int
	stopped  []string
}

func (r *stopping) ListPodSandbox(context.Context, *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	meta := &runtimeapi.PodSandboxMetadata{Namespace: "default", Name: "web"}
	return []*runtimeapi.PodSandbox{
		{Id: "old", Metadata: meta, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY},
		{Id: "new", Metadata: meta, State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}, nil
}

func (r *stopping) StopPodSandbox(_ context.Context, id string) error {
	if r.stopped = append(r.stopped, id); len(r.stopped) <= r.failures {
		return errors.New("no such device")
	}
	return nil
}

// TestStopReady: a stop that meets another one is tried again, one that fails for good is told.
func TestStopReady(t *testing.T) {
	for failures, want := range []struct {
		stopped []string
		fails   bool
	}{{[]string{"new"}, false}, {[]string{"new", "new"}, false}, {[]string{"new", "new"}, true}} {
		r := &stopping{failures: failures}
		if err := stopReady(t.Context(), r, "default/web"); (err != nil) != want.fails || !slices.Equal(r.stopped, want.stopped) {
			t.Errorf("%d failures: %v, stopped %v", failures, err, r.stopped)
		}
	}
	if err := stopReady(t.Context(), &stopping{}, "default/other"); err == nil {
		t.Error("stopped a sandbox of another pod")
	}
}

package running_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/internal/running"
)

// TestUncompiled refuses a scenario whose expectations nobody has compiled, with its name.
func TestUncompiled(t *testing.T) {
	s := &document.Scenario{Metadata: document.Metadata{Name: "in-go"}, Spec: document.Spec{
		Duration: time.Minute, Expect: []document.Expectation{{Always: "true"}},
	}}
	if _, err := running.Run(t.Context(), s, running.Options{}); err == nil || !strings.Contains(err.Error(), "scenario in-go: expect[0] was never compiled") {
		t.Errorf("%v", err)
	}
}

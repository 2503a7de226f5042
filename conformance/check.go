//go:build linux

package conformance

import (
	"context"
	"time"
)

// Level says what it means that a check fails.
type Level string

// The levels: a kubelet cannot do without what is required.
const (
	Required Level = "required"
	Optional Level = "optional"
)

// Status is how a check went. There is no fourth: what could not be judged is
// skipped, with why.
type Status string

// The statuses. Skipped has a reason.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// check is one of the list. Names are stable: reports are compared by them, and
// --focus and --skip select by them. run fails the check by T's methods; a panic of its own is a
// failure, too.
type check struct {
	// name: "cri/sandbox/stop-twice", "kubelet/restart-always".
	name  string
	level Level
	// expect is what must be, in a sentence.
	expect string
	// alone has it run while no other check does.
	alone bool
	// timeout bounds it; 0 means checkTimeout.
	timeout time.Duration
	run     func(ctx context.Context, t *T)
}

// checkTimeout bounds a direct check. It is far beyond what any runtime needs, so reaching it
// means that something hangs.
const checkTimeout = 2 * time.Minute

// Result is how one check went. It is complete by itself: a report is a list of
// them, read far from the machine that made it. Came of a skipped check is empty: what was found
// before does not count.
type Result struct {
	Name  string `json:"name"`
	Level Level  `json:"level"`
	// Expected is what must be; Came is what was instead, one entry for each
	// thing that was wrong.
	Expected string   `json:"expected"`
	Status   Status   `json:"status"`
	Came     []string `json:"came,omitempty"`
	// Reason is why it was skipped.
	Reason string `json:"reason,omitempty"`
	// History is what the kubelet and the API saw around a failure.
	History []string `json:"history,omitempty"`
	// RPCs are the last calls that it made, oldest first, and Omitted how many
	// there were before them.
	RPCs     []RPC         `json:"rpcs,omitempty"`
	Omitted  int           `json:"rpcsOmitted,omitempty"`
	Duration time.Duration `json:"-"`
	// Seconds is Duration, for readers of the report.
	Seconds float64 `json:"durationSeconds"`
}

// Report is how a run went. Its JSON is what tools read; names of fields are part of the
// interface.
type Report struct {
	// Version is that of who checked; "" is left out.
	Version string `json:"version,omitempty"`
	// Runtime is what the runtime says it is.
	Runtime struct {
		Endpoint   string `json:"endpoint"`
		Name       string `json:"name"`
		Version    string `json:"version"`
		APIVersion string `json:"apiVersion"`
	} `json:"runtime"`
	Started time.Time `json:"started"`
	// Seconds is how long it took.
	Seconds float64  `json:"durationSeconds"`
	Results []Result `json:"checks"`
	// Interrupted tells that not all was checked.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Count tells how many checks of a level have a status; "" is any level. The last
// check, of leftovers, counts like any other.
func (r *Report) Count(level Level, s Status) int {
	n := 0
	for i := range r.Results {
		if x := &r.Results[i]; x.Status == s && (level == "" || x.Level == level) {
			n++
		}
	}
	return n
}

// Conforms tells that every required check that was run has passed, and that none
// was left out by an interruption. Skipped checks don't count against a runtime:
// each has a reason that a reader can judge. Optional checks that fail don't count either.
func (r *Report) Conforms() bool { return !r.Interrupted && r.Count(Required, Failed) == 0 }

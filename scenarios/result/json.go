package result

import (
	"math"
	"time"

	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
)

// valueJSON is a part of a failed expression, and what it was.
type valueJSON struct {
	Expression string `json:"expression"`
	Value      string `json:"value"`
}

// objectJSON is an object that a failed expression is about.
type objectJSON struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// verdictJSON is a verdict with the expectation that it is about.
type verdictJSON struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	// Form is at, by, always, never or for; When is that with its times.
	Form       string `json:"form"`
	When       string `json:"when"`
	Expression string `json:"expression"`
	// Outcome is held, failed or undecided.
	Outcome   string       `json:"outcome"`
	DecidedAt *float64     `json:"decidedAtSeconds,omitempty"`
	Reason    string       `json:"reason,omitempty"`
	Values    []valueJSON  `json:"values,omitempty"`
	Objects   []objectJSON `json:"objects,omitempty"`
	History   []string     `json:"history,omitempty"`
}

// MarshalJSON writes the verdict with its expectation; times are seconds since
// the start of the run.
func (v Verdict) MarshalJSON() ([]byte, error) {
	out := verdictJSON{Outcome: string(v.Outcome), Reason: v.Reason, History: v.History}
	if x := v.Expectation; x != nil {
		out.Name, out.Description = x.Name, x.Description
		out.Form, out.When, out.Expression = string(x.Form), v.when(), x.Expr
	}
	if v.Outcome != expect.Undecided {
		out.DecidedAt = new(seconds(v.At))
	}
	for _, x := range v.Values {
		out.Values = append(out.Values, valueJSON{x.Expr, x.Value})
	}
	for _, o := range v.Objects {
		out.Objects = append(out.Objects, objectJSON{string(o.Kind), o.Namespace, o.Name})
	}
	return text.JSON(out)
}

// MarshalJSON writes the summary; times are seconds.
func (s Summary) MarshalJSON() ([]byte, error) {
	type plain Summary
	out := struct {
		Virtual float64 `json:"virtualSeconds"`
		// SteadyFrom is left out if there was no steady state.
		SteadyFrom *float64 `json:"steadyFromSeconds,omitempty"`
		plain
	}{Virtual: seconds(s.Virtual), plain: plain(s)}
	if s.SteadyFrom >= 0 {
		out.SteadyFrom = new(seconds(s.SteadyFrom))
	}
	out.NodeSecondsPerSecond = math.Round(s.NodeSecondsPerSecond)
	out.SteadyNodeSecondsPerSecond = math.Round(s.SteadyNodeSecondsPerSecond)
	return text.JSON(out)
}

// MarshalJSON writes the times in seconds.
func (w WallTime) MarshalJSON() ([]byte, error) {
	return text.JSON(struct {
		Load    float64 `json:"loadSeconds"`
		Startup float64 `json:"startupSeconds"`
		Steady  float64 `json:"steadySeconds"`
		Total   float64 `json:"totalSeconds"`
	}{seconds(w.Load), seconds(w.Startup), seconds(w.Steady), seconds(w.Total())})
}

// seconds is a time in seconds, to the microsecond.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

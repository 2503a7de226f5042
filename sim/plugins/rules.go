package plugins

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Rule is something that goes wrong with a plugin's calls.
type Rule struct {
	Plugin, Method string
	// Match, if not "", is a text that the request has as JSON.
	Match string
	// Skip is how many such calls go well first.
	Skip int
	// Times is for how many calls the rule holds; below 0: always.
	Times int
	// Delay is for how long the call waits, unless its caller gives up. With a MaxDelay
	// it is drawn between both.
	Delay, MaxDelay time.Duration
	drawn           uint64
	// Late has the call take effect first, and then wait and fail.
	Late bool
	// Code and Message are the answer; OK: that of the plugin.
	Code    codes.Code
	Message string
	// ClaimError, if not "", is what a DRA driver answers for each claim.
	ClaimError string
}

// claimError is a rule's answer for each claim of a call.
type claimError string

func (e claimError) Error() string { return string(e) }

// rules are those of a loop's plugins.
type rules struct {
	l    *loop.Loop
	list []*Rule
}

// AddRules adds rules after those that there are. Of several that hold for a call the
// first acts.
func (s *rules) AddRules(rules ...Rule) {
	for i := range rules {
		r := rules[i]
		s.list = append(s.list, &r)
	}
}

// match returns the first rule that holds for a call, which counts as one of its calls;
// nil: none does. req is the request as text.
func (s *rules) match(plugin, method string, req func() string) *Rule {
	for _, r := range s.list {
		if r.Times == 0 || r.Plugin != plugin || r.Method != method || r.Match != "" && !strings.Contains(req(), r.Match) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		if r.Times > 0 {
			r.Times--
		}
		return r
	}
	return nil
}

// answerAs answers a call as a rule has it, which may be nil.
func answerAs[Resp any](ctx context.Context, l *loop.Loop, r *Rule, do func() (Resp, error)) (Resp, error) {
	if r == nil {
		return do()
	}
	var none Resp
	if !r.Late {
		if err := r.act(ctx, l); err != nil {
			return none, err
		}
		return do()
	}
	resp, err := do()
	if err == nil {
		err = r.act(ctx, l)
	}
	if err != nil {
		return none, err
	}
	return resp, nil
}

// act has a call wait, and fail. The error is the call's answer.
func (r *Rule) act(ctx context.Context, l *loop.Loop) error {
	if d := r.delay(l); d > 0 {
		if err := l.Sleep(ctx, d); err != nil {
			return status.FromContextError(err).Err()
		}
	}
	if r.Code != codes.OK {
		return status.Error(r.Code, r.Message)
	}
	if r.ClaimError != "" {
		return claimError(r.ClaimError)
	}
	return nil
}

// delay is how long the next call waits.
func (r *Rule) delay(l *loop.Loop) time.Duration {
	if r.MaxDelay <= r.Delay {
		return r.Delay
	}
	r.drawn++
	return l.Between(r.Delay, r.MaxDelay, "plugin/delay", r.Plugin+"/"+r.Method, r.drawn)
}

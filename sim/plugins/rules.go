package plugins

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
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
	// Code and Message are the answer; OK: that of the plugin.
	Code    codes.Code
	Message string
	// ClaimError, if not "", is what a DRA driver answers for each claim.
	ClaimError string
}

// claimError is a rule's answer for each claim of a call.
type claimError string

func (e claimError) Error() string { return string(e) }

// AddRules adds rules after those that there are. Of several that hold for a call the
// first acts.
func (h *Host) AddRules(rules ...Rule) {
	for i := range rules {
		r := rules[i]
		h.rules = append(h.rules, &r)
	}
}

// rule has the first rule that holds for a call act on it. The error is the call's answer.
func (h *Host) rule(ctx context.Context, plugin, method string, req proto.Message) error {
	for _, r := range h.rules {
		if r.Times == 0 || r.Plugin != plugin || r.Method != method || r.Match != "" && !strings.Contains(protojson.Format(req), r.Match) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		if r.Times > 0 {
			r.Times--
		}
		if d := r.delay(h); d > 0 {
			if err := h.l.Sleep(ctx, d); err != nil {
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
	return nil
}

// delay is how long the next call waits.
func (r *Rule) delay(h *Host) time.Duration {
	if r.MaxDelay <= r.Delay {
		return r.Delay
	}
	r.drawn++
	return h.l.Between(r.Delay, r.MaxDelay, "plugin/delay", r.Plugin+"/"+r.Method, r.drawn)
}

package podautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// recommendation is what the metrics said at a time. It is what was computed before any bound.
type recommendation struct {
	replicas int32
	at       time.Time
}

// scaleEvent is a change of the replicas, up or down. change is positive for both directions.
type scaleEvent struct {
	change int32
	at     time.Time
}

// history is what the controller remembers of one autoscaler. A restarted
// controller manager forgets it, as upstream's does, so a scale-down may come
// early after one. All of it belongs to a window of minutes and is cut when it is used.
type history struct {
	recommendations []recommendation
	ups, downs      []scaleEvent
	stop            func() // ends the watch of its metrics
	selector        string
	selects         labels.Selector // nil before the first look
}

// limited is why the replicas are not what the metrics say. Both stand in a condition.
type limited struct{ reason, message string }

var (
	// Reasons and messages are upstream's to the letter: kubectl describe shows
	// them.
	withinRange      = limited{"DesiredWithinRange", "the desired count is within the acceptable range"}
	scaleUpLimit     = limited{"ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"}
	scaleDownLimit   = limited{"ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"}
	tooMany          = limited{"TooManyReplicas", "the desired replica count is more than the maximum replica count"}
	tooFew           = limited{"TooFewReplicas", "the desired replica count is less than the minimum replica count"}
	readyForNewScale = limited{"ReadyForNewScale", "recommended size matches current size"}
	downStabilized   = limited{"ScaleDownStabilized", "recent recommendations were higher than current one, applying the highest recent recommendation"}
	upStabilized     = limited{"ScaleUpStabilized", "recent recommendations were lower than current one, applying the lowest recent recommendation"}
)

// normalize bounds what the metrics say (normalizeDesiredReplicas and
// normalizeDesiredReplicasWithBehaviors), and says so in the conditions. First
// the recommendation is steadied over a window, then its speed is bounded; each
// step says in a condition whether it changed anything. Autoscalers of autoscaling/v1, and v2
// without behavior, have fixed rules.
func (r *evaluation) normalize(current, desired, least int32) int32 {
	rules := r.hpa.Spec.Behavior
	var stable int32
	var why limited
	if rules == nil {
		stable, why = r.h.stabilizeDown(r.now, desired), downStabilized
	} else {
		stable, why = r.h.stabilize(r.now, current, desired, window(rules.ScaleUp, 0), window(rules.ScaleDown, r.c.downscaleWindow))
	}
	if stable == desired {
		why = readyForNewScale
	}
	r.condition(autoscalingv2.AbleToScale, v1.ConditionTrue, why.reason, why.message)
	var out int32
	if rules == nil {
		out, why = bound(current, stable, least, r.hpa.Spec.MaxReplicas)
	} else {
		out, why = r.h.rate(r.now, rules, current, stable, least, r.hpa.Spec.MaxReplicas)
	}
	status := v1.ConditionFalse
	if out != stable {
		status = v1.ConditionTrue
	}
	r.condition(autoscalingv2.ScalingLimited, status, why.reason, why.message)
	return out
}

// window is the rules' stabilization window, or def. Upwards the default is none: scaling up must
// not wait.
func window(rules *autoscalingv2.HPAScalingRules, def time.Duration) time.Duration {
	if rules == nil || rules.StabilizationWindowSeconds == nil {
		return def
	}
	return time.Duration(*rules.StabilizationWindowSeconds) * time.Second
}

// stabilizeDown returns the highest of the recommendations of the last 5 minutes. Scaling down
// follows the highest, so that a short dip costs no pods.
func (h *history) stabilizeDown(now time.Time, desired int32) int32 {
	return h.highest(now, desired, DownscaleStabilization)
}

// highest notes a recommendation and returns the highest of the window; older
// ones are dropped. Recommendations are noted whatever comes of them.
func (h *history) highest(now time.Time, desired int32, window time.Duration) int32 {
	out := desired
	kept := h.recommendations[:0]
	for _, r := range h.recommendations {
		if r.at.After(now.Add(-window)) {
			out = max(out, r.replicas)
			kept = append(kept, r)
		}
	}
	h.recommendations = append(kept, recommendation{desired, now})
	return out
}

// stabilize moves the current replicas no further than the recommendations of
// each direction's window agree on. Going up takes the lowest recommendation of
// the one window, going down the highest of the other: a spike in either
// direction moves nothing. Both windows share one list, which is cut to the longer of the two.
func (h *history) stabilize(now time.Time, current, desired int32, up, down time.Duration) (int32, limited) {
	least, most := desired, desired
	kept := h.recommendations[:0]
	for _, r := range h.recommendations {
		if r.at.After(now.Add(-up)) {
			least = min(least, r.replicas)
		}
		if r.at.After(now.Add(-down)) {
			most = max(most, r.replicas)
		}
		if r.at.After(now.Add(-max(up, down))) {
			kept = append(kept, r)
		}
	}
	h.recommendations = append(kept, recommendation{desired, now})
	out := min(max(current, least), most)
	if desired >= current {
		return out, upStabilized
	}
	return out, downStabilized
}

// bound is convertDesiredReplicasWithRules: at most twice the replicas, or 4. It
// is the rule of v1 autoscalers, which have no behavior of their own. A start from few replicas
// may go to 4 at once.
func bound(current, desired, least, most int32) (int32, limited) {
	allowed, why := most, tooMany
	if limit := max(2*current, 4); most > limit {
		allowed, why = limit, scaleUpLimit
	}
	switch {
	case desired < least:
		return least, tooFew
	case desired > allowed:
		return allowed, why
	}
	return desired, withinRange
}

// rate is convertDesiredReplicasWithBehaviorRate. The policies never move the
// replicas against the direction that was asked for. A current count outside of the bounds was
// dealt with before.
func (h *history) rate(now time.Time, rules *autoscalingv2.HorizontalPodAutoscalerBehavior, current, desired, least, most int32) (int32, limited) {
	switch {
	case desired > current:
		limit := max(h.limit(now, rules.ScaleUp, current, true), current)
		allowed, why := most, tooMany
		if most > limit {
			allowed, why = limit, scaleUpLimit
		}
		if desired > allowed {
			return allowed, why
		}
	case desired < current:
		limit := min(h.limit(now, rules.ScaleDown, current, false), current)
		allowed, why := least, tooFew
		if least < limit {
			allowed, why = limit, scaleDownLimit
		}
		if desired < allowed {
			return allowed, why
		}
	}
	return desired, withinRange
}

// limit is where the policies stop a change (calculateScaleUpLimitWithScalingRules,
// calculateScaleDownLimitWithBehaviors). The period's start is what the replicas were before the
// changes within it: policies bound the change over the period, not per look.
func (h *history) limit(now time.Time, rules *autoscalingv2.HPAScalingRules, current int32, up bool) int32 {
	if *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect {
		return current
	}
	furthest := *rules.SelectPolicy != autoscalingv2.MinChangePolicySelect
	// Of several policies, Max takes the one that allows the largest change, Min the smallest.
	var out int32
	for i := range rules.Policies {
		p := &rules.Policies[i]
		period := time.Duration(p.PeriodSeconds) * time.Second
		start := current - changed(h.ups, now, period) + changed(h.downs, now, period)
		var n int32
		switch {
		case p.Type == autoscalingv2.PodsScalingPolicy && up:
			n = start + p.Value
		case p.Type == autoscalingv2.PodsScalingPolicy:
			n = start - p.Value
		case up:
			n = int32(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
		default:
			n = int32(float64(start) * (1 - float64(p.Value)/100))
		}
		switch {
		case i == 0:
			out = n
		case up == furthest:
			out = max(out, n)
		default:
			out = min(out, n)
		}
	}
	return out
}

// changed adds up the changes within a period.
func changed(events []scaleEvent, now time.Time, period time.Duration) (sum int32) {
	for _, e := range events {
		if e.at.After(now.Add(-period)) {
			sum += e.change
		}
	}
	return sum
}

// scaled remembers a change for the policies. It is noted only where policies ask for it.
func (h *history) scaled(now time.Time, rules *autoscalingv2.HorizontalPodAutoscalerBehavior, was, is int32) {
	if rules == nil {
		return
	}
	if is > was {
		h.ups = noted(h.ups, rules.ScaleUp, scaleEvent{is - was, now})
	} else {
		h.downs = noted(h.downs, rules.ScaleDown, scaleEvent{was - is, now})
	}
}

// noted puts a change in the place of one that no policy of its direction reaches any more
// (storeScaleEvent). Just one of those goes: the other direction's policies, whose periods may be
// longer, still count the rest.
func noted(events []scaleEvent, rules *autoscalingv2.HPAScalingRules, e scaleEvent) []scaleEvent {
	longest := int32(0)
	for _, p := range rules.Policies {
		longest = max(longest, p.PeriodSeconds)
	}
	cutoff := e.at.Add(-time.Duration(longest) * time.Second)
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].at.Before(cutoff) {
			events[i] = e
			return events
		}
	}
	return append(events, e)
}

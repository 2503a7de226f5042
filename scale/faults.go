package scale

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drydock-sim/drydock/scenarios"
)

// Fault is what happens to some nodes in the steady phase.
type Fault struct {
	// Partition cuts the nodes off from the API; else their power is cut.
	Partition bool
	// Nodes is a node's name with * and ?, or a selector of labels: topology.kubernetes.io/zone=a.
	Nodes string
	// At is when, from the end of start-up; For is how long, 0 to the end.
	At, For time.Duration
}

// ParseFault reads "NODES@TIME", or "NODES@TIME+FOR".
func ParseFault(text string) (Fault, error) {
	nodes, when, ok := strings.Cut(text, "@")
	at, lasts, limited := strings.Cut(when, "+")
	f := Fault{Nodes: nodes}
	var err error
	if f.At, err = scenarios.ParseTime(at); !ok || nodes == "" || err != nil || f.At < 0 {
		return f, fmt.Errorf("%q is no fault such as topology.kubernetes.io/zone=a@10m+5m or node-3@1h", text)
	}
	if limited {
		if f.For, err = scenarios.ParseTime(lasts); err != nil || f.For <= 0 {
			return f, fmt.Errorf("%q: %q is no time such as 5m", text, lasts)
		}
	}
	if _, err := f.selects(&v1.Node{}); err != nil {
		return f, fmt.Errorf("%q: %w", text, err)
	}
	return f, nil
}

// selects reports whether a node is meant.
func (f *Fault) selects(n *v1.Node) (bool, error) {
	if !strings.ContainsAny(f.Nodes, "=!") {
		ok, err := path.Match(f.Nodes, n.Name)
		return ok, err
	}
	sel, err := labels.Parse(f.Nodes)
	if err != nil {
		return false, errors.Unwrap(err)
	}
	return sel.Matches(labels.Set(n.Labels)), nil
}

// runFaults runs the steady phase of a length with the faults in their order; between them nothing
// runs, so nodes can be touched.
func (r *driver) runFaults(run func(until time.Duration) (over bool, err error), length time.Duration) error {
	begin := r.cluster.Now()
	faults := slices.Clone(r.cfg.Faults)
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
	for i := range faults {
		f := &faults[i]
		if f.At >= length {
			r.warn(fmt.Sprintf("the fault of %s comes after the end", f.Nodes))
			continue
		}
		if over, err := run(begin + f.At); over || err != nil {
			return err
		}
		r.fault(f)
	}
	_, err := run(begin + length)
	return err
}

// fault begins a fault.
func (r *driver) fault(f *Fault) {
	n := 0
	for _, node := range r.cluster.Store().Nodes() {
		if ok, _ := f.selects(node); !ok {
			continue
		}
		n++
		if !f.Partition {
			r.cluster.Node(node.Name).PowerCut(f.For)
			continue
		}
		heal := r.cluster.API().Partition(node.Name)
		if f.For > 0 {
			r.after(f.For, heal)
		}
	}
	if n == 0 {
		r.warn(fmt.Sprintf("the fault of %s hit no node", f.Nodes))
	}
}

// shownPending is of how many reasons a result tells why pods are pending.
const shownPending = 5

// pendingReasons says why pods are pending at the end, the most frequent reason first.
func (r *driver) pendingReasons() []string {
	counts := map[string]int{}
	for _, p := range r.cluster.Store().Pods() {
		if p.Status.Phase == v1.PodPending {
			counts[pendingReason(p)]++
		}
	}
	var reasons []string
	for reason := range counts { //drydock:unordered sorted below
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var out []string
	for i, reason := range reasons {
		if i == shownPending {
			out = append(out, fmt.Sprintf("and for %d more reasons", len(reasons)-i))
			break
		}
		out = append(out, fmt.Sprintf("%s: %s", scenarios.Plural(counts[reason], "pod"), reason))
	}
	return out
}

// pendingReason is why a pod is pending: what the scheduler says, or what its containers wait for.
func pendingReason(p *v1.Pod) string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return strings.TrimSpace(c.Reason + ": " + c.Message)
		}
	}
	if p.Spec.NodeName == "" {
		return "nobody has scheduled it yet"
	}
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if w := list[i].State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
				return w.Reason
			}
		}
	}
	return "its node has not started it yet"
}

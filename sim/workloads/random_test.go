package workloads

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

var (
	seeds  = flag.Uint64("workloads.seeds", 25, "how many random clusters TestRandomWorkloads tries")
	first  = flag.Uint64("workloads.first", 0, "the seed of the first")
	only   = flag.String("workloads.only", "", "the numbers of the steps that are done, with commas; the others are left out")
	most   = flag.Int("workloads.most", 1, "after how many that fail it ends")
	shrink = flag.Int("workloads.shrink", 150, "how many runs may be spent on making one that fails smaller")
)

// run is a plan that is run.
type run struct {
	t    *testing.T
	plan *plan
	c    *sim.Cluster
	// dead are the nodes whose kubelet was killed and not started again.
	dead map[string]bool
	// refused is what the API did not take of the plan's workloads.
	refused []string
	// forgotten are the DaemonSets whose rollouts stand still at rest, as upstream's would; woken
	// is that they were looked at since.
	forgotten []*appsv1.DaemonSet
	woken     bool
	past      past
	faults    []string
	count     counts
}

// counts are how often what was judged, over all runs.
type counts struct {
	bindings, evictions, refusedEvictions, messages, preemptions, pods int
}

func (c *counts) add(o counts) {
	c.bindings += o.bindings
	c.evictions += o.evictions
	c.refusedEvictions += o.refusedEvictions
	c.messages += o.messages
	c.preemptions += o.preemptions
	c.pods += o.pods
}

// fail notes what is wrong.
func (r *run) fail(format string, args ...any) {
	if len(r.faults) < 12 {
		r.faults = append(r.faults, fmt.Sprintf("%8.3f ", r.c.Now().Seconds())+fmt.Sprintf(format, args...))
	}
}

// TestRandomWorkloads holds, over random clusters, that at rest there are as many pods as are
// wanted and none of a gone owner, that evictions break no budget, that no pod is where its rules
// forbid it, no node has more than it holds, and that what the scheduler says of each pod that is
// nowhere is true.
func TestRandomWorkloads(t *testing.T) {
	var total counts
	bad := 0
	for seed := *first; seed < *first+*seeds; seed++ {
		p := newPlan(seed)
		if *only != "" {
			p.steps = chosen(t, p.steps, *only)
		}
		faults, n := p.run(t)
		total.add(n)
		if len(faults) == 0 {
			continue
		}
		p.steps, faults = p.smaller(t, faults)
		t.Errorf("seed %d:\n%s\nafter:\n%s\nonce more: go test ./sim/workloads -run TestRandomWorkloads -workloads.first %d -workloads.seeds 1%s",
			seed, strings.Join(faults, "\n"), p, seed, p.numbers())
		if bad++; bad == *most {
			return
		}
	}
	t.Logf("%+v", total)
	if *seeds >= 25 && *only == "" && (total.bindings == 0 || total.evictions == 0 || total.refusedEvictions == 0 || total.messages == 0 || total.preemptions == 0) {
		t.Errorf("something was never judged: %+v", total)
	}
}

// chosen are the steps with these numbers.
func chosen(t *testing.T, steps []step, numbers string) (out []step) {
	for _, text := range strings.Split(numbers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(steps) {
			t.Fatalf("-workloads.only: %q is no step of %d", text, len(steps))
		}
		out = append(out, steps[n])
	}
	return out
}

// run runs a plan and returns what is wrong.
func (p *plan) run(t *testing.T) ([]string, counts) {
	c, err := sim.New(sim.Options{Seed: p.seed, Workers: 1, APILatencyMax: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := &run{t: t, plan: p, c: c, dead: map[string]bool{}}
	r.watch()
	for _, n := range p.nodes {
		if _, err := c.AddNode(nodeOptions(n)); err != nil {
			t.Fatal(err)
		}
	}
	until := func(at time.Duration) {
		if err := c.RunUntil(at); err != nil {
			t.Fatalf("seed %d: %v", p.seed, err)
		}
	}
	for _, s := range p.steps {
		if s.at > c.Now() {
			until(s.at)
		}
		s.do(r)
	}
	until(max(actsEnd, c.Now()) + 4*time.Minute)
	r.settle()
	until(c.Now() + rest)
	r.atRest()
	if woken := r.wake(); len(woken) > 0 {
		until(c.Now() + 5*time.Minute)
		for _, d := range apiserver.Objects[*appsv1.DaemonSet](c.Store(), apiserver.KindDaemonSet) {
			if slices.Contains(woken, d.UID) {
				r.daemonSetRests(d)
			}
		}
	}
	return r.faults, r.count
}

// begin makes what all workloads stand on.
func (r *run) begin() {
	for _, ns := range []string{"a", "b"} {
		r.create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	never := v1.PreemptNever
	for _, pc := range []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -10},
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100},
		{ObjectMeta: metav1.ObjectMeta{Name: "polite"}, Value: 1000, PreemptionPolicy: &never},
	} {
		r.create(pc)
	}
}

// smaller leaves out as many steps as it can so that a run still fails, first many at a time.
func (p *plan) smaller(t *testing.T, faults []string) ([]step, []string) {
	steps, runs := p.steps, 0
	for size := max(len(steps)/2, 1); size >= 1; size /= 2 {
		for from := 1; from < len(steps) && runs < *shrink; {
			fewer := slices.Concat(steps[:from], steps[min(from+size, len(steps)):])
			runs++
			if found, _ := (&plan{seed: p.seed, nodes: p.nodes, steps: fewer}).run(t); len(found) > 0 {
				steps, faults = fewer, found
			} else {
				from += size
			}
		}
	}
	return steps, faults
}

// String is what there is and what happens, a line each.
func (p *plan) String() string {
	var b strings.Builder
	for _, n := range p.nodes {
		fmt.Fprintf(&b, "node %s: %s, zone %s, disk %s, taints %v\n", n.Name, list(n.Capacity), n.Labels[v1.LabelTopologyZone], n.Labels["disk"], n.Taints)
	}
	for _, s := range p.steps {
		fmt.Fprintf(&b, "%8.3f %s\n", s.at.Seconds(), s.text)
	}
	return b.String()
}

// numbers is the flag that leaves out all steps but these.
func (p *plan) numbers() string {
	all := newPlan(p.seed).steps
	if len(all) == len(p.steps) {
		return ""
	}
	var out []string
	next := 0
	for i, s := range all {
		if next < len(p.steps) && s.at == p.steps[next].at && s.text == p.steps[next].text {
			out = append(out, strconv.Itoa(i))
			next++
		}
	}
	return " -workloads.only " + strings.Join(out, ",")
}

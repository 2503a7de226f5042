package drydocktest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Exploration says what Explore tries.
type Exploration struct {
	Options
	// Seeds is how many plans are drawn and tried. 0 means 50.
	Seeds int
	// Process is which one is crashed, of those that Body has given Go.
	Process string
	// Client is whose requests and watches go wrong: the name that the process gives
	// Config. Empty means Process.
	Client string
	// Resources are those whose requests and watches go wrong one at a time, such as
	// "shops" and "deployments". With none, mishaps that need one hit all.
	Resources []string
	// Within is from the beginning of Body on when mishaps begin. 0 means 5 minutes.
	Within time.Duration
	// Repair is for how long nothing goes wrong any more before Invariant is judged. 0
	// means 15 minutes.
	Repair time.Duration
	// Body starts what is tested and has a user do things. It goes on while things go
	// wrong, so what it expects must hold then, too.
	Body func(t *testing.T, c *Cluster)
	// Invariant fails the test unless all is as it should be.
	Invariant func(t *testing.T, c *Cluster)
}

func (e *Exploration) setDefaults() {
	e.Seeds = cmp.Or(e.Seeds, 50)
	e.Client = cmp.Or(e.Client, e.Process)
	e.Within = cmp.Or(e.Within, 5*time.Minute)
	e.Repair = cmp.Or(e.Repair, 15*time.Minute)
	if len(e.Resources) == 0 {
		e.Resources = []string{""}
	}
}

// Explore runs a test under many seeds, each with other things that go wrong: crashes
// between two writes, caches that are stale, answers that are lost, nodes that die. When
// it is all over, and some time has passed, the invariant must hold. The first plan that
// fails is shrunk to what is needed for it, and printed as a line that repeats it.
//
// Each run is a process of its own. Bugs that need two things at once, or one at the right
// moment, take some hundred seeds.
func Explore(t *testing.T, e Exploration) {
	t.Helper()
	e.setDefaults()
	if e.Body == nil || e.Invariant == nil || e.Process == "" {
		t.Fatal("drydocktest: Explore needs a Process, a Body and an Invariant")
	}
	if o := orderOf(t); o != nil {
		e.try(t, o.Plan)
		return
	}
	if text := os.Getenv(repeatVar); text != "" {
		plan := &Plan{}
		if err := json.Unmarshal([]byte(text), plan); err != nil {
			t.Fatalf("drydocktest: %s: %v", repeatVar, err)
		}
		e.try(t, plan)
		return
	}
	plan, tried := e.search(t)
	if plan == nil {
		t.Logf("drydocktest: %d plans tried, the invariant held after each", tried)
		return
	}
	whole := len(plan.Mishaps)
	plan, output := e.shrink(t, plan)
	line, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("drydocktest: the invariant does not hold after these mishaps (%d of %d, of the plan of seed %d):\n\t%s\n\trepeat it by\n\t%s='%s' go test -run '%s' -v .%s\n%s",
		len(plan.Mishaps), whole, plan.Seed, strings.ReplaceAll(strings.TrimPrefix(plan.String(), fmt.Sprintf("seed %d: ", plan.Seed)), "; ", "\n\t"),
		repeatVar, line, pattern(t.Name()), flagsOf(os.Args[1:]), failures(output))
}

// search tries seeds until one fails. It returns the plan of the lowest seed that did.
func (e *Exploration) search(t *testing.T) (*Plan, int) {
	var mu sync.Mutex
	failed := map[int]*Plan{}
	tried := 0
	names := &Cluster{nodeNames: e.nodes(t)}
	inParallel(e.Seeds, func(i int) bool {
		plan := e.draw(uint64(i+1), names)
		bad := e.fails(t, plan)
		mu.Lock()
		defer mu.Unlock()
		tried++
		if bad != "" {
			failed[i] = plan
		}
		return bad == ""
	})
	for i := range e.Seeds {
		if failed[i] != nil {
			return failed[i], tried
		}
	}
	return nil, tried
}

// nodes are the names of the cluster's nodes.
func (e *Exploration) nodes(t *testing.T) []string {
	s, err := e.scenario()
	if err != nil {
		t.Fatalf("drydocktest: %v", err)
	}
	return s.NodeNames()
}

// fails runs a plan in a process of its own, and returns what it printed if it failed.
func (e *Exploration) fails(t *testing.T, p *Plan) string {
	out, err := (&order{Test: t.Name(), Plan: p}).run(context.Background())
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%v\n%s", err, out)
}

// maxShrinks bounds the runs that shrinking takes.
const maxShrinks = 60

// shrink leaves out what a failure doesn't need, then shortens what is left. It returns
// what the last run that failed printed.
func (e *Exploration) shrink(t *testing.T, p *Plan) (*Plan, string) {
	output, runs := "", 0
	better := func(q *Plan) bool {
		if runs++; runs > maxShrinks {
			return false
		}
		out := e.fails(t, q)
		if out != "" {
			p, output = q, out
		}
		return out != ""
	}
	for i := 0; i < len(p.Mishaps) && len(p.Mishaps) > 1; {
		if !better(&Plan{Seed: p.Seed, Mishaps: slices.Delete(slices.Clone(p.Mishaps), i, i+1)}) {
			i++
		}
	}
	for i := range p.Mishaps {
		for p.Mishaps[i].For > time.Second {
			list := slices.Clone(p.Mishaps)
			list[i].For = (list[i].For / 2).Round(time.Millisecond)
			if !better(&Plan{Seed: p.Seed, Mishaps: list}) {
				break
			}
		}
	}
	if output == "" {
		output = e.fails(t, p)
	}
	return p, output
}

// try runs one plan.
func (e *Exploration) try(t *testing.T, p *Plan) {
	t.Helper()
	e.Seed, e.planned, e.Restart = p.Seed, true, true
	t.Logf("drydocktest: %s", p)
	Run(t, e.Options, func(t *testing.T, c *Cluster) {
		over := make(chan struct{})
		go func() {
			defer close(over)
			p.perform(t, e, c)
		}()
		e.Body(t, c)
		<-over
		c.reprieve()
		time.Sleep(e.Repair)
		e.Invariant(t, c)
	})
}

// flagsOf are the test's own flags, as they follow the package of go test.
func flagsOf(args []string) (out string) {
	for _, arg := range ownFlags(args) {
		out += " " + arg
	}
	return out
}

// failures are the lines of a test's output that say what failed, and a few around.
func failures(out string) string {
	const most = 40
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-most):], "\n\t")
}

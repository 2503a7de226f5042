package eviction

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// TestLeftAlone: a machine that tells when it may be low is not asked before.
func TestLeftAlone(t *testing.T) {
	n := newMachine(t, hard("memory.available", "100Mi"), watched)
	u := n.add(pod("a"), use{memory: mi})
	n.run(5 * time.Second)
	steps, asked := n.l.Steps(), n.summaries
	n.run(time.Hour)
	if n.l.Steps() != steps || n.summaries != asked {
		t.Errorf("%d steps and %d looks while nothing was low", n.l.Steps()-steps, n.summaries-asked)
	}
	if n.floor.Memory != 100*mi {
		t.Errorf("watches for %+v", n.floor)
	}
	u.memory = 8 * gi
	n.low()
	n.run(10 * time.Second)
	if got := n.kills(); !slices.Equal(got, []string{"3610s a"}) {
		t.Errorf("killed %q", got)
	}
}

// TestElisionIsInvisible: with and without a machine that tells, the same is
// done at the same times.
func TestElisionIsInvisible(t *testing.T) {
	for seed := range uint64(40) {
		var logs [2][]string
		for i, change := range [...][]func(*machine, *Options){nil, {watched}} {
			n := newMachine(t, Config{
				Hard: map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"},
				Soft: map[string]string{"memory.available": "500Mi"}, SoftGracePeriod: map[string]string{"memory.available": "30s"},
				MinimumReclaim: map[string]string{"memory.available": "1Gi"}, PressureTransition: time.Minute,
			}, change...)
			rnd := rand.New(rand.NewPCG(seed, 1))
			for k := range 12 {
				change := []func(*v1.Pod){emptyDir("")}
				if k%4 == 0 {
					change = append(change, storage("1Gi"))
				}
				n.add(pod(fmt.Sprintf("p%d", k), change...), use{memory: int64(rnd.IntN(400)) * mi, layer: int64(rnd.IntN(900)) * mi})
			}
			for range 60 {
				n.run(time.Duration(1+rnd.IntN(30)) * time.Second)
				n.otherMemory, n.otherDisk = int64(rnd.IntN(7000))*mi, int64(rnd.IntN(95))*gi
				for _, p := range n.pods {
					n.uses[p.Name].dir = int64(rnd.IntN(int(gi)))
				}
				n.low()
				n.say("under %v", n.m.pressure.reported)
			}
			logs[i] = n.log
		}
		if !slices.Equal(logs[0], logs[1]) {
			t.Fatalf("seed %d:\n%q\n%q", seed, logs[0], logs[1])
		}
	}
}

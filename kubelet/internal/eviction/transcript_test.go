package eviction

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/transcript"
)

// TestTranscripts runs the stories of testdata, in which a machine runs out of
// something. The commands:
//
//	node [hard=(signal,value,...)] [soft=...] [grace=...] [reclaim=...]
//	     [transition=5m] [max-grace=20] [allocatable]
//	pod NAME [priority=N] [static] [memory=1Gi] [processes=N] [layer=1Gi] [unknown]
//	use NAME [memory=1Gi] [layer=1Gi]
//	other [memory=1Gi] [disk=1Gi] [pids=N]   is used outside of pods
//	machine [images-free=1Gi] [containers-free=1Gi] [memory-fills] [cleanup=2s]
//	        [frozen=1s] [fails=statistics|layout|kill|deletions]
//	run 10s
//	evictions                                how many by signal
//
// A run shows what happened in it, with the seconds since the start, and the
// conditions that are reported at its end.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T) func(c *transcript.Command) string {
		var n *machine
		return func(c *transcript.Command) string {
			switch c.Name {
			case "node":
				n = newMachine(t, Config{
					Hard: c.Pairs("hard"), Soft: c.Pairs("soft"), SoftGracePeriod: c.Pairs("grace"), MinimumReclaim: c.Pairs("reclaim"),
					PressureTransition: c.Duration("transition", 0), MaxPodGracePeriod: int64(c.Int("max-grace", 0)), Allocatable: c.Has("allocatable"),
				})
			case "pod":
				p := pod(c.Word(0))
				if c.Has("priority") {
					priority(int32(c.Int("priority", 0)))(p)
				}
				if c.Has("static") {
					p.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
				}
				n.add(p, use{memory: c.Quantity("memory", 0), processes: c.Quantity("processes", 0), layer: c.Quantity("layer", 0), unknown: c.Has("unknown")})
			case "use":
				u := n.uses[c.Word(0)]
				u.memory, u.layer = c.Quantity("memory", u.memory), c.Quantity("layer", u.layer)
			case "other":
				n.otherMemory, n.otherDisk, n.otherPids = c.Quantity("memory", n.otherMemory), c.Quantity("disk", n.otherDisk), c.Quantity("pids", n.otherPids)
			case "machine":
				n.behave(c)
			case "run":
				n.run(c.For())
				return n.told()
			case "evictions":
				return fmt.Sprintln(n.m.Evictions())
			default:
				c.Fatalf("no such command")
			}
			return ""
		}
	})
}

// behave sets how the machine behaves from now on.
func (n *machine) behave(c *transcript.Command) {
	images, containers, fills := c.Quantity("images-free", 0), c.Quantity("containers-free", 0), c.Has("memory-fills")
	n.freeContainers = func() { n.otherDisk -= containers }
	n.freeImages = func() {
		n.otherDisk -= images
		if fills {
			n.otherMemory = n.memory
		}
	}
	n.cleanup, n.frozen = c.Duration("cleanup", 0), time.Time{}
	if c.Has("frozen") {
		n.frozen = start.Add(c.Duration("frozen", 0))
	}
	n.statsError, n.fsErrors, n.fails, n.containersError, n.imagesError = nil, nil, nil, nil, nil
	switch c.Text("fails", "") {
	case "statistics":
		n.statsError = errors.New("no answer")
	case "layout":
		n.fsErrors = errors.New("no image filesystem found")
	case "deletions":
		n.containersError, n.imagesError = errors.New("in use"), errors.New("in use")
	case "kill":
		n.fails = errors.New("timeout waiting to kill pod")
	}
}

// told is what happened since the last time, a line each, and the conditions.
func (n *machine) told() string {
	var out strings.Builder
	for _, line := range n.log {
		fmt.Fprintln(&out, line)
	}
	n.log = nil
	for _, c := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
		if n.m.Under(c) {
			fmt.Fprintf(&out, "%.0fs under %s\n", n.l.Since(start).Seconds(), c)
		}
	}
	return out.String()
}

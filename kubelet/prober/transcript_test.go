package prober

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/probe/exec"
	"github.com/drydock-sim/drydock/kubelet/internal/transcript"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

// TestTranscripts runs the stories of testdata, of the prober of a pod with one
// container. The commands:
//
//	pod [policy=Never]                       a new prober and pod
//	probe liveness|readiness|startup http|exec [period=N] [success=N] [failure=N]
//	container running ID [starting], container exited ID CODE
//	add, stop, remove                        the pod; stop: liveness and startup
//	trigger                                  readiness
//	cancel                                   commands, now and later
//	http CODE                                what servers answer
//	exec succeeds|hangs|fails|takes=3.5s     what commands do; once: the next one alone
//	run 10s
//	workers, results ID                      what is left
//
// A run shows the probes and events in it, by the time since the start, then the
// results that have changed.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T) func(c *transcript.Command) string {
		var r *rig
		var now time.Duration
		return func(c *transcript.Command) string {
			switch c.Name {
			case "pod":
				r, now = newRig(t), 0
				r.pod.Spec.RestartPolicy = v1.RestartPolicy(c.Text("policy", "Always"))
				r.pod.Spec.Containers = []v1.Container{{Name: "c"}}
			case "probe":
				r.probe(c)
			case "container":
				if c.Word(0) == "running" {
					r.running(c.Word(1), !c.Has("starting"))
				} else {
					r.exited(c.Word(1), 0)
				}
			case "add":
				r.m.AddPod(r.pod)
			case "stop":
				r.m.StopLivenessAndStartup(r.pod)
			case "remove":
				r.m.RemovePod(r.pod)
			case "trigger":
				r.m.TriggerReadiness(uid, "c")
			case "cancel":
				r.m.Cancel(uid)
			case "http":
				fmt.Sscan(c.Word(0), &r.code)
			case "exec":
				r.execs(c)
			case "run":
				now += c.For()
				r.to(now)
				return r.told()
			case "workers":
				return fmt.Sprintln(r.m.Workers(), "workers")
			case "results":
				return r.results(c.Word(0))
			default:
				c.Fatalf("no such command")
			}
			return ""
		}
	})
}

func (r *rig) probe(c *transcript.Command) {
	p := probeSpec(httpGet())
	if c.Word(1) == "exec" {
		p = probeSpec(command())
	}
	p.PeriodSeconds = int32(c.Int("period", 10))
	p.SuccessThreshold, p.FailureThreshold = int32(c.Int("success", 1)), int32(c.Int("failure", 3))
	spec := &r.pod.Spec.Containers[0]
	*map[string]**v1.Probe{"liveness": &spec.LivenessProbe, "readiness": &spec.ReadinessProbe, "startup": &spec.StartupProbe}[c.Word(0)] = p
}

func (r *rig) execs(c *transcript.Command) {
	takes := c.Duration("takes", 0)
	switch what := c.Word(0); what {
	case "hangs":
		r.exec = func(ctx context.Context, timeout time.Duration) ([]byte, error) {
			if err := r.l.Sleep(ctx, timeout); err != nil {
				return nil, err
			}
			return nil, &exec.TimeoutError{Err: errors.New(`"check"`), Timeout: timeout}
		}
	case "fails":
		r.exec = func(context.Context, time.Duration) ([]byte, error) { return nil, errors.New("boom") }
	default:
		r.exec = func(ctx context.Context, _ time.Duration) ([]byte, error) {
			d := takes
			if c.Has("once") {
				takes = 0
			}
			return nil, rpcCanceled(r.l.Sleep(ctx, d))
		}
	}
}

// results are those that are known of a container.
func (r *rig) results(id string) string {
	out := "results of " + id + ":"
	for i, m := range []*results.Manager{r.m.Liveness, r.m.Readiness, r.m.Startup} {
		if result, ok := m.Get(id); ok {
			out += fmt.Sprintf(" %s %v", [...]string{"liveness", "readiness", "startup"}[i], result)
		}
	}
	return out + "\n"
}

// told is what happened since the last time, a line each.
func (r *rig) told() string {
	var out strings.Builder
	// Both lists are by time; a probe comes before the event that it causes.
	lines := append(slices.Clone(r.runs), r.events...)
	at := func(line string) time.Duration {
		d, _ := time.ParseDuration(strings.Fields(line)[0])
		return d
	}
	slices.SortStableFunc(lines, func(a, b string) int { return int(at(a) - at(b)) })
	for _, line := range lines {
		fmt.Fprintln(&out, line)
	}
	r.runs, r.events = nil, nil
	for i, m := range []*results.Manager{r.m.Liveness, r.m.Readiness, r.m.Startup} {
		for {
			u, ok := m.Updates().TryGet()
			if !ok {
				break
			}
			fmt.Fprintf(&out, "%s of %s: %v\n", [...]string{"liveness", "readiness", "startup"}[i], u.ContainerID, u.Result)
		}
	}
	return out.String()
}

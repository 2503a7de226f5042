package pleg

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/transcript"
)

// TestTranscripts runs the stories of testdata, of a PLEG that asks a runtime
// which says nothing of its changes. Pods have one container each. The commands:
//
//	runtime [latency=200ms]                  a new one
//	pod UID created|running|exited|unknown|gone
//	start
//	fail list|inspect, heal
//	no-addresses                             sandboxes have no IPs from now on
//	relist UID, reinspect UID                on demand
//	wait UID                                 for a status from now on
//	cached UID
//	health
//	run 10s
//
// A run shows the calls and those served in it, with the time since the start,
// then the events; run 10s hidden shows no calls.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T) func(c *transcript.Command) string {
		var r *rig
		return func(c *transcript.Command) string {
			if c.Name == "runtime" {
				r = newRig(t, false)
				r.f.latency = c.Duration("latency", 0)
				return ""
			}
			return r.do(t, c)
		}
	})
}

func (r *rig) do(t *testing.T, c *transcript.Command) string {
	switch c.Name {
	case "pod":
		r.change(types.UID(c.Word(0)), c.Word(1))
	case "start":
		r.p.Start(r.g)
	case "fail":
		*map[string]*error{"list": &r.f.listErr, "inspect": &r.f.inspectErr}[c.Word(0)] = errors.New("boom")
	case "heal":
		r.f.listErr, r.f.inspectErr = nil, nil
	case "no-addresses":
		r.f.noIP = true
	case "relist":
		r.p.RequestRelist(types.UID(c.Word(0)))
	case "reinspect":
		r.p.RequestReinspect(types.UID(c.Word(0)))
	case "wait":
		uid := types.UID(c.Word(0))
		r.c.Notify(uid, r.l.Now(), func(*kubecontainer.PodStatus, error) { r.f.note("served %s", uid) })
	case "cached":
		s, err := r.c.Get(types.UID(c.Word(0)))
		return fmt.Sprintf("cached: %d sandboxes, IPs %v, error %v, of %d pods\n", len(s.SandboxStatuses), s.IPs, err, r.c.Len())
	case "health":
		if err := r.p.Healthy(); err != nil {
			return err.Error() + "\n"
		}
		return fmt.Sprintf("healthy, last relist at %v\n", r.p.LastRelist().Sub(loop.Epoch()).Truncate(time.Millisecond))
	case "run":
		r.run(t, r.l.Since(loop.Epoch()).Round(time.Millisecond)+c.For())
		out := strings.Join(r.f.calls, "\n")
		r.f.calls = nil
		if c.Has("hidden") {
			out = ""
		}
		return strings.TrimPrefix(out+"\n", "\n") + strings.TrimPrefix(strings.ReplaceAll(r.events(), " ", "\n")+"\n", "\n")
	default:
		c.Fatalf("no such command")
	}
	return ""
}

func (r *rig) change(uid types.UID, state string) {
	if state == "gone" {
		delete(r.f.pods, uid)
		return
	}
	r.f.set(uid, map[string]kubecontainer.State{
		"created": kubecontainer.StateCreated, "running": kubecontainer.StateRunning, "exited": kubecontainer.StateExited, "unknown": kubecontainer.StateUnknown,
	}[state])
}

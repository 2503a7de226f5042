package action

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
)

// Exec runs a command in a container, as kubectl exec does.
//
// In the timeline: runs a command in a container, as kubectl exec does; what it says and how it ends is in the timeline.
type Exec struct {
	OnContainer
	// The command and its arguments.
	Command []string `json:"command" required:""`
	// After how long it is killed. Never unless said.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Check wants a command.
func (a *Exec) Check(at Place) {
	a.OnContainer.Check(at)
	if len(a.Command) == 0 {
		at.Field("command").Errorf("says nothing to run")
	}
	if a.Timeout < 0 {
		at.Field("timeout").Errorf("%v is negative", a.Timeout)
	}
}

// maxOutput is how much of a command's output a timeline has, in bytes.
const maxOutput = 200

// Do begins it; a command that can't be run, rather than one that fails, fails the
// scenario.
func (a *Exec) Do(s Stage) error {
	return a.inContainer(s, "exec", func(ctx context.Context, n *sim.Node, rt internalapi.RuntimeService, id string) error {
		stdout, stderr, err := rt.ExecSync(ctx, id, a.Command, a.Timeout)
		exit, ended := sim.ExitCode(err)
		if !ended {
			return err
		}
		out := strings.TrimRight(string(stdout)+string(stderr), "\n")
		if len(out) > maxOutput {
			out = out[:maxOutput] + "..."
		}
		n.Note("pod "+a.Pod+"/"+a.Container, "exec", trace.Str("command", strings.Join(a.Command, " ")), trace.Str("exit", strconv.Itoa(exit)), trace.Str("output", out))
		return nil
	})
}

// inContainer does something with the runtime of the node that a container runs on, in a
// task of that node.
func (o *OnContainer) inContainer(s Stage, verb string, do func(ctx context.Context, n *sim.Node, rt internalapi.RuntimeService, id string) error) error {
	nodes := o.Node
	host := s.Host()
	if host == nil && len(nodes) == 0 {
		ns, name, _ := strings.Cut(o.Pod, "/")
		p := s.Cluster().Store().Pod(ns, name)
		if p == nil {
			return fmt.Errorf("%s: there is no pod %s", verb, o.Pod)
		}
		nodes = []string{p.Spec.NodeName}
	}
	if host != nil {
		nodes = s.Nodes()
	}
	for _, name := range nodes.Select(s.Nodes()) {
		n := s.Cluster().Node(name)
		n.Loop().Root().Go(verb, func(ctx context.Context) {
			rt := internalapi.RuntimeService(nil)
			if host != nil {
				rt = host.RuntimeService
			} else {
				rt = n.Runtime().Client(n.Loop().Root())
			}
			id, err := findContainer(ctx, rt, o.Pod, o.Container)
			if err == nil {
				err = do(ctx, n, rt, id)
			}
			if err != nil {
				s.Fail("", fmt.Errorf("%s in %s/%s: %w", verb, o.Pod, o.Container, err))
			}
		})
	}
	return nil
}

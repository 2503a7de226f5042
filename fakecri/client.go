package fakecri

import (
	"context"

	cri "k8s.io/cri-api/pkg/apis"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Client is one caller's connection to the runtime. It implements
// RuntimeService and ImageManagerService of k8s.io/cri-api/pkg/apis; its
// methods are called from tasks. Errors are gRPC status errors.
type Client struct {
	foresight
	lister *records.Lister // nil until it lists changes
}

var (
	_ cri.RuntimeService      = (*Client)(nil)
	_ cri.ImageManagerService = (*Client)(nil)
)

// Client returns a connection for the tasks of g; once g is dead it refuses
// every call.
func (r *Runtime) Client(g *loop.Group) *Client {
	return &Client{foresight: foresight{r, calls.Caller{Daemon: r.calls, Group: g}}}
}

// Close does nothing.
func (c *Client) Close(context.Context) error { return nil }

// Prompt returns the same connection whose calls that only read are answered
// without giving way where [Client.Answers] allows it, so that they can be made
// in a callback of the loop.
func (c *Client) Prompt() *Client {
	return &Client{foresight: foresight{c.r, calls.Caller{Daemon: c.r.calls, Group: c.by.Group, Quick: true}}}
}

// Answers reports whether a call of that method, made now with a client of
// Prompt, would be answered at once: it only reads, the daemon is up, no fault
// touches the method and it has no latency. It is no call and takes no time.
func (c *Client) Answers(method string) bool {
	if !c.by.Quick {
		return false
	}
	m, ok := promptMethods[method]
	return ok && c.r.calls.Prompt(m)
}

// promptMethods are the methods whose answers are made in one step.
var promptMethods = map[string]calls.Method{
	"Version":          calls.Version,
	"Status":           calls.Status,
	"RuntimeConfig":    calls.RuntimeConfig,
	"PodSandboxStatus": calls.PodSandboxStatus,
	"ListPodSandbox":   calls.ListPodSandbox,
	"ContainerStatus":  calls.ContainerStatus,
	"ListContainers":   calls.ListContainers,
	"ListImages":       calls.ListImages,
	"ImageStatus":      calls.ImageStatus,
	"ImageFsInfo":      calls.ImageFsInfo,
}

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
	r      *Runtime
	by     calls.Caller
	lister *records.Lister // nil until it lists changes
}

var (
	_ cri.RuntimeService      = (*Client)(nil)
	_ cri.ImageManagerService = (*Client)(nil)
)

// Client returns a connection for the tasks of g; once g is dead it refuses
// every call.
func (r *Runtime) Client(g *loop.Group) *Client {
	return &Client{r: r, by: calls.Caller{Daemon: r.calls, Group: g}}
}

// Generation grows with every change that a listing of sandboxes or containers
// could show. While listings fail or take time (the daemon is down, a fault
// touches them, they have a latency) no two answers are equal. It is no call
// and takes no time.
func (c *Client) Generation() uint64 { return c.r.generation() }

// OnChange has fn called, on the loop, whenever Generation or StatusGeneration
// has changed, or begins to change with each call, until the client's group
// dies. fn must not wait.
func (c *Client) OnChange(fn func()) { c.r.recs.Watchers.Add(c.by.Group, func(uint64) { fn() }) }

// StatusGeneration reports whether Version and Status, called now, would be
// answered at once, as they were when it last returned the same number. 0: that
// cannot be told, since the daemon is down, a fault touches them, they take time
// or calls that only read are traced. It is no call and takes no time.
func (c *Client) StatusGeneration() uint64 {
	if !c.r.calls.Prompt(calls.Version) || !c.r.calls.Prompt(calls.Status) {
		return 0
	}
	return c.r.recs.Gen
}

// ImageListGeneration is StatusGeneration for ListImages.
func (c *Client) ImageListGeneration() uint64 {
	if !c.r.calls.Prompt(calls.ListImages) {
		return 0
	}
	return c.r.images.Gen
}

// ImageGeneration grows with every change of the images that are present.
func (c *Client) ImageGeneration() uint64 { return c.r.images.Gen }

// Close does nothing.
func (c *Client) Close(context.Context) error { return nil }

// Prompt returns the same connection whose calls that only read are answered
// without giving way where [Client.Answers] allows it, so that they can be made
// in a callback of the loop.
func (c *Client) Prompt() *Client {
	return &Client{r: c.r, by: calls.Caller{Daemon: c.r.calls, Group: c.by.Group, Quick: true}}
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

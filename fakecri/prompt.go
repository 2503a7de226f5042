package fakecri

import "github.com/drydock-sim/drydock/fakecri/internal/calls"

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

package up

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/sim/facade"
)

// Client controls a cluster from outside of its process.
type Client struct {
	http *http.Client
	base string
}

// NewClient returns a client of the cluster that a configuration reaches.
func NewClient(config *rest.Config) (*Client, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	return &Client{c, strings.TrimSuffix(base.String(), "/") + facade.ControlPath}, nil
}

// Status returns where the cluster stands.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return c.send(ctx, http.MethodGet, "status", "")
}

// Pause has the cluster's time stand still.
func (c *Client) Pause(ctx context.Context) (*Status, error) {
	return c.send(ctx, http.MethodPost, "pause", "")
}

// Resume has the time go on.
func (c *Client) Resume(ctx context.Context) (*Status, error) {
	return c.send(ctx, http.MethodPost, "resume", "")
}

// Step pauses and has the time go on by d.
func (c *Client) Step(ctx context.Context, d time.Duration) (*Status, error) {
	return c.send(ctx, http.MethodPost, "step?for="+url.QueryEscape(d.String()), "")
}

// Forget has the API forget all versions but the present ones; see Cluster.Forget.
func (c *Client) Forget(ctx context.Context) (*Status, error) {
	return c.send(ctx, http.MethodPost, "forget", "")
}

// Compact has the API forget old versions; see Cluster.Compact.
func (c *Client) Compact(ctx context.Context) (*Status, error) {
	return c.send(ctx, http.MethodPost, "compact", "")
}

// Do does what a timeline can do; see Cluster.Do.
func (c *Client) Do(ctx context.Context, action string) (*Status, error) {
	return c.send(ctx, http.MethodPost, "do", action)
}

// send sends a request for control; the answer is the cluster's status.
func (c *Client) send(ctx context.Context, method, what, body string) (*Status, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+what, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxControlBytes))
	switch {
	case err != nil:
		return nil, fmt.Errorf("up: %w", err)
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("up: %s is not a simulated cluster", c.base)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s", strings.TrimSpace(string(data)))
	}
	var s Status
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("up: the answer of %s: %w", c.base, err)
	}
	return &s, nil
}

//go:build linux

package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
)

// fetcher gets manifests by net/http, off the loop. It is only there with --manifest-url.
type fetcher struct{ client *http.Client }

// fetchLimit bounds a request on its own, should its context not.
const fetchLimit = 30 * time.Second

// newFetcher returns what fetches --manifest-url.
func newFetcher() config.Fetcher { return fetcher{&http.Client{Timeout: fetchLimit}} }

// Fetch implements config.Fetcher. limit is how much of a body is read; a longer one is cut, and
// the caller sees that it fills the limit.
func (f fetcher) Fetch(ctx context.Context, url string, header map[string][]string, limit int64) (*config.Response, error) {
	return loop.Await(ctx, func(ctx context.Context) (*config.Response, error) {
		return f.get(ctx, url, header, limit)
	})
}

// get is one request, on a goroutine of its own. A header Host sets the
// request's host, which net/http takes from nowhere else.
func (f fetcher) get(ctx context.Context, url string, header map[string][]string, limit int64) (*config.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	// Headers may repeat.
	for name, values := range header {
		for _, v := range values {
			req.Header.Add(name, v)
		}
		if http.CanonicalHeaderKey(name) == "Host" && len(values) > 0 {
			req.Host = values[0]
		}
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return &config.Response{Code: resp.StatusCode, Status: resp.Status, Body: body}, nil
}

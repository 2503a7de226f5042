package drydocktest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/facade"
)

// transport is a client's way to the cluster: an http.RoundTripper without sockets, which
// a bubble can't have.
type transport struct {
	who  string
	life *life // of the process that it belongs to; nil: the test itself
	seed uint64
	next facade.Transport

	mu      sync.Mutex
	watches map[string]uint64 // how many were begun, by path
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil && req.Body != http.NoBody {
		var err error
		body, err = io.ReadAll(req.Body)
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
	}
	u, watches := *req.URL, facade.IsWatch(req)
	key := req.Method + " " + u.RequestURI()
	if watches {
		// Clients draw how long a watch lasts, and those that race draw each other's.
		q := u.Query()
		q.Del("timeoutSeconds")
		u.RawQuery = q.Encode()
		key = req.Method + " " + u.RequestURI()
		q.Set("timeoutSeconds", strconv.Itoa(t.watchSeconds(key)))
		u.RawQuery = q.Encode()
	}
	c := &call{who: t.who, key: key + " " + string(body)}
	ctx := context.WithValue(req.Context(), callKey{}, c)
	if t.life != nil {
		if t.life.dead.Load() {
			return nil, errKilled
		}
		if isWrite(req) {
			if killed, sent := t.life.doomed(); killed && !sent {
				return nil, errKilled
			}
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		stop := context.AfterFunc(t.life.cut, cancel)
		if watches {
			context.AfterFunc(ctx, func() { stop() })
		} else {
			defer cancel()
			defer stop()
		}
	}
	if watches {
		ctx, c.stream = context.WithCancel(ctx)
	}
	out := req.Clone(ctx)
	out.URL, out.Body = &u, io.NopCloser(bytes.NewReader(body))
	out.Header.Set("Authorization", "Bearer "+t.who)
	resp, err := t.next.RoundTrip(out)
	switch {
	case t.life != nil && t.life.dead.Load():
		return nil, errKilled
	case c.lost != nil:
		return nil, c.lost
	case err != nil:
		return nil, err
	}
	resp.Request = req
	return resp, nil
}

// CancelRequest is for client-go, which says so where a transport doesn't have it. What
// ends a request is its context.
func (t *transport) CancelRequest(*http.Request) {}

// isWrite reports whether a request changes what a user cares for: leases and events are
// written all the time.
func isWrite(req *http.Request) bool {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return false
	}
	for part := range strings.SplitSeq(req.URL.Path, "/") {
		if part == "leases" || part == "events" || strings.HasSuffix(part, "reviews") {
			return false
		}
	}
	return true
}

// The server ends a watch after 5 to 10 minutes, as long as client-go's reflectors ask
// for.
const (
	watchMin = 5 * time.Minute
	watchMax = 10 * time.Minute
)

// watchSeconds draws how long a watch lasts.
func (t *transport) watchSeconds(path string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watches[path]++
	draw := loop.Hash(t.seed, []string{"client/watch", t.who, path}, t.watches[path])
	return int(watchMin/time.Second) + int(draw%uint64((watchMax-watchMin)/time.Second))
}

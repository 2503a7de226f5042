package parity

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// stream is a watch that is being read.
type stream struct {
	cancel func()
	resp   *http.Response
	events chan map[string]any // closed at the end of the watch
}

// open begins a watch. Its answer has a body only if it was refused.
func (r *replay) open(ctx context.Context, q *Request) (*stream, Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := r.send(ctx, q)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	s := &stream{cancel: cancel, resp: resp, events: make(chan map[string]any)}
	if resp.StatusCode != http.StatusOK {
		close(s.events)
		a, err := answerOf(resp)
		return s, a, err
	}
	go s.read(ctx)
	a, err := answerOf(&http.Response{StatusCode: resp.StatusCode, Header: resp.Header, Body: http.NoBody})
	return s, a, err
}

func (s *stream) read(ctx context.Context) {
	defer close(s.events)
	d := json.NewDecoder(s.resp.Body)
	d.UseNumber()
	for {
		var e map[string]any
		if d.Decode(&e) != nil {
			return
		}
		select {
		case s.events <- e:
		case <-ctx.Done():
			return
		}
	}
}

func (s *stream) stop() {
	s.cancel()
	_ = s.resp.Body.Close()
}

// collect reads events as a request says.
func (s *stream) collect(ctx context.Context, q *Request) Answer {
	timeout, settle := 5*time.Second, 250*time.Millisecond
	if q.Timeout != nil {
		timeout = seconds(*q.Timeout)
	}
	if q.Settle != nil {
		settle = seconds(*q.Settle)
	}
	events, closed := []any{}, false
	end := time.Now().Add(timeout)
	for !closed {
		left := time.Until(end)
		if len(events) >= q.Events {
			left = min(left, settle)
		}
		e, open, ok := s.next(ctx, left)
		if !ok {
			break
		}
		closed = !open
		if open && (q.Bookmarks || counts(e)) {
			events = append(events, e)
		}
	}
	return Answer{"events": events, "closed": closed}
}

// next returns the next event; open: the watch has not ended; ok: it came in time.
func (s *stream) next(ctx context.Context, left time.Duration) (e map[string]any, open, ok bool) {
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case e, open = <-s.events:
		return e, open, true
	case <-t.C:
	case <-ctx.Done():
	}
	return nil, false, false
}

// counts reports whether an event is one that doesn't come when the server likes: no bookmark, but
// for the one that ends the initial events.
func counts(e map[string]any) bool {
	if e["type"] != "BOOKMARK" {
		return true
	}
	b, err := json.Marshal(e)
	return err == nil && strings.Contains(string(b), "k8s.io/initial-events-end")
}

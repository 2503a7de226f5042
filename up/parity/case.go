package parity

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Case is a recording: what was sent to an API, in order, and what it answered.
type Case struct {
	Name, Theme string
	// Namespace is the one that the case makes and works in.
	Namespace string
	Requests  []Request
	Responses []Answer
}

// Request is one step of a case. Method and Path are those of a request that is sent; a step
// without is of another kind: Collect, Compact or Kubectl.
type Request struct {
	Method, Path string
	// Headers are sent besides what Server sends; null leaves one out.
	Headers map[string]*string
	// Body is sent as JSON, Text as it stands; a request has one of them at most.
	Body json.RawMessage
	Text *string
	// Auth is "none" for a request without a token and "bad" for one with a wrong one.
	Auth string
	// ID names the answer, so that ${ID:a.b.0} in a later request stands for a field of it.
	ID string
	// Wait is how many seconds pass before the request.
	Wait  float64
	Retry *Retry
	// Keep says what is compared of the answer; see the function keep.
	Keep string
	// Open begins a watch of this name. Collect reads from one until there are so many Events, and
	// for Settle seconds beyond, or until Timeout seconds have passed; nil: 0.25 and 5.
	Open, Collect   string
	Events          int
	Timeout, Settle *float64
	Bookmarks       bool
	// Compact has the server forget all versions but the present one.
	Compact any
	// Kubectl are arguments of kubectl. Such cases are not replayed.
	Kubectl []string
}

// Retry has a request repeated for up to Timeout seconds (0: 15) until the answer has this Code,
// or this Field of its body equals Equals.
type Retry struct {
	Code    *int
	Field   string
	Equals  any
	Timeout float64
}

// Answer is what came back, as JSON has it, numbers as json.Number: of a request code, headers, and
// body, text or binary; of a watch that was read events and closed.
type Answer = map[string]any

// Is reports whether a file is a recording of an API: one with requests.
func Is(file []byte) bool {
	var c struct{ Requests []json.RawMessage }
	return json.Unmarshal(file, &c) == nil && c.Requests != nil
}

// Parse reads a recording.
func Parse(file []byte) (*Case, error) {
	d := json.NewDecoder(bytes.NewReader(file))
	d.UseNumber()
	c := &Case{}
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("recording of an API: %w", err)
	}
	if c.Name == "" || len(c.Requests) == 0 {
		return nil, fmt.Errorf("recording %q: it has no name, or no requests", c.Name)
	}
	if len(c.Responses) != len(c.Requests) {
		return nil, fmt.Errorf("recording %s: %d requests, and %d responses", c.Name, len(c.Requests), len(c.Responses))
	}
	return c, nil
}

// Kubectl reports whether the case runs kubectl, which Replay doesn't.
func (c *Case) Kubectl() bool {
	for i := range c.Requests {
		if c.Requests[i].Kubectl != nil {
			return true
		}
	}
	return false
}

// String is what the step does, on a line.
func (r *Request) String() string {
	switch {
	case r.Collect != "":
		return "events of watch " + r.Collect
	case r.Compact != nil:
		return "compaction"
	}
	return r.Method + " " + r.Path
}

package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Server is the API that is held against recordings. It must be as the recorded one: without
// controllers, and without what another replay has left.
type Server struct {
	URL    string // without a path
	Token  string // of an administrator
	Client *http.Client
	// Compact has it forget all versions but the present one.
	Compact func() error
}

// Seen is what came back of each request, and when it was sent and answered.
type Seen struct {
	Answers    []Answer
	Sent, Done []time.Time
}

// again is how long a request that is to be repeated waits.
const again = 100 * time.Millisecond

// Replay sends a case's requests. What can't be sent or read is an answer with an error in it.
func Replay(ctx context.Context, s Server, c *Case) *Seen {
	r := &replay{Server: s, named: map[string]Answer{}, watches: map[string]*stream{}}
	defer func() {
		for _, w := range r.watches {
			w.stop()
		}
	}()
	seen := &Seen{}
	for i := range c.Requests {
		q := r.filled(&c.Requests[i])
		pause(ctx, seconds(q.Wait))
		sent := time.Now()
		a, err := r.step(ctx, q, &sent)
		if err != nil {
			a = Answer{"error": err.Error()}
		}
		if q.ID != "" {
			r.named[q.ID] = a
		}
		seen.Answers, seen.Sent, seen.Done = append(seen.Answers, a), append(seen.Sent, sent), append(seen.Done, time.Now())
	}
	return seen
}

// replay is a case under way.
type replay struct {
	Server
	named   map[string]Answer
	watches map[string]*stream
}

func (r *replay) step(ctx context.Context, q *Request, sent *time.Time) (Answer, error) {
	switch {
	case q.Kubectl != nil:
		return nil, errors.New("kubectl is not run")
	case q.Compact != nil:
		if err := r.Compact(); err != nil {
			return nil, fmt.Errorf("compact: %w", err)
		}
		return Answer{"compacted": true}, nil
	case q.Collect != "":
		w := r.watches[q.Collect]
		if w == nil {
			return nil, fmt.Errorf("there is no watch %q", q.Collect)
		}
		return w.collect(ctx, q), nil
	case q.Open != "":
		w, first, err := r.open(ctx, q)
		if err != nil {
			return nil, err
		}
		r.watches[q.Open] = w
		return first, nil
	}
	return r.repeat(ctx, q, sent)
}

// repeat sends a request, again and again if it says so.
func (r *replay) repeat(ctx context.Context, q *Request, sent *time.Time) (Answer, error) {
	var until time.Time
	if q.Retry != nil {
		limit := q.Retry.Timeout
		if limit == 0 {
			limit = 15
		}
		until = sent.Add(seconds(limit))
	}
	for {
		a, err := r.do(ctx, q)
		if err != nil || q.Retry == nil || q.Retry.met(a) || time.Now().After(until) {
			return a, err
		}
		pause(ctx, again)
		*sent = time.Now()
	}
}

// met reports whether an answer is what was waited for.
func (t *Retry) met(a Answer) bool {
	if t.Field != "" {
		got, ok := dig(a["body"], t.Field)
		return ok && reflect.DeepEqual(got, t.Equals)
	}
	return t.Code != nil && a["code"] == json.Number(strconv.Itoa(*t.Code))
}

// do sends one request and reads the answer.
func (r *replay) do(ctx context.Context, q *Request) (Answer, error) {
	resp, err := r.send(ctx, q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return answerOf(resp)
}

func (r *replay) send(ctx context.Context, q *Request) (*http.Response, error) {
	var body io.Reader
	switch {
	case q.Body != nil:
		body = bytes.NewReader(q.Body)
	case q.Text != nil:
		body = strings.NewReader(*q.Text)
	}
	req, err := http.NewRequestWithContext(ctx, q.Method, r.URL+escape(q.Path), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "replay/1.0")
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	switch q.Auth {
	case "none":
	case "bad":
		req.Header.Set("Authorization", "Bearer not-a-token")
	default:
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	for name, value := range q.Headers {
		if value == nil {
			req.Header.Del(name)
			continue
		}
		req.Header.Set(name, *value)
	}
	return r.Client.Do(req)
}

// escape writes what may not stand in a path, or in a query, as it has to be sent.
func escape(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}#", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// headers are those that are compared.
var headers = []string{"Content-Type", "Retry-After", "Allow"}

// answerOf reads an answer into the recordings' form.
func answerOf(resp *http.Response) (Answer, error) {
	a := Answer{"code": json.Number(strconv.Itoa(resp.StatusCode))}
	kept := map[string]any{}
	for _, name := range headers {
		if v := resp.Header.Get(name); v != "" {
			kept[name] = v
		}
	}
	if warnings := resp.Header.Values("Warning"); warnings != nil {
		list := make([]any, len(warnings))
		for i, w := range warnings {
			list[i] = w
		}
		kept["Warning"] = list
	}
	if len(kept) > 0 {
		a["headers"] = kept
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch {
	case len(data) == 0:
	case kind == "application/json" && decode(data, a, "body") == nil:
	case bytes.HasPrefix(data, []byte("k8s\x00")):
		a["binary"] = `k8s\x00`
	case utf8.Valid(data):
		a["text"] = string(data)
	default:
		a["binary"] = "other"
	}
	return a, nil
}

// decode puts JSON into a field of an answer.
func decode(data []byte, a Answer, field string) error {
	v, err := decoded(data)
	if err == nil {
		a[field] = v
	}
	return err
}

// decoded reads JSON with its numbers as they stand.
func decoded(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return v, d.Decode(&v)
}

var reference = regexp.MustCompile(`\$\{(\w+):([^}]*)\}`)

// filled returns a request with the references to earlier answers replaced.
func (r *replay) filled(q *Request) *Request {
	fill := func(s string, quote bool) string {
		return reference.ReplaceAllStringFunc(s, func(ref string) string {
			m := reference.FindStringSubmatch(ref)
			a := r.named[m[1]]
			of, ok := a["body"]
			if !ok {
				of = a
			}
			v, ok := dig(of, m[2])
			if !ok {
				return "missing"
			}
			text, ok := v.(string)
			if !ok {
				b, err := json.Marshal(v)
				if err != nil {
					return "missing"
				}
				text = string(b)
			}
			text = strings.TrimSpace(text)
			if !quote {
				return text
			}
			b, err := json.Marshal(text)
			if err != nil {
				return "missing"
			}
			return string(b[1 : len(b)-1]) // it stands in a string
		})
	}
	out := *q
	out.Path = fill(q.Path, false)
	if q.Body != nil {
		out.Body = json.RawMessage(fill(string(q.Body), true))
	}
	if q.Text != nil {
		text := fill(*q.Text, false)
		out.Text = &text
	}
	out.Headers = map[string]*string{}
	for name, value := range q.Headers {
		if value != nil {
			text := fill(*value, false)
			value = &text
		}
		out.Headers[name] = value
	}
	return &out
}

// dig returns the field of a value at a path such as items.0.metadata.
func dig(v any, path string) (any, bool) {
	if path == "" {
		return v, v != nil
	}
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = x[part]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

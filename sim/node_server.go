package sim

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// Serve has the node's kubelet serve a request, as its server on port 10250 would, with
// everything allowed. It is called on the node's loop. What the kubelet waits for goes on
// there; w is written to meanwhile and must not wait. done is called once, on the loop, when
// the answer is over: with an error if there is no kubelet, or it died. end, if not nil,
// ends the request, as a client that goes does.
// streams connects clients with streams, on the loop, too, and must not wait; nil: there
// are none.
func (n *Node) Serve(w http.ResponseWriter, r *http.Request, streams server.Streams, done func(error)) (end func()) {
	if n.kubelet == nil || n.group == nil || n.host != nil {
		done(errNoKubelet)
		return nil
	}
	if n.identity != nil && !n.identity.Serves() {
		done(errNoCertificate)
		return nil
	}
	h := server.New(server.Options{
		Host: n.serverHost(), Config: n.config, Logs: nodeLogReader{n}, Streams: streams,
		Checks: []server.Check{server.Ping(), {Name: "syncloop", Check: n.kubelet.Healthy}},
	})
	var cancel func(error)
	n.group.Go("server", func(ctx context.Context) {
		err := errNoKubelet // of a task that is killed
		defer func() { done(err) }()
		ctx, cancel = loop.WithEnd(ctx)
		h.ServeHTTP(w, r.WithContext(ctx))
		err = nil
	})
	return func() {
		if cancel != nil {
			cancel(context.Canceled)
		}
	}
}

// errNoKubelet is what who asks a node without a kubelet gets.
var errNoKubelet = errors.New("connect: connection refused")

// internalError is the alert of that name (RFC 8446, 6).
const internalError = tls.AlertError(80)

// errNoCertificate is what who asks a kubelet gets that has no certificate to serve with.
var errNoCertificate = &net.OpError{Op: "remote error", Err: internalError}

// nodeLogReader reads the logs of containers from the node's files, as the CRI has
// them (k8s.io/cri-client's logs, which reads the machine's).
type nodeLogReader struct{ n *Node }

// followPeriod is how often a log that is followed is looked at.
const followPeriod = 100 * time.Millisecond

// ReadLog implements server.LogReader.
func (r nodeLogReader) ReadLog(ctx context.Context, log server.Log, o *v1.PodLogOptions, stdout, stderr io.Writer) error {
	out := &logCopier{o: o, stdout: stdout, stderr: stderr, left: -1, fresh: true}
	if o.LimitBytes != nil {
		out.left = *o.LimitBytes
	}
	if o.SinceSeconds != nil {
		out.since = r.n.l.Now().Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	if o.SinceTime != nil && out.since.Before(o.SinceTime.Time) {
		out.since = o.SinceTime.Time
	}
	data, err := r.n.fs.ReadFile(log.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	offset := 0
	if o.TailLines != nil {
		offset = tailStart(data, int(*o.TailLines))
	}
	for {
		// A container that has ended writes no more, so the last look comes after that.
		ended := !o.Follow || !r.runs(ctx, log.ContainerID)
		if o.Follow {
			if data, err = r.n.fs.ReadFile(log.Path); err != nil || len(data) < offset {
				offset = 0 // rotated
			}
		}
		for offset < len(data) {
			i := bytes.IndexByte(data[offset:], '\n')
			if i < 0 {
				break
			}
			line := data[offset : offset+i+1]
			offset += i + 1
			if more, err := out.copy(line); !more || err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		if err := r.n.l.Sleep(ctx, followPeriod); err != nil {
			return nil // the client has gone
		}
	}
}

// runs reports whether a container runs.
func (r nodeLogReader) runs(ctx context.Context, id string) bool {
	resp, err := r.n.kubelet.Host().ContainerStatus(ctx, id)
	return err == nil && resp.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
}

// tailStart is where the last n lines begin.
func tailStart(data []byte, n int) int {
	at := len(data)
	for ; n > 0 && at > 0; n-- {
		at = bytes.LastIndexByte(data[:at-1], '\n') + 1
	}
	return at
}

// logCopier writes lines of a CRI log as a client wants them.
type logCopier struct {
	o              *v1.PodLogOptions
	stdout, stderr io.Writer // nil: not wanted
	since          time.Time
	// left is how many bytes may be written still; below 0: any number.
	left int64
	// fresh: the next line begins one, the last was no part.
	fresh bool
}

// copy writes a line "TIME STREAM TAG TEXT\n"; more reports whether the client wants
// another. One that is no such line is left out, as upstream does.
func (c *logCopier) copy(raw []byte) (more bool, err error) {
	f := strings.SplitN(string(raw), " ", 4)
	if len(f) != 4 {
		return true, nil
	}
	at, err := time.Parse(time.RFC3339Nano, f[0])
	if err != nil || at.Before(c.since) {
		return true, nil
	}
	text := f[3]
	begins := c.fresh
	if c.fresh = !strings.HasPrefix(f[2], "P"); !c.fresh {
		text = strings.TrimSuffix(text, "\n")
	}
	if c.o.Timestamps && begins {
		text = at.Format(timestampFormat) + " " + text
	}
	w := c.stdout
	if f[1] == "stderr" {
		w = c.stderr
	}
	if w == nil {
		return true, nil
	}
	if c.left >= 0 && int64(len(text)) > c.left {
		text = text[:c.left]
	}
	if _, err := io.WriteString(w, text); err != nil {
		return false, nil //nolint:nilerr // the client has gone
	}
	if c.left >= 0 {
		c.left -= int64(len(text))
	}
	return c.left != 0, nil
}

// timestampFormat is how a log's times are shown: always nine digits.
const timestampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// SetStreaming has the node's runtime give out the URLs of s. It is called on the node's
// loop.
func (n *Node) SetStreaming(s fakecri.StreamingServer) { n.rt.SetStreaming(s) }

// Stream runs fn as a task of the node with a connection to its runtime, for a stream into
// a pod, which does not need the kubelet any more. It is called on the node's loop; done is
// called there once, at the end. end ends the task's context.
func (n *Node) Stream(fn func(ctx context.Context, c *fakecri.Client) error, done func(error)) (end func()) {
	g := n.l.Root()
	var cancel func(error)
	g.Go("stream", func(ctx context.Context) {
		err := errNoKubelet // of a task that is killed
		defer func() { done(err) }()
		ctx, cancel = loop.WithEnd(ctx)
		err = fn(ctx, n.rt.Client(g))
	})
	return func() {
		if cancel != nil {
			cancel(context.Canceled)
		}
	}
}

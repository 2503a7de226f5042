package up

import (
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/drydock-sim/drydock/kubelet/server"
)

// nodes leads the API's facade to the kubelets of a cluster.
type nodes struct{ c *Cluster }

// errNoNode is what the API gets of a node that is no machine.
var errNoNode = errors.New("no such host")

// ServeNode implements facade.Nodes.
func (n nodes) ServeNode(name string, w http.ResponseWriter, r *http.Request) error {
	node := n.c.session.Cluster().Node(name)
	if node == nil {
		return errNoNode
	}
	a := newAnswer()
	var end func()
	s, err := n.c.streams.of(node)
	if err != nil {
		return err
	}
	err = n.c.pacer.On(node.Loop(), func() {
		node.SetStreaming(s)
		end = node.Serve(a, r, a, a.finish)
	})
	if err != nil {
		return err
	}
	defer func() {
		if end != nil {
			_ = n.c.pacer.On(node.Loop(), end)
		}
	}()
	if err := a.copyTo(w, r); err != nil || a.stream == nil {
		return err
	}
	// The answer is a stream, which is not the loop's.
	n.c.streams.proxy.ServeStream(w, r, a.stream.url, a.stream.s)
	return nil
}

// answerSize is how much of an answer waits for its client, in bytes, at most; a client
// that lets more come is given up.
const answerSize = 64 << 20

// errSlow gives up on a client.
var errSlow = errors.New("the client is too slow")

// answer carries an answer from a node's loop, whose writes don't wait, to a client.
type answer struct {
	header http.Header // the loop's
	wake   chan struct{}

	mu    sync.Mutex
	code  int // 0: nothing was said yet
	sent  http.Header
	buf   []byte
	ended bool
	gone  bool // the client takes nothing more
	err   error
	// stream is what the answer is in the place of all that; nil: it is none. It is set
	// before ended is.
	stream *streamTo
}

// ServeStream implements server.Streams: the stream begins when the answer is over.
func (a *answer) ServeStream(_ http.ResponseWriter, _ *http.Request, to *url.URL, s server.Stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stream = &streamTo{to, s}
}

func newAnswer() *answer {
	return &answer{header: http.Header{}, wake: make(chan struct{}, 1)}
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(code)
	a.poke()
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(http.StatusOK)
	if a.gone || len(a.buf)+len(b) > answerSize {
		a.gone = true
		return 0, errSlow
	}
	a.buf = append(a.buf, b...)
	a.poke()
	return len(b), nil
}

// begin takes the code and the header, once.
func (a *answer) begin(code int) {
	if a.code == 0 {
		a.code, a.sent = code, a.header.Clone()
	}
}

// Flush implements http.Flusher: what is written is on its way.
func (a *answer) Flush() {}

// finish says that the answer is over.
func (a *answer) finish(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended, a.err = true, err
	a.poke()
}

func (a *answer) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// copyTo writes the answer to a client as it comes, until it or the request is over. The
// error is that of an answer that never began.
func (a *answer) copyTo(w http.ResponseWriter, r *http.Request) error {
	begun := false
	for {
		a.mu.Lock()
		code, header, b, ended, err := a.code, a.sent, a.buf, a.ended, a.err
		a.buf = nil
		a.mu.Unlock()
		if code != 0 && !begun {
			begun = true
			for name, values := range header {
				if name != "Transfer-Encoding" { // this connection's own
					w.Header()[name] = values
				}
			}
			w.WriteHeader(code)
		}
		if len(b) > 0 {
			if _, err := w.Write(b); err != nil {
				a.leave()
				return nil //nolint:nilerr // the client has gone
			}
		}
		if f, ok := w.(http.Flusher); ok && begun {
			f.Flush()
		}
		if ended {
			if begun {
				return nil
			}
			return err
		}
		select {
		case <-a.wake:
		case <-r.Context().Done():
			a.leave()
			return nil
		}
	}
}

// leave says that the client has gone.
func (a *answer) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone, a.buf = true, nil
}

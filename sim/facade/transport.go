package facade

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// Transport is an http.RoundTripper that calls a handler in the process: no socket, so
// that a client, the handler and what it waits for can all stand in a bubble of
// testing/synctest.
type Transport struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper. It returns when the handler has written the
// header; the body is a pipe, and closing it ends the handler's context.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	served := req.Clone(ctx)
	if served.Body == nil {
		served.Body = http.NoBody
	}
	served.RequestURI = req.URL.RequestURI()
	served.RemoteAddr = "127.0.0.1:0"
	in, out := io.Pipe()
	w := &pipeWriter{header: http.Header{}, out: out, began: make(chan struct{})}
	go func() {
		defer cancel()
		defer served.Body.Close()
		defer func() {
			w.WriteHeader(http.StatusOK)
			out.Close() // what follows the header is all written
		}()
		t.Handler.ServeHTTP(w, served)
	}()
	select {
	case <-w.began:
	case <-req.Context().Done():
		in.CloseWithError(req.Context().Err())
		return nil, req.Context().Err()
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Request: req, ContentLength: -1, Body: &pipeBody{in, cancel},
	}, nil
}

// pipeBody is a response's body. Closing it has the handler give up.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// pipeWriter is the handler's side of a response.
type pipeWriter struct {
	header, sent http.Header // sent: as of WriteHeader
	status       int
	out          *io.PipeWriter
	once         sync.Once
	began        chan struct{}
}

// Header implements http.ResponseWriter.
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.began)
	})
}

// Write implements http.ResponseWriter.
func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(p)
}

// Flush implements http.Flusher: nothing is held back.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

package facade

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// Transport is an http.RoundTripper that calls a handler in the process: no socket, so
// that a client, the handler and what it waits for can all stand in a bubble of
// testing/synctest.
type Transport struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper. A request is served on the caller's goroutine,
// but for a watch: that has one of its own, and RoundTrip returns when the header is
// written. Closing the body of a watch ends the handler's context.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	served := req.Clone(ctx)
	if served.Body == nil {
		served.Body = http.NoBody
	}
	served.RequestURI = req.URL.RequestURI()
	served.RemoteAddr = "127.0.0.1:0"
	if IsWatch(req) {
		return t.stream(req, served, cancel)
	}
	defer cancel()
	defer served.Body.Close()
	w := &wholeWriter{header: http.Header{}}
	t.Handler.ServeHTTP(w, served)
	if err := req.Context().Err(); err != nil {
		return nil, err // what was written says so in the server's words
	}
	w.WriteHeader(http.StatusOK)
	return response(req, w.status, w.sent, int64(w.body.Len()), io.NopCloser(&w.body)), nil
}

// stream serves a watch.
func (t *Transport) stream(req, served *http.Request, cancel context.CancelFunc) (*http.Response, error) {
	w := &streamWriter{header: http.Header{}, body: &streamBody{cancel: cancel}, began: make(chan struct{})}
	w.body.more = sync.NewCond(&w.body.mu)
	go func() {
		defer cancel()
		defer served.Body.Close()
		defer func() {
			w.WriteHeader(http.StatusOK)
			w.body.end(io.EOF) // what follows the header is all written
		}()
		t.Handler.ServeHTTP(w, served)
	}()
	select {
	case <-w.began:
	case <-req.Context().Done():
		w.body.end(req.Context().Err())
		return nil, req.Context().Err()
	}
	return response(req, w.status, w.sent, -1, w.body), nil
}

// IsWatch reports whether a request asks for a watch.
func IsWatch(req *http.Request) bool {
	switch req.URL.Query().Get("watch") {
	case "", "0", "false":
		return false
	}
	return true
}

func response(req *http.Request, status int, header http.Header, length int64, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Request: req, ContentLength: length, Body: body,
	}
}

// wholeWriter is the handler's side of a response that comes as a whole.
type wholeWriter struct {
	header, sent http.Header // sent: as of WriteHeader
	status       int
	body         bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *wholeWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *wholeWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (w *wholeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher: there is nobody to read yet.
func (w *wholeWriter) Flush() {}

// streamWriter is the handler's side of a response that is read while it is written.
type streamWriter struct {
	header, sent http.Header // sent: as of WriteHeader
	status       int
	body         *streamBody
	once         sync.Once
	began        chan struct{}
}

// Header implements http.ResponseWriter.
func (w *streamWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *streamWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.began)
	})
}

// Write implements http.ResponseWriter. It does not wait for the reader.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.write(p)
}

// Flush implements http.Flusher: nothing is held back.
func (w *streamWriter) Flush() { w.WriteHeader(http.StatusOK) }

// streamBody is the client's side. Closing it has the handler give up.
type streamBody struct {
	cancel context.CancelFunc

	mu   sync.Mutex
	more *sync.Cond
	data bytes.Buffer
	err  error // when the data is read
}

func (b *streamBody) write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.more.Signal()
	return b.data.Write(p)
}

// end has the reader told of an error after what was written.
func (b *streamBody) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.more.Broadcast()
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.data.Len() == 0 && b.err == nil {
		b.more.Wait()
	}
	if b.data.Len() > 0 {
		return b.data.Read(p)
	}
	return 0, b.err
}

// Close implements io.Closer.
func (b *streamBody) Close() error {
	b.cancel()
	b.end(io.ErrClosedPipe)
	return nil
}

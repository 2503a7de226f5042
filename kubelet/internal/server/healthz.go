package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/kubelet/server"
)

const (
	flushPeriod  = time.Minute
	flushTimeout = 2 * time.Minute
)

// errLogging says that log lines can't be written.
var errLogging = errors.New("logging blocked")

// Log fails when the log could not be flushed for two minutes. The first check
// starts flushing it, until ctx ends.
func Log(ctx context.Context) server.Check { return logCheck(ctx, klog.Flush, time.Now) }

// logCheck is well while log lines get out: a disk that hangs would stop the
// kubelet unseen.
func logCheck(ctx context.Context, flush func(), now func() time.Time) server.Check {
	var (
		once sync.Once
		mu   sync.Mutex
		last time.Time
	)
	done := func() {
		mu.Lock()
		defer mu.Unlock()
		last = now()
	}
	return server.Check{Name: "log", Check: func() error {
		once.Do(func() {
			done()
			go func() {
				t := time.NewTicker(flushPeriod)
				defer t.Stop()
				for {
					flush()
					done()
					select {
					case <-ctx.Done():
						return
					case <-t.C:
					}
				}
			}()
		})
		mu.Lock()
		defer mu.Unlock()
		if now().Sub(last) < flushTimeout {
			return nil
		}
		return errLogging
	}}
}

// retryPeriod is the time between two tries to listen.
const retryPeriod = 5 * time.Second

// Serve serves at an address until ctx ends. If that fails it logs so and tries
// again every five seconds, as upstream does with its health checks.
func Serve(ctx context.Context, address string, h http.Handler) {
	for ctx.Err() == nil {
		if err := serveOnce(ctx, address, h); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to start healthz server")
		}
		t := time.NewTimer(retryPeriod)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// serveOnce serves until ctx ends or the listener fails.
func serveOnce(ctx context.Context, address string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	return s.Serve(l)
}

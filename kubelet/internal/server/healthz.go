// Package server has what the kubelet serves over HTTP: so far its health checks
// on their own port. It mirrors upstream's pkg/kubelet/server and
// k8s.io/apiserver/pkg/server/healthz.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Check is a named check; an error means that the kubelet is not well. It is
// called from any goroutine.
type Check struct {
	Name  string
	Check func() error
}

// Ping passes as long as anybody answers.
func Ping() Check { return Check{"ping", func() error { return nil }} }

const (
	flushPeriod  = time.Minute
	flushTimeout = 2 * time.Minute
)

// errLogging says that log lines can't be written.
var errLogging = errors.New("logging blocked")

// Log fails when the log could not be flushed for two minutes. The first check
// starts flushing it, until ctx ends.
func Log(ctx context.Context) Check { return logCheck(ctx, klog.Flush, time.Now) }

// logCheck is well while log lines get out: a disk that hangs would stop the
// kubelet unseen.
func logCheck(ctx context.Context, flush func(), now func() time.Time) Check {
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
	return Check{"log", func() error {
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

// NewHealthz returns the handler of /healthz, which runs the checks of root, and
// of /healthz/<name> for each of those and of more. On its own port upstream has
// ping only; the other checks are there for who asks for them by name, as they
// are on upstream's main port.
func NewHealthz(root, more []Check) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", rootHandler("healthz", root))
	for _, c := range slices.Concat(root, more) {
		mux.HandleFunc("/healthz/"+c.Name, func(w http.ResponseWriter, _ *http.Request) {
			if err := c.Check(); err != nil {
				http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, "ok")
		})
	}
	return mux
}

// rootHandler runs all checks but those that the query excludes.
func rootHandler(name string, checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		excluded := query["exclude"]
		var unknown, failed []string
		for _, e := range excluded {
			if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == e }) && !slices.Contains(unknown, strconv.Quote(e)) {
				unknown = append(unknown, strconv.Quote(e))
			}
		}
		var out bytes.Buffer
		for _, c := range checks {
			if slices.Contains(excluded, c.Name) {
				fmt.Fprintf(&out, "[+]%s excluded: ok\n", c.Name)
			} else if err := c.Check(); err != nil {
				// The page is public; the log has the reason.
				fmt.Fprintf(&out, "[-]%s failed: reason withheld\n", c.Name)
				failed = append(failed, c.Name)
				klog.V(2).InfoS("Health check failed", "check", c.Name, "err", err)
			} else {
				fmt.Fprintf(&out, "[+]%s ok\n", c.Name)
			}
		}
		if len(unknown) > 0 {
			slices.Sort(unknown)
			fmt.Fprintf(&out, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(unknown, ","))
		}
		if len(failed) > 0 {
			http.Error(w, out.String()+name+" check failed", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if _, verbose := query["verbose"]; !verbose {
			fmt.Fprint(w, "ok")
			return
		}
		fmt.Fprintf(&out, "%s check passed\n", name)
		_, _ = out.WriteTo(w)
	})
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

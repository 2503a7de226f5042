//go:build linux

package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/kubelet/server"
)

// leastWatchdog is what WATCHDOG_USEC must be more than.
const leastWatchdog = time.Second

// watchdog tells systemd that the kubelet is well, every half of the interval
// that systemd asks for (pkg/kubelet/watchdog). Until there are checks it always
// does. Its unit is systemd's WatchdogSec.
type watchdog struct {
	interval time.Duration // 0: systemd doesn't ask
	checks   atomic.Pointer[[]server.Check]
	retry    time.Duration
}

// newWatchdog reads what systemd asks for.
// Half the interval is what systemd's documentation advises: a notification may
// be late by as much. An interval of a second or less could not be held. Without systemd the
// interval is 0.
func newWatchdog() (*watchdog, error) {
	d, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return nil, fmt.Errorf("create health checker: configure watchdog: %w", err)
	}
	if d != 0 && d <= leastWatchdog {
		return nil, fmt.Errorf("create health checker: configure watchdog timeout too small: %v", d)
	}
	return &watchdog{interval: d / 2, retry: time.Second}, nil
}

// setChecks says what must be well from now on; run goes on meanwhile.
func (w *watchdog) setChecks(checks []server.Check) { w.checks.Store(&checks) }

// start notifies until ctx ends, on a goroutine of its own.
func (w *watchdog) start(ctx context.Context) {
	if w.interval <= 0 {
		klog.InfoS("Systemd watchdog is not enabled")
		return
	}
	klog.InfoS("Starting systemd watchdog with interval", "interval", w.interval)
	go w.run(ctx)
}

// run notifies until ctx ends.
// While something isn't well it sends nothing, and systemd restarts the kubelet
// when the interval is over. The first notification goes out at once.
func (w *watchdog) run(ctx context.Context) {
	t := time.NewTicker(w.interval)
	defer t.Stop()
	for {
		if err := w.check(); err != nil {
			klog.ErrorS(err, "Do not notify watchdog this iteration as the kubelet is reportedly not healthy")
		} else {
			w.notify(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// check returns the first thing that is not well; nil, too, before there are
// checks, so that a slow start is not taken for a hang.
func (w *watchdog) check() error {
	checks := w.checks.Load()
	if checks == nil {
		return nil
	}
	for _, c := range *checks {
		if err := c.Check(); err != nil {
			return fmt.Errorf("checker %s failed: %w", c.Name, err)
		}
	}
	return nil
}

// notify sends WATCHDOG=1, a second time if the first fails. An error is only logged: the next
// interval tries again.
func (w *watchdog) notify(ctx context.Context) {
	ack, err := daemon.SdNotify(false, daemon.SdNotifyWatchdog)
	if err != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.retry):
		}
		ack, err = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
	}
	switch {
	case err != nil:
		klog.ErrorS(err, "Failed to notify watchdog")
	case !ack:
		klog.ErrorS(nil, "Failed to notify watchdog: notification not supported (NOTIFY_SOCKET is unset)")
	}
}

// notifyReady tells systemd that the kubelet has started. It needs Type=notify in the unit and
// does nothing otherwise.
func notifyReady() {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		klog.ErrorS(err, "Failed to tell systemd that the kubelet is ready")
	}
}

package sim

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/trace"
)

// DefaultInhibitDelay is for how long a lock holds a shutdown up at most:
// systemd's default of InhibitDelayMaxSec.
const DefaultInhibitDelay = 5 * time.Second

const (
	logindConfDir = "/etc/systemd/logind.conf.d"
	kubeletConf   = "99-kubelet.conf"
	// busCall is how long a call over D-Bus takes, reloadTime until logind has
	// read its configuration after it was told to.
	busCall    = time.Millisecond
	reloadTime = 20 * time.Millisecond
)

// errShutdownRuns is what logind says to who asks for a lock too late.
var errShutdownRuns = errors.New("The operation inhibition has been requested for is already running")

// logind is a machine's systemd-logind: it tells a shutdown, waits for who holds
// locks, and turns the machine off. Processes that still run then die as in a
// power cut.
type logind struct {
	l  *loop.Loop
	fs *memfs.FS
	// initial is the delay without drop-ins.
	initial time.Duration
	// turnOff turns the machine off for a while; isOff reports whether it is.
	turnOff func(off time.Duration)
	isOff   func() bool
	// delay is InhibitDelayMaxUSec as last read; 0: not yet.
	delay time.Duration
	locks int
	// watchers are kubelets' watches, in the order of their coming.
	watchers []*shutdownWatch
	// pending: the shutdown was told and waits; then off is for how long the
	// machine stays off.
	pending bool
	off     time.Duration
	timer   *loop.Timer
}

// shutdownWatch is one process's watch.
type shutdownWatch struct {
	g    *loop.Group
	told func(goingDown bool)
}

// Shutdown tells the machine to shut down: it turns off when nobody holds it up
// any more. After off it boots; with 0 it stays off until Boot. It is an error
// if it is off or shuts down already.
func (n *Node) Shutdown(off time.Duration) error {
	d := &n.logind
	switch {
	case n.off:
		return fmt.Errorf("node %s: the machine is off", n.name)
	case d.pending:
		return fmt.Errorf("node %s: the machine shuts down already", n.name)
	}
	n.rec.Record(trace.KindFault, "node "+n.name, "is told to shut down")
	d.pending, d.off = true, off
	d.signal(true)
	if d.locks == 0 {
		d.goDown()
		return nil
	}
	if d.timer == nil {
		d.timer = d.l.Root().NewTimer("inhibit delay", d.goDown)
	}
	d.timer.Reset(d.inhibitDelay())
	return nil
}

// CancelShutdown calls a shutdown off. It is an error if none waits.
func (n *Node) CancelShutdown() error {
	d := &n.logind
	if !d.pending {
		return fmt.Errorf("node %s: there is no shutdown to call off", n.name)
	}
	n.rec.Record(trace.KindFault, "node "+n.name, "calls its shutdown off")
	d.reset()
	d.signal(false)
	return nil
}

// reset forgets a shutdown that waits.
func (d *logind) reset() {
	d.pending = false
	if d.timer != nil {
		d.timer.Stop()
	}
}

// goDown is the shutdown's end.
func (d *logind) goDown() {
	if d.pending {
		d.turnOff(d.off)
	}
}

// poweredOff is a machine without power.
func (d *logind) poweredOff() {
	d.reset()
	d.delay, d.locks, d.watchers = 0, 0, nil
}

// signal sends PrepareForShutdown.
func (d *logind) signal(goingDown bool) {
	for _, w := range d.watchers {
		w.g.After(busCall, func() { w.told(goingDown) })
	}
}

// release gives a lock back; with the last one the machine turns off.
func (d *logind) release() {
	if d.locks--; d.locks == 0 && d.pending && !d.isOff() {
		d.l.Root().After(0, func() {
			if d.locks == 0 {
				d.goDown()
			}
		})
	}
}

func (d *logind) inhibitDelay() time.Duration {
	if d.delay == 0 {
		d.readConf()
	}
	return d.delay
}

// readConf reads the configuration as systemd does: of the drop-ins, in the
// order of their names, the last one counts.
func (d *logind) readConf() {
	d.delay = d.initial
	files, err := d.fs.ReadDir(logindConfDir)
	if err != nil {
		return // there are none
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".conf") {
			continue
		}
		data, err := d.fs.ReadFile(path.Join(logindConfDir, f.Name()))
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(data), "\n") {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "InhibitDelayMaxSec="); ok {
				if v, ok := seconds(text); ok {
					d.delay = v
				}
			}
		}
	}
}

// seconds reads a number of seconds, or what Go reads as a duration.
func seconds(text string) (time.Duration, bool) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, n > 0
	}
	v, err := time.ParseDuration(text)
	return v, err == nil && v > 0
}

// logindClient is a process's connection to logind: what it holds ends with it.
type logindClient struct {
	d *logind
	g *loop.Group
}

func (c logindClient) wait(ctx context.Context) error { return c.d.l.Sleep(ctx, busCall) }

// CurrentInhibitDelay is InhibitDelayMaxUSec.
func (c logindClient) CurrentInhibitDelay(ctx context.Context) (time.Duration, error) {
	if err := c.wait(ctx); err != nil {
		return 0, err
	}
	return c.d.inhibitDelay(), nil
}

// OverrideInhibitDelay writes the kubelet's drop-in.
func (c logindClient) OverrideInhibitDelay(_ context.Context, d time.Duration) error {
	fs := c.d.fs
	if err := fs.MkdirAll(logindConfDir, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=%.0f\n", d.Seconds())
	return fs.WriteFile(path.Join(logindConfDir, kubeletConf), []byte(text), 0o644)
}

// ReloadLogindConf has logind read its configuration, soon.
func (c logindClient) ReloadLogindConf(ctx context.Context) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	d := c.d
	d.l.Root().After(reloadTime, func() {
		if !d.isOff() {
			d.readConf()
		}
	})
	return nil
}

// InhibitShutdown takes a lock, which ends with the process.
func (c logindClient) InhibitShutdown(ctx context.Context) (func(), error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	if c.d.pending {
		return nil, errShutdownRuns
	}
	c.d.locks++
	held := true
	release := func() {
		if held {
			held = false
			c.d.release()
		}
	}
	c.g.OnKill(release)
	return release, nil
}

// MonitorShutdown watches until the process ends; a simulated bus lives as long
// as its machine.
func (c logindClient) MonitorShutdown(ctx context.Context, told func(goingDown bool), _ func(err error)) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	w := &shutdownWatch{g: c.g, told: told}
	c.d.watchers = append(c.d.watchers, w)
	c.g.OnKill(func() {
		for i, o := range c.d.watchers {
			if o == w {
				c.d.watchers = append(c.d.watchers[:i:i], c.d.watchers[i+1:]...)
				return
			}
		}
	})
	return nil
}

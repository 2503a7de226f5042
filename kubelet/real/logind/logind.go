//go:build linux

// Package logind is the machine's systemd-logind, for a kubelet that holds a
// shutdown up, over the system bus. It mirrors upstream's
// pkg/kubelet/nodeshutdown/systemd/inhibit_linux.go.
package logind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/nodeshutdown"
)

const (
	// DefaultConfDir is where logind's drop-ins are.
	DefaultConfDir = "/etc/systemd/logind.conf.d"
	confFile       = "99-kubelet.conf"

	service          = "org.freedesktop.login1"
	object           = dbus.ObjectPath("/org/freedesktop/login1")
	manager          = "org.freedesktop.login1.Manager"
	prepare          = "PrepareForShutdown"
	systemdService   = "org.freedesktop.systemd1"
	systemdObject    = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdKillUnit  = "org.freedesktop.systemd1.Manager.KillUnit"
	logindUnit       = "systemd-logind.service"
	inhibitWhy       = "Kubelet needs time to handle node shutdown"
	signalsUnhandled = 16
)

// Options say where logind is.
type Options struct {
	// Connect connects to the bus that it is on; nil: the system bus.
	Connect func() (*dbus.Conn, error)
	// ConfDir is where its drop-ins are; "" means DefaultConfDir.
	ConfDir string
}

// Logind is systemd-logind. Its methods wait in tasks of its loop; it connects
// when it is first asked, and again after the bus went away.
type Logind struct {
	l       *loop.Loop
	g       *loop.Group
	connect func() (*dbus.Conn, error)
	confDir string
	conn    *dbus.Conn
}

var _ nodeshutdown.Logind = (*Logind)(nil)

// New returns the machine's logind, for tasks of l. Locks end with g.
func New(l *loop.Loop, g *loop.Group, o Options) *Logind {
	d := &Logind{l: l, g: g, connect: o.Connect, confDir: o.ConfDir}
	if d.connect == nil {
		d.connect = func() (*dbus.Conn, error) { return dbus.ConnectSystemBus() }
	}
	d.confDir = cmp.Or(d.confDir, DefaultConfDir)
	return d
}

// Close drops the connection. It is called when no task uses it any more.
func (d *Logind) Close() error {
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}

// bus returns the connection, a new one if there is none.
func (d *Logind) bus(ctx context.Context) (*dbus.Conn, error) {
	if d.conn != nil && d.conn.Connected() {
		return d.conn, nil
	}
	connect := d.connect
	conn, err := loop.Await(ctx, func(ctx context.Context) (*dbus.Conn, error) {
		conn, err := connect()
		if err == nil && ctx.Err() != nil { // nobody waits for it
			err = errors.Join(ctx.Err(), conn.Close())
		}
		return conn, err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the system bus: %w", err)
	}
	d.conn = conn
	return conn, nil
}

// CurrentInhibitDelay is InhibitDelayMaxUSec.
func (d *Logind) CurrentInhibitDelay(ctx context.Context) (time.Duration, error) {
	conn, err := d.bus(ctx)
	if err != nil {
		return 0, err
	}
	return loop.Await(ctx, func(ctx context.Context) (time.Duration, error) {
		var v dbus.Variant
		err := conn.Object(service, object).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, manager, "InhibitDelayMaxUSec").Store(&v)
		if err != nil {
			return 0, fmt.Errorf("failed reading InhibitDelayMaxUSec property from logind: %w", err)
		}
		usec, ok := v.Value().(uint64)
		if !ok {
			return 0, errors.New("InhibitDelayMaxUSec from logind is not a uint64 as expected")
		}
		// "infinity" is the greatest number.
		return time.Duration(min(usec, math.MaxInt64/uint64(time.Microsecond))) * time.Microsecond, nil
	})
}

// OverrideInhibitDelay writes the kubelet's drop-in.
func (d *Logind) OverrideInhibitDelay(ctx context.Context, delay time.Duration) error {
	dir := d.confDir
	return await(ctx, func(context.Context) error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("failed creating the directory for logind's configuration: %w", err)
		}
		text := fmt.Sprintf("# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=%.0f\n", delay.Seconds())
		return os.WriteFile(filepath.Join(dir, confFile), []byte(text), 0o644) //nolint:gosec // as systemd's own files
	})
}

// ReloadLogindConf sends SIGHUP to logind by way of systemd.
func (d *Logind) ReloadLogindConf(ctx context.Context) error {
	conn, err := d.bus(ctx)
	if err != nil {
		return err
	}
	return await(ctx, func(ctx context.Context) error {
		err := conn.Object(systemdService, systemdObject).CallWithContext(ctx, systemdKillUnit, 0, logindUnit, "all", int32(unix.SIGHUP)).Err
		if err != nil {
			return fmt.Errorf("unable to reload logind conf: %w", err)
		}
		return nil
	})
}

// InhibitShutdown takes a delay lock, which is an open file: it also ends with
// the process.
func (d *Logind) InhibitShutdown(ctx context.Context) (func(), error) {
	conn, err := d.bus(ctx)
	if err != nil {
		return nil, err
	}
	fd, err := loop.Await(ctx, func(ctx context.Context) (int, error) {
		var fd dbus.UnixFD
		err := conn.Object(service, object).CallWithContext(ctx, manager+".Inhibit", 0, "shutdown", "kubelet", inhibitWhy, "delay").Store(&fd)
		if err != nil {
			return 0, fmt.Errorf("failed creating systemd inhibitor: %w", err)
		}
		unix.CloseOnExec(int(fd))
		if ctx.Err() != nil { // nobody waits for it
			return 0, errors.Join(ctx.Err(), unix.Close(int(fd)))
		}
		return int(fd), nil
	})
	if err != nil {
		return nil, err
	}
	held := true
	release := func() {
		if held {
			held = false
			_ = unix.Close(fd)
		}
	}
	d.g.OnKill(release)
	return release, nil
}

// MonitorShutdown watches PrepareForShutdown until the connection ends.
func (d *Logind) MonitorShutdown(ctx context.Context, told func(goingDown bool), ended func(err error)) error {
	conn, err := d.bus(ctx)
	if err != nil {
		return err
	}
	signals := make(chan *dbus.Signal, signalsUnhandled)
	conn.Signal(signals)
	err = await(ctx, func(ctx context.Context) error {
		return conn.AddMatchSignalContext(ctx, dbus.WithMatchInterface(manager), dbus.WithMatchMember(prepare), dbus.WithMatchObjectPath(object))
	})
	if err != nil {
		conn.RemoveSignal(signals)
		return err
	}
	l := d.l
	go func() {
		for s := range signals {
			if s.Name != manager+"."+prepare || len(s.Body) == 0 {
				continue
			}
			if goingDown, ok := s.Body[0].(bool); ok {
				l.Post(func() { told(goingDown) })
			}
		}
		// The channel is closed a moment before the connection says that it is
		// over, and who is told connects anew.
		<-conn.Context().Done()
		l.Post(func() { ended(errors.New("the connection to the system bus has ended")) })
	}()
	return nil
}

// await runs a call of D-Bus on a goroutine, while the loop goes on.
func await(ctx context.Context, fn func(ctx context.Context) error) error {
	_, err := loop.Await(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	return err
}

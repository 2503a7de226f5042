//go:build linux

package logind

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/real/internal/dbustest"
)

// fakeLogind is logind and systemd on the bus.
type fakeLogind struct {
	conn     *dbus.Conn
	delay    dbus.Variant
	asked    chan []string // the arguments of Inhibit
	killed   chan string
	released chan struct{}
	own      chan int // its own end of a lock, for the test to close
	refuse   bool
}

func startLogind(t *testing.T, connect func() (*dbus.Conn, error), delay any, refuse bool) *fakeLogind {
	t.Helper()
	conn, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	f := &fakeLogind{
		conn: conn, delay: dbus.MakeVariant(delay), refuse: refuse,
		asked: make(chan []string, 1), killed: make(chan string, 1), released: make(chan struct{}, 1), own: make(chan int, 1),
	}
	for _, err := range []error{
		conn.Export(f, object, manager), conn.Export(properties{f}, object, "org.freedesktop.DBus.Properties"),
		conn.Export(systemd{f}, systemdObject, "org.freedesktop.systemd1.Manager"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{service, systemdService} {
		if _, err := conn.RequestName(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Inhibit gives the writing end of a pipe: when it is closed the lock is free.
func (f *fakeLogind) Inhibit(what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	if f.refuse {
		return 0, dbus.MakeFailedError(errors.New("already running"))
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	f.asked <- []string{what, who, why, mode}
	go func() {
		r := os.NewFile(uintptr(fds[0]), "lock")
		defer func() { _ = r.Close() }()
		_, _ = r.Read(make([]byte, 1))
		f.released <- struct{}{}
	}()
	f.own <- fds[1]
	return dbus.UnixFD(fds[1]), nil
}

type properties struct{ f *fakeLogind }

func (p properties) Get(iface, name string) (dbus.Variant, *dbus.Error) {
	if iface != manager || name != "InhibitDelayMaxUSec" {
		return dbus.Variant{}, dbus.MakeFailedError(errors.New("no such property"))
	}
	return p.f.delay, nil
}

type systemd struct{ f *fakeLogind }

func (s systemd) KillUnit(unit, whom string, signal int32) *dbus.Error {
	s.f.killed <- unit + " " + whom + " " + unix.Signal(signal).String()
	return nil
}

// onLoop runs fn as a task of a loop on the wall clock, with what fn hands out
// while it runs.
func onLoop(t *testing.T, o Options, fn func(ctx context.Context, d *Logind)) {
	t.Helper()
	l := loop.NewReal(loop.Options{})
	defer l.Close()
	g := l.NewGroup("test")
	d := New(l, g, o)
	defer func() { _ = d.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l.Post(func() {
		g.Go("test", func(ctx context.Context) {
			defer cancel()
			fn(ctx, d)
		})
	})
	if err := l.RunReal(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the loop: %v", err)
	}
}

func TestLogind(t *testing.T) {
	connect, kill := dbustest.PrivateBus(t)
	f := startLogind(t, connect, uint64(5000000), false)
	conf := filepath.Join(t.TempDir(), "logind.conf.d")
	onLoop(t, Options{Connect: connect, ConfDir: conf}, func(ctx context.Context, d *Logind) {
		if got, err := d.CurrentInhibitDelay(ctx); err != nil || got != 5*time.Second {
			t.Errorf("the delay is %v, %v", got, err)
		}
		if err := d.OverrideInhibitDelay(ctx, 30*time.Second); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile(filepath.Join(conf, "99-kubelet.conf")); err != nil || string(data) != "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n" {
			t.Errorf("the drop-in is %q, %v", data, err)
		}
		if err := d.ReloadLogindConf(ctx); err != nil {
			t.Error(err)
		} else if got := <-f.killed; got != "systemd-logind.service all hangup" {
			t.Errorf("systemd was asked to kill %s", got)
		}
		release, err := d.InhibitShutdown(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		_ = unix.Close(<-f.own)
		if got := strings.Join(<-f.asked, ", "); got != "shutdown, kubelet, Kubelet needs time to handle node shutdown, delay" {
			t.Errorf("asked for %s", got)
		}
		signals, over := loop.NewQueue[bool](0), &loop.Event{}
		if err := d.MonitorShutdown(ctx, func(b bool) { signals.TryPut(b) }, func(error) { over.Fire() }); err != nil {
			t.Error(err)
			return
		}
		for _, goingDown := range []bool{true, false} {
			if err := f.conn.Emit(object, manager+".PrepareForShutdown", goingDown); err != nil {
				t.Error(err)
				return
			}
			if got, err := signals.Get(ctx); err != nil || got != goingDown {
				t.Errorf("told %v, %v; want %v", got, err, goingDown)
			}
		}
		select {
		case <-f.released:
			t.Error("the lock was not held")
		default:
		}
		release()
		if _, err := loop.Await(ctx, func(context.Context) (struct{}, error) { <-f.released; return struct{}{}, nil }); err != nil {
			t.Error(err)
		}
		kill()
		if err := over.Wait(ctx); err != nil {
			t.Error(err)
		}
		if _, err := d.CurrentInhibitDelay(ctx); err == nil || !strings.Contains(err.Error(), "connect to the system bus: ") {
			t.Errorf("without a bus: %v", err)
		}
	})
}

// TestConnections: all calls share a connection, which is made again once it has ended, and closed at the end.
func TestConnections(t *testing.T) {
	connect, _ := dbustest.PrivateBus(t)
	startLogind(t, connect, uint64(5000000), false)
	var made []*dbus.Conn
	connectAndNote := func() (*dbus.Conn, error) {
		conn, err := connect()
		made = append(made, conn)
		return conn, err
	}
	onLoop(t, Options{Connect: connectAndNote}, func(ctx context.Context, d *Logind) {
		for i, want := range []int{1, 1, 2, 2} {
			if i == 2 {
				_ = made[0].Close()
			}
			if _, err := d.CurrentInhibitDelay(ctx); err != nil || len(made) != want {
				t.Errorf("call %d: %v, over connection %d, want %d", i, err, len(made), want)
			}
		}
	})
	for i, conn := range made {
		if conn.Connected() {
			t.Errorf("connection %d is left open", i+1)
		}
	}
}

func TestRefusals(t *testing.T) {
	connect, _ := dbustest.PrivateBus(t)
	onLoop(t, Options{Connect: connect}, func(ctx context.Context, d *Logind) {
		_, err := d.CurrentInhibitDelay(ctx)
		if err == nil || !strings.HasPrefix(err.Error(), "failed reading InhibitDelayMaxUSec property from logind: ") {
			t.Errorf("without logind: %v", err)
		}
		if err := d.ReloadLogindConf(ctx); err == nil || !strings.HasPrefix(err.Error(), "unable to reload logind conf: ") {
			t.Errorf("without systemd: %v", err)
		}
	})
	startLogind(t, connect, "5s", true)
	onLoop(t, Options{Connect: connect}, func(ctx context.Context, d *Logind) {
		if _, err := d.CurrentInhibitDelay(ctx); err == nil || err.Error() != "InhibitDelayMaxUSec from logind is not a uint64 as expected" {
			t.Errorf("a delay that is a text: %v", err)
		}
		if _, err := d.InhibitShutdown(ctx); err == nil || !strings.HasPrefix(err.Error(), "failed creating systemd inhibitor: ") {
			t.Errorf("refused: %v", err)
		}
	})
}

func TestInfiniteDelay(t *testing.T) {
	connect, _ := dbustest.PrivateBus(t)
	startLogind(t, connect, uint64(math.MaxUint64), false)
	onLoop(t, Options{Connect: connect}, func(ctx context.Context, d *Logind) {
		if got, err := d.CurrentInhibitDelay(ctx); err != nil || got < 24*365*time.Hour {
			t.Errorf("the delay is %v, %v", got, err)
		}
	})
}

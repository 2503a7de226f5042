package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// echo accepts connections and says back what they say.
func echo(port int) kernel.Command {
	return func(ctx context.Context, p *kernel.Process) int {
		l, err := p.Listen(ctx, port)
		if err != nil {
			return 1
		}
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				return 2
			}
			got, err := readAll(ctx, c)
			_, _ = c.Write(ctx, []byte(strings.ToUpper(got)))
			if err != nil {
				return 3
			}
			_ = c.Close()
		}
	}
}

func TestNetwork(t *testing.T) {
	r := newRig(t)
	na, nb := r.m.NewNet("10.1.0.1"), r.m.NewNet("10.1.0.2")
	a := r.container(func(o *kernel.ContainerOptions) { o.Net = na })
	b := r.container(func(o *kernel.ContainerOptions) { o.Net = nb })
	h := r.container(nil)
	r.cmds["child"] = echo(8080)
	_, e := r.start(a, argv("child"))
	_, _ = r.start(h, argv("child"))
	stop, err := nb.Serve(80, func(req []byte) (kernel.Answer, bool) {
		if !strings.HasSuffix(string(req), "\n\n") {
			return kernel.Answer{}, false
		}
		return kernel.Answer{Data: []byte("200 " + string(req[:3])), After: time.Second, Close: true}, true
	})
	must(t, err)
	if _, err := nb.Serve(80, nil); err != linux.EADDRINUSE {
		t.Error(err)
	}
	say := func(ctx context.Context, p *kernel.Process, host string, port int, parts ...string) string {
		c, err := p.Dial(ctx, host, port)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = c.Close() }()
		for _, s := range parts {
			if _, err := c.Write(ctx, []byte(s)); err != nil {
				return err.Error()
			}
		}
		if port == 8080 {
			_ = c.CloseWrite()
		}
		got, err := readAll(ctx, c)
		if err != nil {
			return got + " " + err.Error()
		}
		return got
	}
	var log []string
	x := r.as(kernel.Cred{}, b, func(ctx context.Context, p *kernel.Process) int {
		_ = p.Sleep(ctx, time.Second)
		for _, k := range []struct {
			host string
			port int
		}{{"10.1.0.1", 8080}, {"10.0.0.1", 8080}, {"localhost", 8080}, {"10.1.0.1", 81}, {"10.9.9.9", 80}, {"nosuch", 80}} {
			from := r.l.Now()
			got := say(ctx, p, k.host, k.port, "hello")
			log = append(log, fmt.Sprint(k.host, " ", got, " ", r.l.Since(from).Round(time.Second)))
		}
		from := r.l.Now()
		log = append(log, say(ctx, p, "127.0.0.1", 80, "GET", "\n\n"), fmt.Sprint(r.l.Since(from).Round(time.Second)))
		a.Signal(kernel.SIGKILL)
		log = append(log, say(ctx, p, "10.1.0.1", 8080, "x"))
		stop()
		log = append(log, say(ctx, p, "127.0.0.1", 80, "x"), fmt.Sprint(nb.Ports()))
		return 0
	})
	want := "10.1.0.1 HELLO 0s\n10.0.0.1 HELLO 0s\nlocalhost connection refused 0s\n10.1.0.1 connection refused 0s\n" +
		"10.9.9.9 no route to host 3s\nnosuch no such file or directory 0s\n200 GET\n1s\nconnection refused\nconnection refused\n[]"
	if got := strings.Join(log, "\n"); got != want || x.Code != 0 || *e == nil {
		t.Errorf("%v %v\n%s\nwant\n%s", x, *e, got, want)
	}
}

func TestConnectionsOfTheDead(t *testing.T) {
	r := newRig(t)
	n := r.m.NewNet("10.1.0.1")
	c := r.container(func(o *kernel.ContainerOptions) { o.Net = n })
	r.cmds["child"] = func(ctx context.Context, p *kernel.Process) int {
		l, _ := p.Listen(ctx, 1)
		conn, _ := l.Accept(ctx)
		_, _ = conn.Write(ctx, []byte("begin"))
		_ = p.Sleep(ctx, time.Hour)
		return 0
	}
	_, _ = r.start(c, argv("child"))
	var got []string
	r.l.Root().Go("client", func(ctx context.Context) {
		_ = r.l.Sleep(ctx, time.Second)
		conn, err := r.m.HostNet().Dial(ctx, "10.1.0.1", 1)
		waits, err2 := r.m.HostNet().Dial(ctx, "10.1.0.1", 1) // nobody accepts it
		if err != nil || err2 != nil {
			t.Error(err, err2)
			return
		}
		text, err := readAll(ctx, conn)
		_, err2 = readAll(ctx, waits)
		_, err3 := conn.Write(ctx, []byte("x"))
		got = append(got, fmt.Sprint(text, " ", err, " ", err2, " ", err3))
	})
	r.run(2 * time.Second)
	c.KillAll()
	r.run(time.Second)
	if want := "[begin <nil> connection reset by peer broken pipe]"; fmt.Sprint(got) != want {
		t.Error(got)
	}
	if len(n.Ports()) != 0 {
		t.Error(n.Ports())
	}
}

func TestStatedProgramEndsBeforeItsAnswer(t *testing.T) {
	r := newRig(t)
	n := r.m.NewNet("10.1.0.1")
	stop, err := n.Serve(80, func([]byte) (kernel.Answer, bool) {
		return kernel.Answer{Data: []byte("late"), After: time.Minute, Close: true}, true
	})
	must(t, err)
	var got string
	r.l.Root().Go("client", func(ctx context.Context) {
		c, err := r.m.HostNet().Dial(ctx, "10.1.0.1", 80)
		must(t, err)
		_, _ = c.Write(ctx, []byte("x"))
		text, err := readAll(ctx, c)
		got = fmt.Sprint(text, err)
	})
	r.run(time.Second)
	stop()
	r.run(time.Hour)
	if got != "connection reset by peer" {
		t.Error(got)
	}
}

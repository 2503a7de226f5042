package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/fakecri/kernel/rootfs"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// TestNodesShareAnImage runs processes on several nodes at once; what happens
// does not depend on the number of cores.
func TestNodesShareAnImage(t *testing.T) {
	img, err := rootfs.BusyboxImage([]string{"main"})
	must(t, err)
	play := func(workers int) string {
		e, err := loop.NewEngine(loop.EngineOptions{Seed: 3, Workers: workers})
		must(t, err)
		defer e.Close()
		logs := make([]strings.Builder, 6)
		for i := range logs {
			l := e.NewLoop(fmt.Sprint("node-", i))
			m := kernel.New(kernel.Options{Loop: l, FS: memfs.New(memfs.Options{Loop: l}), Hostname: l.Name(), HostIP: "10.0.0.1"})
			for k := range 5 {
				c := m.NewContainer(kernel.ContainerOptions{Root: m.NewView(kernel.ViewOptions{Image: img}), Net: m.NewNet(fmt.Sprint("10.1.0.", k)),
					Commands: kernel.Commands{"main": func(ctx context.Context, p *kernel.Process) int {
						v := p.View()
						id, _ := v.ReadFile("/proc/sys/kernel/random/uuid")
						_ = v.WriteFile("/etc/passwd", id, 0o644)
						_ = v.RemoveAll("/bin")
						kid := p.Fork("kid", nil, func(ctx context.Context, p *kernel.Process) int {
							_ = p.Step(ctx, time.Duration(id[0])*time.Millisecond)
							return int(id[1])
						})
						x, _ := p.Wait(ctx, kid)
						got, _ := v.ReadFile("/etc/passwd")
						i, _ := v.Stat("/etc/passwd")
						fmt.Fprintln(&logs[i0(l.Name())], k, x.Code, string(got), i.Sys().(*memfs.Sys).Ino, p.Now())
						return 0
					}}})
				_, err := c.Start(argv("main"))
				must(t, err)
			}
		}
		must(t, e.RunUntil(e.Now().Add(time.Second)))
		out := ""
		for i := range logs {
			out += logs[i].String()
		}
		return out
	}
	one, four := play(1), play(4)
	if one != four || strings.Count(one, "\n") < 30 {
		t.Errorf("%s\nand\n%s", one, four)
	}
}

func i0(name string) int { return int(name[len(name)-1] - '0') }

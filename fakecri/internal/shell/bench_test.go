package shell

import (
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// BenchmarkTrapLoop is a lap of the loop that most containers of tests wait in:
// a builtin, the start of a sleep, its end.
func BenchmarkTrapLoop(b *testing.B) {
	const script, lap = "trap 'exit 0' TERM; while true; do sleep 0.2; done", 201100 * time.Microsecond
	b.Run("parked", func(b *testing.B) { benchLaps(b, false, script, lap) })
	b.Run("lap by lap", func(b *testing.B) { benchLaps(b, true, script, lap) })
}

// BenchmarkBusyLoop is a lap of builtins and arithmetic.
func BenchmarkBusyLoop(b *testing.B) {
	benchLaps(b, false, "i=0; while [ $i -ge 0 ]; do i=$((i+1)); done", 55*time.Microsecond)
}

// BenchmarkSubst is a lap with a command substitution and a pipeline.
func BenchmarkSubst(b *testing.B) {
	benchLaps(b, false, `while true; do x="$(echo a)"; echo $x | cat >/dev/null; sleep 1; done`, 1003*time.Millisecond)
}

func benchLaps(b *testing.B, noElide bool, script string, lap time.Duration) {
	x := newMachineAs(b, 0, noElide)
	defer x.l.Close()
	out := &capture{l: x.l}
	if _, err := x.c.Start(kernel.Spec{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/bin"}, Dir: "/", FDs: []kernel.File{nil, out, out}}); err != nil {
		b.Fatal(err)
	}
	_ = x.l.RunUntil(loop.Epoch().Add(time.Second))
	b.ReportAllocs()
	b.ResetTimer()
	if err := x.l.RunUntil(loop.Epoch().Add(time.Second + time.Duration(b.N)*lap)); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart is a container whose script is known: the start, a line, the
// end.
func BenchmarkStart(b *testing.B) {
	x := newMachine(b, 0)
	defer x.l.Close()
	out := &capture{l: x.l}
	env := []string{"PATH=/bin", "HOME=/root", "HOSTNAME=pod-1"}
	for _, n := range strings.Fields("KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_PORT KUBERNETES_PORT_443_TCP") {
		env = append(env, n+"=10.96.0.1")
	}
	if _, err := x.c.Start(kernel.Spec{Argv: []string{"sleep", "1000000000"}, Env: env, Dir: "/"}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := range b.N {
		if _, err := x.c.Start(kernel.Spec{Argv: []string{"sh", "-c", "test -f /tmp/ok || exit 3"}, Env: env, Dir: "/", FDs: []kernel.File{nil, out, out}}); err != nil {
			b.Fatal(err)
		}
		if err := x.l.RunUntil(loop.Epoch().Add(time.Duration(i+1) * 20 * time.Millisecond)); err != nil {
			b.Fatal(err)
		}
	}
}

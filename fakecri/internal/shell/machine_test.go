package shell

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// TestFirstProcess is about a shell that is a container's first process, with
// signals from outside.
func TestFirstProcess(t *testing.T) {
	const laps = "; while true; do sleep 0.2; done"
	term := func(x *machine) { x.c.Signal(int(linux.SIGTERM)) }
	kill := func(x *machine) { x.c.Signal(int(linux.SIGKILL)) }
	for _, tt := range []struct {
		name, script   string
		at             map[time.Duration]func(*machine)
		code           int
		from, to       time.Duration
		stdout, stderr string
	}{
		{"the trap waits for the sleep in the foreground", "trap 'exit 0' TERM" + laps, map[time.Duration]func(*machine){1100 * time.Millisecond: term}, 0, 1101 * time.Millisecond, 1301 * time.Millisecond, "", ""},
		{"a trap takes its time", "trap 'sleep 4; exit 0' TERM" + laps, map[time.Duration]func(*machine){time.Second: term}, 0, 5 * time.Second, 5300 * time.Millisecond, "", ""},
		{"an ignored signal", "trap '' TERM" + laps, map[time.Duration]func(*machine){time.Second: term, 3 * time.Second: kill}, 137, 3 * time.Second, 3001 * time.Millisecond, "", ""},
		{"no trap", "sleep 3600; echo", map[time.Duration]func(*machine){time.Second: term, 3 * time.Second: kill}, 137, 3 * time.Second, 3001 * time.Millisecond, "", ""},
		{"no trap, by exec", "sleep 3600", map[time.Duration]func(*machine){time.Second: term, 3 * time.Second: kill}, 137, 3 * time.Second, 3001 * time.Millisecond, "", ""},
		{"a long foreground command holds the trap back", "trap 'echo t; exit 3' TERM; sleep 10; echo no", map[time.Duration]func(*machine){time.Second: term}, 3, 10 * time.Second, 10010 * time.Millisecond, "t\n", ""},
		{"wait is cut short", "trap 'echo t; exit 3' TERM; sleep 10 & wait; echo no", map[time.Duration]func(*machine){time.Second: term}, 3, time.Second, 1010 * time.Millisecond, "t\n", ""},
		{"wait says which signal", "trap 'echo t' TERM; sleep 3 & wait $!; echo $?; wait $!; echo $?", map[time.Duration]func(*machine){time.Second: term}, 0, 3 * time.Second, 3010 * time.Millisecond, "t\n143\n0\n", ""},
		{"background commands die with the first process", "(sleep 2; echo no) & sleep 1; exit 4", nil, 4, time.Second, 1010 * time.Millisecond, "", ""},
		{"exec", "exec sleep 2", map[time.Duration]func(*machine){time.Second: term}, 0, 2 * time.Second, 2010 * time.Millisecond, "", ""},
		{"exec without a trap of its own", "trap 'echo no' TERM; exec sleep 2", map[time.Duration]func(*machine){time.Second: term}, 0, 2 * time.Second, 2010 * time.Millisecond, "", ""},
		{"wait is cut short by a child that sends a signal and ends at once", "trap 'echo t' TERM; (kill -TERM 1) & wait; echo $?", nil, 0, 0, 10 * time.Millisecond, "t\n143\n", ""},
		{"wait -n", "sleep 2 & { sleep 1; exit 4; } & wait -n; echo $?; wait; wait -n; echo $?", nil, 0, 2 * time.Second, 2010 * time.Millisecond, "4\n127\n", ""},
		{"each process of a pipeline that a signal ends is told of", "sh -c 'kill -9 $$' | cat; echo $?", nil, 0, 0, 10 * time.Millisecond, "0\n", "Killed\n"},
		{"two signals", "trap 'echo a' TERM; trap 'echo b' USR1; sleep 1; exit 5", map[time.Duration]func(*machine){500 * time.Millisecond: func(x *machine) { x.c.Signal(15); x.c.Signal(10) }}, 5, time.Second, 1010 * time.Millisecond, "a\nb\n", ""},
		{"busy loop", "trap 'exit 6' TERM; while :; do :; done", map[time.Duration]func(*machine){time.Second: term}, 6, time.Second, 1010 * time.Millisecond, "", ""},
		{"read is cut short", "trap 'echo t; exit 7' TERM; sleep 5 | { read x; }; echo no", map[time.Duration]func(*machine){time.Second: term}, 7, 5 * time.Second, 5010 * time.Millisecond, "t\n", ""},
		{"a signal within a trap", "trap 'echo in; sleep 1; echo out' TERM; sleep 1; sleep 3; echo end", map[time.Duration]func(*machine){500 * time.Millisecond: term, 1500 * time.Millisecond: term}, 0, 6 * time.Second, 6020 * time.Millisecond, "in\nin\nout\nout\nend\n", ""},
	} {
		r := runArgv(t, 0, false, []string{"sh", "-c", tt.script}, "", 20*time.Second, tt.at)
		if r.hung || r.err != nil {
			t.Errorf("%s: hung %v, %v", tt.name, r.hung, r.err)
			continue
		}
		if r.code != tt.code || r.stdout != tt.stdout || r.stderr != tt.stderr || r.took < tt.from || r.took > tt.to {
			t.Errorf("%s: exit %d after %v, stdout %q, stderr %q", tt.name, r.code, r.took, r.stdout, r.stderr)
		}
	}
}

// TestExec is about which commands take the shell's place; ash does the same
// (with sh -c 'echo $$' for showpid).
func TestExec(t *testing.T) {
	for _, tt := range []struct {
		script string
		same   bool
	}{
		{"showpid", true},
		{"true; showpid", true},
		{"true\nshowpid", true},
		{"showpid\n", false},
		{"true && showpid", true},
		{"{ showpid; }", true},
		{"(showpid)", true},
		{"if true; then showpid; fi", true},
		{"case a in a) showpid;; esac", true},
		{"showpid >&1", true},
		{"x=1 showpid", true},
		{"trap '' HUP; showpid", true},
		{"{ showpid; } >&1", false},
		{"! showpid", false},
		{"f() { showpid; }; f", false},
		{"eval showpid", false},
		{"trap 'echo' HUP; showpid", false},
		{"trap 'echo' HUP; trap - HUP; showpid", false},
		{"for i in 1; do showpid; done", false},
		{"showpid | cat", false},
		{"showpid & wait", false},
		{"echo $(showpid)", false},
		{"exec showpid", true},
	} {
		r := runArgv(t, 0, false, []string{"sh", "-c", tt.script}, "", time.Minute, nil)
		if out := strings.TrimSpace(r.stdout); (out == "1") != tt.same {
			t.Errorf("%q: PID %s, stderr %q", tt.script, out, r.stderr)
		}
	}
}

// TestPIDs is about how many processes there are.
func TestPIDs(t *testing.T) {
	for script, want := range map[string]string{
		"echo $$ $(showpid); showpid; echo":   "1 2\n3\n\n",
		"(echo $$; showpid; echo); echo $$":   "1\n3\n\n1\n",
		"sleep 1 & echo $!; showpid; echo":    "2\n3\n\n",
		"echo $PPID; (sh -c 'echo $PPID; :')": "0\n0\n",
		"true | showpid; echo":                "3\n\n",
		// POSIX 2.5.2: $! is the last process of a pipeline, which needs no shell around it.
		"sleep 1 | sleep 1 & echo $!; showpid; echo": "3\n4\n\n",
		"sh -c 'echo $$; showpid'; echo":             "2\n2\n\n",
	} {
		r := runArgv(t, 0, false, []string{"sh", "-c", script}, "", time.Minute, nil)
		if r.stdout != want {
			t.Errorf("%q: %q, want %q (stderr %q)", script, r.stdout, want, r.stderr)
		}
	}
}

// TestTime is about what commands take.
func TestTime(t *testing.T) {
	r := runScript(t, "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; echo done")
	if r.took < 20*time.Millisecond || r.took > 200*time.Millisecond {
		t.Errorf("1000 laps took %v", r.took)
	}
	r = runScript(t, "i=0; while [ $i -lt 10 ]; do i=$((i+1)); true | true; done; sleep 1; echo done")
	if r.took < 1005*time.Millisecond || r.took > 1200*time.Millisecond {
		t.Errorf("10 pipelines and a sleep took %v", r.took)
	}
}

// TestBounds is about scripts that would go on for ever, or take everything.
func TestBounds(t *testing.T) {
	for _, tt := range []struct{ script, stderr string }{
		{"f() { f; }; f", "nested too deep"},
		{"x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", "out of memory"},
		// The last part of a word is long text of the script, with a quoted character.
		{"x=a; while [ ${#x} -lt 4194304 ]; do x=$x$x; done; eval \"y=\\$x\\\\b$x\"; echo no", "out of memory"},
		{"eval() { :; }; x='. ./x'; echo \"$x\" >x; . ./x", "nested too deep"},
	} {
		r := runScript(t, tt.script)
		if r.hung || r.code != 2 || !strings.Contains(r.stderr, tt.stderr) {
			t.Errorf("%q: hung %v, exit %d, stderr %.200q", tt.script, r.hung, r.code, r.stderr)
		}
	}
}

// TestTold is about what the run is told of.
func TestTold(t *testing.T) {
	for _, tt := range []struct{ script, stderr, warn string }{
		{"nosuchthing -x", "sh: nosuchthing: not found\n", "unknown nosuchthing"},
		{"a=(1 2)", "sh: syntax error: unexpected \"(\"\n", "arrays"},
		{"echo ${x^^}", "sh: syntax error: bad substitution\n", ""},
		{"ulimit -n 5", "", "ulimit"},
	} {
		r := runScript(t, tt.script)
		if r.stderr != tt.stderr || !strings.Contains(strings.Join(r.warn, "\n"), tt.warn) {
			t.Errorf("%q: stderr %q, warnings %q", tt.script, r.stderr, r.warn)
		}
	}
}

// TestDeterminism runs scripts twice and with other seeds.
func TestDeterminism(t *testing.T) {
	for _, script := range []string{
		"for i in 1 2 3 4 5; do (sleep 0.$i; echo $i) & done; wait",
		"echo $RANDOM $RANDOM; (echo $RANDOM)",
		"a | b | c; alias x=1 y=2; alias; set",
	} {
		a, b := runArgv(t, 7, true, []string{"sh", "-c", script}, "", time.Hour, nil), runArgv(t, 7, true, []string{"sh", "-c", script}, "", time.Hour, nil)
		if a.stdout != b.stdout || a.stderr != b.stderr || a.took != b.took {
			t.Errorf("%q: %+v, then %+v", script, a, b)
		}
	}
}

// TestIdleIsInvisible holds parked loops against the same loops run lap by lap.
func TestIdleIsInvisible(t *testing.T) {
	for _, script := range []string{
		"trap 'exit 3' TERM; while true; do sleep 0.2; done",
		"trap 'echo t; sleep 1' TERM; trap 'exit 4' USR1; while :; do sleep 0.35; done",
		"trap 'break' TERM; until false; do sleep 1; done; echo out; exit 5",
		"while true; do sleep 0.2; done",
		"trap 'echo int' INT; sleep 7 & while true; do sleep 2; done",
		"f() { trap 'return' TERM; while true; do sleep 0.1; done; }; f; echo $?",
	} {
		for _, at := range []time.Duration{150 * time.Millisecond, 10_050 * time.Millisecond, 100_123 * time.Millisecond} {
			var outs, steps []string
			var took [2]time.Duration
			for i, noElide := range []bool{false, true} {
				x := newMachineAs(t, 0, noElide)
				out := &capture{l: x.l}
				done := ""
				_, err := x.c.Start(kernel.Spec{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/bin"}, Dir: "/", FDs: []kernel.File{nil, out, out},
					Done: func(e kernel.Exit) { done, took[i] = strconv.Itoa(e.Code), x.l.Now().Sub(loop.Epoch()) }})
				if err != nil {
					t.Fatal(err)
				}
				for n, sig := range []int{15, 2, 10} {
					x.l.Root().After(at+time.Duration(n)*20*time.Second, func() { x.c.Signal(sig) })
				}
				x.l.Root().After(at+5*time.Second, func() {
					_, _ = x.c.Start(kernel.Spec{Argv: []string{"sh", "-c", "sleep 1; echo exec"}, Env: []string{"PATH=/bin"}, Dir: "/", FDs: []kernel.File{nil, out, out}})
				})
				if err := x.l.RunUntil(loop.Epoch().Add(at + time.Minute)); err != nil {
					t.Fatal(err)
				}
				outs = append(outs, out.String()+done)
				steps = append(steps, strconv.FormatUint(x.l.Steps(), 10))
				for j, w := range out.at {
					out.at[j] = w.Round(time.Millisecond / 2)
				}
				outs[i] += fmt.Sprint(out.at)
				x.l.Close()
			}
			if outs[0] != outs[1] || (took[0]-took[1]).Abs() > 20*time.Microsecond {
				t.Errorf("%q, signal at %v: parked %q after %v, not parked %q after %v", script, at, outs[0], took[0], outs[1], took[1])
			}
			t.Logf("%q: steps %v, took %v", script, steps, took)
		}
	}
}

// TestParkedSleepKilled is about somebody who kills the process that stands for
// the sleeps.
func TestParkedSleepKilled(t *testing.T) {
	x := newMachine(t, 0)
	defer x.l.Close()
	out := &capture{l: x.l}
	_, err := x.c.Start(kernel.Spec{Argv: []string{"sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.2; done"}, Env: []string{"PATH=/bin"}, Dir: "/", FDs: []kernel.File{nil, out, out}})
	if err != nil {
		t.Fatal(err)
	}
	x.l.Root().After(time.Minute, func() {
		for _, p := range x.c.Processes() {
			if p.Argv[0] == "sleep" {
				_, _ = x.c.Start(kernel.Spec{Argv: []string{"sh", "-c", "kill " + strconv.Itoa(p.PID())}, Env: []string{"PATH=/bin"}, Dir: "/"})
			}
		}
	})
	if err := x.l.RunUntil(loop.Epoch().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if out.String() != "Terminated\n" || len(x.c.Processes()) != 2 {
		t.Errorf("%q, %d processes", out.String(), len(x.c.Processes()))
	}
	if n := x.l.Steps(); n > 500 {
		t.Errorf("%d steps", n)
	}
}

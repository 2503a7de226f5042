//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/fakecri/actor/fake"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// outcome is what a run of the program shows.
type outcome struct {
	stdout, stderr string
	code           int
}

func (o outcome) String() string {
	return fmt.Sprintf("exit %d\nstdout: %q\nstderr: %q", o.code, o.stdout, o.stderr)
}

// step is one run of the program. A background one is ended by TERM after the
// steps that follow, and its outcome comes last.
type step struct {
	args       []string
	stdin      string
	background bool
}

func cmd(line string) step { return step{args: strings.Fields(line)} }
func bg(line string) step  { return step{args: strings.Fields(line), background: true} }

func testEnv() []string { return []string{"PATH=/bin", "B=2", "A=1", "EMPTY=", "EQ=a=b"} }

// The real program and the interpreted one say the same.
func TestSame(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "actor")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, tc := range sameCases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			steps := tc.steps
			for _, name := range []string{"PORT1", "PORT2", "PORT3"} {
				steps = withPort(t, steps, name)
			}
			want := runReal(t, binary, steps)
			got := runFake(t, steps)
			for i := range want {
				if want[i] != got[i] {
					t.Errorf("actor %q\nreal: %v\nfake: %v", strings.Join(steps[i].args, " "), want[i], got[i])
				}
			}
			shown := fmt.Sprint(want) // quoted, and as it was
			for _, o := range want {
				shown += o.stdout + o.stderr
			}
			if !strings.Contains(shown, tc.shows) {
				t.Errorf("nothing shows %q:\n%v", tc.shows, want)
			}
		})
	}
}

type sameCase struct {
	name  string
	steps []step
	// shows is something that an outcome has, so that both can't be wrong
	// alike.
	shows string
}

func sameCases() []sameCase {
	one := func(line, shows string) sameCase {
		return sameCase{name: line, steps: []step{cmd(line)}, shows: shows}
	}
	return []sameCase{
		one("", "which command?"),
		one("nonsense", `"nonsense" is not a command`),
		one("help", "Options of run:"),
		one("exit 3 bye now", "bye now"),
		one("exit --stderr 255 bye", "exit 255"),
		one("exit x", `exit: CODE: "x" is not an exit code from 0 to 255`),
		one("exit", "exit: wants CODE"),
		one("sleep 5", `sleep: DURATION: "5" is not a duration such as 5s or 300ms`),
		one("sleep 10ms", "exit 0"),
		one("sleep 1s 2s", "one argument too many"),
		one("sleep --for=1s 1s", "--for: sleep has no options"),
		one("echo --stderr hello  world", "hello world"),
		one("echo --nope x", "--nope: not an option of echo, which has --stderr"),
		one("echo -- --stderr", "--stderr"),
		one("echo --stderr=1 x", "--stderr: takes no value"),
		one("lines 3 --length=20", "line 3.............."),
		one("lines 2 row-{n}", "row-2"),
		one("args a --b -- c", `"--b"`),
		one("env", "EQ=a=b"),
		one("env EQ", "a=b"),
		one("env NONE", "NONE: not set"),
		one("id", "uid=0 gid=0"),
		one("hostname", "exit 0"),
		one("tty", "not a tty"),
		one("kill FOO 1", `kill: SIGNAL: "FOO" is not a signal such as TERM`),
		one("kill TERM x", `PID: "x" is not the number of a process`),
		one("kill TERM 999999999", "no such process"),
		one("cat", "exit 0"),
		one("cat none", "cat: none: no such file or directory"),
		one("cat .", "is a directory"),
		one("ls none", "none: no such file or directory"),
		one("readlink none", "no such file"),
		one("stat none", "no such file"),
		one("rm none", "no such file"),
		one("mv none other", "no such file"),
		one("chmod 9 x", "is not an octal mode"),
		one("test-file none", "exit 1"),
		one("wait-file none --timeout=120ms", "not there after 120ms"),
		one("mount /nowhere/at/all", "nothing is mounted there"),
		one("mount /proc", "proc rw"),
		one("http ftp://x/", "does not begin with http://"),
		one("http http://127.0.0.1:PORT1/", "connection refused"),
		one("tcp 127.0.0.1:PORT1", "connection refused"),
		one("grpc 127.0.0.1:PORT1", "connection refused"),
		one("tcp nonsense", `HOST:PORT: "nonsense" is not HOST:PORT`),
		one("chain echo a -- exit 4 b -- echo never", "exit 4"),
		one("chain echo a -- bad", `chain: "bad" is not a command`),
		one("run --exit=3", "--exit: needs --for"),
		one("run --for=0s --exit=1,2", "several codes need --count"),
		one("run --for", "--for: wants a value: --for=DURATION"),
		one("run --memory=1X", `"1X" is not a size such as 64Mi`),
		one("run --http=0", `"0" is not a port`),
		one("run --cpu=x", "is not a share of processors"),
		one("run --print=x", "is none of args, env"),
		one("run --write=x", `"x" is not FILE=TEXT`),
		one("run --log-count=2 --log=x", "--log-count: needs --log-every"),
		one("run stray", `"stray" is one argument too many`),
		one("run --for=0s --log=a --log=b --exit=9", `a\nb\n`),
		one("run --for=0s --log=x{n} --log-batch=3 --log-length=6", `x3....\n`),
		one("run --for=700ms --log=x{n} --log-every=300ms", `x1\nx2\nx3\n`),
		one("run --for=600ms --log=a --log=b --log-every=100ms --log-count=3", `a\nb\na\n`),
		one("run --for=300ms --log=a{n} --log-after=100ms --log-stream=both --log-batch=4", `a2\na4\n`),
		one("run --for=0s --print=args --print=env --print=id --print=hostname --print=pwd --print=/none", "--print=/none: no such file"),
		one("run --for=50ms --memory=8Mi --memory-over=20ms", "exit 0"),
		one("run --for=50ms --memory=8Mi --cpu=100m", "exit 0"),
		one("run --for=0s --termination-message=bye --termination-path=msg", "exit 0"),
		one("run --for=0s --termination-message=bye --termination-path=none/msg", "--termination-path=none/msg: no such file"),
		{"stdin", []step{{args: []string{"cat"}, stdin: "some\nthing"}, {args: []string{"run", "--stdin", "--stdin-exit"}, stdin: "to copy\n"}}, "to copy"},
		{"files", []step{
			cmd("mkdir d d"), cmd("write d/f text"), cmd("append d/f more"), cmd("cat d/f none d/f"), cmd("stat d d/f"), cmd("chmod 600 d/f"),
			cmd("stat d/f"), cmd("ln f d/l"), cmd("readlink d/l"), cmd("cat d/l"), cmd("ls d"), cmd("ls"), cmd("mv d/f d/g"), cmd("test-file d/g d"),
			cmd("touch d/g d/h"), cmd("fill d/big 10Ki"), cmd("stat d/big"), cmd("rm d"), cmd("rm d/g d/l d/h d/big"), cmd("rm d"), cmd("ls"),
			cmd("write none/f x"), cmd("touch none/f"), cmd("rm none"), cmd("mkdir none/d"), cmd("ls d/f"),
		}, "directory not empty"},
		{"count", []step{
			cmd("run --for=0s --exit=3,2,0 --count=n"), cmd("run --for=0s --exit=3,2,0 --count=n"), cmd("run --for=0s --exit=3,2,0 --count=n"),
			cmd("run --for=0s --exit=3,2,0 --count=n --append=n=x --at-exit=m=end --write=o=text"), cmd("cat n m o"),
		}, `4\nx\nend\n`},
		{"signals", []step{bg("run --stop-exit=5 --stop-after=20ms --termination-message=over --termination-path=msg"), cmd("sleep 50ms")}, "signal TERM"},
		{"a signal ends a command", []step{bg("sleep 10s"), cmd("sleep 50ms")}, "exit 143"},
		{"wait", []step{bg("run --wait-for=there --log=now"), cmd("write there x"), cmd("sleep 150ms")}, "now"},
		{"http", []step{
			bg("run --http=PORT1 --unhealthy-after=10m --log-requests --at-exit=end=over"), cmd("sleep 100ms"),
			cmd("http http://127.0.0.1:PORT1/"), cmd("http http://127.0.0.1:PORT1/healthz"), cmd("http http://127.0.0.1:PORT1/unhealthy"),
			cmd("http http://127.0.0.1:PORT1/readyz"), cmd("http http://127.0.0.1:PORT1/status/404"), cmd("http http://127.0.0.1:PORT1/status/9"),
			cmd("http http://127.0.0.1:PORT1/redirect?/x"), cmd("http http://127.0.0.1:PORT1/request?a=b --header=X-A:b --method=PUT"),
			cmd("http http://127.0.0.1:PORT1/echo --method=POST --data=body"), cmd("http http://127.0.0.1:PORT1/env/EQ"), cmd("http http://127.0.0.1:PORT1/env/NO"),
			cmd("write f text"), cmd("http http://127.0.0.1:PORT1/file/none"), cmd("http http://127.0.0.1:PORT1/client"), cmd("http http://127.0.0.1:PORT1/log/line"),
			cmd("http http://127.0.0.1:PORT1/delay/5s --timeout=100ms"), cmd("http http://127.0.0.1:PORT1/delay/x"), cmd("http http://127.0.0.1:PORT1/nope"),
			cmd("tcp 127.0.0.1:PORT1"), cmd("tcp 127.0.0.1:PORT1 --data=garbage\r\n\r\n"), cmd("http http://127.0.0.1:PORT1/ --method=HEAD"),
			cmd("run --http=PORT1"), cmd("http http://127.0.0.1:PORT1/exit/6"), cmd("sleep 50ms"), cmd("cat end"),
		}, "address already in use"},
		{"health over time", []step{
			bg("run --http=PORT1 --grpc=PORT2 --healthy-after=600ms --unhealthy-after=1300ms --recover-after=2s"), cmd("sleep 300ms"),
			cmd("http http://127.0.0.1:PORT1/livez"), cmd("grpc :PORT2"), cmd("sleep 600ms"), cmd("http http://127.0.0.1:PORT1/livez"), cmd("grpc :PORT2"),
			cmd("sleep 700ms"), cmd("http http://127.0.0.1:PORT1/livez"), cmd("grpc :PORT2"), cmd("sleep 700ms"), cmd("http http://127.0.0.1:PORT1/livez"),
		}, "NOT_SERVING"},
		{"health by a file", []step{
			bg("run --http=PORT1 --healthy-file=ok"), cmd("sleep 100ms"), cmd("http http://127.0.0.1:PORT1/livez"), cmd("touch ok"),
			cmd("http http://127.0.0.1:PORT1/livez"), cmd("rm ok"), cmd("http http://127.0.0.1:PORT1/livez"),
		}, "status 503"},
		{"grpc and tcp", []step{
			bg("run --grpc=PORT1 --grpc-service=a --tcp=PORT2 --http=PORT3 --listen-after=100ms --log-requests"), cmd("tcp :PORT2"), cmd("sleep 300ms"),
			cmd("grpc 127.0.0.1:PORT1"), cmd("grpc :PORT1 --service=a"), cmd("grpc :PORT1 --service=b"), cmd("tcp :PORT2 --data=ping"), cmd("tcp :PORT2"),
			cmd("tcp :PORT1 --data=garbage"), cmd("grpc :PORT2 --timeout=200ms"), cmd("grpc :PORT3"), cmd("http http://127.0.0.1:PORT2/"),
		}, "unknown service"},
		{"child", []step{cmd("child 10ms"), cmd("run --for=0s --child=10ms --log=x")}, "x"},
	}
}

// withPort puts a free port in a name's place.
func withPort(t *testing.T, steps []step, name string) []step {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	out := make([]step, len(steps))
	for i, s := range steps {
		s.args = append([]string(nil), s.args...)
		for j := range s.args {
			s.args[j] = strings.ReplaceAll(s.args[j], name, port)
		}
		out[i] = s
	}
	return out
}

func runReal(t *testing.T, binary string, steps []step) []outcome {
	dir := t.TempDir()
	out := make([]outcome, len(steps))
	start := func(s step) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		c := exec.Command(binary, s.args...)
		c.Args[0] = actor.Program
		var stdout, stderr bytes.Buffer
		c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr = dir, testEnv(), strings.NewReader(s.stdin), &stdout, &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c, &stdout, &stderr
	}
	end := func(c *exec.Cmd, stdout, stderr *bytes.Buffer) outcome {
		err := c.Wait()
		var xerr *exec.ExitError
		if err != nil && !errors.As(err, &xerr) {
			t.Fatal(err)
		}
		return outcome{place(stdout.String(), dir), place(stderr.String(), dir), c.ProcessState.ExitCode()}
	}
	for i, s := range steps {
		c, stdout, stderr := start(s)
		if s.background {
			defer func() {
				_ = c.Process.Signal(syscall.SIGTERM)
				out[i] = end(c, stdout, stderr)
			}()
			continue
		}
		out[i] = end(c, stdout, stderr)
	}
	return out
}

// place takes the directory out of a text.
func place(text, dir string) string { return strings.ReplaceAll(text, dir, "/place") }

// capture is a file that keeps what is written.
type capture struct{ bytes.Buffer }

func (c *capture) Read(context.Context, []byte) (int, error)      { return 0, syscall.EBADF }
func (c *capture) Write(_ context.Context, b []byte) (int, error) { return c.Buffer.Write(b) }
func (c *capture) Close() error                                   { return nil }
func (c *capture) Dup() kernel.File                               { return c }

func runFake(t *testing.T, steps []step) []outcome {
	l := loop.New(loop.Options{Name: "node", Seed: 1})
	defer l.Close()
	hostname, _ := os.Hostname()
	m := kernel.New(kernel.Options{Loop: l, FS: memfs.New(memfs.Options{Loop: l}), Hostname: hostname})
	image := memfs.New(memfs.Options{Loop: l, Tmpfs: []string{}})
	for _, d := range []string{"/proc", "/dev", "/sys", "/place"} {
		if err := image.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := image.WriteFile(actor.Program, kernel.ELF("actor"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := m.NewContainer(kernel.ContainerOptions{Root: m.NewView(kernel.ViewOptions{Image: image.Freeze()}), Commands: fake.Commands()})
	out := make([]outcome, len(steps))
	done := false
	l.Root().Go("steps", func(ctx context.Context) {
		// The container's first process stays, as it would in a pod.
		if _, err := c.Start(kernel.Spec{Argv: []string{actor.Program, "pause"}}); err != nil {
			t.Error(err)
			return
		}
		start := func(s step) (*kernel.Process, *capture, *capture) {
			var stdout, stderr capture
			stdin, w := m.Pipe()
			_, _ = w.Write(ctx, []byte(s.stdin))
			_ = w.Close()
			p, err := c.Start(kernel.Spec{Argv: append([]string{actor.Program}, s.args...), Env: testEnv(), Dir: "/place", FDs: []kernel.File{stdin, &stdout, &stderr}})
			if err != nil {
				t.Error(err)
			}
			_ = stdin.Close()
			return p, &stdout, &stderr
		}
		end := func(p *kernel.Process, stdout, stderr *capture) outcome {
			for {
				if e, dead := p.Ended(); dead {
					return outcome{stdout.String(), stderr.String(), e.Code}
				}
				_ = l.Sleep(ctx, time.Millisecond)
			}
		}
		for i, s := range steps {
			p, stdout, stderr := start(s)
			if p == nil {
				return
			}
			if s.background {
				defer func() {
					p.Signal(kernel.SIGTERM)
					out[i] = end(p, stdout, stderr)
				}()
				continue
			}
			out[i] = end(p, stdout, stderr)
		}
		done = true
	})
	if err := l.RunUntil(l.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if !done {
		t.Fatal("the interpreted steps did not end within a minute")
	}
	return out
}

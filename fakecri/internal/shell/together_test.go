package shell_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox"
	"github.com/drydock-sim/drydock/fakecri/internal/shell"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/fakecri/kernel/rootfs"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

type buffer struct{ bytes.Buffer }

func (b *buffer) Read(context.Context, []byte) (int, error)         { return 0, io.EOF }
func (b *buffer) Write(_ context.Context, data []byte) (int, error) { return b.Buffer.Write(data) }
func (b *buffer) Close() error                                      { return nil }
func (b *buffer) Dup() kernel.File                                  { return b }

// TestWithApplets runs scripts as pods have them, with the image's applets.
func TestWithApplets(t *testing.T) {
	for _, tt := range []struct {
		script, stdout, stderr string
		code                   int
	}{
		{"i=0; while test $i -lt 700; do echo \"line $i 0123456789\"; i=$((i+1)); done > /tmp/log; tail -n 1 /tmp/log; wc -l < /tmp/log; exit 1", "line 699 0123456789\n700\n", "", 1},
		{"mkdir /d; touch /d/a /d/.b; ls -la /d | grep -c '\\.\\.'; ls /d | wc -l", "1\n1\n", "", 0},
		{"env | grep ^P_ | sort", "P_A=1\nP_B=2\n", "", 0},
		{"head -c 30 /dev/zero | tr '\\0' x; echo", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", "", 0},
		{"id -u; ls -ld /tmp | awk '{print $1,$4}'", "0\ndrwxrwxrwt root\n", "", 0},
		{"sleep 0.1 & sleep 0.1; ps | grep -c '[s]leep'; wait", "1\n", "", 0},
		{"dd if=/dev/zero of=/tmp/f bs=1M count=900 2>/dev/null; ls -l /tmp/f | awk '{print $5}'", "943718400\n", "", 0},
		{"test -f /d/x && exit 0; touch /nodir/x || echo ro > /tmp/t; cat /tmp/t; exit 2", "ro\n", "touch: /nodir/x: No such file or directory\n", 2},
		{"echo a b c | cut -d' ' -f2; echo abc | sed 's/b/X/'; seq 3 | xargs; expr 1 + 2; basename /a/b", "b\naXc\n1 2 3\n3\nb\n", "", 0},
		{"x=$(date +%Y); echo $x; yes | head -n 2; timeout 1 sleep 5; echo $?", "2026\ny\ny\n143\n", "Terminated\n", 0},
		{"cat <<EOF | while read k v; do echo \"$v=$k\"; done\na 1\nb 2\nEOF", "1=a\n2=b\n", "", 0},
		{"cat <(echo one) /dev/stdin <<E\ntwo\nE", "one\ntwo\n", "", 0},
		{"sh -c 'exit 3' || printf '%s\\n' $?; [ -d /proc/$$ ] && echo proc; cat /proc/self/comm", "3\nproc\ncat\n", "", 0},
		{"for m in +r +x u=rX g=u a-w g+ = u=rwx,g=rx,o= go-rwx a=rwx; do umask 027; umask $m; umask; done", "0027\n0027\n0227\n0007\n0227\n0027\n0777\n0027\n0077\n0000\n", "", 0},
		{"umask 027; umask a+s; umask", "0027\n", "sh: umask: line 0: illegal mode: a+s\n", 0},
		{"touch f; [ f -nt none ]; echo $?; test none -ot f; echo $?; env test f -nt none; echo $?", "1\n1\n1\n", "", 0},
		{"find /etc -name 'pass*' | sort; nosuch; echo $?", "/etc/passwd\n127\n", "sh: nosuch: not found\n", 0},
	} {
		l := loop.New(loop.Options{Name: "node-0"})
		m := kernel.New(kernel.Options{Loop: l, FS: memfs.New(memfs.Options{}), Hostname: "node-0", Memory: 8 << 30})
		cmds := busybox.Commands()
		cmds["sh"] = shell.Command()
		img, err := rootfs.BusyboxImage(append(busybox.Applets(), "sh"))
		if err != nil {
			t.Fatal(err)
		}
		c := m.NewContainer(kernel.ContainerOptions{Root: m.NewView(kernel.ViewOptions{Image: img}), Commands: cmds})
		var so, se buffer
		code := -1
		_, err = c.Start(kernel.Spec{Argv: []string{"sh", "-c", tt.script}, Env: []string{"PATH=/bin", "P_B=2", "P_A=1"}, Dir: "/", FDs: []kernel.File{m.Null(), &so, &se},
			Done: func(e kernel.Exit) { code = e.Code }})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.RunUntil(loop.Epoch().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		if so.String() != tt.stdout || se.String() != tt.stderr || code != tt.code {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", tt.script, code, so.String(), se.String())
		}
		l.Close()
	}
}

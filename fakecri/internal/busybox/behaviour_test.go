package busybox_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func TestNames(t *testing.T) {
	all := busybox.Applets()
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("the table is not sorted, or names an applet twice: %v", all)
	}
}

// TestTime checks how long commands take on the loop's clock.
func TestTime(t *testing.T) {
	for _, c := range []struct {
		script    string
		took      time.Duration
		tolerance time.Duration
		code      int
	}{
		{"sleep 2.5", 2500 * time.Millisecond, 50 * time.Millisecond, 0},
		{"sleep 1 1m", 61 * time.Second, 50 * time.Millisecond, 0},
		{"usleep 250000", 250 * time.Millisecond, 50 * time.Millisecond, 0},
		{"timeout 2 sleep 30", 2 * time.Second, 50 * time.Millisecond, 143},
		{"timeout -s KILL 2 sleep 30", 2 * time.Second, 50 * time.Millisecond, 137},
		{"timeout 2 sh -c 'trap \"exit 3\" TERM; while true; do sleep 0.5; done'", 2 * time.Second, 600 * time.Millisecond, 3},
		{"timeout -k 1 2 sh -c 'trap : TERM; while true; do sleep 0.5; done'", 3 * time.Second, 50 * time.Millisecond, 137},
		{"timeout 3 yes > /dev/null", 3 * time.Second, 300 * time.Millisecond, 143},
		{"timeout 3 cat /dev/zero > /dev/null", 3 * time.Second, 300 * time.Millisecond, 143},
		{"timeout 3 awk 'BEGIN{while(1)x++}'", 3 * time.Second, 300 * time.Millisecond, 143},
		{"timeout 3 sed ':a;ba' /etc/passwd", 3 * time.Second, 300 * time.Millisecond, 143},
		{"timeout 3 dd if=/dev/zero of=/dev/null bs=1M", 3 * time.Second, 300 * time.Millisecond, 143},
		{"timeout 3 tail -f /etc/passwd > /dev/null", 3 * time.Second, 50 * time.Millisecond, 143},
		{"timeout 3 seq 1 1000000000 > /dev/null", 3 * time.Second, 300 * time.Millisecond, 143},
		{"yes | head -n 1 > /dev/null", 0, 100 * time.Millisecond, 0},
		{"dd if=/dev/zero of=/tmp/f bs=1M count=900 2>/dev/null", 450 * time.Millisecond, 200 * time.Millisecond, 0},
	} {
		t.Run(c.script, func(t *testing.T) {
			r := newRig(t, nil)
			p := r.start(r.c, kernel.Cred{}, "", "", "sh", "-c", "true; "+c.script+"; exit $?")
			began := r.l.Now()
			r.run(2 * time.Minute)
			if p.exit == nil || p.exit.Code != c.code {
				t.Fatalf("it ended with %v, want %d; output %q", p.exit, c.code, p.out.b)
			}
			if took := p.ended.Sub(began); took < c.took || took > c.took+c.tolerance {
				t.Errorf("it took %v, want %v", took, c.took)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	limit := func(o *kernel.ContainerOptions) { o.MemoryLimit = 50 << 20 }
	for _, c := range []struct {
		argv []string
		oom  bool
		code int
	}{
		{[]string{"dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=5"}, true, 137},
		{[]string{"dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=500"}, false, 0},
		{[]string{"usemem", "104857600"}, true, 137},
	} {
		r := newRig(t, limit)
		p := r.start(r.c, kernel.Cred{}, "", "", c.argv...)
		r.run(time.Minute)
		if p.exit == nil || p.exit.OOM != c.oom || p.exit.Code != c.code {
			t.Errorf("%v: %+v", c.argv, p.exit)
		}
	}
	r := newRig(t, limit)
	p := r.start(r.c, kernel.Cred{}, "", "", "usemem", "10485760")
	r.run(time.Minute)
	if p.exit != nil || r.c.MemoryUsage() < 10<<20 {
		t.Fatalf("usemem: %+v, %d bytes", p.exit, r.c.MemoryUsage())
	}
	r.c.Signal(kernel.SIGTERM)
	r.run(time.Second)
	if p.exit == nil || p.exit.Code != 0 {
		t.Errorf("usemem after SIGTERM: %+v", p.exit)
	}
}

// What fills a container's memory with zeros doesn't fill ours.
func TestTailOfZeros(t *testing.T) {
	r := newRig(t, func(o *kernel.ContainerOptions) { o.MemoryLimit = 50 << 20 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := r.start(r.c, kernel.Cred{}, "", "", "tail", "/dev/zero")
	r.run(time.Minute)
	runtime.ReadMemStats(&after)
	if p.exit == nil || !p.exit.OOM {
		t.Errorf("%+v", p.exit)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("it took %d bytes", n)
	}
}

// TestScripts is of what has no counterpart to record: processes and the
// network of the simulation.
func TestScripts(t *testing.T) {
	// A program for httpd stands between cgi and ask.
	const cgi, ask = "mkdir -p /tmp/cgi-bin; cat > /tmp/cgi-bin/a <<'E'\n#!/bin/sh\n", "\nE\nchmod +x /tmp/cgi-bin/a; httpd -p 8080 -h /tmp; "
	for _, c := range []struct{ script, want string }{
		{"mkdir /tmp/d; echo hi > /tmp/index.html; httpd -p 8080 -h /tmp; wget -q -O - http://127.0.0.1:8080/", "hi\n"},
		{"(head -c 2000000 /dev/zero; printf 'a\\nb\\n') | tail -n 2 | wc -c; head -c 3000000 /dev/zero | tail -c 9 | wc -c", "2000004\n9\n"},
		{"head -c 1500000 /dev/zero | tail | wc -c; (head -c 2000000 /dev/zero; echo; echo x) | tail -n 1; head -c 2000000 /dev/zero | tail -n 0 | wc -c", "1500000\nx\n0\n"},
		{"httpd -p 8080 -h /tmp; wget -q -O - http://127.0.0.1:8080/nope; echo $?", "wget: server returned error: HTTP/1.1 404 Not Found\n1\n"},
		{cgi + "printf 'Status: 503 Busy\\r\\n\\r\\nbad\\n'" + ask + "printf 'GET /cgi-bin/a HTTP/1.0\\r\\n\\r\\n' | nc 127.0.0.1 8080", "HTTP/1.1 503 Busy\r\n\r\nbad\n"},
		{cgi + "printf 'HTTP/1.0 204 None\\r\\n\\r\\n'" + ask + "printf 'GET /cgi-bin/a HTTP/1.0\\r\\n\\r\\n' | nc 127.0.0.1 8080", "HTTP/1.0 204 None\r\n\r\n"},
		{cgi + "echo; env | grep -c ^HTTP_; echo $QUERY_STRING $PATH_INFO $SCRIPT_NAME; pwd" + ask + "wget -q -O - 'http://127.0.0.1:8080/cgi-bin/a/x/y?q=1'", "3\nq=1 /x/y /cgi-bin/a\n/tmp/cgi-bin\n"},
		{cgi + "echo; cat; echo $CONTENT_LENGTH" + ask + "wget -q -O - --post-data hello 'http://127.0.0.1:8080/cgi-bin/a'", "hello5\n"},
		{cgi + "exit 1" + ask + "printf 'GET /cgi-bin/a HTTP/1.0\\r\\n\\r\\n' | nc 127.0.0.1 8080", ""},
		{cgi + "exit 1" + ask + "chmod -x /tmp/cgi-bin/a; for x in a b ''; do wget -q http://127.0.0.1:8080/cgi-bin/$x; done", "wget: server returned error: HTTP/1.1 404 Not Found\nwget: server returned error: HTTP/1.1 404 Not Found\nwget: server returned error: HTTP/1.1 403 Forbidden\n"},
		{"httpd -p 8080 -h /tmp; wget -q -S http://127.0.0.1:8080/no 2>&1 | cut -c3-16", "HTTP/1.1 404 N\net: server ret\n"},
		{"mkdir /tmp/d; httpd -p 8080 -h /tmp; wget -q http://127.0.0.1:8080/d/; echo $?", "wget: server returned error: HTTP/1.1 404 Not Found\n1\n"},
		{"cd /tmp; echo x > f; httpd -p 80; wget -O g localhost/f 2>/dev/null; cat g; wget --spider http://localhost/f; wget -S -q -O /dev/null http://localhost/f", "x\nConnecting to localhost (127.0.0.1:80)\nremote file exists\n"},
		{"httpd -p 8080 -h /tmp; httpd -p 8080 -h /tmp; echo $?; netstat -tln | tail -n 1", "httpd: bind: Address already in use\n1\ntcp        0      0 0.0.0.0:8080            0.0.0.0:*               LISTEN      \n"},
		{"httpd -p 8080 -h /tmp; pidof httpd | wc -w; killall httpd; sleep 0.1; pidof httpd; echo $?", "1\n1\n"},
		{"nc -l -p 9000 > /tmp/o & sleep 0.1; echo hello | nc 127.0.0.1 9000; wait; cat /tmp/o", "hello\n"},
		{"nc -l -p 9000 -e cat & sleep 0.1; echo back | nc 127.0.0.1 9000", "back\n"},
		{"nc -z 127.0.0.1 9000; echo $?; nc -l -p 9000 & sleep 0.1; nc -z -v 127.0.0.1 9000; echo $?", "nc: can't connect to remote host (127.0.0.1): Connection refused\n1\n127.0.0.1 (127.0.0.1:9000) open\n0\n"},
		{"sleep 100 & sleep 0.1; ps -o args | grep '^sleep'; kill $!; wait $!; echo $?", "sleep 100\nTerminated\n143\n"},
		{"sleep 100 & sleep 0.1; killall -9 sleep; wait; pgrep sleep; echo $?", "1\n"},
		{"ps | tail -n +2 | head -n 1", "    1 root     sh -c ps | tail -n +2 | head -n 1\n"},
		{"top -b -n1 | sed -n 4,5p | cut -c1-25", "  PID  PPID USER     STAT\n    1     0 root     S   \n"},
		{"hostname; id; date; uname -n", "pod\nuid=0(root) gid=0(root)\nThu Jan  1 00:00:00 UTC 2026\npod\n"},
		{"ping -c 2 127.0.0.1 | tail -n 3", "--- 127.0.0.1 ping statistics ---\n2 packets transmitted, 2 packets received, 0% packet loss\nround-trip min/avg/max = 0.060/0.060/0.060 ms\n"},
		{"(echo a; sleep 2; echo b) > /tmp/l & sleep 1; timeout 3 tail -f /tmp/l; true", "a\nb\nTerminated\n"},
		{"busybox ls /etc/passwd; busybox nosuch; echo $?", "/etc/passwd\nnosuch: applet not found\n127\n"},
		{"awk 'BEGIN{print \"b\" | \"cat 1>&2\"; close(\"cat 1>&2\"); \"hostname\" | getline h; print h; print system(\"exit 7\")}'", "b\npod\n7\n"},
		{"find /etc -name passwd -exec head -n 1 {} \\;", "root:x:0:0:root:/root:/bin/sh\n"},
		{"echo 'a b' | xargs -n 1 sh -c 'echo \"<$0>\"'", "<a>\n<b>\n"},
		{"seq 5 | tee /dev/stderr | tail -n 1", "1\n2\n3\n4\n5\n5\n"},
		{"cp /bin/ls /tmp/x; /tmp/x -d /etc 2>&1 | head -n 1", "x: applet not found\n"},
		{"nohup echo x; nice echo y; setsid echo z", "x\ny\nz\n"},
		{"df -h /tmp | head -n 1; mount | grep -c ' type '| sed 's/[0-9]*/n/'", "Filesystem                Size      Used Available Use% Mounted on\nn\n"},
		{"nproc; cat /proc/sys/kernel/ostype; sort /etc/group | head -n 1", "2\nLinux\nadm:x:4:\n"},
		{"mkdir -p /tmp/q/r; find /tmp/q -delete; ls /tmp; echo 2M | sort -h; printf 'v10\\nv9\\n' | sort -V", "2M\nv9\nv10\n"},
		{"awk 'BEGIN{print 2^10, int(sqrt(81)), 2**3}'", "1024 9 8\n"},
	} {
		t.Run(c.script, func(t *testing.T) {
			out, _ := sh(t, c.script)
			if i := strings.Index(out, "  HTTP/1.1"); i >= 0 {
				out = out[:i]
			}
			if out != c.want {
				t.Errorf("got\n%q, want\n%q", out, c.want)
			}
		})
	}
}

// TestUnprivileged is of a process that is not root, in a view that is partly
// read-only.
func TestUnprivileged(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"id; id -u; id -Gn; whoami", "uid=1000 gid=3000 groups=2000\n1000\nid: unknown ID 3000\nid: unknown ID 2000\n3000 2000\nwhoami: unknown uid 1000\n"},
		{"touch /root/x; cat /root/x; ls /root; mkdir /x; rm /etc/passwd; chown 0 /tmp; chmod 777 /etc", "touch: /root/x: Permission denied\ncat: can't open '/root/x': Permission denied\nls: can't open '/root': Permission denied\n" +
			"mkdir: can't create directory '/x': Permission denied\nrm: can't remove '/etc/passwd': Permission denied\nchown: /tmp: Operation not permitted\nchmod: /etc: Operation not permitted\n"},
		{"cd /tmp; touch a; ls -ln a | cut -c1-42", "-rw-r--r--    1 1000     3000             \n"},
		{"touch /ro/x; rm /ro/f; mkdir /ro/d; cp /etc/passwd /ro/f; mv /ro/f /tmp/f", "touch: /ro/x: Read-only file system\nrm: can't remove '/ro/f': Read-only file system\nmkdir: can't create directory '/ro/d': Read-only file system\n" +
			"cp: can't create '/ro/f': Read-only file system\nmv: can't remove '/ro/f': Read-only file system\n"},
	} {
		t.Run(c.script, func(t *testing.T) {
			r := newRig(t, nil)
			if err := r.fs.MkdirAll("/ro", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := r.fs.WriteFile("/ro/f", []byte("x"), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := r.c.View().Namespace().Bind("/ro", r.fs, "/ro", true); err != nil {
				t.Fatal(err)
			}
			p := r.start(r.c, kernel.Cred{UID: 1000, GID: 3000, Groups: []int{2000}}, "", "", "sh", "-c", c.script+"; true")
			r.run(time.Minute)
			if got := string(p.out.b); got != c.want {
				t.Errorf("got\n%q, want\n%q", got, c.want)
			}
		})
	}
}

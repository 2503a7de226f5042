package fakecri

import (
	"errors"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Commands that nobody knows exit 0 beside a program of which nobody knows the
// image's files, with a warning; where the image's commands are known they are
// missing.
func TestUnknownCommandsInExecs(t *testing.T) {
	for _, tc := range []struct {
		image string
		cmd   []string
		out   string
		code  int    // the exit code, if it runs
		fails string // what the error has, if it doesn't
		warns string
		ends  bool // the container, well
	}{
		{image: "redis:7", cmd: []string{"redis-cli", "-h", "localhost", "ping"}, out: "PONG\n"},
		{image: "redis:7", cmd: []string{"sh", "-c", `[ "$(redis-cli ping)" = PONG ] && redis-cli ping | grep -c PONG`}, out: "1\n"},
		{image: "redis:7", cmd: []string{"redis-cli", "info"}, warns: "what redis-cli does with these arguments is not known here"},
		{image: "redis:7", cmd: []string{"redis-cli", "-p", "7000", "ping"}, code: 1},
		{image: "postgres:16", cmd: []string{"sh", "-c", `exec pg_isready -U "$USER" -h 127.0.0.1`}, out: "127.0.0.1:5432 - accepting connections\n"},
		{image: "bitnami/redis:7", cmd: []string{"redis-cli", "ping"}, out: "PONG\n"},
		{image: "mysql:8", cmd: []string{"mysqladmin", "ping", "-h", "localhost"}, out: "mysqld is alive\n"},
		{image: "mongo:7", cmd: []string{"mongosh", "--quiet", "--eval", `db.runCommand("ping").ok`}, out: "1\n"},
		{image: "rabbitmq:3", cmd: []string{"rabbitmq-diagnostics", "-q", "ping"}, out: "Ping succeeded\n"},
		{image: "zookeeper:3.9", cmd: []string{"sh", "-c", "echo ruok | nc localhost 2181 | grep -c imok"}, code: 1, out: "0\n"},
		{image: "zookeeper:3.9", cmd: []string{"sh", "-c", "echo srvr | nc localhost 2181 | grep Mode"}, out: "Mode: standalone\n"},
		{image: "kubernetes-zookeeper:1.0-3.4.10", cmd: []string{"sh", "-c", `[ "$(echo ruok | nc 127.0.0.1 2181)" = imok ]`}},
		{image: "cassandra:5", cmd: []string{"sh", "-c", "nodetool status | grep -c ^UN"}, out: "1\n"},
		{image: "apache/kafka:3.8", cmd: []string{"kafka-topics.sh", "--bootstrap-server", "localhost:9092", "--list"}},
		{image: "apache/kafka:3.8", cmd: []string{"kafka-topics.sh", "--bootstrap-server", "nowhere:9092", "--list"}, code: 1},
		{image: "etcd:3.5", cmd: []string{"etcdctl", "endpoint", "health"}, out: "127.0.0.1:2379 is healthy: successfully committed proposal: took = 2.1ms\n"},
		{image: "ghcr.io/acme/api:1", cmd: []string{"/app/health"}, warns: "the command /app/health is not known here"},
		{image: "ghcr.io/acme/api:1", cmd: []string{"sh", "-c", "/app/health && frob || echo no"}, warns: "frob"},
		{image: "ghcr.io/acme/api:1", cmd: []string{"sh", "-c", "cat /missing; false"}, code: 1},
		{image: "ghcr.io/acme/api:1", cmd: []string{"/etc/passwd"}, fails: "permission denied"},
		{image: "nginx:1.27", cmd: []string{"sh", "-c", `. /etc/os-release; echo "$ID $VERSION_ID"`}, out: "debian 12\n"},
		{image: "nginx:1.27", cmd: []string{"nginx", "-t"}},
		{image: "nginx:1.27", cmd: []string{"nginx", "-s", "quit"}, ends: true},
		{image: "redis:7", cmd: []string{"redis-cli", "shutdown"}, ends: true},
		{image: "registry.k8s.io/pause:3.10", cmd: []string{"frob"}, fails: "executable file not found in $PATH"},
	} {
		t.Run(tc.image+" "+strings.Join(tc.cmd, " "), func(t *testing.T) {
			opts, warned := socketOptions, ""
			opts.Warn = func(text string) { warned += text + "\n" }
			run(t, opts, func(e *env) {
				e.pull(tc.image)
				cfg := containerConfig("web", "main", 0)
				cfg.Image = spec(tc.image)
				for _, name := range []string{"POSTGRES_PASSWORD", "MYSQL_ROOT_PASSWORD", "REDIS_PASSWORD"} {
					cfg.Envs = append(cfg.Envs, &runtimeapi.KeyValue{Key: name, Value: []byte("secret")})
				}
				id, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				e.sleep(time.Minute)
				out, _, err := e.c.ExecSync(e.ctx, id, tc.cmd, 0)
				code := 0
				var exit *ExitError
				if errors.As(err, &exit) {
					code, err = exit.Code, nil
				}
				if tc.fails != "" {
					if err == nil || !strings.Contains(err.Error(), tc.fails) {
						t.Errorf("error %v, want %q", err, tc.fails)
					}
					return
				}
				e.ok(err)
				if tc.ends {
					e.sleep(5 * time.Second)
					e.exited(id, 0, "Completed")
				}
				if string(out) != tc.out || code != tc.code {
					t.Errorf("%q and code %d, want %q and %d", out, code, tc.out, tc.code)
				}
				if warned == "" != (tc.warns == "") || !strings.Contains(warned, tc.warns) {
					t.Errorf("warnings %q, want %q", warned, tc.warns)
				}
			})
		})
	}
}

// A tool finds its server only once that is ready; a database without a password ends, and
// another command of the image is run as it is.
func TestKnownServersStart(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		e.pull("postgres:16")
		sb := e.sandbox("web", 0)
		start := func(name, password string, args ...string) string {
			cfg := containerConfig("web", name, 0)
			cfg.Image, cfg.Args = spec("postgres:16"), args
			if password != "" {
				cfg.Envs = []*runtimeapi.KeyValue{{Key: "POSTGRES_PASSWORD", Value: []byte(password)}}
			}
			id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
			e.ok(err)
			e.ok(e.c.StartContainer(e.ctx, id))
			return id
		}
		id := start("db", "secret")
		ready := func() bool {
			_, _, err := e.c.ExecSync(e.ctx, id, []string{"pg_isready", "-q"}, 0)
			return err == nil
		}
		if e.sleep(2 * time.Second); ready() {
			t.Error("it is ready after 2 s")
		}
		if e.sleep(2 * time.Second); !ready() {
			t.Error("it is not ready after 4 s")
		}
		other := start("other", "secret", "sh", "-c", "pg_isready; exit 7")
		e.sleep(time.Second)
		e.exited(other, 7, "Error")
		bare := start("bare", "")
		e.sleep(time.Second)
		e.exited(bare, 1, "Error")
	})
}

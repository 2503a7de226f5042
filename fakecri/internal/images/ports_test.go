package images

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// brought are files by path.
type brought map[string]string

func (b brought) ReadFile(name string) ([]byte, error) {
	if text, ok := b[name]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("no such file")
}

func (b brought) Names(dir string) []string {
	var out []string
	for name := range b {
		if path.Dir(name) == dir {
			out = append(out, path.Base(name))
		}
	}
	return out
}

// started is what a container of an image does.
func started(c *catalogue, image string, command, args, env []string, files brought, mounts ...string) *program.Behaviour {
	k := c.find("docker.io/" + image)
	if k == nil || k.Daemon == nil {
		return nil
	}
	argv := command
	if command == nil {
		argv = slices.Clone(k.Entrypoint)
		if args == nil {
			args = k.Cmd
		}
	}
	argv = append(argv, args...)
	config := &runtimeapi.ContainerConfig{}
	for _, m := range mounts {
		config.Mounts = append(config.Mounts, &runtimeapi.Mount{ContainerPath: m})
	}
	for name := range files {
		config.Mounts = append(config.Mounts, &runtimeapi.Mount{ContainerPath: name})
	}
	return k.Daemon(&Start{Config: config, Argv: argv, Env: func() []string { return env }, Files: files})
}

// TestPorts: what known images listen on, by their arguments, variables and mounted
// configuration; "-" is no server, "!" one that ends, with its code.
func TestPorts(t *testing.T) {
	c := newCatalogue()
	type files = brought
	for _, tc := range []struct {
		image   string
		command []string
		args    string
		env     string
		files   files
		want    string
	}{
		{image: "library/nginx", want: "80"},
		{image: "library/nginx", args: "nginx-debug -g daemon_off", want: "80"},
		{image: "library/nginx", args: "nginx -t", want: "!0"},
		{image: "library/nginx", args: "sh -c true", want: "-"},
		{image: "library/nginx", files: files{"/etc/nginx/conf.d/default.conf": "server { listen 8080; # listen 81;\n listen [::]:8443 ssl; listen unix:/run/x.sock; }"}, want: "8080 8443"},
		{image: "library/nginx", files: files{"/etc/nginx/conf.d/a.conf": "server { listen 127.0.0.1:8081 default_server; }"}, want: "8081 80"},
		{image: "library/nginx", files: files{"/etc/nginx/nginx.conf": "http { server { listen 9000; } }"}, want: "9000"},
		{image: "library/nginx", files: files{"/etc/nginx/nginx.conf": "http { include sites/*.conf; }", "/etc/nginx/sites/a.conf": "listen 9001;"}, want: "9001"},
		{image: "library/nginx", env: "PORT=8085", files: files{"/etc/nginx/templates/default.conf.template": "server { listen ${PORT}; }"}, want: "8085"},
		{image: "library/nginx", args: "nginx -c /my/nginx.conf", files: files{"/my/nginx.conf": "listen 7000;"}, want: "7000"},
		{image: "nginxinc/nginx-unprivileged", want: "8080"},
		{image: "bitnami/nginx", want: "8080 8443"},
		{image: "bitnami/nginx", env: "NGINX_HTTP_PORT_NUMBER=9090", want: "9090 8443"},
		{image: "openresty/openresty", want: "80"},
		{image: "ingress-nginx/controller", args: "/nginx-ingress-controller --http-port=8080", want: "8080 443 10254 8443"},
		{image: "library/httpd", want: "80"},
		{image: "library/httpd", files: files{"/usr/local/apache2/conf/httpd.conf": "#Listen 12\nListen 0.0.0.0:8080\nlisten 8443 https\n"}, want: "8080 8443"},
		{image: "library/redis", want: "6379"},
		{image: "library/redis", args: "--port 7000", want: "7000"},
		{image: "library/redis", command: []string{"redis-server"}, args: "/conf/redis.conf", files: files{"/conf/redis.conf": "bind 0.0.0.0\nport 7001\n"}, want: "7001"},
		{image: "library/redis", args: "redis-cli -h other ping", want: "-"},
		{image: "library/redis", args: "redis-server --version", want: "!0"},
		{image: "valkey/valkey", args: "valkey-server --port 6380", want: "6380"},
		{image: "bitnami/redis", want: "!1"},
		{image: "bitnami/redis", env: "REDIS_PASSWORD=x REDIS_PORT_NUMBER=6400", want: "6400"},
		{image: "library/postgres", want: "!1"},
		{image: "library/postgres", env: "POSTGRES_PASSWORD=x", want: "5432"},
		{image: "library/postgres", env: "POSTGRES_PASSWORD=x", args: "-c max_connections=200 -c port=5433", want: "5433"},
		{image: "library/postgres", env: "POSTGRES_PASSWORD=x PGPORT=5434", want: "5434"},
		{image: "library/postgres", command: []string{"postgres"}, args: "-p 5435", want: "5435"},
		{image: "bitnami/postgresql", env: "POSTGRESQL_PASSWORD=x POSTGRESQL_PORT_NUMBER=5436", want: "5436"},
		{image: "library/mysql", want: "!1"},
		{image: "library/mysql", env: "MYSQL_ALLOW_EMPTY_PASSWORD=1", want: "3306 33060"},
		{image: "library/mysql", env: "MYSQL_ROOT_PASSWORD=x", args: "--port=3307", want: "3307 33060"},
		{image: "library/mysql", env: "MYSQL_ROOT_PASSWORD=x", files: files{"/etc/mysql/conf.d/my.cnf": "[mysqld]\nport = 3308\n"}, want: "3308 33060"},
		{image: "library/mysql", env: "MYSQL_ROOT_PASSWORD=x", files: files{"/etc/my.cnf": "[mysqld]\nport=3309\n"}, want: "3309 33060"},
		{image: "library/mariadb", env: "MARIADB_ROOT_PASSWORD=x", files: files{"/etc/mysql/mariadb.conf.d/a.cnf": "port=3310"}, want: "3310"},
		{image: "bitnami/mysql", env: "ALLOW_EMPTY_PASSWORD=yes", want: "3306"},
		{image: "bitnami/mariadb", want: "!1"},
		{image: "library/mongo", want: "27017"},
		{image: "library/mongo", args: "--replSet rs0 --port 27018", want: "27018"},
		{image: "library/mongo", args: "--config /etc/mongo/mongod.conf", files: files{"/etc/mongo/mongod.conf": "net:\n  port: 27019\n"}, want: "27019"},
		{image: "bitnami/mongodb", env: "MONGODB_PORT_NUMBER=27020", want: "27020"},
		{image: "library/rabbitmq", want: "5672 15672 15692 4369 25672"},
		{image: "library/rabbitmq", files: files{"/etc/rabbitmq/rabbitmq.conf": "listeners.tcp.default = 5673\nmanagement.tcp.port = 15673\n"}, want: "5673 15673 15692 4369 25672"},
		{image: "apache/kafka", want: "9092 9093"},
		{image: "apache/kafka", env: "KAFKA_LISTENERS=PLAINTEXT://:19092,CONTROLLER://localhost:9094", want: "19092 9094"},
		{image: "bitnami/kafka", env: "KAFKA_CFG_LISTENERS=CLIENT://:9092", want: "9092"},
		{image: "confluentinc/cp-kafka", env: "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:29092", want: "29092"},
		{image: "apache/kafka", args: "/opt/kafka/bin/kafka-server-start.sh /etc/s.properties", files: files{"/etc/s.properties": "listeners=PLAINTEXT://:9095,SSL://:9096\nadvertised.listeners=PLAINTEXT://x:1\n"}, want: "9095 9096"},
		{image: "library/zookeeper", want: "2181 8080 2888 3888"},
		{image: "library/zookeeper", files: files{"/conf/zoo.cfg": "tickTime=2000\nclientPort=2182\n"}, want: "2182 8080 2888 3888"},
		{image: "confluentinc/cp-zookeeper", env: "ZOOKEEPER_CLIENT_PORT=2183", want: "2183 8080 2888 3888"},
		{image: "x/kubernetes-zookeeper", command: []string{"start-zookeeper"}, args: "--servers=3 --client_port=2184", want: "2184 2888 3888"},
		{image: "bitnami/zookeeper", want: "!1"},
		{image: "library/cassandra", want: "9042 7000 7199"},
		{image: "library/cassandra", files: files{"/etc/cassandra/cassandra.yaml": "native_transport_port: 9043\n"}, want: "9043 7000 7199"},
		{image: "bitnami/cassandra", want: "9042 7000 7199"},
		{image: "library/elasticsearch", want: "9200 9300"},
		{image: "library/elasticsearch", env: "http.port=9201", want: "9201 9300"},
		{image: "elasticsearch/elasticsearch", files: files{"/usr/share/elasticsearch/config/elasticsearch.yml": "http.port: 9202\ntransport:\n  port: 9302\n"}, want: "9202 9302"},
		{image: "opensearchproject/opensearch", want: "9200 9300"},
		{image: "library/kibana", env: "SERVER_PORT=5602", want: "5602"},
		{image: "library/memcached", args: "-m 64 -p 11212", want: "11212"},
		{image: "bitnami/memcached", want: "11211"},
		{image: "library/haproxy", want: "!1"},
		{image: "library/haproxy", files: files{"/usr/local/etc/haproxy/haproxy.cfg": "frontend a\n  bind *:8080\n  bind :8443 ssl crt x\n# bind :1\n"}, want: "8080 8443"},
		{image: "library/haproxy", args: "haproxy -f /cfg", files: files{"/cfg/a.cfg": "frontend a\n  bind 8081\n"}, want: "8081"},
		{image: "envoyproxy/envoy", want: "10000 9901"},
		{image: "envoyproxy/envoy", args: "envoy -c /e.yaml", files: files{"/e.yaml": "admin: {address: {socket_address: {port_value: 9000}}}\nstatic_resources:\n  listeners:\n  - address: {socket_address: {address: 0.0.0.0, port_value: 8080}}\n" +
			"  clusters:\n  - load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {port_value: 1}}}}]}]}\n"}, want: "8080 9000"},
		{image: "library/traefik", want: "80"},
		{image: "library/traefik", args: "--ping --entryPoints.web.address=:8000/tcp --entryPoints.traefik.address=:9000/tcp", want: "8000 9000 8080"},
		{image: "library/traefik", files: files{"/etc/traefik/traefik.yml": "entryPoints:\n  web: {address: ':8001'}\n"}, want: "8001"},
		{image: "prom/prometheus", want: "9090"},
		{image: "prom/prometheus", args: "--config.file=/x --web.listen-address=0.0.0.0:9091", want: "9091"},
		{image: "prom/alertmanager", want: "9093"},
		{image: "prom/node-exporter", args: "--web.listen-address=:9101", want: "9101"},
		{image: "grafana/grafana", env: "GF_SERVER_HTTP_PORT=3001", want: "3001"},
		{image: "grafana/grafana", files: files{"/etc/grafana/grafana.ini": "[server]\n;http_port = 1\nhttp_port = 3002\n"}, want: "3002"},
		{image: "minio/minio", want: "!0"},
		{image: "minio/minio", args: "server /data --console-address :9001", want: "9000 9001"},
		{image: "minio/minio", command: []string{"minio"}, args: "server /data --address=:9100", want: "9100"},
		{image: "bitnami/minio", env: "MINIO_CONSOLE_ADDRESS=:9001", want: "9000 9001"},
		{image: "coreos/etcd", command: []string{"etcd"}, args: "--listen-client-urls=https://127.0.0.1:2379,https://10.0.0.1:2379 --listen-metrics-urls=http://127.0.0.1:2381", want: "2379 2381 2380"},
		{image: "library/registry", env: "REGISTRY_HTTP_ADDR=:5001", want: "5001"},
		{image: "library/caddy", files: files{"/etc/caddy/Caddyfile": "http://example.com:8080 {\n respond ok\n}\n:8081 {\n}\n"}, want: "8080 8081"},
		{image: "hashicorp/http-echo", args: "-listen=:8080 -text=hi", want: "8080"},
		{image: "traefik/whoami", args: "--port 8090", want: "8090"},
		{image: "library/wordpress", want: "80"},
		{image: "library/adminer", want: "8080"},
		{image: "google-samples/hello-app", env: "PORT=8081", want: "8081"},
		{image: "stefanprodan/podinfo", command: []string{"./podinfo"}, args: "--port=9899 --port-metrics=9797 --grpc-port=9999", want: "9899 9797 9999"},
		{image: "library/python", want: "!0"},
		{image: "library/python", command: []string{"python"}, args: "-m http.server", want: "8000"},
		{image: "library/python", command: []string{"python3"}, args: "-m http.server 8080 --bind 0.0.0.0", want: "8080"},
		{image: "library/python", command: []string{"python"}, args: "app.py", want: "-"},
		{image: "library/node", want: "!0"},
		{image: "library/node", args: "node server.js", want: "-"},
		{image: "library/node", args: "node --version", want: "!0"},
		{image: "library/perl", command: []string{"perl"}, args: "-e 1", want: "-"},
		{image: "library/openjdk", command: []string{"java"}, args: "-version", want: "!0"},
		{image: "library/eclipse-temurin", command: []string{"java"}, args: "-jar /app.jar", want: "-"},
		{image: "distroless/java21-debian12", args: "/app.jar", want: "-"},
	} {
		t.Run(strings.TrimSpace(tc.image+" "+strings.Join(tc.command, " ")+" "+tc.args+" "+tc.env), func(t *testing.T) {
			var args []string
			if tc.args != "" {
				args = strings.Fields(tc.args)
			}
			b := started(c, tc.image, tc.command, args, strings.Fields(tc.env), tc.files)
			got := "-"
			switch {
			case b == nil:
			case b.RunFor.Min > 0:
				got = fmt.Sprintf("!%d", b.ExitCode)
			default:
				var ports []string
				for _, p := range b.Ports {
					ports = append(ports, fmt.Sprint(p.Port))
				}
				got = strings.Join(ports, " ")
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestAnswers: what known servers answer once they are ready, and how they end; 0 is an
// answer that is no HTTP.
func TestAnswers(t *testing.T) {
	c := newCatalogue()
	for _, tc := range []struct {
		image, env  string
		port        int
		path        string
		status      int
		body        string
		ready, term time.Duration
		exit        int32
	}{
		{image: "library/redis", port: 6379, path: "/", ready: 100 * time.Millisecond, term: 50 * time.Millisecond},
		{image: "library/postgres", env: "POSTGRES_PASSWORD=x", port: 5432, path: "/", ready: 3 * time.Second, term: 200 * time.Millisecond},
		{image: "library/mysql", env: "MYSQL_ROOT_PASSWORD=x", port: 3306, path: "/", ready: 8 * time.Second, term: time.Second},
		{image: "library/mongo", port: 27017, path: "/", status: 200, body: "trying to access MongoDB over HTTP", ready: 2 * time.Second, term: 300 * time.Millisecond},
		{image: "library/rabbitmq", port: 15672, path: "/api/overview", status: 401, ready: 8 * time.Second, term: 2 * time.Second},
		{image: "apache/kafka", port: 9092, path: "/", ready: 6 * time.Second, term: 2 * time.Second, exit: 143},
		{image: "library/zookeeper", port: 8080, path: "/commands/ruok", status: 200, ready: 2 * time.Second, exit: 143},
		{image: "library/cassandra", port: 9042, path: "/", ready: 30 * time.Second, term: 2 * time.Second, exit: 143},
		{image: "library/elasticsearch", port: 9200, path: "/_cluster/health", status: 200, body: "green", ready: 15 * time.Second, term: time.Second, exit: 143},
		{image: "library/elasticsearch", port: 9200, path: "/healthz", status: 404, ready: 15 * time.Second, term: time.Second, exit: 143},
		{image: "library/kibana", port: 5601, path: "/api/status", status: 200, ready: 20 * time.Second},
		{image: "library/memcached", port: 11211, path: "/"},
		{image: "envoyproxy/envoy", port: 9901, path: "/ready", status: 200, body: "LIVE", ready: 300 * time.Millisecond},
		{image: "envoyproxy/envoy", port: 10000, path: "/any", status: 200, ready: 300 * time.Millisecond},
		{image: "library/traefik", port: 80, path: "/", status: 404},
		{image: "prom/prometheus", port: 9090, path: "/-/ready", status: 200, body: "Ready", ready: time.Second, term: 200 * time.Millisecond},
		{image: "prom/prometheus", port: 9090, path: "/healthz", status: 404, ready: time.Second, term: 200 * time.Millisecond},
		{image: "grafana/grafana", port: 3000, path: "/api/health", status: 200, body: "ok", ready: 5 * time.Second},
		{image: "grafana/grafana", port: 3000, path: "/api/users", status: 401, ready: 5 * time.Second},
		{image: "bitnami/minio", port: 9000, path: "/minio/health/ready", status: 200, ready: 2 * time.Second},
		{image: "bitnami/minio", port: 9000, path: "/bucket", status: 403, ready: 2 * time.Second},
		{image: "coreos/etcd", port: 2379, path: "/health", status: 200, body: "true", ready: 300 * time.Millisecond},
		{image: "coreos/etcd", port: 2380, path: "/health", ready: 300 * time.Millisecond},
		{image: "library/registry", port: 5000, path: "/v2/", status: 200},
		{image: "ingress-nginx/controller", port: 10254, path: "/healthz", status: 200, ready: 3 * time.Second, term: time.Second},
		{image: "ingress-nginx/controller", port: 80, path: "/", status: 404, body: "default backend", ready: 3 * time.Second, term: time.Second},
		{image: "hashicorp/http-echo", port: 5678, path: "/", status: 200, body: "hello-world\n"},
		{image: "stefanprodan/podinfo", port: 9898, path: "/readyz", status: 200},
		{image: "library/wordpress", port: 80, path: "/", status: 302, ready: 2 * time.Second},
		{image: "traefik/whoami", port: 80, path: "/any", status: 200},
	} {
		b := started(c, tc.image, nil, nil, strings.Fields(tc.env), nil)
		if b == nil {
			t.Fatalf("%s: no server", tc.image)
		}
		name := fmt.Sprintf("%s:%d%s", tc.image, tc.port, tc.path)
		if tc.ready > 0 && b.PortAt(tc.port, tc.ready-1) != nil {
			t.Errorf("%s: it listens before %s", name, tc.ready)
		}
		p := b.PortAt(tc.port, tc.ready)
		if p == nil {
			t.Errorf("%s: nobody listens at %s", name, tc.ready)
			continue
		}
		status, body, speaks := p.Http(tc.path, tc.ready)
		if !speaks || p.Raw {
			status, body = 0, ""
		}
		if status != tc.status || !strings.Contains(body, tc.body) {
			t.Errorf("%s: %d %q, want %d %q", name, status, body, tc.status, tc.body)
		}
		if b.OnTerm.Exit != tc.exit || b.OnTerm.After.Min != tc.term {
			t.Errorf("%s: on its stop signal %d after %s, want %d after %s", name, b.OnTerm.Exit, b.OnTerm.After.Min, tc.exit, tc.term)
		}
	}
}

// TestSays: what a server writes to its log when it starts, or when it lacks something.
func TestSays(t *testing.T) {
	c := newCatalogue()
	for _, tc := range []struct{ image, want string }{
		{"library/httpd", "stderr AH00489: Apache/2.4 (Unix) configured -- resuming normal operations; stderr AH00094: Command line: 'httpd -D FOREGROUND'"},
		{"bitnami/redis", "stderr The REDIS_PASSWORD environment variable is empty or not set."},
		{"library/nginx", ""},
	} {
		var lines []string
		for _, l := range started(c, tc.image, nil, nil, nil, nil).Logs {
			lines = append(lines, l.Stream+" "+l.Text)
		}
		if got := strings.Join(lines, "; "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.image, got, tc.want)
		}
	}
}

// TestTargets: where tools look for their servers.
func TestTargets(t *testing.T) {
	st := &Store{catalogue: newCatalogue()}
	for _, tc := range []struct{ line, env, want string }{
		{line: "redis-cli ping", want: "127.0.0.1:6379"},
		{line: "redis-cli -h cache -p 6380 PING", want: "cache:6380"},
		{line: "redis-cli -u redis://:secret@cache:6381/0 ping", want: "cache:6381"},
		{line: "/usr/bin/pg_isready -U app -h db", env: "PGPORT=5433", want: "db:5433"},
		{line: "pg_isready -h /var/run/postgresql", want: "127.0.0.1:5432"},
		{line: "mysqladmin ping -h localhost", want: "localhost:3306"},
		{line: "mysqladmin ping -hdb -P3307 -uroot -psecret", want: "db:3307"},
		{line: "mongosh mongodb://u:p@mongo-0:27018,mongo-1:27018/admin --eval db.ping()", want: "mongo-0:27018"},
		{line: "etcdctl --endpoints=https://127.0.0.1:2379 endpoint health", want: "127.0.0.1:2379"},
		{line: "kafka-topics.sh --bootstrap-server kafka:9092 --list", want: "kafka:9092"},
		{line: "nodetool status", want: "127.0.0.1:7199"},
		{line: "rabbitmq-diagnostics -q ping", want: "127.0.0.1:5672"},
		{line: "nginx -s quit", want: "127.0.0.1:0"},
		{line: "frob", want: "-"},
	} {
		got := "-"
		if tool, ok := st.Tool(&Source{}, strings.Fields(tc.line), strings.Fields(tc.env)); ok {
			host, port := tool.Target()
			got = fmt.Sprintf("%s:%d", host, port)
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.line, got, tc.want)
		}
	}
}

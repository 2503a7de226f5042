package images

import (
	"path"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// knownImage is what this package knows of an image that is widely used: its
// configuration, its files and the behaviour of its server.
type knownImage struct {
	tree string // of Trees; "" means that its files are not known
	// Closed says that it has no other commands than those of its tree.
	Closed               bool
	entrypoint, cmd, env []string
	user, dir            string
	stopSignal           int
	// Daemon says what argv does that is not interpreted; nil for nothing known.
	Daemon daemonFunc
}

type daemonFunc func(config *runtimeapi.ContainerConfig, argv []string) *program.Behaviour

// saying has a server begin with lines on stderr.
func (d daemonFunc) saying(lines ...string) daemonFunc {
	var logs []program.LogLine
	for _, l := range lines {
		logs = append(logs, program.LogLine{Stream: program.StderrName, Text: l})
	}
	return func(config *runtimeapi.ContainerConfig, argv []string) *program.Behaviour {
		b := d(config, argv)
		if b == nil {
			return nil
		}
		said := *b
		said.Logs = logs
		return &said
	}
}

const DefaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// oneImageOfAllTags tells whether the tags of a repository of that base name are
// known to be the same image.
func oneImageOfAllTags(base string) bool { return base == "test-image-tags" }

// testUsers are the users of the test images for image users, by base name.
var testUsers = map[string]string{
	"test-image-user-uid":            "1002",
	"test-image-user-uid-group":      "1003:1003",
	"test-image-user-username":       "www-data",
	"test-image-user-username-group": "www-data:www-data",
}

// distributions are images of which little more is of interest than that they
// have a shell.
var distributions = map[string]bool{
	"debian": true, "ubuntu": true, "fedora": true, "centos": true, "rockylinux": true,
	"almalinux": true, "amazonlinux": true, "archlinux": true, "opensuse": true, "buildpack-deps": true, "jessie-dnsutils": true,
}

// services are images of a server: what they run, as whom, and the port.
var services = map[string]struct {
	command string
	user    string
	port    int
}{
	"redis":         {command: "redis-server", port: 6379},
	"valkey":        {command: "valkey-server", port: 6379},
	"memcached":     {command: "memcached", user: "11211", port: 11211},
	"postgres":      {command: "postgres", port: 5432},
	"mysql":         {command: "mysqld", port: 3306},
	"mariadb":       {command: "mariadbd", port: 3306},
	"mongo":         {command: "mongod", port: 27017},
	"rabbitmq":      {command: "rabbitmq-server", port: 5672},
	"registry":      {command: "registry", port: 5000},
	"traefik":       {command: "traefik", port: 80},
	"haproxy":       {command: "haproxy", port: 80},
	"caddy":         {command: "caddy", port: 80},
	"whoami":        {command: "/whoami", port: 80},
	"etcd":          {command: "etcd", port: 2379},
	"prometheus":    {command: "/bin/prometheus", user: "65534", port: 9090},
	"node-exporter": {command: "/bin/node_exporter", user: "65534", port: 9100},
	"grafana":       {command: "/run.sh", user: "472", port: 3000},
	"http-echo":     {command: "/http-echo", port: 5678},
	"echoserver":    {command: "/usr/local/bin/run.sh", port: 8080},
}

// knownImageOf finds an image by the last element of the repository's name.
func knownImageOf(repository string) *knownImage {
	name := path.Base(repository)
	env := []string{DefaultPath}
	switch {
	case name == "busybox":
		return &knownImage{tree: treeBusybox, Closed: true, cmd: []string{"sh"}, env: env}
	case name == "test-image-predefined-group":
		return &knownImage{tree: treePredefinedGroup, Closed: true, cmd: []string{"sh"}, env: env, user: "1000"}
	case strings.HasPrefix(name, "test-image-"):
		return &knownImage{tree: treeBusybox, Closed: true, cmd: []string{"sh"}, env: env, user: testUsers[name]}
	case name == "alpine":
		return &knownImage{tree: treeAlpine, Closed: true, cmd: []string{"/bin/sh"}, env: env}
	case distributions[name]:
		return &knownImage{tree: treeDebian, cmd: []string{"/bin/bash"}, env: env}
	case name == "nginx":
		return nginx(80, "")
	case strings.HasPrefix(name, "hostnet-nginx"):
		return nginx(12003, "") // of a public suite, for pods on the host's network
	case name == "nginx-unprivileged":
		return nginx(8080, "101")
	case name == "httpd":
		return &knownImage{
			tree: treeDebian, cmd: []string{"httpd-foreground"}, dir: "/usr/local/apache2",
			env:        []string{"PATH=/usr/local/apache2/bin:" + strings.TrimPrefix(DefaultPath, "PATH="), "HTTPD_PREFIX=/usr/local/apache2"},
			stopSignal: 28, Daemon: HttpdRoot.serves(httpdPage, 80, "httpd-foreground", "httpd").saying(
				"AH00489: Apache/2.4 (Unix) configured -- resuming normal operations", "AH00094: Command line: 'httpd -D FOREGROUND'"),
		}
	case name == "pause":
		return &knownImage{tree: treePause, Closed: true, entrypoint: []string{"/pause"}, env: env, user: "65535:65535", Daemon: pauses}
	case name == "agnhost":
		return &knownImage{tree: treeAlpine, entrypoint: []string{"/agnhost"}, cmd: []string{"pause"}, env: env, Daemon: agnhost}
	case name == "nonewprivs":
		return &knownImage{tree: treeAlpine, entrypoint: []string{"/nnp"}, env: env, user: "1000", Daemon: nonewprivs}
	}
	if s, ok := services[name]; ok {
		return &knownImage{tree: treeDebian, cmd: []string{s.command}, env: env, user: s.user, Daemon: serves("", s.port, path.Base(s.command))}
	}
	return nil
}

func nginx(port int, user string) *knownImage {
	return &knownImage{
		tree: treeDebian, entrypoint: []string{"/docker-entrypoint.sh"}, cmd: []string{"nginx", "-g", "daemon off;"},
		env: []string{DefaultPath}, user: user, stopSignal: 3, Daemon: NginxRoot.serves(nginxPage, port, "nginx", "docker-entrypoint.sh", "nginx-debug"),
	}
}

// What the servers' default pages say, in short.
const (
	nginxPage = "<!DOCTYPE html>\n<html>\n<head>\n<title>Welcome to nginx!</title>\n</head>\n<body>\n<h1>Welcome to nginx!</h1>\n</body>\n</html>\n"
	httpdPage = "<html><body><h1>It works!</h1></body></html>\n"
)

// serves is the behaviour of a web server with one page.
func serves(page string, port int, names ...string) daemonFunc {
	p := program.Port{Port: port}
	if page != "" {
		p.HTTP = []program.HTTPAnswer{{Body: page}}
	}
	return does(&program.Behaviour{Ports: []program.Port{p}}, names...)
}

// does is a behaviour for some programs.
func does(b *program.Behaviour, names ...string) daemonFunc {
	return func(_ *runtimeapi.ContainerConfig, argv []string) *program.Behaviour {
		for _, n := range names {
			if path.Base(argv[0]) == n {
				return b
			}
		}
		return nil
	}
}

// silent runs until it is stopped and listens nowhere.
func silent() *program.Behaviour { return &program.Behaviour{Ports: []program.Port{}} }

func pauses(_ *runtimeapi.ContainerConfig, argv []string) *program.Behaviour {
	if argv[0] == "/pause" {
		return silent()
	}
	return nil
}

// nonewprivs is a setuid program that says who it has become.
func nonewprivs(config *runtimeapi.ContainerConfig, argv []string) *program.Behaviour {
	if path.Base(argv[0]) != "nnp" {
		return nil
	}
	uid := "0"
	if config.GetLinux().GetSecurityContext().GetNoNewPrivs() {
		uid = "1000"
	}
	return &program.Behaviour{RunFor: program.Millis(20, 20), Ports: []program.Port{}, Logs: []program.LogLine{{Text: "Effective uid: " + uid}}}
}

// adopt fills in what a catalogue's entry leaves open of a known image.
func (im *Image) adopt(k *knownImage) {
	if k == nil {
		return
	}
	if im.Entrypoint == nil && im.Cmd == nil {
		im.Entrypoint, im.Cmd = k.entrypoint, k.cmd
	}
	if im.Env == nil {
		im.Env = k.env
	}
	if im.User == "" {
		im.User = k.user
	}
	if im.WorkingDir == "" {
		im.WorkingDir = k.dir
	}
	if im.StopSignal == 0 {
		im.StopSignal = k.stopSignal
	}
}

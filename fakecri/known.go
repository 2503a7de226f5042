package fakecri

import (
	"path"
	"strconv"
	"strings"
)

// knownImage is what this package knows of an image that is widely used: its
// configuration, its files and the behaviour of its server.
type knownImage struct {
	tree string // of Trees; "" means that its files are not known
	// closed says that it has no other commands than those of its tree.
	closed               bool
	entrypoint, cmd, env []string
	user, dir            string
	stopSignal           int
	daemon               func(argv []string) *Behaviour // what argv does that is not interpreted; nil for nothing known
}

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	sigQUIT  = 3
	sigWINCH = 28
)

// knownImages are found by the last element of the repository's name.
func knownImageOf(repository string) *knownImage {
	switch name := path.Base(repository); name {
	case "busybox":
		return &knownImage{tree: treeBusybox, closed: true, cmd: []string{"sh"}, env: []string{defaultPath}}
	case "alpine":
		return &knownImage{tree: treeAlpine, closed: true, cmd: []string{"/bin/sh"}, env: []string{defaultPath}}
	case "debian", "ubuntu", "fedora", "centos", "rockylinux", "almalinux", "amazonlinux", "archlinux", "opensuse":
		return &knownImage{tree: treeDebian, cmd: []string{"/bin/bash"}, env: []string{defaultPath}}
	case "nginx":
		return &knownImage{
			tree: treeDebian, entrypoint: []string{"/docker-entrypoint.sh"}, cmd: []string{"nginx", "-g", "daemon off;"},
			env: []string{defaultPath}, stopSignal: sigQUIT, daemon: serves(80, "nginx", "docker-entrypoint.sh", "nginx-debug"),
		}
	case "nginx-unprivileged":
		return &knownImage{
			tree: treeDebian, entrypoint: []string{"/docker-entrypoint.sh"}, cmd: []string{"nginx", "-g", "daemon off;"},
			env: []string{defaultPath}, user: "101", stopSignal: sigQUIT, daemon: serves(8080, "nginx", "docker-entrypoint.sh"),
		}
	case "httpd":
		return &knownImage{
			tree: treeDebian, cmd: []string{"httpd-foreground"}, dir: "/usr/local/apache2",
			env:        []string{"PATH=/usr/local/apache2/bin:" + strings.TrimPrefix(defaultPath, "PATH="), "HTTPD_PREFIX=/usr/local/apache2"},
			stopSignal: sigWINCH, daemon: serves(80, "httpd-foreground", "httpd"),
		}
	case "pause":
		return &knownImage{tree: treePause, closed: true, entrypoint: []string{"/pause"}, env: []string{defaultPath}, user: "65535:65535", daemon: pauses}
	case "agnhost":
		return &knownImage{tree: treeAlpine, entrypoint: []string{"/agnhost"}, cmd: []string{"pause"}, env: []string{defaultPath}, daemon: agnhost}
	}
	return nil
}

// serves is the behaviour of a web server.
func serves(port int, names ...string) func([]string) *Behaviour {
	b := &Behaviour{Ports: []Port{{Port: port}}}
	return func(argv []string) *Behaviour {
		for _, n := range names {
			if path.Base(argv[0]) == n {
				return b
			}
		}
		return nil
	}
}

// silent runs until it is stopped and listens nowhere.
func silent() *Behaviour { return &Behaviour{Ports: []Port{}} }

func pauses(argv []string) *Behaviour {
	if argv[0] == "/pause" {
		return silent()
	}
	return nil
}

// agnhost is what the test image's subcommands do, as far as they are servers.
func agnhost(argv []string) *Behaviour {
	if path.Base(argv[0]) != "agnhost" {
		return nil
	}
	if len(argv) < 2 {
		return silent()
	}
	port := 0
	switch argv[1] {
	case "netexec":
		port = agnhostPort(argv[2:], "--http-port", 8080)
	case "serve-hostname":
		port = agnhostPort(argv[2:], "--port", 9376)
	case "liveness", "test-webserver", "guestbook":
		port = agnhostPort(argv[2:], "--port", 8080)
	case "grpc-health-checking":
		n := agnhostPort(argv[2:], "--port", 5000)
		return &Behaviour{Ports: []Port{
			{Port: n, GRPC: []GRPCAnswer{{Status: "SERVING"}}},
			{Port: agnhostPort(argv[2:], "--http-port", 8080)},
		}}
	default:
		return silent()
	}
	return &Behaviour{Ports: []Port{{Port: port, HTTP: []HTTPAnswer{{Status: 200, Body: "NOW: now"}}}}}
}

func agnhostPort(args []string, flag string, otherwise int) int {
	for i, a := range args {
		v, ok := strings.CutPrefix(a, flag+"=")
		if !ok && a == flag && i+1 < len(args) {
			v, ok = args[i+1], true
		}
		if n, err := strconv.Atoi(v); ok && err == nil && n > 0 && n < 65536 {
			return n
		}
	}
	return otherwise
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

package fakecri

import (
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// This file is Kubernetes' test image agnhost, as far as it is servers.

// agnhost is what the subcommands do.
func agnhost(_ *runtimeapi.ContainerConfig, argv []string) *Behaviour {
	if path.Base(argv[0]) != "agnhost" {
		return nil
	}
	if len(argv) < 2 {
		return silent()
	}
	args := argv[2:]
	on := func(flag string, otherwise int, answer func(a asked) (int, string)) Port {
		return Port{Port: agnhostPort(args, flag, otherwise), answer: answer}
	}
	var p Port
	switch argv[1] {
	case "netexec":
		p = on("--http-port", 8080, netexec)
	case "serve-hostname":
		p = on("--port", 9376, serveHostname)
	case "liveness":
		p = on("--port", 8080, liveness)
	case "test-webserver":
		p = on("--port", 80, plainOK)
	case "guestbook":
		p = on("--http-port", 80, plainOK)
	case "grpc-health-checking":
		p = on("--http-port", 8080, plainOK)
		health := Port{Port: agnhostPort(args, "--port", 5000), GRPC: []GRPCAnswer{{Status: "SERVING"}}}
		return &Behaviour{Ports: []Port{health, p}}
	case "entrypoint-tester":
		return &Behaviour{RunFor: ms(20, 20), Ports: []Port{}, Logs: []LogLine{{Text: "[" + strings.Join(argv, " ") + "]"}}}
	case "pause":
		b := silent()
		b.Logs = []LogLine{{Text: "Paused"}}
		return b
	default:
		return silent()
	}
	return &Behaviour{Ports: []Port{p}}
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

func plainOK(a asked) (int, string) {
	if a.req.URL.Path == "/healthz" {
		return http.StatusOK, "ok"
	}
	return http.StatusOK, nowText(a)
}

func nowText(a asked) string { return "NOW: " + a.Now().String() }

func serveHostname(a asked) (int, string) { return http.StatusOK, a.Hostname() }

// liveness is well for ten seconds.
func liveness(a asked) (int, string) {
	switch a.req.URL.Path {
	case "/healthz":
		if a.at > 10*time.Second {
			return http.StatusInternalServerError, fmt.Sprintf("error: %v", a.at.Seconds())
		}
		return http.StatusOK, "ok"
	case "/started":
		return http.StatusOK, a.at.String()
	}
	return http.StatusNotFound, "404 page not found\n"
}

// netexec answers what clients ask of it; /exit ends it.
func netexec(a asked) (int, string) {
	q := a.req.URL.Query()
	switch a.req.URL.Path {
	case "/":
		return http.StatusOK, nowText(a)
	case "/hostname", "/hostName":
		return http.StatusOK, a.Hostname()
	case "/echo":
		code := http.StatusOK
		if n, err := strconv.Atoi(q.Get("code")); err == nil && n >= 100 && n < 600 {
			code = n
		}
		return code, q.Get("msg")
	case "/header":
		return http.StatusOK, a.req.Header.Get(q.Get("key"))
	case "/healthz":
		return http.StatusOK, ""
	case "/clientip":
		return http.StatusOK, a.req.RemoteAddr
	case "/exit", "/shutdown":
		code, _ := strconv.Atoi(q.Get("code"))
		a.Exit(int32(code & 0xff))
		return http.StatusOK, ""
	}
	return http.StatusNotFound, "404 page not found\n"
}

package images

import (
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// This file is Kubernetes' test image agnhost, as far as it is servers.

// agnhost is what the subcommands do.
func agnhost(st *Start) *program.Behaviour {
	argv := st.Argv
	if path.Base(argv[0]) != "agnhost" {
		return nil
	}
	if len(argv) < 2 {
		return silent()
	}
	args := argv[2:]
	on := func(flag string, otherwise int, answer func(a program.Asked) (int, string)) program.Port {
		return program.Port{Port: agnhostPort(args, flag, otherwise), Answer: answer}
	}
	var p program.Port
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
		health := program.Port{Port: agnhostPort(args, "--port", 5000), GRPC: []program.GRPCAnswer{{Status: "SERVING"}}}
		return &program.Behaviour{Ports: []program.Port{health, p}}
	case "entrypoint-tester":
		return &program.Behaviour{RunFor: program.Millis(20, 20), Ports: []program.Port{}, Logs: []program.LogLine{{Text: "[" + strings.Join(argv, " ") + "]"}}}
	case "pause":
		b := silent()
		b.Logs = []program.LogLine{{Text: "Paused"}}
		return b
	default:
		return silent()
	}
	return &program.Behaviour{Ports: []program.Port{p}}
}

// agnhostPort is the port that a flag names, in either spelling.
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

// plainOK is a server that answers everything.
func plainOK(a program.Asked) (int, string) {
	if a.Req.URL.Path == "/healthz" {
		return http.StatusOK, "ok"
	}
	return http.StatusOK, nowText(a)
}

// nowText is what agnhost's servers say by default.
func nowText(a program.Asked) string { return "NOW: " + a.Now().String() }

// serveHostname answers with the host name, whatever is asked.
func serveHostname(a program.Asked) (int, string) { return http.StatusOK, a.Hostname() }

// liveness is well for ten seconds.
func liveness(a program.Asked) (int, string) {
	switch a.Req.URL.Path {
	case "/healthz":
		if a.At > 10*time.Second {
			return http.StatusInternalServerError, fmt.Sprintf("error: %v", a.At.Seconds())
		}
		return http.StatusOK, "ok"
	case "/started":
		return http.StatusOK, a.At.String()
	}
	return http.StatusNotFound, "404 page not found\n"
}

// netexec answers what clients ask of it; /exit ends it.
func netexec(a program.Asked) (int, string) {
	q := a.Req.URL.Query()
	switch a.Req.URL.Path {
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
		return http.StatusOK, a.Req.Header.Get(q.Get("key"))
	case "/healthz":
		return http.StatusOK, ""
	case "/clientip":
		return http.StatusOK, a.Req.RemoteAddr
	case "/exit", "/shutdown":
		code, _ := strconv.Atoi(q.Get("code"))
		a.Exit(int32(code & 0xff))
		return http.StatusOK, ""
	}
	return http.StatusNotFound, "404 page not found\n"
}

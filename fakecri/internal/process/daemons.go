package process

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// announce does what a known server does when it begins and what others look
// for: its title in the process listing and its pid file.
func announce(in *records.Interpreted, p *kernel.Process) {
	argv := slices.Clone(p.Argv)
	if len(argv) > 1 && path.Base(argv[0]) == "docker-entrypoint.sh" {
		argv = argv[1:]
	}
	if len(argv) == 0 || path.Base(argv[0]) != "nginx" {
		return
	}
	p.Argv = []string{"nginx: master process " + strings.Join(argv, " ")}
	pid := []byte(strconv.Itoa(p.PIDIn(in.PIDs)) + "\n")
	if in.View.MkdirAll("/var/run", 0o755) == nil && !in.View.OnHost("/var/run") {
		_ = in.View.WriteFile("/var/run/nginx.pid", pid, 0o644)
	}
}

package process

import (
	"path"
	"strconv"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// announce does what a known server does when it begins and what others look
// for: its title in the process listing and its pid file. The title replaces the command line, as
// setproctitle does: ps and pgrep of an exec then find the server by its own name.
func (r *Runner) announce(in *records.Interpreted, p *kernel.Process) {
	title, pidFile, ok := r.Images.Title(p.Argv)
	if !ok {
		return
	}
	p.Argv = []string{title}
	pid := []byte(strconv.Itoa(p.PIDIn(in.PIDs)) + "\n")
	if dir := path.Dir(pidFile); in.View.MkdirAll(dir, 0o755) == nil && !in.View.OnHost(dir) {
		_ = in.View.WriteFile(pidFile, pid, 0o644)
	}
}

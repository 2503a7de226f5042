//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// logSize is the size from which on logs are rotated.
const logSize = "16Ki"

// cgroupRoot is the cgroup that has all that the soak makes. It is named after
// the directory, so that soaks beside each other don't meet. It begins with a slash, as
// KubeletConfiguration.cgroupRoot does.
func cgroupRoot(dir string) string {
	return "/drydock-" + filepath.Base(filepath.Dir(dir)) + "-" + filepath.Base(dir)
}

// configText is the kubelet's configuration file. Nothing in it needs a cluster:
// no API server, no server of its own, static pods only. Logs are small so that
// rotation happens within minutes. A directory's name with quotes would break YAML, hence %q.
const configText = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: %q
staticPodPath: %q
podLogsDir: %q
cgroupRoot: %q
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
healthzPort: 0
enableServer: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerLogMaxSize: ` + logSize + `
clusterDNS: [10.96.0.10]
`

// process is the kubelet's. starts counts how often it was started, which names
// its log. cmd is nil while no kubelet runs.
type process struct {
	// ended gets what cmd.Wait returned, once.
	s      *settings
	cmd    *exec.Cmd
	ended  chan error
	starts int
}

// Where things are below the soak's directory.
func (p *process) manifests() string  { return filepath.Join(p.s.dir, "manifests") }
func (p *process) config() string     { return filepath.Join(p.s.dir, "config.yaml") }
func (p *process) root() string       { return filepath.Join(p.s.dir, "kubelet") }
func (p *process) logs() string       { return filepath.Join(p.s.dir, "logs") }
func (p *process) cgroupRoot() string { return cgroupRoot(p.s.dir) }

// prepare makes the folders and the configuration. Every start gets the same
// configuration, so what differs is the moment alone. The log directory is the kubelet's to make.
func (p *process) prepare() error {
	for _, d := range [...]string{p.manifests(), p.root()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	text := fmt.Sprintf(configText, p.s.endpoint, p.manifests(), p.logs(), p.cgroupRoot())
	return os.WriteFile(p.config(), []byte(text), 0o600)
}

// start starts a kubelet; its log is a file of its own, so that each restart can
// be read by itself. It is a process group of its own, which a Ctrl-C at the
// terminal does not reach, and dies with the soak, which nothing else would end. --kubelet may
// hold several words, such as "bin/drydock kubelet".
func (p *process) start() error {
	args := strings.Fields(p.s.kubelet)
	if len(args) > 0 {
		args = append(args, "--config", p.config(), "--root-dir", p.root(), "--hostname-override", "soak")
	} else {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		// Killing needs a process, so the kubelet of this program is this program
		// once more.
		args = []string{self, "--run-kubelet", "--runtime-endpoint", p.s.endpoint, "--dir", p.s.dir}
	}
	log, err := os.Create(p.logFile(p.starts))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p.starts++
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec // the command that was given
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the kubelet: %w", err)
	}
	p.cmd, p.ended = cmd, make(chan error, 1)
	// Somebody has to wait for a child, or it stays a zombie; the channel has room for the one
	// value.
	go func() { p.ended <- cmd.Wait() }()
	return nil
}

// logFile is that of the n-th start, from 0.
func (p *process) logFile(n int) string {
	return filepath.Join(p.s.dir, fmt.Sprintf("kubelet-%d.log", n))
}

// running returns an error if the kubelet has ended by itself. Only kill and stop
// may end it: anything else is what a soak is run to find. It must not be called without a
// kubelet.
func (p *process) running() error {
	select {
	case err := <-p.ended:
		p.cmd = nil
		return fmt.Errorf("the kubelet ended by itself: %v; see %s", err, p.logFile(p.starts-1))
	default:
		return nil
	}
}

// kill ends the kubelet at once. Nothing of what it had under way is finished:
// that is what the soak is about. Its exit is awaited, so that no two kubelets run at once.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	// SIGKILL: no handler runs, and no file is flushed.
	_ = p.cmd.Process.Kill()
	_ = <-p.ended // that it was killed is known
	p.cmd = nil
}

// stop ends the kubelet as systemd does; it must end well. A kubelet that ends with an error is
// told of as a problem.
func (p *process) stop() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	defer func() { p.cmd = nil }()
	// Upstream's kubelet ends at once; 20 s is what systemd would have given up
	// after.
	t := time.NewTimer(20 * time.Second)
	defer t.Stop()
	select {
	case err := <-p.ended:
		if err != nil {
			return fmt.Errorf("the kubelet's end after SIGTERM: %w", err)
		}
		return nil
	case <-t.C:
		_ = p.cmd.Process.Kill()
		_ = <-p.ended // that it was killed is known
		return errors.New("the kubelet did not end within 20s of SIGTERM")
	}
}

package fakecri

import (
	"io/fs"
	"path"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
)

// This file is the machine's files, which requests name by their host paths:
// those of Options.Host, or else of the node in memory.

// absolute is a host path that starts at the root, where the daemon of a
// machine runs, if it says nothing else.
func absolute(name string) string { return path.Clean("/" + name) }

func (r *Runtime) statHost(name string) (fs.FileInfo, error) {
	if r.opts.Host != nil {
		return hostfs.Stat(r.opts.Host, absolute(name))
	}
	return r.nodeFS().Stat(name)
}

func (r *Runtime) readHost(name string) ([]byte, error) {
	if r.opts.Host != nil {
		return hostfs.ReadFile(r.opts.Host, absolute(name))
	}
	return r.nodeFS().ReadFile(name)
}

// writeHost writes what nobody waits for.
func (r *Runtime) writeHost(name string, data []byte) {
	if r.opts.Host != nil {
		_ = hostfs.WriteFile(r.opts.Host, absolute(name), data, 0o666)
		return
	}
	_ = r.nodeFS().WriteFile(name, data, 0o666)
}

func (r *Runtime) mkdirHost(name string) error {
	if r.opts.Host != nil {
		return r.opts.Host.MkdirAll(absolute(name), 0o755)
	}
	return r.nodeFS().MkdirAll(name, 0o755)
}

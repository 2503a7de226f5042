package fakecri

import (
	"io/fs"
	"path"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// This file is the machine's files, which requests name by their host paths:
// those of Options.Host, or else of the node in memory.

// nodeFiles are the node's files, and the machine's if there is one.
type nodeFiles struct {
	l    *loop.Loop
	fs   *memfs.FS // nil until somebody needs it
	host hostfs.FS // see Options.Host
}

func newNodeFiles(l *loop.Loop, fs *memfs.FS, host hostfs.FS) *nodeFiles {
	return &nodeFiles{l: l, fs: fs, host: host}
}

// absolute is a host path that starts at the root, where the daemon of a
// machine runs, if it says nothing else.
func absolute(name string) string { return path.Clean("/" + name) }

func (r *nodeFiles) statHost(name string) (fs.FileInfo, error) {
	if r.host != nil {
		return hostfs.Stat(r.host, absolute(name))
	}
	return r.nodeFS().Stat(name)
}

func (r *nodeFiles) readHost(name string) ([]byte, error) {
	if r.host != nil {
		return hostfs.ReadFile(r.host, absolute(name))
	}
	return r.nodeFS().ReadFile(name)
}

// writeHost writes what nobody waits for.
func (r *nodeFiles) writeHost(name string, data []byte) {
	if r.host != nil {
		_ = hostfs.WriteFile(r.host, absolute(name), data, 0o666)
		return
	}
	_ = r.nodeFS().WriteFile(name, data, 0o666)
}

func (r *nodeFiles) mkdirHost(name string) error {
	if r.host != nil {
		return r.host.MkdirAll(absolute(name), 0o755)
	}
	return r.nodeFS().MkdirAll(name, 0o755)
}

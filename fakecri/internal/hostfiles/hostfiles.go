// Package hostfiles finds the files that requests name by their host paths: in
// memory, or on the real machine where the runtime serves one (Options.Host).
package hostfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Files are the node's files, and the machine's if there is one.
type Files struct {
	l    *loop.Loop
	FS   *memfs.FS // nil until somebody needs it
	Host hostfs.FS // see Options.Host
}

// New returns the files of a node; both may be nil.
func New(l *loop.Loop, fs *memfs.FS, host hostfs.FS) *Files {
	return &Files{l: l, FS: fs, Host: host}
}

// Absolute is a host path that starts at the root, where the daemon of a
// machine runs, if it says nothing else.
func Absolute(name string) string { return path.Clean("/" + name) }

// Stat follows symbolic links within the host's root.
func (r *Files) Stat(name string) (fs.FileInfo, error) {
	if r.Host != nil {
		return hostfs.Stat(r.Host, Absolute(name))
	}
	return r.Memory().Stat(name)
}

// Read returns a file's contents.
func (r *Files) Read(name string) ([]byte, error) {
	if r.Host != nil {
		return hostfs.ReadFile(r.Host, Absolute(name))
	}
	return r.Memory().ReadFile(name)
}

// Names lists a directory; what can't be read has none.
func (r *Files) Names(dir string) []string {
	if r.Host != nil {
		at, err := r.Host.Canonical(Absolute(dir))
		if err != nil {
			return nil
		}
		names, _ := r.Host.Names(at)
		return names
	}
	entries, _ := r.Memory().ReadDir(dir)
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out
}

// Write writes what nobody waits for.
func (r *Files) Write(name string, data []byte) {
	if r.Host != nil {
		_ = hostfs.WriteFile(r.Host, Absolute(name), data, 0o666)
		return
	}
	_ = r.Memory().WriteFile(name, data, 0o666)
}

// Mkdir makes a directory and those above it.
func (r *Files) Mkdir(name string) error {
	if r.Host != nil {
		return r.Host.MkdirAll(Absolute(name), 0o755)
	}
	return r.Memory().MkdirAll(name, 0o755)
}

// Memory returns the node's files.
func (r *Files) Memory() *memfs.FS {
	if r.FS == nil {
		r.FS = memfs.New(memfs.Options{Loop: r.l})
	}
	return r.FS
}

// MakeMountSources makes the missing host paths of a request's mounts as
// directories, as containerd's CRI plugin does.
func (r *Files) MakeMountSources(mounts []*runtimeapi.Mount) error {
	if r.FS == nil && r.Host == nil {
		return nil
	}
	for _, m := range mounts {
		if m.HostPath == "" && m.Image != nil {
			continue
		}
		if m.HostPath == "" {
			return fmt.Errorf("failed to mkdir %q: mkdir : no such file or directory", m.HostPath)
		}
		_, err := r.Stat(m.HostPath)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("failed to stat %q: %w", m.HostPath, err)
		}
		if err := r.Mkdir(m.HostPath); err != nil {
			return fmt.Errorf("failed to mkdir %q: %w", m.HostPath, err)
		}
	}
	return nil
}

// Bare is the error without the operation and path around it.
func Bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

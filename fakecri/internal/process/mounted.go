package process

import (
	"io/fs"
	"path"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/hostfiles"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// mounted are the files that a container's mounts bring along: what can be looked at
// before there is a view, or without one.
type mounted struct {
	files  *hostfiles.Files
	mounts []*runtimeapi.Mount
}

// host is where the host has a path of the container: in the mount that is nearest to it.
func (m mounted) host(name string) (string, bool) {
	best, host := -1, ""
	for _, x := range m.mounts {
		at := path.Clean(x.ContainerPath)
		if rest, ok := strings.CutPrefix(name, at); ok && (rest == "" || rest[0] == '/') && len(at) > best && x.HostPath != "" {
			best, host = len(at), path.Join(x.HostPath, rest)
		}
	}
	return host, best >= 0
}

// ReadFile implements images.Files.
func (m mounted) ReadFile(name string) ([]byte, error) {
	host, ok := m.host(path.Clean(name))
	if !ok || m.files.FS == nil && m.files.Host == nil {
		return nil, fs.ErrNotExist
	}
	return m.files.Read(host)
}

// Names implements images.Files: what a mounted directory has, and what is mounted
// within a directory.
func (m mounted) Names(dir string) []string {
	dir = path.Clean(dir)
	var out []string
	if host, ok := m.host(dir); ok && (m.files.FS != nil || m.files.Host != nil) {
		out = m.files.Names(host)
	}
	for _, x := range m.mounts {
		if at := path.Clean(x.ContainerPath); path.Dir(at) == dir {
			out = append(out, path.Base(at))
		}
	}
	return out
}

// viewed are the files that a process sees.
type viewed struct{ *kernel.View }

// Names implements images.Files.
func (v viewed) Names(dir string) []string {
	entries, _ := v.ReadDir(dir)
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out
}

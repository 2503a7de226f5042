package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// NFSOptions describe a server of NFS, which is on no node.
type NFSOptions struct {
	// Server is the name or address by which volumes name it.
	Server string
	// Exports are its directories that can be mounted.
	Exports []string
	// Latency is how long a mount takes.
	Latency Span
	// Network is how long a message takes to a node, or from one: at least the lookahead.
	Network time.Duration
}

// NFS is a server of NFS. The data of an export is with the nodes that have it mounted, as that
// of a Storage's volume is.
type NFS struct {
	o     NFSOptions
	files *Storage
}

// StartNFS starts a server.
func StartNFS(srv *apiserver.Server, o NFSOptions) *NFS {
	return &NFS{o: o, files: newStorage(srv, StorageOptions{Driver: "nfs/" + o.Server, Network: o.Network})}
}

// ServeNFS has the node's mounts of a server lead to it.
func (h *Host) ServeNFS(s *NFS) { h.nfs = append(h.nfs, s) }

// SetNFSDown has a server not answer this node, or answer it again.
func (h *Host) SetNFSDown(server string, down bool) error {
	if h.nfsOf(server) == nil {
		return fmt.Errorf("there is no NFS server %s", server)
	}
	if h.nfsDown == nil {
		h.nfsDown = map[string]bool{}
	}
	h.nfsDown[server] = down
	return nil
}

func (h *Host) nfsOf(server string) *NFS {
	if i := slices.IndexFunc(h.nfs, func(s *NFS) bool { return s.o.Server == server }); i >= 0 {
		return h.nfs[i]
	}
	return nil
}

// nfsGivesUp is how long mount.nfs tries before it gives up on a server that doesn't answer
// (its option retry).
const nfsGivesUp = 2 * time.Minute

// NoServer is the error of a mount of a server that is not there.
func NoServer(source, target, fstype string, options []string) error {
	server, _, _ := strings.Cut(source, ":/")
	return mountFailed(source, target, fstype, options, fmt.Sprintf("mount.nfs: Failed to resolve server %s: Name or service not known", server))
}

// mountFailed is the error of mount(8), as k8s.io/mount-utils tells it.
func mountFailed(source, target, fstype string, options []string, output string) error {
	arguments := "-t " + fstype
	if len(options) > 0 {
		arguments += " -o " + strings.Join(options, ",")
	}
	return fmt.Errorf("mount failed: exit status 32\nMounting command: mount\nMounting arguments: %s %s %s\nOutput: %s\n", arguments, source, target, output)
}

// MountRemote implements filesystem.RemoteMounter. Errors have the texts of
// k8s.io/mount-utils and mount.nfs.
func (h *Host) MountRemote(ctx context.Context, source, target, fstype string, options []string) error {
	fails := func(output string, args ...any) error {
		return mountFailed(source, target, fstype, options, fmt.Sprintf(output, args...))
	}
	server, export, ok := strings.Cut(strings.TrimPrefix(source, "["), ":/")
	server, export = strings.TrimSuffix(server, "]"), "/"+export
	if fstype != "nfs" || !ok {
		return fails("mount: %s: unknown filesystem type '%s'.", target, fstype)
	}
	s := h.nfsOf(server)
	if s == nil {
		return NoServer(source, target, fstype, options)
	}
	h.nfsDrawn++
	if err := h.l.Sleep(ctx, h.l.Between(s.o.Latency.Min, max(s.o.Latency.Min, s.o.Latency.Max), "nfs/mount", h.node, h.nfsDrawn)); err != nil {
		return err //nolint:wrapcheck // The node's process ends.
	}
	if h.nfsDown[server] {
		if err := h.l.Sleep(ctx, nfsGivesUp); err != nil {
			return err //nolint:wrapcheck // As above.
		}
		if h.nfsDown[server] {
			return fails("mount.nfs: Connection timed out")
		}
	}
	if !slices.Contains(s.o.Exports, export) {
		return fails("mount.nfs: mounting %s failed, reason given by server: No such file or directory", source)
	}
	key := volumeKey{s.files.o.Driver, export}
	tree, err := h.acquire(ctx, s.files, key)
	if err != nil {
		return err
	}
	if err := tree.Mount(h.fs, target); err != nil {
		return fails("mount.nfs: %v", err)
	}
	h.mounted(key, target)
	if h.exports == nil {
		h.exports = map[string]volumeKey{}
	}
	h.exports[target] = key
	return nil
}

// UnmountRemote implements filesystem.RemoteMounter.
func (h *Host) UnmountRemote(_ context.Context, target string) error {
	if err := h.fs.Unmount(target); err != nil {
		return err //nolint:wrapcheck // It names the directory.
	}
	key, ok := h.exports[target]
	if !ok {
		return nil
	}
	delete(h.exports, target)
	if i := slices.IndexFunc(h.nfs, func(s *NFS) bool { return s.files.o.Driver == key.driver }); i >= 0 {
		h.unmounted(h.nfs[i].files, key, target)
	}
	return nil
}

// IsRemoteMountPoint implements filesystem.RemoteMounter.
func (h *Host) IsRemoteMountPoint(path string) bool { return h.fs.Mounted(path) }

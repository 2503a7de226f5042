package sim

import (
	"context"
	"io/fs"
	"path"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/oom"
	"github.com/drydock-sim/drydock/kubelet/prober"
	"github.com/drydock-sim/drydock/kubelet/stats"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// Host is the machine outside on which a node's kubelet works, in place of a
// simulated one: for clusters on the wall clock (Options.Loop).
type Host struct {
	// RuntimeService and ImageService are the CRI. Their calls wait in the task
	// that makes them (loop.Await), and are cancelled when it dies.
	RuntimeService internalapi.RuntimeService
	ImageService   internalapi.ImageManagerService
	FS             filesystem.FS
	// Mounter mounts volumes in memory; nil: they are on the disk.
	Mounter filesystem.Mounter
	Machine kubelet.Machine
	Network prober.Network
	// Cgroups, Stats and OOM are kubelet.Options' Cgroups, MachineStats and OOM;
	// without them pods have the runtime's cgroups, and there is no pressure.
	Cgroups cm.NodeCgroups
	Stats   stats.Machine
	OOM     oom.Source
	// RootDir is the kubelet's root directory, ManifestDir where its static pods
	// are, and LogsDir where the runtime is to write containers' logs. All are
	// absolute, and no other kubelet's.
	RootDir, ManifestDir, LogsDir string
	// Config may change the kubelet's completed configuration; nil leaves it.
	Config func(*kubeletconfig.KubeletConfiguration)
}

// config gives the kubelet's configuration the machine's directories.
func (h *Host) config(c *kubeletconfig.KubeletConfiguration) {
	c.StaticPodPath, c.PodLogsDir = h.ManifestDir, h.LogsDir
	if h.Config != nil {
		h.Config(c)
	}
}

// RunReal runs a cluster of the wall clock to a time since its start, or until
// ctx ends. It returns the first panic of a task. Between runs the caller may
// act on the cluster.
func (c *Cluster) RunReal(ctx context.Context, until time.Duration) error {
	err := c.opts.Loop.RunRealUntil(ctx, c.start.Add(until))
	c.collector.Flush(1<<63 - 1)
	return err
}

// addHostNode is AddNode for a machine outside.
func (c *Cluster) addHostNode(opts NodeOptions, config *kubeletconfig.KubeletConfiguration) (*Node, error) {
	l, h := c.opts.Loop, opts.Host
	n := newNode(c, l, &opts, config)
	n.files, n.named = h.FS, map[string]named{}
	for _, dir := range []string{h.RootDir, h.ManifestDir, h.LogsDir} {
		if err := h.FS.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	n.client = c.api.Client(l, opts.Name)
	n.timer = l.Root().NewTimer("kubelet start", n.bringUp)
	n.power = l.Root().NewTimer("power on", n.boot)
	c.nodes = append(c.nodes, n)
	c.byName[opts.Name] = n
	n.bringUp()
	return n, nil
}

// manifests is the part of a file system that static pods need.
type manifests interface {
	WriteFile(name string, data []byte, perm fs.FileMode) error
	Remove(name string) error
}

var _ manifests = (*memfs.FS)(nil)

// manifest is the path of a static pod's manifest.
func (n *Node) manifest(file string) string { return path.Join(n.config.StaticPodPath, file) }

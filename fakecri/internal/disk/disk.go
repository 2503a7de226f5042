// Package disk is what containers take of the node's disks: their writable layers,
// and what stated programs write to mounts. Growth is computed by ground/memfs from
// the programs' curves, so that a program that writes costs nothing while nobody
// looks. What images take is counted by package images.
package disk

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/hostfiles"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Layers is what the runtime takes of the node's disks.
type Layers struct {
	l      *loop.Loop
	period time.Duration // see Options.LayerPeriod
	files  *hostfiles.Files
	logs   bool // somebody takes what containers log
	warner *records.Warner

	Share *memfs.Share
	// Written are the writable layers of the containers that have, or had,
	// processes that can write.
	Written map[*records.Container]*layer
}

// layer is a container's writable layer. It stays until the container is
// removed.
type layer struct {
	Share   *memfs.Share
	growths []*memfs.Growth // of its process
	// measured is what was in it when it was last measured (Options.LayerPeriod).
	measured memfs.Space
}

// New returns the layers of no container yet, on a disk without end if disk is nil.
func New(l *loop.Loop, disk *memfs.Share, period, first time.Duration, files *hostfiles.Files, logs bool, warner *records.Warner) *Layers {
	if disk == nil {
		disk = memfs.NewDisk(memfs.DiskOptions{Loop: l}).Share()
	}
	d := &Layers{l: l, period: period, files: files, logs: logs, warner: warner, Share: disk}
	if period > 0 {
		l.Root().After(first, d.measureLayers)
	}
	return d
}

// measureLayers does, and again each period.
func (r *Layers) measureLayers() {
	for _, l := range r.Written { //drydock:unordered each by itself
		l.measured = l.Share.Used()
	}
	r.l.Root().After(r.period, r.measureLayers)
}

// Of is a container's writable layer.
func (r *Layers) Of(c *records.Container) *layer {
	l := r.Written[c]
	if l == nil {
		l = &layer{Share: r.Share.Share()}
		if r.Written == nil {
			r.Written = map[*records.Container]*layer{}
		}
		r.Written[c] = l
	}
	return l
}

// Used is what a container has written beside its mounts.
func (r *Layers) Used(c *records.Container) memfs.Space {
	if l := r.Written[c]; l != nil {
		return l.Share.Used()
	}
	return memfs.Space{}
}

// Measured is what statistics say a container has written.
func (r *Layers) Measured(c *records.Container) memfs.Space {
	if r.period <= 0 {
		return r.Used(c)
	}
	if l := r.Written[c]; l != nil {
		return l.measured
	}
	return memfs.Space{}
}

// Drop gives back what a container's layer takes.
func (r *Layers) Drop(c *records.Container) {
	if l := r.Written[c]; l != nil {
		l.stop()
		l.Share.Clear()
		delete(r.Written, c)
	}
}

// stop ends what a process writes; what it has written stays.
func (l *layer) stop() {
	for _, g := range l.growths {
		g.Stop()
	}
	l.growths = nil
}

// StartWrites begins what a stated program writes.
func (r *Layers) StartWrites(p *records.Process) {
	if len(p.Behaviour.Writes) == 0 && p.Behaviour.LogBytes == nil {
		return
	}
	l := r.Of(p.Container)
	for i, w := range p.Behaviour.Writes {
		bytes, inodes := p.User(r.l, w.Bytes), p.User(r.l, w.InodesCurve())
		bytes.Key, inodes.Key = bytes.Key+uint64(2*i+1), inodes.Key+uint64(2*i+2)
		m := mountOf(p.Container.Config.Mounts, w.Path)
		switch {
		case m == nil && p.Container.Config.GetLinux().GetSecurityContext().GetReadonlyRootfs():
		case m == nil:
			l.growths = append(l.growths, l.Share.Grow(bytes, inodes))
		case m.Readonly || m.HostPath == "":
		case r.files.Host != nil:
			r.warner.WarnOnce(p.Container, "writes\x00"+w.Path, "what its program writes to "+w.Path+" is left out: mounts are this machine's own directories (commands of the shell write there)")
		default:
			dir := path.Join(m.HostPath, strings.TrimPrefix(path.Clean(w.Path), path.Clean(m.ContainerPath)))
			if size, _, ok := r.files.Memory().Limit(m.HostPath); ok && size > 0 {
				bytes.Curve = bytes.Curve.Capped(size)
			}
			key := p.Container.Sandbox.Metadata.Uid + "/" + p.Container.Config.Metadata.Name + "/" + strconv.Itoa(i)
			if g, err := r.files.Memory().Grow(dir, key, bytes, inodes); err == nil {
				l.growths = append(l.growths, g)
			}
		}
	}
	if p.Behaviour.LogBytes == nil || !r.logs || p.Container.LogPath() == "" {
		return
	}
	if r.files.Host != nil {
		r.warner.WarnOnce(p.Container, "logBytes", "its program's logBytes are left out: the log is a file of this machine (logs are written)")
	} else {
		l.growths = append(l.growths, r.files.Memory().GrowFile(p.Container.LogPath(), p.User(r.l, p.Behaviour.LogBytes)))
	}
}

// WithMemory is a program's behaviour with what it writes to memory (an emptyDir
// of medium Memory) added to the memory that it uses. That is charged to it as
// long as it runs: after its end only the files are left.
func (r *Layers) WithMemory(c *records.Container, b *program.Behaviour) *program.Behaviour {
	if len(b.Writes) == 0 || r.files.Host != nil {
		return b
	}
	memory := b.MemoryCurve()
	for _, w := range b.Writes {
		m := mountOf(c.Config.Mounts, w.Path)
		if m == nil || m.Readonly || m.HostPath == "" {
			continue
		}
		if size, _, ok := r.files.Memory().Limit(m.HostPath); ok {
			more := w.Bytes
			if size > 0 {
				more = more.Capped(size)
			}
			memory = memory.Plus(more)
		}
	}
	if memory == b.MemoryCurve() {
		return b
	}
	with := *b
	with.Memory = memory
	return &with
}

// StopWrites ends what a container's process writes.
func (r *Layers) StopWrites(c *records.Container) {
	if l := r.Written[c]; l != nil {
		l.stop()
	}
}

// mountOf is the mount that a path in a container is in, or nil.
func mountOf(mounts []*runtimeapi.Mount, p string) (found *runtimeapi.Mount) {
	p = path.Clean(p)
	best := -1
	for _, m := range mounts {
		at := strings.TrimSuffix(path.Clean(m.ContainerPath), "/")
		if len(at) > best && strings.HasPrefix(p, at) && (len(p) == len(at) || p[len(at)] == '/') {
			found, best = m, len(at)
		}
	}
	return found
}

// PageSize is in bytes.
const PageSize = 4096

// RootDirFits reports whether containerd can make the directory in which it keeps
// a sandbox's or container's files.
func (r *Layers) RootDirFits(kind, id string) error {
	free := r.Share.Disk().Free()
	if free.Bytes >= PageSize && free.Inodes > 0 {
		return nil
	}
	dir := "/var/lib/containerd/io.containerd.grpc.v1.cri/" + kind + "s/" + id
	return fmt.Errorf("failed to create %s root directory %q: mkdir %s: no space left on device", kind, dir, dir)
}

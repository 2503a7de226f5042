package fakecri

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/usage"
)

// Write is what a stated program writes to one place. On a full disk it gets
// what is left, and the rest when there is room.
type Write struct {
	// Path is where, in the container: in a mount it counts for what is mounted
	// (for a directory of the mount by that path), else for the writable layer.
	// What can't be written to takes nothing; what is on a tmpfs is memory that
	// the program uses.
	Path string
	// Bytes are how many are there, Inodes how many files and directories hold
	// them: without it one, if there are Bytes.
	Bytes, Inodes *usage.Curve
}

func (w Write) inodes() *usage.Curve {
	if w.Inodes == nil && w.Bytes != nil {
		return usage.Constant(1)
	}
	return w.Inodes
}

// layerStore is what the runtime takes of the node's disks.
type layerStore struct {
	l      *loop.Loop
	period time.Duration // see Options.LayerPeriod
	files  *nodeFiles
	logs   bool // somebody takes what containers log
	warner *warner

	layers *memfs.Share
	// written are the writable layers of the containers that have, or had,
	// processes that can write.
	written map[*container]*layer
}

// layer is a container's writable layer. It stays until the container is
// removed.
type layer struct {
	share   *memfs.Share
	growths []*memfs.Growth // of its process
	// measured is what was in it when it was last measured (Options.LayerPeriod).
	measured memfs.Space
}

func newLayerStore(l *loop.Loop, disk *memfs.Share, period, first time.Duration, files *nodeFiles, logs bool, warner *warner) *layerStore {
	if disk == nil {
		disk = memfs.NewDisk(memfs.DiskOptions{Loop: l}).Share()
	}
	d := &layerStore{l: l, period: period, files: files, logs: logs, warner: warner, layers: disk}
	if period > 0 {
		l.Root().After(first, d.measureLayers)
	}
	return d
}

// measureLayers does, and again each period.
func (r *layerStore) measureLayers() {
	for _, l := range r.written { //drydock:unordered each by itself
		l.measured = l.share.Used()
	}
	r.l.Root().After(r.period, r.measureLayers)
}

// layerOf is a container's writable layer.
func (r *layerStore) layerOf(c *container) *layer {
	l := r.written[c]
	if l == nil {
		l = &layer{share: r.layers.Share()}
		if r.written == nil {
			r.written = map[*container]*layer{}
		}
		r.written[c] = l
	}
	return l
}

// layerUsed is what a container has written beside its mounts.
func (r *layerStore) layerUsed(c *container) memfs.Space {
	if l := r.written[c]; l != nil {
		return l.share.Used()
	}
	return memfs.Space{}
}

// layerMeasured is what statistics say a container has written.
func (r *layerStore) layerMeasured(c *container) memfs.Space {
	if r.period <= 0 {
		return r.layerUsed(c)
	}
	if l := r.written[c]; l != nil {
		return l.measured
	}
	return memfs.Space{}
}

// dropLayer gives back what a container's layer takes.
func (r *layerStore) dropLayer(c *container) {
	if l := r.written[c]; l != nil {
		l.stop()
		l.share.Clear()
		delete(r.written, c)
	}
}

// stop ends what a process writes; what it has written stays.
func (l *layer) stop() {
	for _, g := range l.growths {
		g.Stop()
	}
	l.growths = nil
}

// startWrites begins what a stated program writes.
func (r *layerStore) startWrites(p *process) {
	if len(p.b.Writes) == 0 && p.b.LogBytes == nil {
		return
	}
	l := r.layerOf(p.c)
	for i, w := range p.b.Writes {
		bytes, inodes := p.user(r.l, w.Bytes), p.user(r.l, w.inodes())
		bytes.Key, inodes.Key = bytes.Key+uint64(2*i+1), inodes.Key+uint64(2*i+2)
		m := mountOf(p.c.config.Mounts, w.Path)
		switch {
		case m == nil && p.c.config.GetLinux().GetSecurityContext().GetReadonlyRootfs():
		case m == nil:
			l.growths = append(l.growths, l.share.Grow(bytes, inodes))
		case m.Readonly || m.HostPath == "":
		case r.files.host != nil:
			r.warner.warnOnce(p.c, "writes\x00"+w.Path, "what its program writes to "+w.Path+" is left out: mounts are this machine's own directories (commands of the shell write there)")
		default:
			dir := path.Join(m.HostPath, strings.TrimPrefix(path.Clean(w.Path), path.Clean(m.ContainerPath)))
			if size, _, ok := r.files.nodeFS().Limit(m.HostPath); ok && size > 0 {
				bytes.Curve = bytes.Curve.Capped(size)
			}
			key := p.c.sandbox.metadata.Uid + "/" + p.c.config.Metadata.Name + "/" + strconv.Itoa(i)
			if g, err := r.files.nodeFS().Grow(dir, key, bytes, inodes); err == nil {
				l.growths = append(l.growths, g)
			}
		}
	}
	if p.b.LogBytes == nil || !r.logs || p.c.logPath() == "" {
		return
	}
	if r.files.host != nil {
		r.warner.warnOnce(p.c, "logBytes", "its program's logBytes are left out: the log is a file of this machine (logs are written)")
	} else {
		l.growths = append(l.growths, r.files.nodeFS().GrowFile(p.c.logPath(), p.user(r.l, p.b.LogBytes)))
	}
}

// withMemory is a program's behaviour with what it writes to memory (an emptyDir
// of medium Memory) added to the memory that it uses. That is charged to it as
// long as it runs: after its end only the files are left.
func (r *layerStore) withMemory(c *container, b *Behaviour) *Behaviour {
	if len(b.Writes) == 0 || r.files.host != nil {
		return b
	}
	memory := b.memory()
	for _, w := range b.Writes {
		m := mountOf(c.config.Mounts, w.Path)
		if m == nil || m.Readonly || m.HostPath == "" {
			continue
		}
		if size, _, ok := r.files.nodeFS().Limit(m.HostPath); ok {
			more := w.Bytes
			if size > 0 {
				more = more.Capped(size)
			}
			memory = memory.Plus(more)
		}
	}
	if memory == b.memory() {
		return b
	}
	with := *b
	with.Memory = memory
	return &with
}

// stopWrites ends what a container's process writes.
func (r *layerStore) stopWrites(c *container) {
	if l := r.written[c]; l != nil {
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

// space is what an image takes on disk.
func (src *imageSource) space() memfs.Space {
	return memfs.Space{Bytes: cmp.Or(src.Unpacked, src.Size), Inodes: cmp.Or(src.Inodes, 1)}
}

// holdImage is called for each that needs an image's files: its record and the
// containers made of it. The files are there until the last has gone.
func (r *imageStore) holdImage(src *imageSource) {
	if src.holders == 0 {
		r.disk.Add(src.space())
	}
	src.holders++
}

func (r *imageStore) releaseImage(src *imageSource) {
	src.holders--
	if src.holders == 0 {
		s := src.space()
		r.disk.Add(memfs.Space{Bytes: -s.Bytes, Inodes: -s.Inodes})
	}
}

// imageFits tells whether an image can be unpacked; if not the error is
// containerd's, of the download or of the first layer.
func (r *imageStore) imageFits(src *imageSource, name string) error {
	if src.holders > 0 {
		return nil
	}
	free, need := r.disk.Disk().Free(), src.space()
	if need.Bytes <= free.Bytes && need.Inodes <= free.Inodes {
		return nil
	}
	if src.Size > free.Bytes {
		return status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to copy: write %s/ingest/%s/data: no space left on device",
			name, contentStore, hashID("ingest", src.digest))
	}
	what := "write"
	if need.Inodes > free.Inodes {
		what = "mkdir"
	}
	layer := hashID("layer", src.digest)
	mount := "/var/lib/containerd/tmpmounts/containerd-mount" + strconv.FormatUint(r.l.Uint64("mount", name, src.pulls)%1e10, 10)
	return status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to extract layer sha256:%s: mount callback failed on %s: %s %s/usr: no space left on device",
		name, layer, mount, what, mount)
}

// pageSize is in bytes.
const pageSize = 4096

// contentStore is where containerd keeps what it downloads.
const contentStore = "/var/lib/containerd/io.containerd.content.v1.content"

// rootDirFits tells whether containerd can make the directory in which it keeps
// a sandbox's or container's files.
func (r *layerStore) rootDirFits(kind, id string) error {
	free := r.layers.Disk().Free()
	if free.Bytes >= pageSize && free.Inodes > 0 {
		return nil
	}
	dir := "/var/lib/containerd/io.containerd.grpc.v1.cri/" + kind + "s/" + id
	return fmt.Errorf("failed to create %s root directory %q: mkdir %s: no space left on device", kind, dir, dir)
}

package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

const (
	timestampFormat  = "20060102-150405"
	compressSuffix   = ".gz"
	tmpSuffix        = ".tmp"
	logSuffix        = ".log"
	uncompressedLogs = 2 // the log itself and the one rotated last
)

// Runtime is what a Manager needs of the CRI.
type Runtime interface {
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	ContainerStatus(ctx context.Context, containerID string, verbose bool) (*runtimeapi.ContainerStatusResponse, error)
	ReopenContainerLog(ctx context.Context, containerID string) error
}

// FS is what a Manager needs of the node's files.
type FS interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Rename(oldname, newname string) error
	Remove(name string) error
	Watch(path string, fn func()) (stop func())
}

// Options are what a Manager is made of.
type Options struct {
	Group   *loop.Group
	Runtime Runtime
	FS      FS
	// Dir is podLogsDir, below which containers log.
	Dir string
	// MaxSize in bytes is containerLogMaxSize; below 0 no log is rotated.
	MaxSize int64
	// MaxFiles is containerLogMaxFiles, more than 1; MaxWorkers
	// containerLogMaxWorkers; Period containerLogMonitorInterval.
	MaxFiles, MaxWorkers int
	Period               time.Duration
	// Timeout is that of each call of the runtime; 0 means none.
	Timeout time.Duration
	Log     func(format string, args ...any)
}

// ParseMaxSize reads containerLogMaxSize.
func ParseMaxSize(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, err
	}
	n, ok := q.AsInt64()
	if !ok {
		return 0, errors.New("invalid max log size")
	}
	return n, nil
}

// Manager rotates the logs of running containers that have become too big
// (upstream's containerLogManager): every Period it asks the runtime for each
// running container. Passes that would find nothing to do are elided, see elide.go.
type Manager struct {
	o       Options
	passes  *loop.Periodic
	listing bool // a pass asks the runtime
	failed  bool // something of the last pass is left to the next
	queue   []string
	workers int
}

// New returns a Manager that does nothing until Start.
func New(o Options) *Manager {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &Manager{o: o}
}

// Start begins the passes, the first at once.
func (m *Manager) Start() {
	if m.o.MaxSize < 0 {
		return
	}
	m.passes = m.o.Group.EveryNow("container-log-manager", m.o.Period, 0, m.tick)
	elide(m)
}

// tick begins a pass. One that takes longer than a period is not joined by another.
func (m *Manager) tick() {
	if m.listing {
		return
	}
	m.listing, m.failed = true, false
	m.o.Group.Go("container-log-manager", func(ctx context.Context) {
		defer func() { m.listing = false }()
		m.pass(ctx)
	})
}

func (m *Manager) tooBig(name string, size int64) bool {
	return strings.HasSuffix(name, logSuffix) && size >= m.o.MaxSize
}

func (m *Manager) readDir(name string) []fs.DirEntry {
	list, err := m.o.FS.ReadDir(name)
	if err != nil {
		return nil
	}
	return list
}

func within[T any](ctx context.Context, d time.Duration, call func(ctx context.Context) (T, error)) (T, error) {
	if d <= 0 {
		return call(ctx)
	}
	ctx, cancel := loop.WithTimeout(ctx, d)
	defer cancel()
	return call(ctx)
}

// pass gives the workers every running container.
func (m *Manager) pass(ctx context.Context) {
	list, err := within(ctx, m.o.Timeout, func(ctx context.Context) ([]*runtimeapi.Container, error) {
		return m.o.Runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{})
	})
	if err != nil {
		m.o.Log("Failed to rotate container logs: failed to list containers: %v", err)
		m.failed = true
		return
	}
	for _, c := range list {
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING || slices.Contains(m.queue, c.Id) {
			continue
		}
		m.queue = append(m.queue, c.Id)
	}
	for m.workers < max(m.o.MaxWorkers, 1) && m.workers < len(m.queue) {
		m.workers++
		m.o.Group.Go("container-log-worker", func(ctx context.Context) {
			defer func() { m.workers-- }()
			for len(m.queue) > 0 {
				id := m.queue[0]
				m.queue = m.queue[1:]
				if err := m.process(ctx, id); err != nil {
					m.o.Log("Failed to rotate log for container containerID=%s: %v", id, err)
					m.failed = true
				}
			}
		})
	}
}

// process rotates the log of one container if it is too big.
func (m *Manager) process(ctx context.Context, id string) error {
	resp, err := within(ctx, m.o.Timeout, func(ctx context.Context) (*runtimeapi.ContainerStatusResponse, error) {
		return m.o.Runtime.ContainerStatus(ctx, id, false)
	})
	if err != nil {
		return fmt.Errorf("failed to get container status: %w", err)
	}
	if resp.GetStatus() == nil {
		return errors.New("container status is nil")
	}
	log := resp.Status.LogPath
	info, err := m.o.FS.Stat(log)
	if errors.Is(err, fs.ErrNotExist) {
		// A kubelet that died between a rotation and the reopening left it so.
		if err := m.reopen(ctx, id); err != nil {
			return fmt.Errorf("container log doesn't exist, and failed to reopen it: %w", err)
		}
		info, err = m.o.FS.Stat(log)
	}
	if err != nil {
		return fmt.Errorf("failed to stat container log %q: %w", log, err)
	}
	if info.Size() < m.o.MaxSize {
		return nil
	}
	return m.rotate(ctx, id, log)
}

func (m *Manager) reopen(ctx context.Context, id string) error {
	_, err := within(ctx, m.o.Timeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.o.Runtime.ReopenContainerLog(ctx, id)
	})
	return err
}

// rotate makes room for another rotated log, compresses those that are left but
// the newest, and starts a new log.
func (m *Manager) rotate(ctx context.Context, id, log string) error {
	old, err := m.rotated(log)
	if err != nil {
		return err
	}
	excess := max(len(old)-max(m.o.MaxFiles-uncompressedLogs, 0), 0)
	for _, name := range old[:excess] {
		if err := m.o.FS.Remove(name); err != nil {
			return fmt.Errorf("failed to remove excess log %q: %w", name, err)
		}
	}
	for _, name := range old[excess:] {
		if strings.HasSuffix(name, compressSuffix) {
			continue
		}
		if err := m.compress(ctx, name); err != nil {
			return fmt.Errorf("failed to compress log %q: %w", name, err)
		}
	}
	return m.rotateLatest(ctx, id, log)
}

// rotated lists the rotated logs, oldest first, and removes what an earlier
// rotation left unfinished: temporary files, and logs that are there compressed.
func (m *Manager) rotated(log string) ([]string, error) {
	dir, base := path.Split(log)
	entries, err := m.o.FS.ReadDir(path.Clean(dir))
	if err != nil {
		return nil, fmt.Errorf("failed to list all log files of %q: %w", log, err)
	}
	var all []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base+".") {
			all = append(all, dir+e.Name())
		}
	}
	var out []string
	for _, name := range all {
		if strings.HasSuffix(name, tmpSuffix) || !strings.HasSuffix(name, compressSuffix) && slices.Contains(all, name+compressSuffix) {
			if err := m.o.FS.Remove(name); err != nil {
				return nil, fmt.Errorf("failed to remove unused log %q: %w", name, err)
			}
			continue
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

func (m *Manager) compress(ctx context.Context, name string) error {
	if c, ok := m.o.FS.(filesystem.Compressor); ok {
		tmp := name + tmpSuffix
		if err := c.CompressFile(ctx, name, tmp); err != nil {
			return err
		}
		if err := m.o.FS.Rename(tmp, name+compressSuffix); err != nil {
			return err
		}
		return m.o.FS.Remove(name)
	}
	info, err := m.o.FS.Stat(name)
	if err != nil {
		return err
	}
	data, err := m.o.FS.ReadFile(name)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	tmp := name + tmpSuffix
	if err := m.o.FS.WriteFile(tmp, b.Bytes(), info.Mode().Perm()); err != nil {
		return err
	}
	if err := m.o.FS.Rename(tmp, name+compressSuffix); err != nil {
		return err
	}
	return m.o.FS.Remove(name)
}

// rotateLatest renames the log and has the runtime begin another; if it can't,
// the name is given back.
func (m *Manager) rotateLatest(ctx context.Context, id, log string) error {
	to := log + "." + m.o.Group.Loop().Now().Format(timestampFormat)
	if err := m.o.FS.Rename(log, to); err != nil {
		return fmt.Errorf("failed to rotate log %q to %q: %w", log, to, err)
	}
	if err := m.reopen(ctx, id); err != nil {
		if rerr := m.o.FS.Rename(to, log); rerr != nil {
			m.o.Log("Failed to rename rotated log back %s: %v", to, rerr)
		}
		return fmt.Errorf("failed to reopen container log %q: %w", id, err)
	}
	return nil
}

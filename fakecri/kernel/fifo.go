package kernel

import (
	"context"
	"io/fs"
	"os"
	"slices"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// fifo is a named pipe that somebody has open. It exists from the first open to the last close;
// the file in the directory is only a name for it.
type fifo struct {
	node memfs.Node
	host string // of the machine's: its path there, and no node
	q    *pipe
	// opened fires when an end is opened; who opens one waits for the other.
	opened        *loop.Event
	reads, writes int // how often an end was opened
	// users counts open ends, and ends that still wait.
	users int
}

// Mkfifo makes a named pipe.
func (v *View) Mkfifo(name string, perm fs.FileMode) error {
	return v.create("mkfifo", name, func(f hostfs.Tree, rel string) error {
		return f.Mknod(rel, fs.ModeNamedPipe|perm.Perm()&^v.umask(), "")
	})
}

// openFifo opens a named pipe. As on Linux one end waits until the other is
// opened too, unless it is opened for both.
func (v *View) openFifo(at *place, flag int) (File, linux.Errno) {
	// The process on the other side would have to be the machine's own; that is not built.
	m, host := v.ns.m, ""
	if at.syn != nil {
		host = at.syn.name // what goes through it stays with the interpreted
	}
	i := slices.IndexFunc(m.fifos, func(f *fifo) bool {
		return f.host == host && (host != "" || f.node.Same(at.node))
	})
	if i < 0 {
		i = len(m.fifos)
		m.fifos = append(m.fifos, &fifo{node: at.node, host: host, q: &pipe{}, opened: &loop.Event{}})
	}
	f := m.fifos[i]
	f.users++
	reads, writes := f.reads, f.writes
	end := &fifoEnd{f: f, m: m, refs: 1, read: flag&os.O_WRONLY == 0, write: flag&(os.O_WRONLY|os.O_RDWR) != 0}
	if end.read {
		f.q.readers++
		f.reads++
	}
	if end.write {
		f.q.writers++
		f.writes++
	}
	// Everybody who waits looks again; who comes later waits for the new event.
	f.opened.Fire()
	f.opened = &loop.Event{}
	ok := false
	// An open that was given up takes its end back.
	defer func() {
		if !ok {
			_ = end.Close()
		}
	}()
	// Whoever came and went meanwhile counts too. A writer that opened, wrote and closed while
	// this reader waited must not leave it waiting: the counters have moved on.
	for end.read && f.q.writers == 0 && f.writes == writes || end.write && f.q.readers == 0 && f.reads == reads {
		// The runtime itself, or a stand-in at the start, can't wait.
		if v.p == nil || v.p.ctx == nil {
			return nil, linux.ENXIO
		}
		i, err := loop.WaitAny(v.p.ctx, f.opened, &v.p.signalled)
		if err != nil || i == 1 {
			return nil, linux.EINTR
		}
	}
	ok = true
	return end, 0
}

// fifoEnd is an open named pipe. refs counts its descriptors, f.users the ends.
type fifoEnd struct {
	f           *fifo
	m           *Machine
	read, write bool
	refs        int
}

func (e *fifoEnd) Read(ctx context.Context, b []byte) (int, error) {
	if !e.read {
		return 0, errBadFD
	}
	return e.f.q.read(ctx, b)
}

func (e *fifoEnd) Write(ctx context.Context, b []byte) (int, error) {
	if !e.write {
		return 0, errBadFD
	}
	return e.f.q.write(ctx, b)
}

func (e *fifoEnd) Close() error {
	if e.refs--; e.refs != 0 {
		return nil
	}
	if e.read {
		e.f.q.closeReader()
	}
	if e.write {
		e.f.q.closeWriter()
	}
	if e.f.users--; e.f.users == 0 {
		e.m.fifos = slices.DeleteFunc(e.m.fifos, func(o *fifo) bool { return o == e.f })
	}
	return nil
}

func (e *fifoEnd) Dup() File {
	e.refs++
	return e
}

package kernel

import (
	"context"
	"io"
	"os"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
)

// openFile is an open regular file (or directory), of the node's files or of the
// machine's. Dups share it. refs counts descriptors, of all processes. The offset is shared by
// them, as POSIX has it after dup(2) and fork(2).
type openFile struct {
	h    hostfs.File // of the node, or of the machine
	path string
	off  int64
	refs int
	// flag is of open(2): only the access mode and O_APPEND are looked at later.
	flag int
	// tmpfs says that what is written takes memory.
	tmpfs bool
}

// Read returns what is there and never waits. An end together with data is told at the next read.
func (f *openFile) Read(_ context.Context, b []byte) (int, error) {
	n, err := f.ReadAt(b, f.off)
	f.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadAt is pread(2); EBADF if the file was opened for writing alone.
func (f *openFile) ReadAt(b []byte, off int64) (int, error) {
	if f.flag&os.O_WRONLY != 0 {
		return 0, errBadFD
	}
	if len(b) == 0 {
		return 0, nil
	}
	n, err := f.h.ReadAt(b, off)
	if err != nil && err != io.EOF {
		return n, execError(err)
	}
	return n, err
}

// Write writes all of b, at the offset or the end.
func (f *openFile) Write(ctx context.Context, b []byte) (int, error) {
	return f.writeAll(ctx, int64(len(b)), func(from, to int64) (int64, error) {
		n, err := f.WriteAt(b[from:to], f.off)
		return int64(n), err
	})
}

// writeAll writes from the present offset, or at the end of a file that is open
// for appending.
func (f *openFile) writeAll(ctx context.Context, n int64, write func(from, to int64) (int64, error)) (int, error) {
	if f.flag&os.O_APPEND != 0 {
		f.off = f.h.Size()
	}
	return writeAll(ctx, f.h, &f.off, f.tmpfs, n, write)
}

// writeAll writes n bytes to a file at an offset, which it moves on: at once,
// or, on a tmpfs, as far as the memory goes until the OOM killer has made room.
//
// Each lap writes what there is room for, then asks the OOM killer for more. Without a victim it
// is ENOMEM, which Linux would make SIGBUS or ENOSPC of, depending on the limit. Overwriting
// takes no new memory: growth is beyond the file's size alone.
func writeAll(ctx context.Context, h interface{ Size() int64 }, off *int64, tmpfs bool, n int64, write func(from, to int64) (int64, error)) (int, error) {
	done := int64(0)
	for {
		part, taken := n-done, int64(0)
		var c *Container
		if p := From(ctx); tmpfs && p != nil && !p.dead {
			c = p.c
			growth := max(*off+part-h.Size(), 0)
			// Only the part beyond the size needs room.
			if taken = min(growth, c.room()); taken < growth {
				part -= growth - taken
			}
		}
		m, err := write(done, done+part)
		*off += m
		done += m
		if c != nil && taken > 0 {
			c.files += taken
			// Booked after the write, as a full tmpfs (its own size limit) may have taken less.
			c.book(taken)
		}
		if err != nil || done == n {
			return int(done), err
		}
		if c == nil {
			continue
		}
		if !c.makeRoom() {
			return int(done), linux.ENOMEM
		}
		// It may have been this process that was killed.
		From(ctx).checkAlive()
	}
}

func (f *openFile) WriteAt(b []byte, off int64) (int, error) {
	if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, errBadFD
	}
	n, err := f.h.WriteAt(b, off)
	if err != nil {
		return n, execError(err)
	}
	return n, nil
}

// WriteZeros is of ZeroWriter.
func (f *openFile) WriteZeros(ctx context.Context, n int64) error {
	if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return errBadFD
	}
	_, err := f.writeAll(ctx, n, func(from, to int64) (int64, error) {
		done, err := f.h.WriteZerosAt(f.off, to-from)
		if err != nil {
			err = execError(err)
		}
		return done, err
	})
	return err
}

// Seek is of Seeker.
func (f *openFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.off
	case io.SeekEnd:
		offset += f.h.Size()
	}
	if offset < 0 {
		return f.off, linux.EINVAL
	}
	f.off = offset
	return offset, nil
}

// Truncate is of Truncater.
func (f *openFile) Truncate(size int64) error {
	if err := f.h.Truncate(size); err != nil {
		return execError(err)
	}
	return nil
}

// Close gives up one reference; the last closes the file.
func (f *openFile) Close() error {
	if f.refs--; f.refs != 0 {
		return nil
	}
	if err := f.h.Close(); err != nil {
		return execError(err)
	}
	return nil
}

// Dup is the same value with one reference more.
func (f *openFile) Dup() File {
	f.refs++
	return f
}

func (f *openFile) Path() string { return f.path }

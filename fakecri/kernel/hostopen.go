package kernel

import (
	"context"
	"io"
	"os"
	"syscall"
)

// hostOpen is an open file of the machine's. Dups share it.
type hostOpen struct {
	h    HostFile
	path string // in the container
	off  int64
	refs int
	flag int
	// tmpfs says that what is written takes memory.
	tmpfs bool
}

func (f *hostOpen) Read(_ context.Context, b []byte) (int, error) {
	n, err := f.ReadAt(b, f.off)
	f.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *hostOpen) ReadAt(b []byte, off int64) (int, error) {
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

// all reads the file to its end, whatever size it shows.
func (f *hostOpen) all() ([]byte, syscall.Errno) {
	if f.h.Mode().IsDir() {
		return nil, syscall.EISDIR
	}
	out := make([]byte, 0, max(f.h.Size()+1, 4096))
	for {
		if len(out) == cap(out) {
			out = append(out, make([]byte, len(out))...)[:len(out)]
		}
		n, err := f.h.ReadAt(out[len(out):cap(out)], int64(len(out)))
		out = out[:len(out)+n]
		switch {
		case err == io.EOF:
			return out, 0
		case err != nil:
			return out, execError(err)
		}
	}
}

func (f *hostOpen) Write(ctx context.Context, b []byte) (int, error) {
	f.atEnd()
	return writeAll(ctx, f.h, &f.off, f.tmpfs, int64(len(b)), func(from, to int64) (int64, error) {
		n, err := f.WriteAt(b[from:to], f.off)
		return int64(n), err
	})
}

// atEnd moves to the end of a file that is open for appending.
func (f *hostOpen) atEnd() {
	if f.flag&os.O_APPEND != 0 {
		f.off = f.h.Size()
	}
}

func (f *hostOpen) WriteAt(b []byte, off int64) (int, error) {
	if !f.writes() {
		return 0, errBadFD
	}
	n, err := f.h.WriteAt(b, off)
	if err != nil {
		return n, execError(err)
	}
	return n, nil
}

func (f *hostOpen) writes() bool { return f.flag&(os.O_WRONLY|os.O_RDWR) != 0 }

// WriteZeros is of ZeroWriter.
func (f *hostOpen) WriteZeros(ctx context.Context, n int64) error {
	if !f.writes() {
		return errBadFD
	}
	f.atEnd()
	_, err := writeAll(ctx, f.h, &f.off, f.tmpfs, n, func(from, to int64) (int64, error) {
		done, err := f.h.WriteZerosAt(f.off, to-from)
		if err != nil {
			err = execError(err)
		}
		return done, err
	})
	return err
}

// Seek is of Seeker.
func (f *hostOpen) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.off
	case io.SeekEnd:
		offset += f.h.Size()
	}
	if offset < 0 {
		return f.off, syscall.EINVAL
	}
	f.off = offset
	return offset, nil
}

// Truncate is of Truncater.
func (f *hostOpen) Truncate(size int64) error {
	if err := f.h.Truncate(size); err != nil {
		return execError(err)
	}
	return nil
}

// Close gives up one reference; the last closes the file.
func (f *hostOpen) Close() error {
	if f.refs--; f.refs != 0 {
		return nil
	}
	if err := f.h.Close(); err != nil {
		return execError(err)
	}
	return nil
}

// Dup is one reference more.
func (f *hostOpen) Dup() File {
	f.refs++
	return f
}

// Path is its name in the container.
func (f *hostOpen) Path() string { return f.path }

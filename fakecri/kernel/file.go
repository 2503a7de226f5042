package kernel

import "context"

// File is an open file, pipe, terminal, device or connection: what a file
// descriptor stands for.
//
// One value may stand in several tables: who has a reference closes it once, and the file ends
// with the last. Reads and writes take the context of the process that makes them, since the file
// belongs to no process.
type File interface {
	// Read waits for data; 0 and io.EOF at the end. A caught signal of the
	// process whose context it is cuts a wait short with ErrInterrupted.
	Read(ctx context.Context, b []byte) (int, error)
	// Write writes all of b or returns an error. A pipe that nobody reads
	// gives SIGPIPE to the process whose context it is, and EPIPE if that
	// survives it.
	Write(ctx context.Context, b []byte) (int, error)
	// Close gives one reference up.
	Close() error
	// Dup returns one reference more to the same open file (they share the
	// offset). It may be the same value.
	Dup() File
}

// ZeroWriter is a File that takes n zero bytes without being handed them. dd and the like write
// gigabytes of zeros; the memory of the simulation must not hold those.
type ZeroWriter interface {
	WriteZeros(ctx context.Context, n int64) error
}

// Seeker is a File with an offset. whence is io.SeekStart and so on.
type Seeker interface {
	Seek(offset int64, whence int) (int64, error)
}

// ReaderAt and WriterAt are of Files with positions, without moving the offset.
type (
	// They are asked for by interface: pipes and terminals have none, which is ESPIPE to a
	// program.
	ReaderAt interface {
		ReadAt(b []byte, off int64) (int, error)
	}
	WriterAt interface {
		WriteAt(b []byte, off int64) (int, error)
	}
	// Truncater is a File whose size can be set.
	Truncater interface {
		Truncate(size int64) error
	}
)

// IsTTY reports whether a file is a terminal.
func IsTTY(f File) bool {
	t, ok := f.(interface{ IsTTY() bool })
	return ok && t.IsTTY()
}

// ReadsZeros reports whether a file is an endless source of zeros (/dev/zero), so
// that a copy may use WriteZeros on the other side.
func ReadsZeros(f File) bool {
	z, ok := f.(interface{ ReadsZeros() bool })
	return ok && z.ReadsZeros()
}

// Path returns the name that a file was opened by, as /proc/self/fd shows it,
// or "" if it has none.
func Path(f File) string {
	if n, ok := f.(interface{ Path() string }); ok {
		return n.Path()
	}
	return ""
}

// closedFile is what a dead process has in place of its files.
type closedFile struct{}

func (closedFile) Read(context.Context, []byte) (int, error)  { return 0, errBadFD }
func (closedFile) Write(context.Context, []byte) (int, error) { return 0, errBadFD }
func (closedFile) Close() error                               { return nil }
func (closedFile) Dup() File                                  { return closedFile{} }

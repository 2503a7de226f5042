package applet

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Stream is a kernel file as an io.Reader, Writer and Closer. It accounts for
// the work of what passes. It has no buffer of its own.
type Stream struct {
	C *Call
	F kernel.File
}

// Stream returns a file to read from or write to. Its costs are the applet's.
func (c *Call) Stream(f kernel.File) Stream { return Stream{c, f} }

// Read reads. A wait that a signal cuts short goes on: a signal that ends the
// program has ended it, and another is none of an applet's business, except of
// those that sleep. It returns io.EOF for a read of nothing, as read(2)'s 0 means.
func (s Stream) Read(b []byte) (int, error) {
	for {
		n, err := s.F.Read(s.C.Ctx, b)
		// A system call costs something even if nothing comes.
		s.C.Spend(int64(n) + 256)
		if n > 0 || !errors.Is(err, kernel.ErrInterrupted) {
			if n == 0 && err == nil && len(b) > 0 {
				err = io.EOF
			}
			return n, err
		}
	}
}

// Write writes all of b, or what the file takes.
func (s Stream) Write(b []byte) (int, error) {
	n, err := s.F.Write(s.C.Ctx, b)
	s.C.Spend(int64(len(b)) + 256)
	return n, err
}

// Close gives the file up.
func (s Stream) Close() error { return s.F.Close() }

// Writer buffers the standard output. The first error stays: what comes after
// it is dropped, and Err says why. It exists so that a line of output costs no wait of its own.
type Writer struct {
	c   *Call
	f   kernel.File
	buf []byte
	Err error
}

// writerSize is when a Writer writes: as stdio's buffer.
const writerSize = 4096

// Buffered returns a buffer before a file, which may be nil: then writing fails. The file stays
// the process's to close.
func (c *Call) Buffered(f kernel.File) *Writer { return &Writer{c: c, f: f} }

// Write buffers b.
func (w *Writer) Write(b []byte) (int, error) {
	w.buf = append(w.buf, b...)
	if len(w.buf) >= writerSize && !w.Flush() {
		return 0, w.Err
	}
	return len(b), nil
}

// WriteString buffers s.
func (w *Writer) WriteString(s string) (int, error) {
	w.buf = append(w.buf, s...)
	if len(w.buf) >= writerSize && !w.Flush() {
		return 0, w.Err
	}
	return len(s), nil
}

// Flush writes what is buffered; it reports whether all has gone well so far. Whoever must be
// seen to have written calls it: before a sleep, a child, a message.
func (w *Writer) Flush() bool {
	if len(w.buf) > 0 && w.Err == nil {
		if w.f == nil {
			w.Err = linux.EBADF
		} else if _, err := (Stream{w.c, w.f}).Write(w.buf); err != nil {
			w.Err = err
		}
	}
	w.buf = w.buf[:0]
	return w.Err == nil
}

// Failed reports whether nobody reads any more: an endless applet must look.
func (w *Writer) Failed() bool { return w.Err != nil }

// Stdin returns the standard input; reading it fails if it is closed.
func (c *Call) Stdin() Stream {
	f := c.P.FD(0)
	if f == nil {
		return Stream{c, ClosedFile{}}
	}
	return Stream{c, f}
}

// ClosedFile stands for a file descriptor that is not open. Its embedded File
// is nil: whoever might use it looks for the type first. Open returns EBADF in its place.
type ClosedFile struct{ kernel.File }

// Open opens a file for reading; "-" is the standard input, which closing
// leaves open for the next who wants it.
func (c *Call) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		s := c.Stdin()
		if _, closed := s.F.(ClosedFile); closed {
			return nil, linux.EBADF
		}
		return struct {
			io.Reader
			io.Closer
		}{s, io.NopCloser(nil)}, nil
	}
	f, err := c.View().Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return Stream{c, f}, nil
}

// Create opens a file for writing, and empties it unless appending. The mode is 0666 without the
// umask's bits.
func (c *Call) Create(name string, appending bool) (Stream, error) {
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if appending {
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	f, err := c.View().Open(name, flag, 0o666)
	return Stream{c, f}, err
}

// Lines reads lines of any length; what a long one takes is held. Err is why
// reading ended, nil at the end of the file. sep is a newline, or a zero byte for -z.
type Lines struct {
	c   *Call
	R   *bufio.Reader
	sep byte
	Err error
}

// Lines returns a reader of lines that end with sep.
func (c *Call) Lines(r io.Reader, sep byte) *Lines {
	return &Lines{c: c, R: bufio.NewReader(r), sep: sep}
}

// Next returns the next line without its end, and whether it had one. A last line without an end
// is a line; the empty rest after the last end is none.
func (l *Lines) Next() (line string, ended, ok bool) {
	var long []byte
	for {
		b, err := l.R.ReadSlice(l.sep)
		// Most lines fit the reader's buffer, and cost one copy.
		if err == nil && long == nil {
			return string(b[:len(b)-1]), true, true
		}
		long = append(long, b...)
		if err == bufio.ErrBufferFull {
			l.c.Hold(int64(len(long)))
			continue
		}
		if err != nil && err != io.EOF {
			l.Err = err
		}
		if len(long) == 0 {
			return "", false, false
		}
		if err == nil {
			long = long[:len(long)-1]
		}
		return string(long), err == nil, true
	}
}

const (
	// holdStep is how much more a process keeps before its memory counts.
	holdStep = 1 << 20
	// maxHeld is how much it keeps at most; what comes to that is taken to have
	// no end.
	maxHeld = 64 << 20
)

// Hold says that the process keeps n bytes of what it has read or made. Beyond
// maxHeld it takes what memory there is, until the OOM killer comes: an applet
// that collects something endless must die as the real one, without the
// simulation's holding gigabytes. n is all that is kept at present, not what was added. Less than
// a MiB is part of what any program takes.
func (c *Call) Hold(n int64) {
	if n < c.held+holdStep {
		return
	}
	_ = c.P.Alloc(c.Ctx, n-c.held)
	c.held = n
	if n < maxHeld {
		return
	}
	// As the shell does: 64 GiB, more than there is.
	for range 1024 {
		_ = c.P.Alloc(c.Ctx, maxHeld)
	}
	c.Die("out of memory")
}

// Slurp reads to the end, holding what it has read. What came before an error is returned with
// it.
func (c *Call) Slurp(r io.Reader) ([]byte, error) {
	var out []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		out = append(out, buf[:n]...)
		c.Hold(int64(len(out)))
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

// ReadAll reads all of a file or of the standard input.
func (c *Call) ReadAll(name string) ([]byte, error) {
	r, err := c.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return c.Slurp(r)
}

// EachInput opens the files in turn, or the standard input if there are none,
// and hands them to fn. What can't be opened is reported in the words of openError
// (cantOpen or plainOpen), what can't be read in those of plainOpen. The status is 1 if anything
// failed, and the rest is still read.
func (c *Call) EachInput(files []string, openError string, fn func(name string, r io.Reader) error) int {
	if len(files) == 0 {
		files = []string{"-"}
	}
	code := 0
	for _, name := range files {
		r, err := c.Open(name)
		if err != nil {
			c.Errorf(openError, name, Strerror(err))
			code = 1
			continue
		}
		err = fn(name, r)
		r.Close()
		if err != nil {
			c.Errorf("%s: %s", name, Strerror(err))
			code = 1
		}
	}
	return code
}

const (
	// The two ways in which busybox's applets tell that a file can't be opened:
	// that of fopen_or_warn, and that of those which show the name alone.
	CantOpen  = "can't open '%s': %s"
	PlainOpen = "%s: %s"
)

// IsTTY reports whether a file, which may be nil, is a terminal.
func IsTTY(f kernel.File) bool { return f != nil && kernel.IsTTY(f) }

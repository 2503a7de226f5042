package busybox

import (
	"bufio"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// stream is a kernel file as an io.Reader, Writer and Closer. It accounts for
// the work of what passes.
type stream struct {
	c *call
	f kernel.File
}

// Read reads; interrupted waits go on.
func (s stream) Read(b []byte) (int, error) {
	for {
		n, err := s.f.Read(s.c.ctx, b)
		s.c.spend(int64(n) + 256)
		if n > 0 || !errors.Is(err, kernel.ErrInterrupted) {
			if n == 0 && err == nil && len(b) > 0 {
				err = io.EOF
			}
			return n, err
		}
	}
}

// Write writes all of b.
func (s stream) Write(b []byte) (int, error) {
	n, err := s.f.Write(s.c.ctx, b)
	s.c.spend(int64(len(b)) + 256)
	return n, err
}

// Close gives the file up.
func (s stream) Close() error { return s.f.Close() }

// writer buffers the standard output.
type writer struct {
	c   *call
	f   kernel.File
	buf []byte
	err error
}

const writerSize = 4096

// Write buffers b.
func (w *writer) Write(b []byte) (int, error) {
	w.buf = append(w.buf, b...)
	if len(w.buf) >= writerSize && !w.flush() {
		return 0, w.err
	}
	return len(b), nil
}

// WriteString buffers s.
func (w *writer) WriteString(s string) (int, error) {
	w.buf = append(w.buf, s...)
	if len(w.buf) >= writerSize && !w.flush() {
		return 0, w.err
	}
	return len(s), nil
}

// flush writes what is buffered; it tells whether all has gone well so far.
func (w *writer) flush() bool {
	if len(w.buf) > 0 && w.err == nil {
		if w.f == nil {
			w.err = syscall.EBADF
		} else if _, err := (stream{w.c, w.f}).Write(w.buf); err != nil {
			w.err = err
		}
	}
	w.buf = w.buf[:0]
	return w.err == nil
}

// failed ends an endless writer: nobody reads any more.
func (w *writer) failed() bool { return w.err != nil }

// stdin returns the standard input.
func (c *call) stdin() stream {
	f := c.p.FD(0)
	if f == nil {
		return stream{c, closedFile{}}
	}
	return stream{c, f}
}

// closedFile stands for a file descriptor that is not open.
type closedFile struct{ kernel.File }

// open opens a file for reading; "-" is the standard input.
func (c *call) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		s := c.stdin()
		if _, closed := s.f.(closedFile); closed {
			return nil, syscall.EBADF
		}
		return struct {
			io.Reader
			io.Closer
		}{s, io.NopCloser(nil)}, nil
	}
	f, err := c.view().Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return stream{c, f}, nil
}

// create opens a file for writing.
func (c *call) create(name string, appending bool) (stream, error) {
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if appending {
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	f, err := c.view().Open(name, flag, 0o666)
	return stream{c, f}, err
}

// lines reads lines.
type lines struct {
	c   *call
	r   *bufio.Reader
	sep byte
	err error
}

func (c *call) lines(r io.Reader, sep byte) *lines {
	return &lines{c: c, r: bufio.NewReader(r), sep: sep}
}

// next returns the next line without its end, and whether it had one.
func (l *lines) next() (line string, ended, ok bool) {
	var long []byte
	for {
		b, err := l.r.ReadSlice(l.sep)
		if err == nil && long == nil {
			return string(b[:len(b)-1]), true, true
		}
		long = append(long, b...)
		if err == bufio.ErrBufferFull {
			l.c.hold(int64(len(long)))
			continue
		}
		if err != nil && err != io.EOF {
			l.err = err
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

// hold says that the process keeps n bytes of what it has read or made. Beyond
// maxHeld it takes what memory there is, until the OOM killer comes.
func (c *call) hold(n int64) {
	if n < c.held+holdStep {
		return
	}
	_ = c.p.Alloc(c.ctx, n-c.held)
	c.held = n
	if n < maxHeld {
		return
	}
	for range 1024 {
		_ = c.p.Alloc(c.ctx, maxHeld)
	}
	c.die("out of memory")
}

// slurp reads to the end.
func (c *call) slurp(r io.Reader) ([]byte, error) {
	var out []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		out = append(out, buf[:n]...)
		c.hold(int64(len(out)))
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

// readAll reads all of a file or of the standard input.
func (c *call) readAll(name string) ([]byte, error) {
	r, err := c.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return c.slurp(r)
}

// eachInput opens the files in turn, or the standard input if there are none,
// and hands them to fn. What can't be opened is reported in the words of openError
// (cantOpen or plainOpen), what can't be read in those of plainOpen.
func (c *call) eachInput(files []string, openError string, fn func(name string, r io.Reader) error) int {
	if len(files) == 0 {
		files = []string{"-"}
	}
	code := 0
	for _, name := range files {
		r, err := c.open(name)
		if err != nil {
			c.errorf(openError, name, strerror(err))
			code = 1
			continue
		}
		err = fn(name, r)
		r.Close()
		if err != nil {
			c.errorf("%s: %s", name, strerror(err))
			code = 1
		}
	}
	return code
}

const (
	cantOpen  = "can't open '%s': %s"
	plainOpen = "%s: %s"
)

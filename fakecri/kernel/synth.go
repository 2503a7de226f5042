package kernel

import (
	"context"
	"io"
	"io/fs"

	"github.com/drydock-sim/drydock/ground/linux"
)

// synth is a file that is made up when it is read. Most have data alone. write takes what is
// written at once, and returns the error for it.
type synth struct {
	mode     fs.FileMode
	uid, gid int
	link     string        // of a symbolic link
	file     File          // what a link of /proc/PID/fd stands for
	data     func() string // of a file
	// ro is for what Linux would let root write and a container's mount does not: EROFS.
	ro    bool // no one may open it for writing
	write func(string) linux.Errno
	// Of a file of the machine's: where, and its description.
	host *hostMount
	name string
	info fs.FileInfo
}

// ino is one number for all: nobody compares those of made-up files.
func (s *synth) ino() uint64 { return 0xf0000000 }

// real reports whether it is a file of the machine's and not made up.
func (s *synth) real() bool { return s != nil && s.host != nil }

// fileMode is what the open file behind a link is. A pipe is what everything unknown looks like,
// as to a program it behaves like one.
func (s *synth) fileMode() fs.FileMode {
	switch f := s.file.(type) {
	case *openFile:
		return f.h.Mode()
	case device:
		return fs.ModeDevice | fs.ModeCharDevice | 0o666
	case pipeReader, pipeWriter:
		return fs.ModeNamedPipe | 0o600
	case *Conn:
		return fs.ModeSocket | 0o777
	}
	if IsTTY(s.file) {
		return fs.ModeDevice | fs.ModeCharDevice | 0o620
	}
	return fs.ModeNamedPipe | 0o600
}

// synthDir, synthText and synthLink are the common kinds: directories that all may read, text
// that nobody may write, and links.
func synthDir() *synth { return &synth{mode: fs.ModeDir | 0o555} }

func synthText(data func() string) *synth { return &synth{mode: 0o444, data: data} }

func synthLink(target string) *synth { return &synth{mode: fs.ModeSymlink | 0o777, link: target} }

// synthFile is such a file, opened. data is what the file said when it was opened, so that
// reading in parts gives one state.
type synthFile struct {
	s    *synth
	path string
	data []byte
	off  int
	refs int
}

// openSynth opens a made-up file; its content is made now, so that one reader
// sees one state.
func (v *View) openSynth(at *place, write bool) (File, linux.Errno) {
	s := at.syn
	if s.mode.IsDir() {
		return &synthFile{s: s, path: at.path, refs: 1}, 0
	}
	switch {
	case write && (s.ro || v.ns.list[at.mnt].ro):
		return nil, linux.EROFS
	case write && s.write == nil:
		return nil, linux.EACCES
	}
	f := &synthFile{s: s, path: at.path, refs: 1}
	if !write && s.data != nil {
		f.data = []byte(s.data())
	}
	return f, 0
}

func (f *synthFile) Read(_ context.Context, b []byte) (int, error) {
	if f.s.mode.IsDir() {
		return 0, linux.EISDIR
	}
	if f.off >= len(f.data) {
		return 0, io.EOF
	}
	n := copy(b, f.data[f.off:])
	f.off += n
	return n, nil
}

func (f *synthFile) Write(_ context.Context, b []byte) (int, error) {
	if f.s.write == nil {
		return 0, errBadFD
	}
	if errno := f.s.write(string(b)); errno != 0 {
		return 0, errno
	}
	return len(b), nil
}

// Seek is of Seeker.
func (f *synthFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += int64(f.off)
	case io.SeekEnd:
		offset += int64(len(f.data))
	}
	if offset < 0 {
		return int64(f.off), linux.EINVAL
	}
	f.off = int(offset)
	return offset, nil
}

func (f *synthFile) Close() error { f.refs--; return nil }
func (f *synthFile) Dup() File    { f.refs++; return f }
func (f *synthFile) Path() string { return f.path }

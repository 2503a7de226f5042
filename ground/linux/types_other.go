//go:build !linux

package linux

import (
	"io/fs"
	"strconv"
)

// Errno is an error number of Linux. Its texts are those of syscall.Errno there.
type Errno uintptr

// Error implements error.
func (e Errno) Error() string {
	if s, ok := errnoTexts[e]; ok {
		return s
	}
	return "errno " + strconv.Itoa(int(e))
}

// Is has errors.Is find what package fs calls these errors, as syscall.Errno's does.
func (e Errno) Is(target error) bool {
	switch target {
	case fs.ErrPermission:
		return e == EACCES || e == EPERM
	case fs.ErrExist:
		return e == EEXIST || e == ENOTEMPTY
	case fs.ErrNotExist:
		return e == ENOENT
	}
	return false
}

// Temporary reports whether the same call may succeed later.
func (e Errno) Temporary() bool { return e == EINTR || e.Timeout() }

// Timeout reports whether the error stands for a time that ran out.
func (e Errno) Timeout() bool { return e == EAGAIN || e == ETIMEDOUT }

// Signal is a signal of Linux. It implements os.Signal.
type Signal int

// Signal implements os.Signal.
func (Signal) Signal() {}

// String implements os.Signal, with the texts of syscall.Signal on Linux.
func (s Signal) String() string {
	if t, ok := signalTexts[s]; ok {
		return t
	}
	return "signal " + strconv.Itoa(int(s))
}

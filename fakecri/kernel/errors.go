package kernel

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
)

// ErrInterrupted is what waits return when a caught signal arrives: EINTR.
const ErrInterrupted = linux.EINTR

// ExecError says why a program can't be run. kubectl describe shows its text in the container's
// state, so it is runc's to the letter.
type ExecError struct {
	// Path is the program as it was asked for.
	Path string
	// Errno is the reason: ENOENT, EACCES, ENOEXEC, ENOTDIR, ELOOP.
	Errno linux.Errno
	// NotInPath says that a name without a slash was not found in $PATH.
	NotInPath bool
	// Interpreter, if not empty, is the missing interpreter of a script.
	Interpreter string
}

// Error is the error in runc's words, as they follow "unable to start container
// process: ".
func (e *ExecError) Error() string {
	q := "exec: " + strconv.Quote(e.Path) + ": "
	switch {
	case e.NotInPath: // also if there is one without permission
		return q + "executable file not found in $PATH"
	case e.Errno == linux.ENOEXEC, e.Interpreter != "":
		return "exec " + e.Path + ": " + e.Errno.Error()
	case e.Errno == linux.EACCES:
		return q + e.Errno.Error()
	}
	return q + "stat " + e.Path + ": " + e.Errno.Error()
}

// Unwrap returns the Errno.
func (e *ExecError) Unwrap() error { return e.Errno }

// pathError is a path's error as package os would return it, so that callers can use errors.Is
// with fs.ErrNotExist and its like.
func pathError(op, name string, errno linux.Errno) error {
	return &fs.PathError{Op: op, Path: name, Err: errno}
}

// elfHeader begins the files that are programs. A real ELF header follows "\x7fELF" with class
// and data bytes, so no real binary is taken for one.
const elfHeader = "\x7fELF drydock:"

// ELF returns the content of an executable file that is the program name.
func ELF(name string) []byte { return []byte(elfHeader + strings.ReplaceAll(name, "\n", " ") + "\n") }

package posix

import (
	"errors"
	"io/fs"

	"github.com/drydock-sim/drydock/ground/linux"
)

// Strerror returns an error's text as strerror(3) of glibc has it: Go's of an
// Errno, but with a capital. What holds no Errno, as errors of package memfs's
// callers may, is described by what it is like. musl and glibc agree on the common texts.
func Strerror(err error) string {
	var errno linux.Errno
	if errors.As(err, &errno) {
		s := errno.Error()
		if s != "" && s[0] >= 'a' && s[0] <= 'z' {
			s = string(rune(s[0]-32)) + s[1:]
		}
		return s
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	case errors.Is(err, fs.ErrExist):
		return "File exists"
	}
	return err.Error()
}

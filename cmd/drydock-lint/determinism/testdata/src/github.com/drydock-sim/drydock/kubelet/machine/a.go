package machine

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec" // want `import of os/exec`
	"path/filepath"
	"syscall"
)

func bad() {
	_, _ = os.ReadFile("/etc/hosts") // want `use of os.ReadFile: files, environment`
	var f *os.File                   // want `use of os.File`
	_ = f
	_ = os.Getenv("HOME")      // want `use of os.Getenv`
	_ = os.Stderr              // want `use of os.Stderr`
	_, _ = net.Dial("tcp", "") // want `use of net.Dial: the network`
	_, _ = net.LookupHost("")  // want `use of net.LookupHost`
	var c net.Conn             // want `use of net.Conn`
	_ = c
	_, _ = http.Get("")       // want `use of net/http.Get`
	_ = http.Client{}         // want `use of net/http.Client`
	_ = syscall.Getpid()      // want `use of syscall.Getpid`
	_, _ = filepath.Glob("*") // want `use of path/filepath.Glob`
	_ = exec.ErrNotFound
}

func fine(err error) bool {
	var p *os.PathError
	_ = errors.As(err, &p) && p.Err != nil && p.Error() != ""
	_ = os.FileMode(0o644).IsDir()
	_, _ = os.ModeDir, os.O_RDONLY
	ip := net.ParseIP("10.0.0.1")
	_ = ip.String() + net.JoinHostPort("a", "1")
	_ = http.StatusOK
	_ = http.Header{}
	_ = syscall.SIGTERM
	_ = filepath.Join("a", "b")
	return errors.Is(err, os.ErrNotExist) || os.IsNotExist(err)
}

//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// address is where a listener listens, as clients write it. It is printed for copying into
// crictl's --runtime-endpoint.
func address(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix://" + l.Addr().String()
	}
	return "tcp://" + l.Addr().String()
}

// listener opens the CRI socket. There is no default path, so that nobody
// replaces a real runtime's socket by accident. A path alone is taken for a socket, as crictl
// used to.
func (f *fakecriFlags) listener() (net.Listener, error) {
	mode, err := parseMode(f.socketMode)
	if err != nil {
		return nil, err
	}
	switch scheme, rest, ok := strings.Cut(f.listen, "://"); {
	case f.listen == "":
		return nil, badInput("--listen: say where, such as --listen unix:///tmp/cri.sock")
	case !ok && filepath.IsAbs(f.listen):
		return listenUnix("--listen", f.listen, mode)
	case !ok:
		return nil, badInput("--listen: %q has no scheme; want unix:///PATH", f.listen)
	case scheme == "unix":
		return listenUnix("--listen", rest, mode)
	case scheme == "tcp":
		return listenTCP("--listen", rest)
	default:
		return nil, badInput("--listen: %q is neither unix:///PATH nor tcp://HOST:PORT", f.listen)
	}
}

// controlListener opens unix:///PATH, /PATH, or HOST:PORT. Its socket is the user's alone: it can
// break the runtime, and asks nobody who he is.
func controlListener(addr string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		return listenUnix("--control", path, 0o600)
	}
	if filepath.IsAbs(addr) {
		return listenUnix("--control", addr, 0o600)
	}
	return listenTCP("--control", strings.TrimPrefix(strings.TrimPrefix(addr, "http://"), "tcp://"))
}

// parseMode reads an octal mode of at most 0777. %s after the number catches what follows it, so
// 0660x is refused.
func parseMode(s string) (os.FileMode, error) {
	var n uint32
	var rest string
	if c, _ := fmt.Sscanf(s+"\n", "%o%s", &n, &rest); c != 1 || n > 0o777 {
		return 0, badInput("--socket-mode: %q is no mode such as 0660", s)
	}
	return os.FileMode(n), nil
}

// maxSocketPath is how long the path of a unix socket can be. sun_path has 108
// bytes, with a NUL at the end.
const maxSocketPath = 107

// listenUnix listens on a socket of that path. One that is left over from a
// server that is gone is replaced; one that is in use is not. One on which
// somebody answers is never taken over. Between the test and the removal another server could
// come; the window is that of any program that replaces a stale socket.
func listenUnix(flag, path string, mode os.FileMode) (net.Listener, error) {
	switch {
	case !filepath.IsAbs(path):
		return nil, badInput("%s: the socket's path %q is not absolute; want unix:///PATH", flag, path)
	case len(path) > maxSocketPath:
		return nil, badInput("%s: the path %s has %d bytes, and a socket's at most %d", flag, path, len(path), maxSocketPath)
	}
	st, err := os.Lstat(path)
	switch {
	case err == nil && st.Mode()&os.ModeSocket == 0:
		return nil, badInput("%s: %s is there and is no socket", flag, path)
	// Something is there. A socket that refuses is left over from a server that
	// died; anything else is not ours to remove.
	case err == nil:
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = conn.Close()
			return nil, badInput("%s: %s is in use by another server", flag, path)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, badInput("%s: %s is there, and connecting to it fails otherwise than to a socket left over: %w", flag, path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, badInput("%s: %w", flag, err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, badInput("%s: %w", flag, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return nil, badInput("%s: %w", flag, err)
	}
	// The socket has its mode from the start. The umask is the process's: nothing else runs yet
	// that makes files.
	old := syscall.Umask(int(^mode & 0o777))
	lis, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, badInput("%s: %w", flag, err)
	}
	// The umask can only take rights away; this gives those that were asked for.
	if err := os.Chmod(path, mode); err != nil {
		_ = lis.Close()
		return nil, badInput("%s: %w", flag, err)
	}
	return lis, nil
}

// listenTCP listens on the loopback interface: nobody is asked who he is, and
// who reaches the runtime reads and writes files of the host. Port 0 is allowed: the address that
// is printed has the real one.
func listenTCP(flag, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, badInput("%s: %q is no HOST:PORT", flag, addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, badInput("%s: %s is not an address of the loopback interface, and whoever reaches a runtime can read and write the host's files; use 127.0.0.1 or a unix socket", flag, addr)
	}
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, badInput("%s: %w", flag, err)
	}
	return lis, nil
}

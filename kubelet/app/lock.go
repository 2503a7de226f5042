//go:build linux

package app

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// acquireLock locks a file for as long as the process lives, and waits for it if
// somebody else has it (pkg/util/flock). A signal ends the waiting.
// The lock goes with the process, also if it is killed. flock(2) cannot be cancelled: a goroutine
// that waits on is left behind, and the process ends soon.
func acquireLock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("unable to acquire file lock on %q: %w", path, err)
	}
	got := make(chan error, 1)
	go func() {
		for {
			err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
			if err != unix.EINTR {
				got <- err
				return
			}
		}
	}()
	select {
	case err := <-got:
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("unable to acquire file lock on %q: %w", path, err)
		}
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// watchLock calls contended at the first time that somebody opens or deletes
// the lock file. stop ends the watch.
// With --exit-on-lock-contention a newer kubelet takes over by opening the
// file: the older one ends and leaves the pods to it. The lock itself is given up at the end
// only: who opens the file waits in flock until then.
func watchLock(path string, contended func()) (stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("unable to create watcher for lockfile: %w", err)
	}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_DELETE_SELF); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("unable to watch lockfile %q: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), "inotify") // in the poller, so that Close ends Read
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, unix.SizeofInotifyEvent+unix.NAME_MAX+1)
		if n, err := f.Read(buf); err == nil && n > 0 {
			klog.InfoS("Inotify event", "path", path)
			contended()
		}
	}()
	return func() {
		_ = f.Close()
		<-done
	}, nil
}

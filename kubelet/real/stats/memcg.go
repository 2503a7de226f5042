//go:build linux

package stats

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/kubelet/stats"
)

var _ stats.MemcgNotifier = (*Machine)(nil)

// NotifyMemory implements stats.MemcgNotifier. On cgroup v2 nobody is told, as
// upstream (pkg/kubelet/eviction/threshold_notifier_linux.go). fn runs on the loop; it may be
// called once after stop, from a notification that was under way.
func (m *Machine) NotifyMemory(cgroup string, level int64, fn func()) (stop func(), err error) {
	if m.unified {
		return func() {}, nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	event := os.NewFile(uintptr(fd), "eventfd")
	if err := m.register(cgroup, fd, level); err != nil {
		_ = event.Close()
		return nil, err
	}
	go func() {
		for count := make([]byte, 8); ; {
			if _, err := event.Read(count); err != nil { // closed
				return
			}
			m.l.Post(fn)
		}
	}()
	return func() { _ = event.Close() }, nil
}

// register has the kernel count up an event each time a cgroup's usage passes a
// level. The interface is that of cgroup v1's memory controller: eventfd, file and level in one
// line.
func (m *Machine) register(cgroup string, event int, level int64) error {
	usage, err := os.Open(m.file("memory", cgroup, "memory.usage_in_bytes"))
	if err != nil {
		return err
	}
	defer func() { _ = usage.Close() }()
	control := m.file("memory", cgroup, "cgroup.event_control")
	return os.WriteFile(control, fmt.Appendf(nil, "%d %d %d", event, usage.Fd(), level), 0)
}

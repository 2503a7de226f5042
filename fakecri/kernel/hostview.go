package kernel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
)

// This file is what containers see that share namespaces with the machine that
// the program runs on (Options.Host).

// hostText is a file of the machine's, "" without one. An error is an empty text: the file may be
// missing on that machine.
func (m *Machine) hostText(name string) string {
	if m.opts.Host == nil {
		return ""
	}
	b, _ := hostfs.ReadFile(m.opts.Host, name)
	return string(b)
}

// Listeners are the TCP ports that somebody listens on in the namespace: those
// of Ports, and in the machine's also those of its other programs. It is for netstat and for
// tests that look for a port with hostNetwork.
func (n *NetNS) Listeners() []int {
	out := n.Ports()
	if n != n.m.host || n.m.opts.Host == nil {
		return out
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for line := range strings.Lines(n.m.hostText(file)) {
			f := strings.Fields(line)
			// The fourth column is the state; 0A is TCP_LISTEN (include/net/tcp_states.h).
			if len(f) < 4 || f[3] != "0A" { // not LISTEN
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			if port, err := strconv.ParseUint(hex, 16, 16); err == nil && !slices.Contains(out, int(port)) {
				out = append(out, int(port))
			}
		}
	}
	return out
}

// SharedMemory is the content of /proc/sysvipc/shm: the segments of the
// machine for a container in its IPC namespace, none for any other. ipcs reads it.
func (c *Container) SharedMemory() string {
	if !c.opts.HostIPC {
		return ""
	}
	return c.m.hostText("/proc/sysvipc/shm")
}

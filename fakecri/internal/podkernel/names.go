package podkernel

import (
	"path"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// CgroupPath is where containerd puts a container's cgroup.
func (r *Node) CgroupPath(c *records.Container) string {
	parent := c.Sandbox.Whole().GetLinux().GetCgroupParent()
	if r.Options.CgroupDriver == "systemd" {
		return path.Join("/", parent, "cri-containerd-"+c.ID+".scope")
	}
	return path.Join("/", parent, c.ID)
}

// Hostname is the sandbox's, by default the machine's.
func (r *Node) Hostname(s *records.Sandbox) string {
	if h := s.Hostname(); h != "" {
		return h
	}
	return r.Options.Hostname
}

// UtsName is what hostname(1) says in a sandbox, which with the host's network
// is the machine's name.
func (r *Node) UtsName(s *records.Sandbox) string {
	if s.HostNetwork() {
		return r.Options.Hostname
	}
	return r.Hostname(s)
}

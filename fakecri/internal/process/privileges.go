package process

import (
	"fmt"
	"io/fs"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Privileges are what a request gives to a container's processes: capabilities
// (nil for the usual ones), no_new_privs, and whether system calls are filtered. A privileged
// container has all capabilities and no filter, whatever else its context says.
func Privileges(sc *runtimeapi.LinuxContainerSecurityContext) (caps *kernel.Capabilities, noNew, seccomp bool) {
	if sc == nil {
		return nil, false, false
	}
	noNew = sc.NoNewPrivs
	if sc.Privileged {
		return new(kernel.AllCapabilities()), noNew, false
	}
	seccomp = sc.GetSeccomp() != nil && sc.Seccomp.ProfileType != runtimeapi.SecurityProfile_Unconfined
	// nil spares an allocation for nearly all containers.
	if c := sc.Capabilities; c != nil && len(c.AddCapabilities)+len(c.DropCapabilities) > 0 {
		caps = new(capabilities(c))
	}
	return caps, noNew, seccomp
}

// capabilities applies "ALL" of both lists first, as the CRI plugin does. So drop ALL with add
// NET_ADMIN gives just that one: containerd's order in WithAddedCapabilities.
func capabilities(c *runtimeapi.Capability) kernel.Capabilities {
	set := kernel.DefaultCapabilities
	// First round: ALL of the lists sets or clears everything.
	for i, list := range [][]string{c.AddCapabilities, c.DropCapabilities} {
		for _, name := range list {
			if one, _ := kernel.Capability(name); one == kernel.AllCapabilities() {
				// All of them for the first list, none for the second.
				set = one * kernel.Capabilities(1-i)
			}
		}
	}
	for i, list := range [][]string{c.AddCapabilities, c.DropCapabilities} {
		for _, name := range list {
			one, _ := kernel.Capability(name)
			switch {
			case one == kernel.AllCapabilities():
			case i == 0:
				set |= one
			default:
				set &^= one
			}
		}
	}
	return set
}

// idMaps are those of a sandbox with users of its own, nil of any other. The lines have the form
// of /proc/PID/uid_map.
func idMaps(s *records.Sandbox) *kernel.IDMaps {
	o := s.Config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	if o.GetMode() != runtimeapi.NamespaceMode_POD || len(o.GetUids()) == 0 {
		return nil
	}
	lines := func(maps []*runtimeapi.IDMapping) string {
		out := ""
		for _, m := range maps {
			out += fmt.Sprintf("%10d %10d %10d\n", m.ContainerId, m.HostId, m.Length)
		}
		return out
	}
	return &kernel.IDMaps{UID: lines(o.Uids), GID: lines(o.Gids)}
}

// CheckProfile is containerd's error for a seccomp profile that is not on the
// node. A profile of the simulated node only has to be there; one of the machine's is parsed as
// well.
func (r *Runner) CheckProfile(sc *runtimeapi.LinuxContainerSecurityContext) error {
	p := sc.GetSeccomp()
	if sc.GetPrivileged() || p.GetProfileType() != runtimeapi.SecurityProfile_Localhost || r.Files.FS == nil && r.Files.Host == nil {
		return nil
	}
	data, err := r.Files.Read(p.LocalhostRef)
	if err == nil && r.Files.Host != nil {
		_, err = SeccompFilter(data)
	} else if err != nil {
		if info, statErr := r.Files.Stat(p.LocalhostRef); statErr == nil && info.Mode()&fs.ModeType == 0 {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("failed to create containerd container: cannot load seccomp profile %q: %w", p.LocalhostRef, err)
	}
	return nil
}

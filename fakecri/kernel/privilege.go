package kernel

import (
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
)

// Capabilities is a set of Linux capabilities, a bit each.
type Capabilities uint64

// The capabilities that change what a process here may do. Numbers are those of
// linux/capability.h.
const (
	capChown = iota
	capDACOverride
	_
	capFowner
	_
	capKill
	// CapNetAdmin is CAP_NET_ADMIN: links, addresses, routes.
	CapNetAdmin = 12
	// CapNetRaw is CAP_NET_RAW: raw sockets, which ping uses.
	CapNetRaw = 13
	// CapSysAdmin is CAP_SYS_ADMIN: mount(2) and much else.
	CapSysAdmin = 21
)

// capabilityNames are those of Linux, by number.
var capabilityNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
	SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
	MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// DefaultCapabilities are those that containerd gives to a container, which
// asks for none: chown, dac_override, fsetid, fowner, mknod, net_raw, setgid,
// setuid, setfcap, setpcap, net_bind_service, sys_chroot, kill, audit_write.
const DefaultCapabilities Capabilities = 0xa80425fb

// AllCapabilities are those of a privileged container.
func AllCapabilities() Capabilities { return 1<<len(capabilityNames) - 1 }

// Capability returns the set of one, by its name with or without CAP_, in any
// case; "ALL" is all of them. false means that there is no such capability.
func Capability(name string) (Capabilities, bool) {
	name = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	if name == "ALL" {
		return AllCapabilities(), true
	}
	for i, n := range capabilityNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// has reports whether a capability is in the set.
func (c Capabilities) has(n int) bool { return c>>n&1 != 0 }

// bounding is the bounding set of the container's processes.
func (c *Container) bounding() Capabilities {
	if c == nil {
		return AllCapabilities()
	}
	if c.opts.Capabilities == nil {
		return DefaultCapabilities
	}
	return *c.opts.Capabilities
}

// effective are the process's capabilities: none unless it is root. Ambient and file capabilities
// don't exist here.
func (p *Process) effective() Capabilities {
	if p.Cred.UID != 0 {
		return 0
	}
	return p.c.bounding()
}

// can reports whether who looks at the View has a capability; the machine itself
// has all. A View without a process is the runtime's own, which sets up mounts before anybody
// runs.
func (v *View) can(n int) bool {
	return v.p == nil || v.p.effective().has(n)
}

// Bounds reports whether the container's processes can have a capability at all.
func (c *Container) Bounds(n int) bool { return c.bounding().has(n) }

// Can reports whether the process has a capability, by its number.
func (p *Process) Can(n int) bool { return p.effective().has(n) }

// Filter says which system calls fail, as far as a seccomp profile is acted on
// here: chmod, chown, lchown, mkdir, rename, symlink, link, unlink, rmdir,
// sethostname. RuntimeDefault and Localhost profiles become one; the calls in the list are those
// that commands of images make and tests look for.
type Filter struct {
	// DenyRest denies what Except doesn't name; else that is what is denied.
	DenyRest bool
	// Except are names of system calls.
	Except map[string]bool
}

// denies reports whether a system call fails.
func (f *Filter) denies(name string) bool { return f != nil && f.Except[name] != f.DenyRest }

// denied is EPERM if the container's filter denies a system call to the process
// that looks at the View. Called before anything else of the call is checked, as seccomp acts at
// its entry.
func (v *View) denied(name string) linux.Errno {
	if v.p != nil && v.p.c != nil && v.p.c.opts.Filter.denies(name) {
		return linux.EPERM
	}
	return 0
}

// SetHostname is sethostname(2), for the container's processes.
func (p *Process) SetHostname(name string) error {
	switch {
	case !p.effective().has(CapSysAdmin), p.view.denied("sethostname") != 0:
		return linux.EPERM
	case len(name) > 64:
		return linux.EINVAL
	}
	p.c.opts.Hostname = name
	return nil
}

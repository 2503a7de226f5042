package kernel

import "syscall"

// Filter says which system calls fail, as far as a seccomp profile is acted on
// here: chmod, chown, lchown, mkdir, rename, symlink, link, unlink, rmdir,
// sethostname.
type Filter struct {
	// DenyRest denies what Except doesn't name; else that is what is denied.
	DenyRest bool
	// Except are names of system calls.
	Except map[string]bool
}

// denies tells whether a system call fails.
func (f *Filter) denies(name string) bool { return f != nil && f.Except[name] != f.DenyRest }

// denied is EPERM if the container's filter denies a system call to the process
// that looks at the View.
func (v *View) denied(name string) syscall.Errno {
	if v.p != nil && v.p.c != nil && v.p.c.opts.Filter.denies(name) {
		return syscall.EPERM
	}
	return 0
}

// SetHostname is sethostname(2), for the container's processes.
func (p *Process) SetHostname(name string) error {
	switch {
	case !p.effective().has(CapSysAdmin), p.view.denied("sethostname") != 0:
		return syscall.EPERM
	case len(name) > 64:
		return syscall.EINVAL
	}
	p.c.opts.Hostname = name
	return nil
}

package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// safeSysctls are those that a pod may set without leave
// (pkg/kubelet/sysctl/safe_sysctls.go). Every kernel since 4.15 has them all.
var safeSysctls = [...]string{
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.ping_group_range",
	"net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ip_local_reserved_ports",
	"net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_wmem",
}

// Sysctls is the handler that checks which kernel parameters a pod sets
// (pkg/kubelet/sysctl/allowlist.go).
type Sysctls struct {
	names, prefixes []string // that are allowed beside the safe ones
}

// NewSysctls returns a handler that allows, beside the safe ones, what
// allowedUnsafeSysctls says: names, or patterns that end in *. It refuses what
// is not known to have a namespace.
func NewSysctls(unsafe []string) (*Sysctls, error) {
	s := &Sysctls{}
	for _, pattern := range unsafe {
		name, open := strings.CutSuffix(dotted(pattern), "*")
		if sysctlNamespace(name) == "" {
			return nil, fmt.Errorf("the sysctls %q are not known to be namespaced", pattern)
		}
		if open {
			s.prefixes = append(s.prefixes, name)
		} else {
			s.names = append(s.names, name)
		}
	}
	return s, nil
}

// Admit refuses a pod for the first of its sysctls that is not allowed.
func (s *Sysctls) Admit(_ context.Context, attrs *PodAdmitAttributes) PodAdmitResult {
	spec := &attrs.Pod.Spec
	if spec.SecurityContext == nil {
		return PodAdmitResult{Admit: true}
	}
	for i := range spec.SecurityContext.Sysctls {
		if why := s.refuses(spec, dotted(spec.SecurityContext.Sysctls[i].Name)); why != "" {
			return PodAdmitResult{Reason: "SysctlForbidden", Message: "forbidden sysctl: " + why}
		}
	}
	return PodAdmitResult{Admit: true}
}

// refuses says why a pod may not set a sysctl; "" if it may. One of a namespace
// that the pod shares with the host would change the host's.
func (s *Sysctls) refuses(spec *v1.PodSpec, name string) string {
	allowed := slices.Contains(safeSysctls[:], name) || slices.Contains(s.names, name) ||
		slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	ns := sysctlNamespace(name)
	switch {
	case !allowed:
		return fmt.Sprintf("%q not allowlisted", name)
	case ns == ipcNamespace && spec.HostIPC, ns == netNamespace && spec.HostNetwork:
		return fmt.Sprintf("%q not allowed with host %s enabled", name, ns)
	}
	return ""
}

// The namespaces that have sysctls of their own.
const (
	ipcNamespace = "IPC"
	netNamespace = "Net"
)

// sysctlNamespace returns the namespace that a sysctl, or a prefix of some,
// belongs to; "" if there is none.
func sysctlNamespace(name string) string {
	for _, p := range [...]string{"kernel.shm", "kernel.msg", "fs.mqueue."} {
		if strings.HasPrefix(name, p) {
			return ipcNamespace
		}
	}
	switch {
	case name == "kernel.sem":
		return ipcNamespace
	case strings.HasPrefix(name, "net."):
		return netNamespace
	}
	return ""
}

// dotted is a sysctl's name as sysctl(8) may write it: where the first
// separator is a slash, slashes and dots are swapped.
func dotted(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

package lifecycle

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestSysctls(t *testing.T) {
	set := func(names ...string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.SecurityContext = &v1.PodSecurityContext{}
			for _, n := range names {
				p.Spec.SecurityContext.Sysctls = append(p.Spec.SecurityContext.Sysctls, v1.Sysctl{Name: n, Value: "1"})
			}
		}
	}
	hostNetwork := func(p *v1.Pod) { p.Spec.HostNetwork = true }
	hostIPC := func(p *v1.Pod) { p.Spec.HostIPC = true }
	for _, c := range []struct {
		name  string
		allow []string
		pod   *v1.Pod
		want  string
	}{
		{"none", nil, pod(), ""},
		{"safe", nil, pod(set("net.ipv4.tcp_syncookies", "kernel.shm_rmid_forced")), ""},
		{"unsafe", nil, pod(set("net.ipv4.tcp_syncookies", "kernel.msgmax")), `forbidden sysctl: "kernel.msgmax" not allowlisted`},
		{"allowed by name", []string{"kernel.msgmax"}, pod(set("kernel.msgmax")), ""},
		{"allowed by pattern", []string{"kernel.msg*"}, pod(set("kernel.msgmnb")), ""},
		{"beside the pattern", []string{"kernel.msg*"}, pod(set("kernel.shmmax")), `forbidden sysctl: "kernel.shmmax" not allowlisted`},
		{"with slashes", nil, pod(set("net/ipv4/tcp_syncookies")), ""},
		{"pattern with slashes", []string{"net/ipv4/conf/eth0.1/*"}, pod(set("net.ipv4.conf.eth0/1.mtu")), ""},
		{"host network", nil, pod(set("net.ipv4.tcp_syncookies"), hostNetwork), `forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled`},
		{"host IPC", nil, pod(set("kernel.shm_rmid_forced"), hostIPC), `forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled`},
		{"host IPC, another namespace", nil, pod(set("net.ipv4.tcp_syncookies"), hostIPC), ""},
	} {
		h, err := NewSysctls(c.allow)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r := h.Admit(context.Background(), &PodAdmitAttributes{Pod: c.pod})
		if r.Message != c.want || r.Admit != (c.want == "") || !r.Admit && r.Reason != "SysctlForbidden" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	if _, err := NewSysctls([]string{"vm.swappiness"}); err == nil {
		t.Error("a sysctl of the whole machine is allowed")
	}
}

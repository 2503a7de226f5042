package fakecri

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/process"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func TestPrivileges(t *testing.T) {
	local := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	caps := func(add, drop []string) *runtimeapi.LinuxContainerSecurityContext {
		return &runtimeapi.LinuxContainerSecurityContext{Seccomp: local, Capabilities: &runtimeapi.Capability{AddCapabilities: add, DropCapabilities: drop}}
	}
	for _, tc := range []struct {
		name    string
		sc      *runtimeapi.LinuxContainerSecurityContext
		want    kernel.Capabilities
		seccomp bool
	}{
		{"nothing said", nil, kernel.DefaultCapabilities, false},
		{"privileged", &runtimeapi.LinuxContainerSecurityContext{Privileged: true, Seccomp: local}, 0x1ffffffffff, false},
		{"drop one", caps(nil, []string{"CHOWN"}), 0xa80425fa, true},
		{"drop all", caps(nil, []string{"ALL"}), 0, true},
		{"drop all but one", caps([]string{"NET_BIND_SERVICE"}, []string{"all"}), 1 << 10, true},
		{"all but one", caps([]string{"ALL"}, []string{"CHOWN"}), 0x1fffffffffe, true},
		{"unknown", caps([]string{"FLY"}, nil), kernel.DefaultCapabilities, true},
	} {
		got, _, seccomp := process.Privileges(tc.sc)
		set := kernel.DefaultCapabilities
		if got != nil {
			set = *got
		}
		if set != tc.want || seccomp != tc.seccomp {
			t.Errorf("%s: %x %v, want %x %v", tc.name, set, seccomp, tc.want, tc.seccomp)
		}
	}
}

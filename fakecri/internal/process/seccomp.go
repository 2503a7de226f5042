package process

import (
	"encoding/json"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// seccompProfile is what is acted on of a profile in the OCI's format. Rules
// with conditions on arguments are left out. The format is that of the runtime-spec's
// linux.seccomp, as docker and the kubelet take it.
type seccompProfile struct {
	DefaultAction string `json:"defaultAction"`
	Syscalls      []struct {
		Name   string   `json:"name"`
		Names  []string `json:"names"`
		Action string   `json:"action"`
		Args   []any    `json:"args"`
	} `json:"syscalls"`
}

// SeccompFilter reads a profile. Except holds those whose action differs from the default's.
func SeccompFilter(data []byte) (*kernel.Filter, error) {
	var p seccompProfile
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("decoding seccomp profile failed: %w", err)
	}
	// LOG lets the call through as well; all other actions are taken to refuse it.
	allows := func(action string) bool { return action == "SCMP_ACT_ALLOW" || action == "SCMP_ACT_LOG" }
	f := &kernel.Filter{DenyRest: !allows(p.DefaultAction), Except: map[string]bool{}}
	for _, s := range p.Syscalls {
		// Of rules that hold for some arguments only nothing is known here.
		if len(s.Args) > 0 || allows(s.Action) != f.DenyRest {
			continue // it says what the default does
		}
		for _, name := range s.Names {
			f.Except[name] = true
		}
		if s.Name != "" { // as older profiles have it
			f.Except[s.Name] = true
		}
	}
	return f, nil
}

// filterOf is the filter of a container whose profile is a file of the
// machine's; the runtime's default profile denies nothing that counts here. The file is read at
// each start: CheckProfile has read it before, when the container was created.
func (r *Runner) filterOf(sc *runtimeapi.LinuxContainerSecurityContext) *kernel.Filter {
	p := sc.GetSeccomp()
	if r.Files.Host == nil || sc.GetPrivileged() || p.GetProfileType() != runtimeapi.SecurityProfile_Localhost {
		return nil
	}
	data, err := r.Files.Read(p.LocalhostRef)
	if err != nil {
		return nil // it was there when the container was created
	}
	f, _ := SeccompFilter(data)
	return f
}

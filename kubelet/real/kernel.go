//go:build linux

package real

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tunables are the kernel's settings that a kubelet wants (upstream
// pkg/kubelet/cm setupKernelTunables).
var tunables = [...]struct {
	name string
	want int
}{
	{"vm/overcommit_memory", 1},
	{"vm/panic_on_oom", 0},
	{"kernel/panic", 10},
	{"kernel/panic_on_oops", 1},
	{"kernel/keys/root_maxkeys", 1000000},
	{"kernel/keys/root_maxbytes", 25000000},
}

// tuneKernel has the kernel's settings below dir be as a kubelet wants them. With
// protect it changes none, and one that differs is an error. What can't be read
// or changed, as in a container, is logged only.
func tuneKernel(dir string, protect bool, logf func(string, ...any)) error {
	var errs []error
	for _, t := range tunables {
		file := filepath.Join(dir, t.name)
		data, err := os.ReadFile(file)
		if err != nil {
			logf("Failed to read kernel flag %s: %v", t.name, err)
			continue
		}
		got, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err == nil && got == t.want {
			continue
		}
		if protect {
			errs = append(errs, fmt.Errorf("invalid kernel flag: %s, expected value: %d, actual value: %s", t.name, t.want, strings.TrimSpace(string(data))))
			continue
		}
		logf("Updating kernel flag %s: expected value %d, actual value %s", t.name, t.want, strings.TrimSpace(string(data)))
		if err := os.WriteFile(file, []byte(strconv.Itoa(t.want)), 0); err != nil {
			logf("Failed to set kernel flag %s: %v", t.name, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("failed to start ContainerManager: %w", err)
	}
	return nil
}

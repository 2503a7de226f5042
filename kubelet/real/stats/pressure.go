//go:build linux

package stats

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// IO implements stats.Machine.
func (m *Machine) IO(ctx context.Context) (*statsapi.IOStats, error) {
	return await(ctx, func() (*statsapi.IOStats, error) { return m.ioOf("/"), nil })
}

func (m *Machine) ioOf(path string) *statsapi.IOStats {
	return &statsapi.IOStats{Time: metav1.Now(), PSI: m.pressure("io", path)}
}

// pressure is how long the processes of a cgroup waited for a resource; nil where the
// kernel does not count it, as on cgroup v1. Totals are the kernel's, in microseconds.
func (m *Machine) pressure(resource, path string) *statsapi.PSIStats {
	if !m.unified {
		return nil
	}
	file := m.file("", path, resource+".pressure")
	if path == "/" {
		file = filepath.Join(m.proc, "pressure", resource)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	out := &statsapi.PSIStats{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		to := &out.Some
		if f[0] == "full" {
			to = &out.Full
		}
		for _, pair := range f[1:] {
			name, text, _ := strings.Cut(pair, "=")
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				continue
			}
			switch name {
			case "avg10":
				to.Avg10 = v
			case "avg60":
				to.Avg60 = v
			case "avg300":
				to.Avg300 = v
			case "total":
				to.Total = uint64(v)
			}
		}
	}
	return out
}

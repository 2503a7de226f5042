//go:build linux

package stats

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// defaultInterface is the one that stands for the node (upstream
// defaultNetworkInterfaceName).
const defaultInterface = "eth0"

// virtualInterfaces are left out by the beginning of their names, as cAdvisor does.
var virtualInterfaces = [...]string{"lo", "veth", "docker", "nerdctl"}

// device is an interface's line of /proc/net/dev: bytes, packets, errors, drops and four
// more of what came, then of what went.
type device struct {
	name string
	n    [12]uint64
}

func (d *device) info() cadvisorapi.InterfaceStats {
	return cadvisorapi.InterfaceStats{
		Name: d.name, RxBytes: d.n[0], RxPackets: d.n[1], RxErrors: d.n[2], RxDropped: d.n[3],
		TxBytes: d.n[8], TxPackets: d.n[9], TxErrors: d.n[10], TxDropped: d.n[11],
	}
}

// networkOf are the machine's interfaces, in the kernel's order.
func networkOf(proc string) ([]device, error) {
	b, err := os.ReadFile(filepath.Join(proc, "net/dev"))
	if err != nil {
		return nil, err
	}
	var out []device
	for line := range strings.Lines(string(b)) {
		name, counts, ok := strings.Cut(line, ":")
		d := device{name: strings.TrimSpace(name)}
		f := strings.Fields(counts)
		if !ok || len(f) < len(d.n) || isVirtual(d.name) {
			continue
		}
		for i := range d.n {
			d.n[i], _ = strconv.ParseUint(f[i], 10, 64)
		}
		out = append(out, d)
	}
	return out, nil
}

func isVirtual(name string) bool {
	for _, prefix := range virtualInterfaces {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Network implements stats.Machine.
func (m *Machine) Network(ctx context.Context) (*statsapi.NetworkStats, error) {
	return await(ctx, func() (*statsapi.NetworkStats, error) {
		list, err := networkOf(m.proc)
		if err != nil {
			return nil, nil //nolint:nilnil,nilerr // nobody counts
		}
		out := &statsapi.NetworkStats{Time: metav1.Now()}
		for i := range list {
			d := &list[i]
			s := statsapi.InterfaceStats{Name: d.name, RxBytes: &d.n[0], RxErrors: &d.n[2], TxBytes: &d.n[8], TxErrors: &d.n[10]}
			if d.name == defaultInterface {
				out.InterfaceStats = s
			}
			out.Interfaces = append(out.Interfaces, s)
		}
		return out, nil
	})
}

// filesystems are the machine's that lie on a device, each once.
func (m *Machine) filesystems() []cadvisorapi.FsStats {
	b, err := os.ReadFile(filepath.Join(m.proc, "self/mounts"))
	if err != nil {
		return nil
	}
	var out []cadvisorapi.FsStats
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 3 || !strings.HasPrefix(f[0], "/") && f[2] != "tmpfs" {
			continue
		}
		device := f[0]
		if f[2] == "tmpfs" {
			device = f[1] // tmpfs has no device: its mount point stands for it
		}
		var st unix.Statfs_t
		if seen[device] || unix.Statfs(f[1], &st) != nil || st.Blocks == 0 {
			continue
		}
		seen[device] = true
		unit := uint64(st.Bsize)
		out = append(out, cadvisorapi.FsStats{
			Device: device, Type: f[2], Limit: st.Blocks * unit, Usage: (st.Blocks - st.Bfree) * unit, Available: st.Bavail * unit,
			HasInodes: true, Inodes: st.Files, InodesFree: st.Ffree,
		})
	}
	return out
}

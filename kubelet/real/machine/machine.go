//go:build linux

// Package machine tells the facts of the machine that a kubelet runs on, as cAdvisor and the node
// status setters tell them upstream.
//
// machine.go reads what goes into the node's capacity and nodeInfo, swap.go what the swap
// behaviour depends on, topology.go the CPUs and NUMA nodes for the managers. All of it is read
// from procfs and sysfs below a root that tests replace, once at the start.
package machine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

// Machine are the facts of this machine, read once: upstream reads them at the
// kubelet's start, too. It is not written to, so any goroutine may use it. The simulation has its
// own facts, with the same methods.
type Machine struct {
	capacity            v1.ResourceList
	bootID, id, uuid    string
	kernel, os, address string
	appArmor            bool
	topology            *cm.Topology
	swap                cm.Swap
}

var _ kubelet.Machine = (*Machine)(nil)

// New reads the facts. rootDir is the kubelet's root directory, or one that will
// have it: the size of its file system is the ephemeral storage. Facts that the
// machine does not tell are empty; without CPUs and memory there is an error.
// Nothing of it is read again: a machine that changes needs another kubelet, as
// upstream's.
func New(rootDir string) (*Machine, error) { return read("/", rootDir) }

// WithNodeIP is the same machine with an address that was chosen, or of the family of
// one that is unspecified ("::"). The facts were read before flags were judged, hence a copy.
func (m *Machine) WithNodeIP(ip net.IP) *Machine {
	out := *m
	out.address = defaultAddress(ip)
	return &out
}

// read reads the facts below root, which is / but for tests. A container's or a virtual machine's
// kernel may not tell some of it.
func read(root, rootDir string) (*Machine, error) {
	proc, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		return nil, fmt.Errorf("machine facts: %w", err)
	}
	mem, err := proc.Meminfo()
	if err != nil {
		return nil, fmt.Errorf("machine facts: %w", err)
	}
	if mem.MemTotalBytes == nil {
		return nil, errors.New("machine facts: /proc/meminfo has no MemTotal")
	}
	m := &Machine{
		capacity: v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(int64(runtime.NumCPU())*1000, resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(int64(*mem.MemTotalBytes), resource.BinarySI),
		},
		bootID:  firstLine(filepath.Join(root, "proc/sys/kernel/random/boot_id")),
		kernel:  firstLine(filepath.Join(root, "proc/sys/kernel/osrelease")),
		id:      firstLine(filepath.Join(root, "etc/machine-id"), filepath.Join(root, "var/lib/dbus/machine-id")),
		uuid:    systemUUID(root),
		os:      osImage(root),
		address: defaultAddress(nil),
	}
	if m.topology, err = readTopology(filepath.Join(root, "sys/devices/system"), int64(*mem.MemTotalBytes)); err != nil {
		return nil, err
	}
	if enabled := firstLine(filepath.Join(root, "sys/module/apparmor/parameters/enabled")); enabled == "Y" {
		_, err := os.Stat(filepath.Join(root, "sys/kernel/security/apparmor"))
		m.appArmor = err == nil
	}
	// The kubelet reports the machine's ID then, as cAdvisor.
	if m.uuid == "" {
		m.uuid = m.id
	}
	m.readSwap(root, mem.SwapTotalBytes)
	total, err := fsSize(rootDir)
	if err != nil {
		return nil, fmt.Errorf("machine facts: %w", err)
	}
	m.capacity[v1.ResourceEphemeralStorage] = *resource.NewQuantity(total, resource.BinarySI)
	return m, m.addHugePages(filepath.Join(root, "sys/kernel/mm/hugepages"))
}

// addHugePages adds a resource for each size of huge pages that the kernel has,
// also where no pages are set aside. A size without pages has a resource with 0, as upstream's
// node status.
func (m *Machine) addHugePages(dir string) error {
	sizes, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("machine facts: huge pages: %w", err)
	}
	for _, s := range sizes { // hugepages-2048kB
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(s.Name(), "hugepages-"), "kB"), 10, 64)
		if err != nil {
			continue
		}
		pages, err := strconv.ParseInt(firstLine(filepath.Join(dir, s.Name(), "nr_hugepages")), 10, 64)
		if err != nil {
			continue
		}
		size := resource.NewQuantity(kb<<10, resource.BinarySI)
		m.capacity[v1.ResourceName(v1.ResourceHugePagesPrefix+size.String())] = *resource.NewQuantity(pages*kb<<10, resource.BinarySI)
	}
	return nil
}

// fsSize is the size in bytes of the file system that has a path, or of that
// which has the nearest directory above it that exists.
// The root directory of a first start isn't there yet. Ephemeral storage is that of the file
// system which has the root directory.
func fsSize(path string) (int64, error) {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(path, &st)
		if err == nil {
			return int64(st.Blocks) * st.Bsize, nil
		}
		if up := filepath.Dir(path); errors.Is(err, unix.ENOENT) && up != path {
			path = up
			continue
		}
		return 0, fmt.Errorf("size of the file system of %s: %w", path, err)
	}
}

// systemUUID is that of the firmware; "" if it has none or doesn't tell. The order is cAdvisor's:
// firmware first, then device trees of ARM and POWER.
func systemUUID(root string) string {
	return firstLine(filepath.Join(root, "sys/class/dmi/id/product_uuid"), filepath.Join(root, "proc/device-tree/system-id"),
		filepath.Join(root, "proc/device-tree/vm,uuid"), filepath.Join(root, "etc/machine-id"))
}

// osImage is PRETTY_NAME of os-release(5). The two files are os-release(5)'s, in its order.
func osImage(root string) string {
	for _, name := range [...]string{"etc/os-release", "usr/lib/os-release"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
			value, ok := strings.CutPrefix(s.Text(), "PRETTY_NAME=")
			if !ok {
				continue
			}
			if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
				value = value[1 : len(value)-1]
			}
			return value
		}
	}
	return ""
}

// firstLine is the first line, without space around it and NULs at its end, of
// the first of the files that can be read and has one. Device trees end their texts with a NUL.
func firstLine(names ...string) string {
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		line, _, _ := bytes.Cut(data, []byte("\n"))
		if s := strings.TrimSpace(strings.TrimRight(string(line), "\x00")); s != "" {
			return s
		}
	}
	return ""
}

// Capacity implements kubelet.Machine.
func (m *Machine) Capacity() v1.ResourceList { return m.capacity }

// BootID implements kubelet.Machine.
func (m *Machine) BootID() string { return m.bootID }

// MachineID implements kubelet.Machine.
func (m *Machine) MachineID() string { return m.id }

// SystemUUID implements kubelet.Machine.
func (m *Machine) SystemUUID() string { return m.uuid }

// KernelVersion implements kubelet.Machine.
func (m *Machine) KernelVersion() string { return m.kernel }

// OSImage implements kubelet.Machine.
func (m *Machine) OSImage() string { return m.os }

// NodeIP implements kubelet.Machine.
func (m *Machine) NodeIP() string { return m.address }

// AppArmorEnabled reports whether the kernel can enforce AppArmor profiles.
func (m *Machine) AppArmorEnabled() bool { return m.appArmor }

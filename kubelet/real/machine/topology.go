//go:build linux

package machine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

// Topology is where the CPUs and the memory are, as sysfs tells; nil if it does
// not.
func (m *Machine) Topology() *cm.Topology { return m.topology }

// readTopology reads it from a directory such as /sys/devices/system, as
// cAdvisor does. nil without an error: it is not there. CPUs that are offline
// are left out; without NUMA nodes all is in one, with all of the memory. Core is the least
// thread of a core, so that IDs are the same however the kernel numbers cores.
func readTopology(dir string, memory int64) (*cm.Topology, error) {
	online, err := cpuset.Parse(firstLine(filepath.Join(dir, "cpu/online")))
	if err != nil {
		return nil, fmt.Errorf("machine facts: CPUs that are online: %w", err)
	}
	if online.IsEmpty() {
		return nil, nil
	}
	t := &cm.Topology{}
	nodeOf := map[int]int{}
	ids, err := cpuset.Parse(firstLine(filepath.Join(dir, "node/online")))
	if err != nil {
		return nil, fmt.Errorf("machine facts: NUMA nodes that are online: %w", err)
	}
	for _, id := range ids.List() {
		n, cpus, err := readNode(filepath.Join(dir, fmt.Sprintf("node/node%d", id)), id)
		if err != nil {
			return nil, err
		}
		t.Nodes = append(t.Nodes, n)
		for _, cpu := range cpus.List() {
			nodeOf[cpu] = id
		}
	}
	// A kernel without NUMA still has one node for the managers.
	if len(t.Nodes) == 0 {
		t.Nodes = []cm.NUMANode{{Memory: memory}}
	}
	for _, id := range online.List() {
		at := filepath.Join(dir, fmt.Sprintf("cpu/cpu%d", id))
		c := cm.CPU{ID: id, Core: id, Node: nodeOf[id], Uncore: nodeOf[id]}
		if siblings, err := cpuset.Parse(firstLine(filepath.Join(at, "topology/thread_siblings_list"))); err == nil && !siblings.IsEmpty() {
			c.Core = slices.Min(siblings.Intersection(online).Union(cpuset.New(id)).List())
		}
		if n, err := strconv.Atoi(firstLine(filepath.Join(at, "topology/physical_package_id"))); err == nil && n >= 0 {
			c.Socket = n
		}
		if n, ok := uncoreCache(filepath.Join(at, "cache")); ok {
			c.Uncore = n
		}
		t.CPUs = append(t.CPUs, c)
	}
	return t, nil
}

// readNode reads a NUMA node and which CPUs it has. A NUMA node may have memory and no CPUs.
func readNode(dir string, id int) (n cm.NUMANode, cpus cpuset.CPUSet, err error) {
	fail := func(what string, err error) (cm.NUMANode, cpuset.CPUSet, error) {
		return n, cpus, fmt.Errorf("machine facts: NUMA node %d: %s: %w", id, what, err)
	}
	n.ID = id
	if cpus, err = cpuset.Parse(firstLine(filepath.Join(dir, "cpulist"))); err != nil {
		return fail("CPUs", err)
	}
	info, err := os.ReadFile(filepath.Join(dir, "meminfo"))
	if err != nil {
		return fail("memory", err)
	}
	for s := bufio.NewScanner(bytes.NewReader(info)); s.Scan(); { // Node 0 MemTotal: 16384 kB
		f := strings.Fields(s.Text())
		if len(f) == 5 && f[2] == "MemTotal:" {
			kb, err := strconv.ParseInt(f[3], 10, 64)
			if err != nil {
				return fail("memory", err)
			}
			n.Memory = kb << 10
		}
	}
	for _, text := range strings.Fields(firstLine(filepath.Join(dir, "distance"))) {
		d, err := strconv.Atoi(text)
		if err != nil {
			return fail("distance", err)
		}
		n.Distances = append(n.Distances, d)
	}
	sizes, _ := os.ReadDir(filepath.Join(dir, "hugepages")) // a kernel without them has none
	for _, s := range sizes {
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(s.Name(), "hugepages-"), "kB"), 10, 64)
		if err != nil {
			continue
		}
		count, err := strconv.ParseInt(firstLine(filepath.Join(dir, "hugepages", s.Name(), "nr_hugepages")), 10, 64)
		if err != nil {
			continue
		}
		n.HugePages = append(n.HugePages, cm.HugePages{Size: kb << 10, Count: count})
	}
	return n, cpus, nil
}

// uncoreCache is the ID of a CPU's third-level cache. CPUs that share a third-level cache are an
// uncore group (prefer-align-cpus-by-uncorecache, KEP-4800).
func uncoreCache(dir string) (id int, ok bool) {
	entries, _ := os.ReadDir(dir) // none: the machine does not tell
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if firstLine(filepath.Join(at, "level")) != "3" {
			continue
		}
		if id, err := strconv.Atoi(firstLine(filepath.Join(at, "id"))); err == nil {
			return id, true
		}
	}
	return 0, false
}

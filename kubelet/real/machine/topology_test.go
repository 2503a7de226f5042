//go:build linux

package machine

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/drydock-sim/drydock/kubelet/cm"
)

func TestReadTopology(t *testing.T) {
	dir := t.TempDir()
	if got, err := readTopology(dir, 1); got != nil || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cpu/online", "0-2") // 3 is offline
	for cpu, siblings := range []string{"0,2", "1,3", "0,2"} {
		at := "cpu/cpu" + string(rune('0'+cpu))
		write(at+"/topology/thread_siblings_list", siblings)
		write(at+"/topology/physical_package_id", siblings[:1])
		write(at+"/cache/index0/level", "1")
		write(at+"/cache/index3/level", "3")
		write(at+"/cache/index3/id", "7")
	}
	flat, err := readTopology(dir, 5)
	if err != nil || len(flat.Nodes) != 1 || flat.Nodes[0].Memory != 5 {
		t.Errorf("without NUMA nodes: %+v, %v", flat, err)
	}
	write("node/online", "0-1")
	for node, cpus := range []string{"0,2", "1,3"} {
		at := "node/node" + string(rune('0'+node))
		write(at+"/cpulist", cpus)
		write(at+"/meminfo", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree:        512 kB")
		write(at+"/distance", "10 21")
		write(at+"/hugepages/hugepages-2048kB/nr_hugepages", "3")
	}
	node := func(id int) cm.NUMANode {
		return cm.NUMANode{ID: id, Memory: 1 << 20, HugePages: []cm.HugePages{{Size: 2 << 20, Count: 3}}, Distances: []int{10, 21}}
	}
	want := &cm.Topology{
		CPUs:  []cm.CPU{{ID: 0, Core: 0, Socket: 0, Node: 0, Uncore: 7}, {ID: 1, Core: 1, Socket: 1, Node: 1, Uncore: 7}, {ID: 2, Core: 0, Socket: 0, Node: 0, Uncore: 7}},
		Nodes: []cm.NUMANode{node(0), node(1)},
	}
	if got, err := readTopology(dir, 5); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	write("node/node1/cpulist", "x")
	if _, err := readTopology(dir, 5); err == nil {
		t.Error("a list that is none is no error")
	}
}

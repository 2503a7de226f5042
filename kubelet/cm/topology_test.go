package cm

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestLayout(t *testing.T) {
	for _, tc := range []struct {
		name   string
		layout Layout
		want   string // core/socket/node/uncore of each CPU, or the error
	}{
		{"nothing said", Layout{}, "0/0/0/0"},
		{"threads after cores", Layout{Sockets: 2, CoresPerSocket: 2, ThreadsPerCore: 2}, "0/0/0/0 1/0/0/0 2/1/1/1 3/1/1/1 0/0/0/0 1/0/0/0 2/1/1/1 3/1/1/1"},
		{"NUMA nodes in a socket", Layout{CoresPerSocket: 4, NUMANodes: 2, UncoreCaches: 4}, "0/0/0/0 1/0/0/1 2/0/1/2 3/0/1/3"},
		{"sockets in a NUMA node", Layout{Sockets: 2, NUMANodes: 1}, "0/0/0/0 1/1/0/1"},
		{"NUMA nodes across sockets", Layout{Sockets: 2, CoresPerSocket: 3, NUMANodes: 3}, "3 NUMA nodes don't divide among 2 sockets"},
		{"cores that don't divide", Layout{CoresPerSocket: 3, NUMANodes: 2}, "3 cores don't divide among 2 NUMA nodes"},
		{"caches that don't", Layout{CoresPerSocket: 4, UncoreCaches: 3}, "3 uncore caches don't go with 4 cores in 1 NUMA nodes"},
		{"too many", Layout{Sockets: 13}, "13 NUMA nodes are more than 12"},
		{"too many CPUs", Layout{CoresPerSocket: 40000, ThreadsPerCore: 2}, "1 sockets of 40000 cores of 2 threads are more than 65536 CPUs"},
		{"too many to multiply", Layout{Sockets: 1 << 40, CoresPerSocket: 1 << 40}, "1099511627776 sockets of 1099511627776 cores of 1 threads are more than 65536 CPUs"},
		{"below 0", Layout{Sockets: -1}, "numbers of a topology can't be negative"},
	} {
		topo, err := tc.layout.New()
		got := fmt.Sprint(err)
		if err == nil {
			var out []string
			for i, c := range topo.CPUs {
				if c.ID != i {
					t.Errorf("%s: CPU %d is called %d", tc.name, i, c.ID)
				}
				out = append(out, fmt.Sprintf("%d/%d/%d/%d", c.Core, c.Socket, c.Node, c.Uncore))
			}
			got = strings.Join(out, " ")
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestFlatTopology(t *testing.T) {
	topo := FlatTopology(list(map[v1.ResourceName]string{"cpu": "3500m", "memory": "8Gi", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "0", "example.com/gpu": "2"}))
	n := topo.Nodes[0]
	if len(topo.CPUs) != 4 || len(topo.Nodes) != 1 || n.Memory != 8<<30 || len(n.HugePages) != 2 || n.HugePages[1] != (HugePages{Size: 2 << 20, Count: 512}) {
		t.Errorf("got %+v", topo)
	}
}

func TestFlatTopologyOfAbsurdCapacity(t *testing.T) {
	if topo := FlatTopology(list(map[v1.ResourceName]string{"cpu": "1E"})); len(topo.CPUs) != maxCPUs || len(topo.Nodes) != 1 {
		t.Errorf("%d CPUs in %d NUMA nodes", len(topo.CPUs), len(topo.Nodes))
	}
}

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string]string{"0-3,8": "0-3,8", "": "", "65535": "65535"} {
		if got, err := ParseCPUs(list); err != nil || got.String() != want {
			t.Errorf("%q: got %s, %v", list, got, err)
		}
	}
	for _, list := range []string{"0-99999999999999", "65536", "99999999999999999999999", "3-1", "a", "1,"} {
		if got, err := ParseCPUs(list); err == nil {
			t.Errorf("%q: got %s", list, got)
		}
	}
}

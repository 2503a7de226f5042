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
		{"too many", Layout{Sockets: 65}, "65 NUMA nodes are more than 64"},
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

package expect

import "github.com/google/cel-go/common/types/ref"

// Cgroup is a cgroup above those of containers. Expectations see what the kubelet asked for,
// whatever the machine makes of it.
type Cgroup struct {
	Path string `json:"path"`
	// QOSClass is that of the pods in it, or "".
	QOSClass string `json:"qosClass"`
	// Pod is "namespace/name" for a pod's cgroup, else "".
	Pod string `json:"pod"`
	// CPUShares are those of cgroup v1, CPUWeight is what they are in v2.
	CPUShares int64 `json:"cpuShares"`
	CPUWeight int64 `json:"cpuWeight"`
	// CPUQuota and CPUPeriod in µs; -1 is no quota.
	CPUQuota  int64 `json:"cpuQuota"`
	CPUPeriod int64 `json:"cpuPeriod"`
	// MemoryLimit in bytes and PIDs; -1 is no limit.
	MemoryLimit int64 `json:"memoryLimit"`
	PIDs        int64 `json:"pids"`
	// MemoryMin and MemoryLow in bytes.
	MemoryMin int64 `json:"memoryMin"`
	MemoryLow int64 `json:"memoryLow"`
}

// ContainerResources is what the runtime is to give a container, as the CRI has
// it: 0 and "" are not set.
type ContainerResources struct {
	CPUShares       int64             `json:"cpuShares"`
	CPUQuota        int64             `json:"cpuQuota"`  // µs
	CPUPeriod       int64             `json:"cpuPeriod"` // µs
	CpusetCpus      string            `json:"cpusetCpus"`
	CpusetMems      string            `json:"cpusetMems"`
	MemoryLimit     int64             `json:"memoryLimit"`     // bytes
	MemorySwapLimit int64             `json:"memorySwapLimit"` // bytes, cgroup v1's
	OOMScoreAdj     int64             `json:"oomScoreAdj"`
	Unified         map[string]string `json:"unified"` // files of cgroup v2
}

// CgroupState is a State that knows cgroups. It is asked by expectations of the
// form At only, when Advance judges them. A State without cgroups need not have it; the functions
// then find nothing.
type CgroupState interface {
	// Cgroups returns nil for a node that is not there.
	Cgroups(node string) []*Cgroup
	// ContainerResources returns nil for a container that is not there; of
	// several of the name the last one counts.
	ContainerResources(namespace, pod, container string) *ContainerResources
}

// cgroups is the function of that name.
func (s *view) cgroups(args []ref.Val) ref.Val {
	var out []*Cgroup
	if c, ok := s.state.(CgroupState); ok {
		out = c.Cgroups(text(args[0]))
	}
	return s.slice(s.list.cgroups, out)
}

// containerResources is the function of that name.
func (s *view) containerResources(args []ref.Val) ref.Val {
	k := podKey(text(args[0]))
	if c, ok := s.state.(CgroupState); ok {
		if x := c.ContainerResources(k.ns, k.name, text(args[1])); x != nil {
			return s.ts.NativeToValue(x)
		}
	}
	return s.ts.NativeToValue(&ContainerResources{})
}

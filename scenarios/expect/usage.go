package expect

import "github.com/google/cel-go/common/types/ref"

// NodeUsage is what a machine uses. Numbers are the machine's own, not the kubelet's statistics
// of them.
type NodeUsage struct {
	// Memory is the working set of everything, PodsMemory that of pods; bytes.
	Memory          int64 `json:"memory"`
	MemoryAvailable int64 `json:"memoryAvailable"`
	PodsMemory      int64 `json:"podsMemory"`
	MilliCPU        int64 `json:"milliCPU"`
	// PIDs are processes, of pods and others.
	PIDs          int64 `json:"pids"`
	PIDsAvailable int64 `json:"pidsAvailable"`
	// Imagefs and Containerfs are Nodefs where there is one disk only.
	Nodefs      FilesystemUsage `json:"nodefs"`
	Imagefs     FilesystemUsage `json:"imagefs"`
	Containerfs FilesystemUsage `json:"containerfs"`
}

// FilesystemUsage is what is used of a file system: bytes and inodes.
type FilesystemUsage struct {
	Used       int64 `json:"used"`
	Available  int64 `json:"available"`
	Capacity   int64 `json:"capacity"`
	Inodes     int64 `json:"inodes"`
	InodesFree int64 `json:"inodesFree"`
	InodesUsed int64 `json:"inodesUsed"`
}

// UsageState is a State that knows what machines use. Usage changes with time alone, which nobody
// is told of.
type UsageState interface {
	// NodeUsage returns nil for a node that is not there. It is asked for by
	// expectations of the form At only, when Advance judges them.
	NodeUsage(node string) *NodeUsage
}

// nodeUsage is the function usage.
func (s *view) nodeUsage(args []ref.Val) ref.Val {
	if u, ok := s.state.(UsageState); ok {
		if x := u.NodeUsage(text(args[0])); x != nil {
			return s.ts.NativeToValue(x)
		}
	}
	return s.ts.NativeToValue(&NodeUsage{})
}

package stats

// MemcgNotifier is a Machine whose kernel tells when a cgroup's usage passes a
// level, as cgroup v1 does (cgroup.event_control).
type MemcgNotifier interface {
	// NotifyMemory has fn called, as a step of the kubelet's loop, each time that
	// the usage of a cgroup, in bytes, passes the level; "/" is the root. fn must
	// not wait.
	NotifyMemory(cgroup string, level int64, fn func()) (stop func(), err error)
}

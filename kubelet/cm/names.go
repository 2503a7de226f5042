package cm

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/lists"
)

const (
	kubepods    = "kubepods"
	podPrefix   = "pod"
	sliceSuffix = ".slice"
)

// Names are the paths of a node's cgroups, as its cgroup driver has them
// (CgroupName.ToCgroupfs and ToSystemd, GetPodContainerName, at
// pkg/kubelet/cm/cgroup_manager_linux.go and pod_container_manager_linux.go).
type Names struct {
	// Root is cgroupRoot; "" means "/".
	Root string
	// Systemd is the driver of that name, else it is cgroupfs.
	Systemd bool
}

// Pods is the cgroup of all pods.
func (n Names) Pods() string { return n.path() }

// Class is the cgroup of the pods of a class; that of Guaranteed ones is the
// cgroup of all.
func (n Names) Class(class v1.PodQOSClass) string {
	if c := classComponent(class); c != "" {
		return n.path(c)
	}
	return n.path()
}

// Pod is the cgroup of a pod, and what a runtime gets as cgroup parent.
func (n Names) Pod(class v1.PodQOSClass, uid types.UID) string {
	if c := classComponent(class); c != "" {
		return n.path(c, podPrefix+string(uid))
	}
	return n.path(podPrefix + string(uid))
}

func classComponent(class v1.PodQOSClass) string {
	switch class {
	case v1.PodQOSBurstable:
		return "burstable"
	case v1.PodQOSBestEffort:
		return "besteffort"
	}
	return ""
}

// Components are the parts of the name of the cgroup of all pods, whatever the
// driver, as events have it.
func (n Names) Components() []string { return n.components() }

func (n Names) components(below ...string) []string {
	out := lists.Filter(strings.Split(path.Clean("/"+n.Root), "/"), func(c string) bool { return c != "" })
	return append(append(out, kubepods), below...)
}

// path is that of a cgroup below the one of all pods.
func (n Names) path(below ...string) string {
	components := n.components(below...)
	if !n.Systemd {
		return "/" + path.Join(components...)
	}
	// A slice is named for the way to it, with dashes; dashes of a name are
	// underscores.
	var out strings.Builder
	name := ""
	for i, c := range components {
		c = strings.ReplaceAll(c, "-", "_")
		if i > 0 {
			c = name + "-" + c
		}
		name = c
		out.WriteString("/" + name + sliceSuffix)
	}
	return out.String()
}

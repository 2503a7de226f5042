package kuberuntime

import (
	"encoding/json"
	"net/netip"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	netutils "k8s.io/utils/net"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// uid is a UID as apimachinery has it.
func uid(s string) types.UID { return types.UID(s) }

// decimal is a number as labels and annotations have it.
func decimal(n int) string { return strconv.Itoa(n) } // small ones allocate nothing

// marshal is the JSON in which upstream keeps hooks and ports in annotations.
func marshal(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// containerState is a state of the CRI as the PLEG and syncs compare it.
func containerState(s runtimeapi.ContainerState) kubecontainer.State {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return kubecontainer.StateCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return kubecontainer.StateRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return kubecontainer.StateExited
	}
	return kubecontainer.StateUnknown
}

// sandboxState is running or exited: a sandbox knows no other states, and the
// PLEG treats it as one more container.
func sandboxState(s runtimeapi.PodSandboxState) kubecontainer.State {
	if s == runtimeapi.PodSandboxState_SANDBOX_READY {
		return kubecontainer.StateRunning
	}
	return kubecontainer.StateExited
}

// imageID is the ID of a container's image, or the reference where a runtime
// doesn't tell IDs.
func imageID(id, ref string) string {
	if id != "" {
		return id
	}
	return ref
}

// listedContainer converts an entry of a listing; false if it is not whole.
func listedContainer(c *runtimeapi.Container) (kubecontainer.Container, bool) {
	if c == nil || c.Id == "" || c.Image == nil || c.Metadata == nil {
		return kubecontainer.Container{}, false
	}
	return kubecontainer.Container{
		ID:           c.Id,
		Name:         c.Metadata.Name,
		Image:        c.Image.Image,
		ImageID:      imageID(c.ImageId, c.ImageRef),
		ImageRef:     c.ImageRef,
		Hash:         c.Annotations[annotationHash],
		PodSandboxID: c.PodSandboxId,
		CreatedAt:    c.CreatedAt,
		State:        containerState(c.State),
	}, true
}

// listedSandbox converts an entry of a listing of sandboxes.
func listedSandbox(s *runtimeapi.PodSandbox) kubecontainer.Container {
	return kubecontainer.Container{ID: s.Id, CreatedAt: s.CreatedAt, State: sandboxState(s.State)}
}

// inspectedContainer converts the status of a container. Numbers that are
// missing or malformed read as 0.
func inspectedContainer(s *runtimeapi.ContainerStatus) *kubecontainer.Status {
	name, ok := s.Labels[labelContainerName]
	if !ok && s.Labels == nil { // of a lean runtime
		name = s.GetMetadata().GetName()
	}
	restarts, _ := strconv.ParseInt(s.Annotations[annotationRestartCount], 10, 32)
	out := &kubecontainer.Status{
		ID:           s.Id,
		Name:         name,
		State:        containerState(s.State),
		CreatedAt:    nsTime(s.CreatedAt),
		Image:        s.GetImage().GetImage(),
		ImageID:      imageID(s.ImageId, s.ImageRef),
		ImageRef:     s.ImageRef,
		Hash:         s.Annotations[annotationHash],
		RestartCount: int32(restarts),
	}
	if out.State != kubecontainer.StateCreated {
		out.StartedAt = nsTime(s.StartedAt)
	}
	if out.State == kubecontainer.StateExited {
		out.Reason, out.Message, out.ExitCode = s.Reason, s.Message, s.ExitCode
		out.FinishedAt = nsTime(s.FinishedAt)
	}
	return out
}

// nsTime is the time of the CRI's nanoseconds since the Unix epoch. An unset
// time is 1970, not the zero time, as upstream's.
func nsTime(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// sandboxIPs are the IPs of a sandbox: none if one of them can't be read.
// One bad address hides the good ones, as upstream's does: a pod with half of
// its addresses would look finished.
func sandboxIPs(s *runtimeapi.PodSandboxStatus) []string {
	n := s.GetNetwork()
	if n == nil || n.Ip == "" {
		return nil
	}
	ips := make([]string, 0, 1+len(n.AdditionalIps))
	ips = append(ips, n.Ip)
	for _, ip := range n.AdditionalIps {
		ips = append(ips, ip.GetIp())
	}
	for _, ip := range ips {
		a, err := netip.ParseAddr(ip) // allocates nothing
		if (err != nil || a.Zone() != "") && netutils.ParseIPSloppy(ip) == nil {
			return nil
		}
	}
	return ips
}

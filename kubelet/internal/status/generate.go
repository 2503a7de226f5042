// Package status makes the status of pods and brings it to the API:
// [GenerateAPIPodStatus] computes what a pod's status should say from what the
// runtime says, and the [Manager] keeps the last one of each pod, sends what
// changed and deletes pods that have ended. It mirrors upstream's
// pkg/kubelet/status and the status half of pkg/kubelet/kubelet_pods.go.
//
// Differences: statuses are shared and never written to, so that a status that
// did not change costs no memory; the manager looks only at what changed since
// it was last found equal.
//
// generate.go begins the making of a status, which containers.go (container
// statuses), phase.go, conditions.go, resources.go and restart.go do parts of;
// these are functions of an [Input]. manager.go keeps statuses and takes
// changes, sender.go sends them in batches, flush.go waits for them at a
// shutdown, resize.go keeps the conditions of resizes. normalize.go and
// equal.go are what both need to compare statuses as the API would have them.
package status

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/utils/net"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// ProbeResults is what status generation asks of the probe manager.
type ProbeResults interface {
	// Startup returns the newest result of a container's startup probe.
	Startup(id kubecontainer.ContainerID) (success, known bool)
	// Readiness returns the newest result of its readiness probe.
	Readiness(id kubecontainer.ContainerID) (success, known bool)
	// HasStartupWorker reports whether a startup probe of that container is run.
	HasStartupWorker(uid types.UID, container string) bool
	// HasReadinessWorker reports whether a readiness probe of it is run.
	HasReadinessWorker(uid types.UID, container string) bool
	// TriggerReadiness has the readiness probe run at once.
	TriggerReadiness(uid types.UID, container string)
}

// Env is what status generation knows of its node; one per kubelet. Fields
// left nil or zero mean that there is none of it.
type Env struct {
	// RuntimeName is the scheme of container IDs ("containerd").
	RuntimeName string
	// KubeletStart is when this kubelet started. Containers older than it are
	// not made unready for want of probe results.
	KubeletStart time.Time
	// HostIPs returns the node's addresses in the form of HostIPs; nil in
	// standalone mode. The slice is shared.
	HostIPs func() []v1.HostIP
	// PrimaryIPv6 says that the node's first address family is IPv6.
	PrimaryIPv6 bool
	// RecursiveReadOnly says that the runtime can mount recursively read-only.
	RecursiveReadOnly bool
	// Reason looks up why a container could not be started (the reason cache).
	Reason func(uid types.UID, container string) (reason error, message string, ok bool)
	// Probes has the results of probes; nil: no container has any.
	Probes ProbeResults
	// Devices says how a container's devices are; nil: none has any.
	Devices func(uid types.UID, container string) []v1.ResourceStatus
	// Claims says how the devices of a container's claims are; nil: none has any.
	Claims func(pod *v1.Pod, c *v1.Container) []v1.ResourceStatus
	// Totals remembers sums of resources; nil: status has no pod-level ones.
	Totals *TotalsMemo
	// DeadlineExceeded is told of each generation that finds a pod past its
	// active deadline, to record the event.
	DeadlineExceeded func(pod *v1.Pod)
}

// Input is what one status is made of.
type Input struct {
	Env *Env
	// Pod is the pod with its allocated resources. Its own status is the API's.
	Pod *v1.Pod
	// Runtime is what the runtime says of the pod.
	Runtime *kubecontainer.PodStatus
	// Old is the status manager's cached status; nil means Pod.Status.
	Old *v1.PodStatus
	// Terminal says that the pod's containers are stopped for good.
	Terminal bool
	// ResizeConditions are PodResizePending and PodResizeInProgress, if any.
	ResizeConditions []v1.PodCondition
	// Resizing says that containers may have other resources than Pod says, so
	// that what the runtime reports counts.
	Resizing bool
	// ActuatedMemoryRequest returns the memory request in bytes with which a
	// container was last actuated, 0 if that is not known; nil: not known.
	ActuatedMemoryRequest func(container string) int64
	// PodCgroup reads cpu request and limit (millicores) and the memory limit
	// (bytes) of the pod's cgroup, 0 for none; nil: they are as Pod says.
	PodCgroup func() (milliRequest, milliLimit, memoryLimit int64)
	// Now is the time on the node's clock.
	Now time.Time
}

// startGrace is by how much a container must be older than the kubelet to be
// protected from a restart of the kubelet.
const startGrace = 10 * time.Second

// deadlineMessage is the status message of a pod past its active deadline.
const deadlineMessage = "Pod was active on the node longer than the specified deadline"

// GenerateAPIPodStatus computes a pod's status (upstream
// Kubelet.generateAPIPodStatus). What did not change since in.Old is shared
// with it; the result must not be written to. Not set here: startTime,
// observedGeneration and the transition times of conditions (Manager's), claim
// statuses (the API's).
func GenerateAPIPodStatus(in *Input) v1.PodStatus {
	pod, old := in.Pod, in.Old
	if old == nil {
		old = &pod.Status
	}
	g := generation{Input: *in, old: old}
	g.restartingAll = g.isRestartingAll()

	// w is worked on in scratch space; what of it changed is copied out of
	// there. Nothing else of w goes into s, or the compiler would put the
	// scratch space on the heap.
	var w, s v1.PodStatus
	hasInit := len(pod.Spec.InitContainers) > 0
	w.ContainerStatuses = g.list(regular, hasInit, old.ContainerStatuses)
	w.InitContainerStatuses = g.list(initial, hasInit, old.InitContainerStatuses)
	w.EphemeralContainerStatuses = g.list(ephemeral, hasInit, old.EphemeralContainerStatuses)
	s.Phase = g.phase(&w)
	g.keepTerminalPhase(&s)
	w.Phase = s.Phase
	g.probes(&w)

	ready := containersReady(&pod.Spec, w.InitContainerStatuses, w.ContainerStatuses, w.Phase)
	s.Conditions = g.conditions(&w, &ready)
	s.ContainerStatuses = settle(w.ContainerStatuses, old.ContainerStatuses)
	s.InitContainerStatuses = settle(w.InitContainerStatuses, old.InitContainerStatuses)
	s.EphemeralContainerStatuses = settle(w.EphemeralContainerStatuses, old.EphemeralContainerStatuses)
	s.PodIPs = podIPs(in.Runtime.IPs, in.Env.PrimaryIPv6, old.PodIPs)
	s.QOSClass = qos.Class(pod)
	g.podResources(&s)
	g.hostIPs(&s)
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
	return s
}

// generation is the making of one status.
// It lives on the stack: most statuses are equal to the last one, and nothing
// of those may reach the heap.
type generation struct {
	Input
	old           *v1.PodStatus
	restartingAll bool
	// scratch has room for the container statuses of an ordinary pod, which
	// need the heap only if they changed.
	scratch [scratchSize]v1.ContainerStatus
	used    int
}

// keepTerminalPhase applies what is known beside the containers to the phase:
// terminal phases stay, the active deadline ends the pod.
// The API's terminal phase wins over all else: a pod that others saw end has
// ended.
func (g *generation) keepTerminalPhase(s *v1.PodStatus) {
	api := &g.Pod.Status
	if !kubetypes.IsTerminalPhase(s.Phase) {
		if kubetypes.IsTerminalPhase(g.old.Phase) {
			s.Phase = g.old.Phase
		} else if kubetypes.IsTerminalPhase(api.Phase) {
			s.Phase = api.Phase
		}
	}
	if s.Phase == g.old.Phase {
		s.Reason, s.Message = g.old.Reason, g.old.Message
		s.Reason = cmp.Or(s.Reason, api.Reason)
		s.Message = cmp.Or(s.Message, api.Message)
	}
	if PastActiveDeadline(g.Pod, g.old, g.Now) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, "DeadlineExceeded", deadlineMessage
		if g.Env.DeadlineExceeded != nil {
			g.Env.DeadlineExceeded(g.Pod)
		}
	}
	if kubetypes.IsTerminalPhase(api.Phase) {
		s.Phase = api.Phase
	}
}

// hostIPs sets the host's addresses and lends them to host network pods.
// A pod in the host's network has the node's addresses although its sandbox has
// none.
func (g *generation) hostIPs(s *v1.PodStatus) {
	if g.Env.HostIPs == nil {
		return
	}
	ips := g.Env.HostIPs()
	if len(ips) == 0 {
		return
	}
	s.HostIP, s.HostIPs = ips[0].IP, ips
	if !g.Pod.Spec.HostNetwork {
		return
	}
	if len(s.PodIPs) == 0 {
		s.PodIPs = []v1.PodIP{{IP: ips[0].IP}}
	}
	if len(ips) == 2 && len(s.PodIPs) == 1 && utilnet.IsIPv6String(ips[1].IP) != utilnet.IsIPv6String(s.PodIPs[0].IP) {
		s.PodIPs = append(s.PodIPs[:1:1], v1.PodIP{IP: ips[1].IP})
	}
	s.PodIPs = settlePodIPs(s.PodIPs, g.old.PodIPs)
}

// HostIPs returns what a node's addresses mean for its pods' hostIPs: the
// first address, InternalIPs before ExternalIPs, and the first of the other
// family.
func HostIPs(addresses []v1.NodeAddress) []v1.HostIP {
	var out []v1.HostIP
	for _, t := range [...]v1.NodeAddressType{v1.NodeInternalIP, v1.NodeExternalIP} {
		for _, a := range addresses {
			if a.Type != t || utilnet.ParseIPSloppy(a.Address) == nil {
				continue
			}
			if len(out) == 0 || len(out) == 1 && utilnet.IsIPv6String(out[0].IP) != utilnet.IsIPv6String(a.Address) {
				out = append(out, v1.HostIP{IP: a.Address})
			}
		}
	}
	return out
}

// podIPs orders the runtime's addresses: the first of the primary family, then
// the first of the other; old is shared if it says the same.
// The primary family is the node's first, whatever order the runtime lists them
// in: clients take the first address.
func podIPs(ips []string, primaryV6 bool, old []v1.PodIP) []v1.PodIP {
	if len(ips) == 0 {
		return nil
	}
	if len(ips) == 1 && len(old) == 1 && old[0].IP == ips[0] {
		return old
	}
	var out [2]v1.PodIP
	n := 0
	for _, v6 := range [...]bool{primaryV6, !primaryV6} {
		for _, ip := range ips {
			if text, is6 := canonicalIP(ip); text != "" && is6 == v6 {
				out[n].IP = text
				n++
				break
			}
		}
	}
	if n == 0 {
		return nil
	}
	return settlePodIPs(append([]v1.PodIP(nil), out[:n]...), old)
}

// canonicalIP returns an address as net.IP writes it, and whether it is IPv6; ""
// if it is none. One that is written so already, as a runtime's are, needs no
// memory.
func canonicalIP(ip string) (text string, is6 bool) {
	if a, err := netip.ParseAddr(ip); err == nil && a.Zone() == "" && !a.Is4In6() {
		var room [40]byte // of the longest, and a byte more
		if string(a.AppendTo(room[:0])) == ip {
			return ip, a.Is6()
		}
	}
	p := utilnet.ParseIPSloppy(ip)
	if p == nil {
		return "", false
	}
	return p.String(), utilnet.IsIPv6(p)
}

// settlePodIPs returns old if it says the same, so that statuses share it.
func settlePodIPs(ips, old []v1.PodIP) []v1.PodIP {
	if slices.Equal(ips, old) {
		return old
	}
	return ips
}

// PastActiveDeadline reports whether a pod ran longer than its
// activeDeadlineSeconds; status is the status manager's, or the API's.
func PastActiveDeadline(pod *v1.Pod, status *v1.PodStatus, now time.Time) bool {
	d := pod.Spec.ActiveDeadlineSeconds
	if d == nil || status.StartTime.IsZero() {
		return false
	}
	return now.Sub(status.StartTime.Time) >= time.Duration(*d)*time.Second
}

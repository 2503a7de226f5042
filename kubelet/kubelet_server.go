package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/kubelet/apis/podresources"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/prober/results"
	"github.com/drydock-sim/drydock/kubelet/server"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// checkpointsDir is where checkpoints of containers are, below the root directory.
const checkpointsDir = "checkpoints"

// errNoMetrics is the answer of a kubelet that counts nothing (Options.NoMetrics).
var errNoMetrics = errors.New("this kubelet keeps no metrics")

// errStarting is the answer of a kubelet that has not made its parts yet.
var errStarting = errors.New("the kubelet is starting")

// Host is the kubelet for its server: server.Host, on the kubelet's loop, by a task
// where it waits (upstream's server.HostInterface).
type Host struct{ kl *Kubelet }

var _ server.Host = Host{}

// Host returns the kubelet for its server.
func (kl *Kubelet) Host() Host { return Host{kl} }

// PodResources returns what tells what pods have for themselves; nil before the kubelet has
// made it.
func (kl *Kubelet) PodResources() *podresources.Server {
	if kl.containers == nil {
		return nil
	}
	m := kl.containers
	s := &podresources.Server{ActivePods: kl.activePods, Devices: m.deviceManager, CPUs: m.cpuManager, Memory: m.memoryManager}
	if m.draManager != nil {
		s.Claims = m.draManager
	}
	return s
}

// ready reports whether the kubelet has made its parts.
func (h Host) ready() error {
	if h.kl.loop == nil {
		return errStarting
	}
	return nil
}

// Pods implements server.Host. Only a static pod's status is the kubelet's own:
// nobody else has one. It does not wait.
func (h Host) Pods(context.Context) ([]*v1.Pod, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	list := h.kl.pods.GetPods()
	out := make([]*v1.Pod, len(list))
	for i, pod := range list {
		out[i] = h.shown(pod)
	}
	return out, nil
}

// shown is a pod as upstream's pod manager has it.
func (h Host) shown(pod *v1.Pod) *v1.Pod {
	shown := h.kl.annotated(pod)
	if s, ok := h.kl.statusManager.GetPodStatus(pod.UID); ok && kubetypes.IsStaticPod(pod) {
		known := *shown
		known.Status = *s
		shown = &known
	}
	return shown
}

// RunningPods implements server.Host.
func (h Host) RunningPods(ctx context.Context) ([]*v1.Pod, error) {
	pods, err := h.running(ctx)
	if err != nil {
		return nil, err
	}
	var out []*v1.Pod
	for _, p := range pods {
		pod := &v1.Pod{}
		pod.UID, pod.Name, pod.Namespace = p.ID, p.Name, p.Namespace
		for _, c := range p.Containers {
			if c.State == kubecontainer.StateRunning {
				pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c.Name, Image: c.Image})
			}
		}
		out = append(out, pod)
	}
	return out, nil
}

// running are the runtime's pods with anything that runs.
func (h Host) running(ctx context.Context) ([]*kubecontainer.Pod, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	all, err := h.kl.runtime.GetPods(ctx)
	if err != nil {
		return nil, err
	}
	var out []*kubecontainer.Pod
	for _, p := range all {
		if anyRuns(p.Containers) || anyRuns(p.Sandboxes) {
			out = append(out, p)
		}
	}
	return out, nil
}

func anyRuns(list []*kubecontainer.Container) bool {
	for _, c := range list {
		if c.State == kubecontainer.StateRunning {
			return true
		}
	}
	return false
}

// Pod implements server.Host.
func (h Host) Pod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	if pod := h.pod(namespace, name); pod != nil {
		return h.shown(pod), nil
	}
	return nil, nil
}

func (h Host) pod(namespace, name string) *v1.Pod {
	var found *v1.Pod
	h.kl.pods.Each(func(pod *v1.Pod) {
		if pod.Namespace == namespace && pod.Name == name {
			found = pod
		}
	})
	return found
}

// Summary implements server.Host.
func (h Host) Summary(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	h.claims()
	s, err := h.kl.usage.Summary(ctx, onlyCPUAndMemory)
	if err == nil && onlyCPUAndMemory {
		onlyCPUAndMemoryOf(s)
	}
	return s, err
}

// claims is what there is in the volumes of claims, as far as it is known. Who asks once asks
// again: from now on the volumes of drivers are looked at, as upstream does all the time.
func (h Host) claims() []statsapi.VolumeStats {
	var out []statsapi.VolumeStats
	for _, pod := range h.kl.activePods() {
		if !slices.ContainsFunc(pod.Spec.Volumes, stats.Driven) {
			continue
		}
		h.kl.volumeStats.Add(pod, h.kl.workers.Since(pod.UID))
		for _, v := range h.kl.volumeStats.Get(pod.UID) {
			same := func(o statsapi.VolumeStats) bool { return *o.PVCRef == *v.PVCRef }
			if v.PVCRef != nil && !slices.ContainsFunc(out, same) {
				out = append(out, v)
			}
		}
	}
	return out
}

// onlyCPUAndMemoryOf takes everything else out of a summary.
func onlyCPUAndMemoryOf(s *statsapi.Summary) {
	s.Node.Fs, s.Node.Runtime, s.Node.Rlimit, s.Node.Network, s.Node.IO = nil, nil, nil, nil, nil
	for i := range s.Node.SystemContainers {
		c := &s.Node.SystemContainers[i]
		c.Rootfs, c.Logs, c.IO = nil, nil, nil
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Network, p.VolumeStats, p.EphemeralStorage, p.ProcessStats, p.IO = nil, nil, nil, nil, nil
		for k := range p.Containers {
			c := &p.Containers[k]
			c.Rootfs, c.Logs, c.IO = nil, nil, nil
		}
	}
}

// Log implements server.Host (upstream GetKubeletContainerLogs and the runtime
// manager's GetContainerLogs).
func (h Host) Log(ctx context.Context, pod *v1.Pod, container string, previous bool) (server.Log, error) {
	if err := h.ready(); err != nil {
		return server.Log{}, err
	}
	id, err := status.LogContainer(pod.Name, h.kl.statusManager.PodStatus(pod), container, previous)
	if err != nil {
		return server.Log{}, err
	}
	_, raw, _ := strings.Cut(id, "://")
	resp, err := h.kl.opts.RuntimeService.ContainerStatus(ctx, raw, false)
	if err != nil || resp.GetStatus() == nil {
		return server.Log{}, fmt.Errorf("unable to retrieve container logs for %v", id)
	}
	return server.Log{Path: resp.Status.LogPath, ContainerID: raw}, nil
}

// find returns the running pod of a name, nil if there is none, and its newest
// running container of the target's name, nil if there is none.
func (h Host) find(ctx context.Context, t server.Target) (*kubecontainer.Pod, *kubecontainer.Container, error) {
	pods, err := h.running(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range pods {
		if p.Namespace != t.Namespace || p.Name != t.Pod {
			continue
		}
		for _, c := range p.Containers {
			if c.Name == t.Container && c.State == kubecontainer.StateRunning {
				return p, c, nil
			}
		}
		return p, nil, nil
	}
	return nil, nil, nil
}

// container is the running container of a target.
func (h Host) container(ctx context.Context, t server.Target) (string, error) {
	_, c, err := h.find(ctx, t)
	switch {
	case err != nil:
		return "", err
	case c == nil:
		return "", fmt.Errorf("container not found (%q)", t.Container)
	}
	return c.ID, nil
}

// Run implements server.Host.
func (h Host) Run(ctx context.Context, t server.Target, command []string) ([]byte, error) {
	id, err := h.container(ctx, t)
	if err != nil {
		return nil, err
	}
	return h.kl.runtime.RunInContainer(ctx, id, command, 0)
}

// Exec implements server.Host.
func (h Host) Exec(ctx context.Context, t server.Target, req *runtimeapi.ExecRequest) (*url.URL, error) {
	id, err := h.container(ctx, t)
	if err != nil {
		return nil, err
	}
	req.ContainerId = id
	resp, err := h.kl.opts.RuntimeService.Exec(ctx, req)
	if err != nil {
		return nil, err
	}
	return url.Parse(resp.Url)
}

// Attach implements server.Host. Whether there is a terminal is the container's to
// say.
func (h Host) Attach(ctx context.Context, t server.Target, req *runtimeapi.AttachRequest) (*url.URL, error) {
	full := t.Pod + "_" + t.Namespace
	_, c, err := h.find(ctx, t)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("container %s not found in pod %s", t.Container, full)
	}
	pod := h.pod(t.Namespace, t.Pod)
	if pod == nil || t.UID != "" && pod.UID != t.UID {
		return nil, fmt.Errorf("pod %s not found", full)
	}
	spec, _ := kubecontainer.FindContainer(pod, t.Container)
	if spec == nil {
		return nil, fmt.Errorf("container %s not found in pod %s", t.Container, full)
	}
	req.ContainerId, req.Tty = c.ID, spec.TTY
	resp, err := h.kl.opts.RuntimeService.Attach(ctx, req)
	if err != nil {
		return nil, err
	}
	return url.Parse(resp.Url)
}

// PortForward implements server.Host.
func (h Host) PortForward(ctx context.Context, t server.Target, req *runtimeapi.PortForwardRequest) (*url.URL, error) {
	pod, _, err := h.find(ctx, t)
	switch {
	case err != nil:
		return nil, err
	case pod == nil:
		return nil, fmt.Errorf("pod not found (%q)", t.Pod+"_"+t.Namespace)
	case len(pod.Sandboxes) == 0:
		return nil, fmt.Errorf("failed to find sandboxID for pod %s_%s(%s)", t.Pod, t.Namespace, t.UID)
	}
	req.PodSandboxId = pod.Sandboxes[0].ID
	resp, err := h.kl.opts.RuntimeService.PortForward(ctx, req)
	if err != nil {
		return nil, err
	}
	return url.Parse(resp.Url)
}

// Checkpoint implements server.Host.
func (h Host) Checkpoint(ctx context.Context, t server.Target, timeout int64) (string, error) {
	_, c, err := h.find(ctx, t)
	switch {
	case err != nil:
		return "", err
	case c == nil:
		return "", fmt.Errorf("container %v not found", t.Container)
	}
	name := fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar", t.Pod, t.Namespace, t.Container, h.kl.l.Now().Format(time.RFC3339))
	req := &runtimeapi.CheckpointContainerRequest{
		ContainerId: c.ID, Timeout: timeout, Location: path.Join(h.kl.opts.RootDir, checkpointsDir, name),
	}
	return req.Location, h.kl.opts.RuntimeService.CheckpointContainer(ctx, req)
}

// Metrics implements server.Host. It waits for those of resources and of cAdvisor
// only.
func (h Host) Metrics(ctx context.Context, of server.MetricsPath) ([]*dto.MetricFamily, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	switch of {
	case server.Metrics:
		if h.kl.metrics == nil {
			return nil, errNoMetrics
		}
		return h.kl.metrics.Gather(h.state()), nil
	case server.ProbeMetrics:
		return metrics.Probes(h.probes(), float64(h.kl.syncer.env.KubeletStart.UnixNano())/1e9), nil
	case server.ResourceMetrics:
		s, err := h.kl.usage.Summary(ctx, false)
		if err != nil {
			h.kl.logf("Error getting summary for resourceMetric prometheus endpoint: %v", err)
			return metrics.Resources(nil), nil
		}
		return metrics.Resources(s), nil
	case server.CAdvisorMetrics:
		return h.cadvisor(ctx)
	}
	return nil, nil
}

// cadvisor are the metrics of the machine and of each cgroup.
func (h Host) cadvisor(ctx context.Context) ([]*dto.MetricFamily, error) {
	m := h.kl.opts.Machine
	capacity := m.Capacity()
	cores := int(capacity.Cpu().Value())
	machine := &cadvisorapi.MachineInfo{
		Timestamp: h.kl.l.Now(), NumCores: cores, NumPhysicalCores: cores, NumSockets: 1, MachineID: m.MachineID(), SystemUUID: m.SystemUUID(), BootID: m.BootID(),
		MemoryCapacity: uint64(capacity.Memory().Value()),
	}
	version := &cadvisorapi.VersionInfo{KernelVersion: m.KernelVersion(), ContainerOsVersion: m.OSImage()}
	of, err := h.kl.usage.Cgroups(ctx, h.kl.opts.RuntimeService, machine, version)
	if err != nil {
		return nil, err
	}
	return metrics.CAdvisor(of, h.kl.l.Now())
}

// state is what metrics show of the kubelet as it is.
func (h Host) state() *metrics.State {
	kl := h.kl
	kl.elided.catchUp()
	seen := kl.pleg.Stats()
	s := &metrics.State{
		NodeName: kl.nodeName, Claims: h.claims(), CgroupVersion: 2, Desired: map[bool]int{}, Active: map[bool]int{}, Containers: map[string]int{}, Evictions: map[string]uint64{},
		DroppedEvents: seen.DroppedEvents, Relists: seen.Elided, RelistPeriod: seen.Period.Seconds(), Syncs: kl.elided.resyncs(),
	}
	if kl.opts.CgroupV1 {
		s.CgroupVersion = 1
	}
	if c := kl.opts.CredentialProviders; c != nil {
		s.CredentialProviderHash = c.Hash
	}
	if c := kl.volumes.certificates; c != nil {
		s.PodCertificates = map[metrics.PodCertificate]int{}
		for of, n := range c.States() { //drydock:unordered each is set once
			s.PodCertificates[metrics.PodCertificate(of)] = n
		}
	}
	last := kl.pleg.LastRelist()
	if kl.evented != nil && kl.evented.Seen().After(last) {
		last = kl.evented.Seen()
	}
	if !last.IsZero() {
		s.LastRelist = float64(last.UnixNano()) / 1e9
	}
	s.Working = kl.workers.Working(func(uid types.UID) bool { _, ok := kl.pods.GetPodByUID(uid); return ok })
	for _, g := range kl.settings.gates.All() {
		s.Gates = append(s.Gates, metrics.Gate(g))
	}
	if m := kl.containers.cpuManager; m != nil {
		s.SharedCPUs, s.ExclusiveCPUs = m.Pools()
		s.CPUPinnings, s.CPUPinningErrors = m.Pinnings, m.PinningErrors
	}
	if m := kl.containers.memoryManager; m != nil {
		s.MemoryPinnings, s.MemoryPinningErrors = m.Pinnings, m.PinningErrors
	}
	kl.pods.Each(func(pod *v1.Pod) {
		static := kubetypes.IsStaticPod(pod)
		s.Desired[static]++
		if kl.isActive(pod) {
			s.Active[static]++
			if static && kl.client != nil {
				s.Mirrors++
			}
			s.Ephemeral += len(pod.Spec.EphemeralContainers)
		}
	})
	for _, p := range kl.pleg.Pods() {
		for _, c := range p.Containers {
			s.Containers[c.State.String()]++
		}
		if anyRuns(p.Sandboxes) {
			s.RunningPods++
		}
	}
	if kl.evented != nil {
		kl.evented.AddContainers(s.Containers)
	}
	for signal, n := range kl.eviction.Evictions() { //drydock:unordered a map of the caller's
		s.Evictions[string(signal)] = n
	}
	return s
}

// probes are the counts of the probes that are run.
func (h Host) probes() []metrics.Probe {
	var out []metrics.Probe
	for _, c := range h.kl.probes.Counts() {
		out = append(out, metrics.Probe{
			Namespace: c.Pod.Namespace, Pod: c.Pod.Name, UID: string(c.Pod.UID), Container: c.Container, Type: c.Type,
			Successful: c.Results[results.Success], Failed: c.Results[results.Failure], Unknown: c.Results[results.Unknown],
		})
	}
	return out
}

// ContainerStatus asks the runtime about a container, for who follows its log.
func (h Host) ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatusResponse, error) {
	return h.kl.opts.RuntimeService.ContainerStatus(ctx, id, false)
}

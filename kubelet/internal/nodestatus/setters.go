package nodestatus

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/kubelet/internal/events"
)

// maxNamesPerImage bounds the names of one image in the status.
const maxNamesPerImage = 5

// compute makes next the node as it should be, which shares what did not change,
// and reports whether that is to be sent.
func (m *Manager) compute(ctx context.Context, node, next *v1.Node) bool {
	*next = *node
	changed := m.podCIDR(ctx, node)
	os, arch := m.platform()
	for _, l := range [...][2]string{{v1.LabelOSStable, os}, {v1.LabelArchStable, arch}} {
		if next.Labels[l[0]] != l[1] {
			setLabel(next, l[0], l[1])
			changed = true
		}
	}
	m.set(ctx, next)
	return changed || statusChanged(&node.Status, &next.Status)
}

// setLabel sets a label in a copy of the node's map.
func setLabel(node *v1.Node, label, value string) {
	labels := make(map[string]string, len(node.Labels)+1)
	maps.Copy(labels, node.Labels)
	labels[label] = value
	node.Labels = labels
}

// podCIDR hands the node's CIDRs to the runtime. An error doesn't hold up the
// status: the next update tries again.
func (m *Manager) podCIDR(ctx context.Context, node *v1.Node) bool {
	if len(node.Spec.PodCIDRs) == 0 || m.opts.Sources.UpdatePodCIDR == nil {
		return false
	}
	changed, err := m.opts.Sources.UpdatePodCIDR(ctx, strings.Join(node.Spec.PodCIDRs, ","))
	if err != nil {
		m.log("error updating pod CIDR: %v", err)
	}
	return changed
}

// set runs all setters on a node whose struct is the caller's own and whose
// lists and maps are shared.
func (m *Manager) set(ctx context.Context, node *v1.Node) {
	s := &m.opts.Sources
	st := &node.Status
	if s.Addresses != nil {
		// The node itself is not handed out: it stays on the stack.
		var err error
		if st.Addresses, node.Annotations, err = s.Addresses(ctx, node.Name, st.Addresses, node.Annotations); err != nil {
			m.log("failed to set node addresses: %v", err)
		}
	}
	m.setMachine(node)
	m.setVersions(ctx, node)
	st.DaemonEndpoints.KubeletEndpoint.Port = m.opts.Port
	st.Images = m.images.status(s.Images, int(m.opts.MaxImages))
	st.NodeInfo.OperatingSystem, st.NodeInfo.Architecture = m.platform()
	if s.RuntimeHandlers != nil {
		st.RuntimeHandlers = s.RuntimeHandlers()
	}
	if s.Features != nil {
		st.Features = s.Features()
	}
	// The API keeps times in whole seconds.
	now := metav1.NewTime(m.opts.Loop.Now().Truncate(time.Second))
	st.Conditions = append(make([]v1.NodeCondition, 0, max(len(st.Conditions), len(pressures)+1)), st.Conditions...)
	for i := range pressures {
		m.setPressure(st, &pressures[i], now)
	}
	m.setReady(st, now)
	if s.VolumesInUse != nil {
		if volumes, known := s.VolumesInUse(); known {
			st.VolumesInUse = volumes
		}
	}
	// The event is for a change since this kubelet's last status, as upstream
	// remembers it in memory only.
	if node.Spec.Unschedulable != m.unschedulable {
		m.unschedulable = node.Spec.Unschedulable
		reason := events.NodeSchedulable
		if m.unschedulable {
			reason = events.NodeNotSchedulable
		}
		m.statusEvent(reason)
	}
	st.DeclaredFeatures = m.opts.DeclaredFeatures
}

// platform returns Go's names of the machine's system and architecture.
func (m *Manager) platform() (os, arch string) {
	os, arch = "linux", "amd64"
	if m.opts.Sources.Machine != nil {
		if f := m.opts.Sources.Machine(); f != nil {
			os, arch = cmp.Or(f.OperatingSystem, os), cmp.Or(f.Architecture, arch)
		}
	}
	return os, arch
}

func (m *Manager) setMachine(node *v1.Node) {
	s := &m.opts.Sources
	st := &node.Status
	if s.Machine != nil {
		if f := s.Machine(); f != nil {
			info := &st.NodeInfo
			if info.BootID != "" && f.BootID != "" && info.BootID != f.BootID && !m.rebooted {
				m.rebooted = true
				m.event(v1.EventTypeWarning, events.NodeRebooted, "Node "+m.opts.NodeName+" has been rebooted, boot id: "+f.BootID)
			}
			info.MachineID, info.SystemUUID, info.BootID = f.MachineID, f.SystemUUID, f.BootID
			info.KernelVersion, info.OSImage = f.KernelVersion, f.OSImage
			if f.SwapCapacity != nil {
				info.Swap = &v1.NodeSwapStatus{Capacity: f.SwapCapacity}
			}
		}
	}
	var r Resources
	if s.Resources != nil {
		if p := s.Resources(); p != nil {
			r = *p
		}
	}
	st.Capacity = overlay(st.Capacity, r.Capacity)
	st.Allocatable = allocatable(st.Capacity, r.Allocatable, st.Allocatable)
}

// overlay returns base with what over says: base itself if that adds nothing,
// over itself if that says all.
func overlay(base, over v1.ResourceList) v1.ResourceList {
	if contains(base, over) {
		return base
	}
	if covers(over, base) {
		return over
	}
	out := make(v1.ResourceList, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// contains reports whether base says all that over says.
func contains(base, over v1.ResourceList) bool {
	for k, v := range over { //drydock:unordered compares sets
		if have, ok := base[k]; !ok || have.Cmp(v) != 0 {
			return false
		}
	}
	return true
}

// covers reports whether over has an entry for each of base.
func covers(over, base v1.ResourceList) bool {
	for k := range base { //drydock:unordered compares sets
		if _, ok := over[k]; !ok {
			return false
		}
	}
	return true
}

// allocatable returns what pods may use: own, and all of what else there is
// capacity of, that is, extended resources of others. It returns old if that
// says so.
func allocatable(capacity, own, old v1.ResourceList) v1.ResourceList {
	n := len(own)
	same := contains(old, own)
	for k, v := range capacity { //drydock:unordered compares sets
		if _, ok := own[k]; ok {
			continue
		}
		n++
		have, ok := old[k]
		same = same && ok && have.Cmp(v) == 0
	}
	if same && n == len(old) {
		return old
	}
	return overlay(capacity, own)
}

// setVersions mirrors upstream's VersionInfo: a runtime that doesn't answer has
// the version "Unknown", which is no error of the update.
func (m *Manager) setVersions(ctx context.Context, node *v1.Node) {
	version := ""
	if m.opts.Sources.RuntimeVersion != nil {
		var err error
		if version, err = m.opts.Sources.RuntimeVersion(ctx); err != nil {
			m.log("error getting the runtime's version: %v", err)
			version = ""
		}
	}
	m.version = version
	info := &node.Status.NodeInfo
	info.ContainerRuntimeVersion = m.opts.RuntimeName + "://" + cmp.Or(strings.TrimPrefix(version, "v"), "Unknown")
	info.KubeletVersion, info.KubeProxyVersion = m.opts.KubeletVersion, ""
}

// identity tells a list that is replaced, never written to, from another.
func identity[T any](list []T) (*T, int) {
	if len(list) == 0 {
		return nil, 0
	}
	return &list[0], len(list)
}

// imageCache keeps the status' form of a list of images.
type imageCache struct {
	first *Image
	count int
	out   []v1.ContainerImage
}

// status returns the largest images first, as upstream's Images setter does:
// where the list is cut, those matter most to the scheduler.
func (c *imageCache) status(source func() []Image, limit int) []v1.ContainerImage {
	if source == nil {
		return nil
	}
	list := source()
	first, count := identity(list)
	if c.first == first && c.count == count {
		return c.out
	}
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Image) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(b.ID, a.ID))
	})
	if limit >= 0 && len(sorted) > limit {
		sorted = sorted[:limit]
	}
	c.first, c.count = first, count
	c.out = make([]v1.ContainerImage, 0, len(sorted))
	for i := range sorted {
		names := slices.Concat(sorted[i].RepoDigests, sorted[i].RepoTags)
		if len(names) > maxNamesPerImage {
			names = names[:maxNamesPerImage]
		}
		c.out = append(c.out, v1.ContainerImage{Names: names, SizeBytes: sorted[i].Size})
	}
	return c.out
}

// pressure says how a condition of the eviction manager reads.
type pressure struct {
	condition       v1.NodeConditionType
	source          func(*Sources) func() bool
	on, onMessage   string
	off, offMessage string
	onEvent         string
	offEvent        string
}

var pressures = [...]pressure{
	{
		condition: v1.NodeMemoryPressure, source: func(s *Sources) func() bool { return s.MemoryPressure },
		on: "KubeletHasInsufficientMemory", onMessage: "kubelet has insufficient memory available", onEvent: events.NodeHasInsufficientMemory,
		off: "KubeletHasSufficientMemory", offMessage: "kubelet has sufficient memory available", offEvent: events.NodeHasSufficientMemory,
	},
	{
		condition: v1.NodeDiskPressure, source: func(s *Sources) func() bool { return s.DiskPressure },
		on: "KubeletHasDiskPressure", onMessage: "kubelet has disk pressure", onEvent: events.NodeHasDiskPressure,
		off: "KubeletHasNoDiskPressure", offMessage: "kubelet has no disk pressure", offEvent: events.NodeHasNoDiskPressure,
	},
	{
		condition: v1.NodePIDPressure, source: func(s *Sources) func() bool { return s.PIDPressure },
		on: "KubeletHasInsufficientPID", onMessage: "kubelet has insufficient PID available", onEvent: events.NodeHasInsufficientPID,
		off: "KubeletHasSufficientPID", offMessage: "kubelet has sufficient PID available", offEvent: events.NodeHasSufficientPID,
	},
}

// setPressure mirrors upstream's MemoryPressureCondition and its like. A new
// condition starts as Unknown, so that its first value is a transition with an
// event.
func (m *Manager) setPressure(st *v1.NodeStatus, p *pressure, now metav1.Time) {
	c := findCondition(st.Conditions, p.condition)
	if c == nil {
		st.Conditions = append(st.Conditions, v1.NodeCondition{Type: p.condition, Status: v1.ConditionUnknown})
		c = &st.Conditions[len(st.Conditions)-1]
	}
	c.LastHeartbeatTime = now
	status, reason, message, event := v1.ConditionFalse, p.off, p.offMessage, p.offEvent
	if ask(p.source(&m.opts.Sources)) {
		status, reason, message, event = v1.ConditionTrue, p.on, p.onMessage, p.onEvent
	}
	if c.Status == status {
		return
	}
	c.Status, c.Reason, c.Message, c.LastTransitionTime = status, reason, message, now
	m.statusEvent(event)
}

// readyErrors returns what makes the node not ready, in the order of the
// message, but for missing capacity.
func (m *Manager) readyErrors() []error {
	var errs []error
	s := &m.opts.Sources
	for _, f := range [...]func() error{s.RuntimeErrors, s.NetworkErrors, s.StorageErrors, s.ShutdownErrors} {
		if f == nil {
			continue
		}
		if err := f(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// setReady mirrors upstream's ReadyCondition. A new condition has no event: there
// was nothing to change from.
func (m *Manager) setReady(st *v1.NodeStatus, now metav1.Time) {
	errs := m.readyErrors()
	var missing []string
	for _, r := range [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage} {
		if _, ok := st.Capacity[r]; !ok {
			missing = append(missing, string(r))
		}
	}
	if len(missing) > 0 {
		errs = append(errs, errors.New("missing node capacity for resources: "+strings.Join(missing, ", ")))
	}
	ready := v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status", LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "KubeletNotReady", err.Error()
	}
	if f := m.opts.Sources.SoftRequirements; f != nil {
		if err := f(); err != nil {
			ready.Message += ". WARNING: " + err.Error()
		}
	}
	c := findCondition(st.Conditions, v1.NodeReady)
	if c == nil {
		st.Conditions = append(st.Conditions, ready)
		return
	}
	changed := c.Status != ready.Status
	if !changed {
		ready.LastTransitionTime = c.LastTransitionTime
	}
	*c = ready
	if !changed {
		return
	}
	if ready.Status == v1.ConditionTrue {
		m.statusEvent(events.NodeReady)
		return
	}
	m.statusEvent(events.NodeNotReady)
	m.log("node became not ready: %s", ready.Message)
}

func (m *Manager) statusEvent(reason string) {
	m.event(v1.EventTypeNormal, reason, "Node "+m.opts.NodeName+" status is now: "+reason)
}

// statusChanged reports whether statuses differ by more than heartbeats and the
// order of conditions.
func statusChanged(a, b *v1.NodeStatus) bool {
	if len(a.Conditions) != len(b.Conditions) {
		return true
	}
	for i := range a.Conditions {
		x := &a.Conditions[i]
		y := findCondition(b.Conditions, x.Type)
		if y == nil || x.Status != y.Status || x.Reason != y.Reason || x.Message != y.Message ||
			!x.LastTransitionTime.Equal(&y.LastTransitionTime) {
			return true
		}
	}
	return a.Phase != b.Phase || a.DaemonEndpoints != b.DaemonEndpoints ||
		!sameResources(a.Capacity, b.Capacity) || !sameResources(a.Allocatable, b.Allocatable) ||
		!slices.Equal(a.Addresses, b.Addresses) || !slices.Equal(a.VolumesInUse, b.VolumesInUse) ||
		!slices.Equal(a.VolumesAttached, b.VolumesAttached) || !slices.Equal(a.DeclaredFeatures, b.DeclaredFeatures) ||
		!sameDeep(a.NodeInfo, b.NodeInfo) || !sameDeep(a.Config, b.Config) || !sameDeep(a.Features, b.Features) ||
		!sameLists(a.Images, b.Images) || !sameLists(a.RuntimeHandlers, b.RuntimeHandlers)
}

func sameResources(a, b v1.ResourceList) bool { return len(a) == len(b) && contains(a, b) }

// sameDeep compares what mostly is the same pointers.
func sameDeep[T comparable](a, b T) bool { return a == b || apiequality.Semantic.DeepEqual(a, b) }

// sameLists compares lists that mostly are the same memory.
func sameLists[T any](a, b []T) bool {
	p, n := identity(a)
	q, k := identity(b)
	return p == q && n == k || apiequality.Semantic.DeepEqual(a, b)
}

func findCondition(list []v1.NodeCondition, t v1.NodeConditionType) *v1.NodeCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

func ask(f func() bool) bool { return f != nil && f() }

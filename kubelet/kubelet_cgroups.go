package kubelet

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/cm"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/container"
	"github.com/drydock-sim/drydock/kubelet/events"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// cgroupUpdatePeriod is that of the classes' cgroups and, while the root's
// can't be set, of the tries.
const cgroupUpdatePeriod = time.Minute

// machineCgroups are the machine's cgroups, if this kubelet makes them: it does
// not for the systemd driver, for which the runtime does.
func (kl *Kubelet) machineCgroups() cm.Cgroups {
	if !ptr.Deref(kl.cfg.CgroupsPerQOS, true) || kl.systemdCgroups {
		return nil
	}
	return kl.opts.Cgroups
}

// startCgroups makes the cgroups above the pods', and keeps their values right.
func (kl *Kubelet) startCgroups() {
	c := kl.machineCgroups()
	if c == nil {
		return
	}
	kl.cgroups.Machine = func(ctx context.Context, pod *v1.Pod, g cm.PodCgroup) error {
		return c.SetPod(ctx, qos.Class(pod), pod.UID, g)
	}
	rootDone := false
	kl.g.Until("cgroups", cgroupUpdatePeriod, 0, func(ctx context.Context) {
		if !rootDone {
			rootDone = kl.setRootCgroup(ctx, c)
		}
		kl.updateClassCgroups(ctx, c)
	})
}

// setRootCgroup gives all pods together what enforceNodeAllocatable says.
func (kl *Kubelet) setRootCgroup(ctx context.Context, c cm.Cgroups) bool {
	res := kl.computeResources(true).Capacity
	enforce := slices.Contains(kl.cfg.EnforceNodeAllocatable, "pods")
	if enforce {
		res = kl.reserved.Enforceable(res)
	}
	v := cm.RootCgroup{MilliCPU: res.Cpu().MilliValue(), MemoryLimit: res.Memory().Value()}
	if pids, ok := res["pid"]; ok {
		v.Pids = pids.Value()
	}
	if err := c.SetRoot(ctx, v); err != nil {
		kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.FailedNodeAllocatableEnforcement, fmt.Sprintf("Failed to update Node Allocatable Limits %q: %v", "kubepods", err))
		return false
	}
	return true
}

// updateClassCgroups gives burstable pods together the CPU shares that they ask
// for, and those of BestEffort the least.
func (kl *Kubelet) updateClassCgroups(ctx context.Context, c cm.Cgroups) {
	milli := int64(0)
	for _, pod := range kl.allocatedPods() {
		if qos.Class(pod) == v1.PodQOSBurstable {
			req := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
			milli += req.Cpu().MilliValue()
		}
	}
	if err := c.SetClass(ctx, v1.PodQOSBestEffort, 0); err != nil {
		kl.logf("Failed to update the cgroup of BestEffort pods: %v", err)
	}
	if err := c.SetClass(ctx, v1.PodQOSBurstable, milli); err != nil {
		kl.logf("Failed to update the cgroup of Burstable pods: %v", err)
	}
}

// ensureCgroup makes a pod's cgroup before its sandbox. Unlike upstream it
// leaves containers alone that a runtime put into a cgroup of its own making
// (cgroupsPerQOS was switched on, or was not permitted).
func (kl *Kubelet) ensureCgroup(ctx context.Context, pod *v1.Pod) error {
	c := kl.machineCgroups()
	if c == nil || kl.workers.IsPodTerminationRequested(pod.UID) || c.PodExists(qos.Class(pod), pod.UID) {
		return nil
	}
	if kl.orphanCgroups[pod.UID] {
		return fmt.Errorf("the cgroup of an earlier pod %s is being removed", pod.UID)
	}
	kl.updateClassCgroups(ctx, c)
	if err := c.SetPod(ctx, qos.Class(pod), pod.UID, kl.cgroups.Get(pod)); err != nil {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, events.FailedToCreatePodContainer, fmt.Sprintf("unable to ensure pod container exists: %v", err))
		return fmt.Errorf("failed to ensure that the pod: %s cgroups exist and are correctly applied: %w", pod.UID, err)
	}
	return nil
}

// removeCgroup removes the cgroup of a pod that has ended.
func (kl *Kubelet) removeCgroup(ctx context.Context, uid types.UID) error {
	if c := kl.machineCgroups(); c != nil {
		return c.RemovePod(ctx, uid)
	}
	return nil
}

// cleanUpCgroups removes the cgroups of pods that are neither wanted nor
// running; while one still has volumes it gets as little CPU as can be.
func (kl *Kubelet) cleanUpCgroups(running []*kubecontainer.Pod) {
	c := kl.machineCgroups()
	if c == nil {
		return
	}
	for _, uid := range c.Pods() {
		if _, ok := kl.pods.GetPodByUID(uid); ok || runs(running, uid) || kl.workers.Known(uid) || kl.orphanCgroups[uid] {
			continue
		}
		if kl.orphanCgroups == nil {
			kl.orphanCgroups = map[types.UID]bool{}
		}
		kl.orphanCgroups[uid] = true
		kl.g.Go("orphaned-cgroup", func(ctx context.Context) {
			defer delete(kl.orphanCgroups, uid)
			var err error
			if kl.podVolumesExist(uid, kl.volumePathsOnDisk(uid)) {
				err = c.ShrinkPod(ctx, uid)
			} else {
				err = c.RemovePod(ctx, uid)
			}
			if err != nil {
				kl.logf("Failed to clean up the cgroup of orphaned pod podUID=%s: %v", uid, err)
			}
		})
	}
}

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
	"github.com/drydock-sim/drydock/kubelet/internal/images/pullmanager"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/tracing"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// Periods of image garbage collection (pkg/kubelet/kubelet.go,
// images/image_gc_manager.go).
const (
	imageGCPeriod     = 5 * time.Minute
	imageDetectPeriod = 5 * time.Minute
	// imageGCHead is a part of what upstream needs to start its modules, while
	// which the first pass is made.
	imageGCHead = time.Millisecond
)

// imageUseGeneration is implemented by a runtime client that knows, without a
// call, whether there are other images or uses of images; 0: it cannot tell now.
type imageUseGeneration interface{ ImageUseGeneration() uint64 }

// imageMounts is implemented by a runtime client that knows, without a call,
// which images a container mounts; ok is false if it can't tell now.
type imageMounts interface {
	MountedImages(containerID string) (ids []string, ok bool)
}

// newImageGC makes what removes unused images.
func newImageGC(b *base, runtime *kuberuntime.Manager, pulls *pullmanager.Manager) *images.GCManager {
	cfg := b.cfg
	rt := &imageGCRuntime{base: b, runtime: runtime}
	if b.l.Elides() {
		rt.known, _ = b.opts.RuntimeService.(imageMounts)
	}
	o := images.GCOptions{
		Loop: b.l, Runtime: rt, Recorder: b.recorder, NodeRef: b.nodeRef, Log: b.log,
		Policy: images.GCPolicy{
			HighThresholdPercent: int(ptr.Deref(cfg.ImageGCHighThresholdPercent, 85)),
			LowThresholdPercent:  int(ptr.Deref(cfg.ImageGCLowThresholdPercent, 80)),
			MinAge:               cfg.ImageMinimumGCAge.Duration, MaxAge: cfg.ImageMaximumGCAge.Duration,
		},
		FsStats: rt.fsStats,
	}
	if b.settings.gates.Enabled(features.KubeletEnsureSecretPulledImages) {
		o.Collected = pulls.Prune
	}
	if g, ok := b.opts.ImageService.(imageUseGeneration); ok && b.l.Elides() {
		o.UseGeneration = g.ImageUseGeneration
	}
	if p, ok := b.opts.MachineStats.(stats.Prober); ok && b.l.Elides() {
		o.Below = func(floor int64) bool { return p.Below(stats.Floor{ImageBytes: floor}) }
	}
	return images.NewGC(o)
}

// startImageGC starts the garbage collection of images: if nobody knows the
// disks there is none. The first pass, if the runtime answers at once, comes
// before anything is said of the node's state.
func (b *base) startImageGC(ctx context.Context, gc *images.GCManager) {
	if b.opts.MachineStats == nil {
		return
	}
	if gc.Off() {
		b.logf("ImageGCHighThresholdPercent is set 100 and ImageMaximumGCAge is 0, Disable image GC")
		return
	}
	var first loop.Event
	b.g.Until("image-gc", imageGCPeriod, 0, func(ctx context.Context) {
		tracing.Span(ctx, b.opts.Tracer, "Images/GarbageCollect", gc.Collect)
		if !first.Fired() {
			first.Fire()
		}
	}).Elide(loop.Skip(gc.Idle))
	head, cancel := loop.WithTimeout(ctx, imageGCHead)
	defer cancel()
	_ = first.Wait(head) // a runtime that is slow holds up nothing
}

// startImageDetection has the images and their uses looked at.
func (b *base) startImageDetection(gc *images.GCManager) {
	if b.opts.MachineStats != nil {
		b.g.Until("image-detection", imageDetectPeriod, 0, gc.Detect).Elide(loop.Skip(gc.Unchanged))
	}
}

// imageGCRuntime answers the image garbage collection.
type imageGCRuntime struct {
	*base
	runtime *kuberuntime.Manager
	// known is nil if the runtime has to be asked for each container.
	known imageMounts
	// looked is false until the first look at the file system; containers tells
	// that there was one before it.
	looked, containers bool
}

// within gives a call the deadline of CRI calls.
func (r *imageGCRuntime) within(ctx context.Context, call func(ctx context.Context) error) error {
	if d := r.cfg.RuntimeRequestTimeout.Duration; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = loop.WithTimeout(ctx, d)
		defer cancel()
	}
	return call(ctx)
}

func (r *imageGCRuntime) ListImages(ctx context.Context) ([]*runtimeapi.Image, error) {
	return r.runtime.ListImages(ctx)
}

func (r *imageGCRuntime) GetPods(ctx context.Context) ([]*kubecontainer.Pod, error) {
	return r.runtime.GetPods(ctx)
}

func (r *imageGCRuntime) RemoveImage(ctx context.Context, id string) error {
	return r.within(ctx, func(ctx context.Context) error {
		return r.opts.ImageService.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: id})
	})
}

func (r *imageGCRuntime) ImageMounts(ctx context.Context, containerID string) ([]string, error) {
	r.containers = true
	if r.known != nil {
		if ids, ok := r.known.MountedImages(containerID); ok {
			return ids, nil
		}
	}
	var resp *runtimeapi.ContainerStatusResponse
	err := r.within(ctx, func(ctx context.Context) (err error) {
		resp, err = r.opts.RuntimeService.ContainerStatus(ctx, containerID, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	if resp.GetStatus() == nil {
		return nil, errors.New("container status is nil")
	}
	var out []string
	for _, m := range resp.Status.Mounts {
		if id := m.GetImage().GetImage(); id != "" {
			out = append(out, id)
		}
	}
	return out, nil
}

// fsStats are those of the file system with the images: its use as the runtime
// says, its size as the machine does.
//
// Upstream's first pass races with cAdvisor's first look at the file systems. In
// recordings it loses where no container has to be asked about first, as on most
// nodes that are new, and then the size is not known yet.
func (r *imageGCRuntime) fsStats(ctx context.Context) (*statsapi.FsStats, error) {
	var resp *runtimeapi.ImageFsInfoResponse
	err := r.within(ctx, func(ctx context.Context) (err error) {
		resp, err = r.opts.ImageService.ImageFsInfo(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(resp.GetImageFilesystems()) == 0 {
		return nil, errors.New("imageFs information is unavailable")
	}
	fs := resp.ImageFilesystems[0]
	out := &statsapi.FsStats{}
	if fs.UsedBytes != nil {
		out.UsedBytes = &fs.UsedBytes.Value
	}
	if early := !r.looked && !r.containers; early {
		r.looked = true
		return out, nil
	}
	r.looked = true
	disk, err := r.opts.MachineStats.Filesystem(ctx, fs.GetFsId().GetMountpoint())
	if err != nil {
		return nil, fmt.Errorf("get filesystem info: Failed to get the info of the filesystem with mountpoint: %w", err)
	}
	if disk != nil {
		out.CapacityBytes, out.AvailableBytes = disk.CapacityBytes, disk.AvailableBytes
	}
	return out, nil
}

package fakecri

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// This file is what a container gets over its image's files and the binds of
// its request: devices, read-only and masked paths, and the files of other
// images.

// madeUp are the paths that a kubelet has masked or read-only by default
// (k8s.io/kubernetes/pkg/securitycontext). What /proc and /sys have here is
// harmless: the paths are not there, or can't be written to anyway.
var madeUp = map[string]bool{
	"/proc/asound": true, "/proc/acpi": true, "/proc/interrupts": true, "/proc/kcore": true, "/proc/keys": true, "/proc/latency_stats": true,
	"/proc/timer_list": true, "/proc/timer_stats": true, "/proc/sched_debug": true, "/proc/scsi": true, "/sys/firmware": true,
	"/sys/devices/virtual/powercap": true, "/proc/bus": true, "/proc/fs": true, "/proc/irq": true, "/proc/sys": true, "/proc/sysrq-trigger": true,
}

// mountOver makes a container's devices, and its read-only and masked paths.
func (r *runner) mountOver(in *interpreted) error {
	for _, d := range in.c.config.Devices {
		if err := r.addDevice(in.view, d); err != nil {
			return fmt.Errorf("%serror during container init: error creating device node %s: %w", runcCreate, d.ContainerPath, bare(err))
		}
	}
	sc := in.c.config.GetLinux().GetSecurityContext()
	for _, p := range sc.GetReadonlyPaths() {
		if !madeUp[p] {
			if err := in.view.Namespace().MakeReadOnly(p); err != nil {
				return fmt.Errorf("%serror during container init: can't make %q read-only: %w", runcCreate, p, bare(err))
			}
		}
	}
	for _, p := range sc.GetMaskedPaths() {
		if !madeUp[p] {
			if err := in.view.Namespace().Mask(p); err != nil {
				return fmt.Errorf("%serror during container init: can't mask path %q: %w", runcCreate, p, bare(err))
			}
		}
	}
	return nil
}

// addDevice makes a device of the machine's in a container; a directory stands
// for all devices in it. In memory no node has any.
func (r *runner) addDevice(v *kernel.View, d *runtimeapi.Device) error {
	if r.files.host == nil {
		return nil
	}
	host, err := r.files.host.Canonical(absolute(d.HostPath))
	if err != nil {
		return err
	}
	info, err := r.files.host.Lstat(host)
	if err != nil || !info.IsDir() {
		return r.addDeviceFile(v, host, d.ContainerPath, info, err)
	}
	names, err := r.files.host.Names(host)
	if err != nil {
		return err
	}
	for _, n := range names {
		at := path.Join(host, n)
		info, err := r.files.host.Lstat(at)
		if err == nil && info.Mode()&fs.ModeDevice != 0 {
			if err := r.addDeviceFile(v, at, path.Join(d.ContainerPath, n), info, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *runner) addDeviceFile(v *kernel.View, host, at string, info fs.FileInfo, err error) error {
	if err != nil {
		return err
	}
	driver, err := r.files.host.Readlink(host)
	if err != nil {
		return err
	}
	var uid, gid int
	if sys, ok := info.Sys().(*memfs.Sys); ok {
		uid, gid = sys.UID, sys.GID
	}
	return v.Namespace().AddDevice(at, info.Mode(), uid, gid, driver)
}

// checkDevices is containerd's error for a device that the machine has not.
func (r *runner) checkDevices(id string, devices []*runtimeapi.Device) error {
	if r.files.host == nil {
		return nil
	}
	for _, d := range devices {
		info, err := r.files.statHost(d.HostPath)
		if err == nil && info.Mode()&fs.ModeDevice == 0 && !info.IsDir() {
			err = errors.New("not a device node")
		}
		if err != nil {
			return status.Errorf(codes.Unknown, "failed to generate container %q spec: failed to apply OCI options: device %s: %v", id, d.HostPath, bare(err))
		}
	}
	return nil
}

// checkImageMounts is containerd's errors for image volumes.
func (r *runner) checkImageMounts(mounts []*runtimeapi.Mount) error {
	for _, m := range mounts {
		if m.Image == nil {
			continue
		}
		refuse := func(format string, args ...any) error {
			return status.Errorf(codes.InvalidArgument, "failed to mount image volume at %s: %s", m.ContainerPath, fmt.Sprintf(format, args...))
		}
		switch {
		case m.HostPath != "":
			return refuse("host_path must be empty, it is %q", m.HostPath)
		case !m.Readonly:
			return refuse("readonly must be true")
		case m.Image.Image == "":
			return refuse("the image is not specified")
		}
		im := r.images.find(m.Image.Image)
		if im == nil {
			return status.Errorf(codes.NotFound, "failed to mount image volume: failed to resolve image %q: not found", m.Image.Image)
		}
		if !im.source.filesKnown() || m.ImageSubPath == "" {
			continue
		}
		f := memfs.NewFrom(memfs.Options{Loop: r.l}, r.images.treeOf(im.source))
		if _, err := f.Stat(path.Clean("/" + m.ImageSubPath)); err != nil {
			return refuse("image_sub_path %q of image %s: %v", m.ImageSubPath, m.Image.Image, bare(err))
		}
	}
	return nil
}

// filesKnown tells whether an image's files are more than a guess.
func (src *imageSource) filesKnown() bool {
	return src.Commands != nil || src.known != nil && src.known.tree != ""
}

func (r *imageStore) treeOf(src *imageSource) *memfs.Image {
	return r.imageTrees().tree(r.l, src.tree(), src.Commands)
}

// mountImage mounts an image volume. Of an image whose files nobody knows any
// part is an empty directory.
func (r *runner) mountImage(v *kernel.View, m *runtimeapi.Mount) error {
	im := r.images.find(m.Image.Image)
	switch {
	case im == nil:
		return fs.ErrNotExist // it was removed meanwhile
	case !im.source.filesKnown() && path.Clean("/"+m.ImageSubPath) != "/":
		return v.Namespace().BindImage(m.ContainerPath, memfs.New(memfs.Options{Tmpfs: []string{}}).Freeze(), "")
	}
	return v.Namespace().BindImage(m.ContainerPath, r.images.treeOf(im.source), m.ImageSubPath)
}

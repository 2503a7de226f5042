package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/hostfiles"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// This file is what a container gets over its image's files and the binds of
// its request: devices, read-only and masked paths, and the files of other
// images.

// madeUp are the paths that a kubelet has masked or read-only by default
// (k8s.io/kubernetes/pkg/securitycontext). What /proc and /sys have here is
// harmless: the paths are not there, or can't be written to anyway. Mounting over them would only
// cost time and memory for each container.
var madeUp = map[string]bool{
	"/proc/asound": true, "/proc/acpi": true, "/proc/interrupts": true, "/proc/kcore": true, "/proc/keys": true, "/proc/latency_stats": true,
	"/proc/timer_list": true, "/proc/timer_stats": true, "/proc/sched_debug": true, "/proc/scsi": true, "/sys/firmware": true,
	"/sys/devices/virtual/powercap": true, "/proc/bus": true, "/proc/fs": true, "/proc/irq": true, "/proc/sys": true, "/proc/sysrq-trigger": true,
}

// mountOver makes a container's devices, and its read-only and masked paths. The paths are those
// of the container's security context, procMount Default.
func (r *Runner) mountOver(in *records.Interpreted) error {
	// runc makes devices first, and hides paths last.
	for _, d := range in.Container.Config.Devices {
		if err := r.addDevice(in.View, d); err != nil {
			return fmt.Errorf("%serror during container init: error creating device node %s: %w", runcCreate, d.ContainerPath, hostfiles.Bare(err))
		}
	}
	sc := in.Container.Config.GetLinux().GetSecurityContext()
	for _, p := range sc.GetReadonlyPaths() {
		if !madeUp[p] {
			if err := in.View.Namespace().MakeReadOnly(p); err != nil {
				return fmt.Errorf("%serror during container init: can't make %q read-only: %w", runcCreate, p, hostfiles.Bare(err))
			}
		}
	}
	for _, p := range sc.GetMaskedPaths() {
		if !madeUp[p] {
			if err := in.View.Namespace().Mask(p); err != nil {
				return fmt.Errorf("%serror during container init: can't mask path %q: %w", runcCreate, p, hostfiles.Bare(err))
			}
		}
	}
	return nil
}

// addDevice makes a device of the machine's in a container; a directory stands
// for all devices in it. A directory's other entries, such as links, are left out. A machine
// in memory has whatever device is asked for; those that the kernel has can be used, too, and
// those that somebody made among the node's files.
func (r *Runner) addDevice(v *kernel.View, d *runtimeapi.Device) error {
	if r.Files.Host == nil {
		if r.Files.FS != nil {
			if driver, mode := memfs.Driver(r.Files.FS, d.HostPath); driver != "" {
				return v.Namespace().AddDevice(d.ContainerPath, mode, 0, 0, driver)
			}
		}
		return v.Namespace().AddDevice(d.ContainerPath, fs.ModeDevice|fs.ModeCharDevice|0o666, 0, 0, path.Base(d.HostPath))
	}
	host, err := r.Files.Host.Canonical(hostfiles.Absolute(d.HostPath))
	if err != nil {
		return err
	}
	info, err := r.Files.Host.Lstat(host)
	if err != nil || !info.IsDir() {
		return r.addDeviceFile(v, host, d.ContainerPath, info, err)
	}
	names, err := r.Files.Host.Names(host)
	if err != nil {
		return err
	}
	for _, n := range names {
		at := path.Join(host, n)
		info, err := r.Files.Host.Lstat(at)
		if err == nil && info.Mode()&fs.ModeDevice != 0 {
			if err := r.addDeviceFile(v, at, path.Join(d.ContainerPath, n), info, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// addDeviceFile makes one device; info and err are what Lstat said of it on the host.
func (r *Runner) addDeviceFile(v *kernel.View, host, at string, info fs.FileInfo, err error) error {
	if err != nil {
		return err
	}
	driver, err := r.Files.Host.Readlink(host)
	if err != nil {
		return err
	}
	var uid, gid int
	if sys, ok := info.Sys().(*memfs.Sys); ok {
		uid, gid = sys.UID, sys.GID
	}
	return v.Namespace().AddDevice(at, info.Mode(), uid, gid, driver)
}

// CheckDevices is containerd's error for a device that the machine has not. containerd looks when
// it makes the spec, so CreateContainer fails and not the start.
func (r *Runner) CheckDevices(id string, devices []*runtimeapi.Device) error {
	if r.Files.Host == nil {
		return nil
	}
	for _, d := range devices {
		info, err := r.Files.Stat(d.HostPath)
		if err == nil && info.Mode()&fs.ModeDevice == 0 && !info.IsDir() {
			err = errors.New("not a device node")
		}
		if err != nil {
			return status.Errorf(codes.Unknown, "failed to generate container %q spec: failed to apply OCI options: device %s: %v", id, d.HostPath, hostfiles.Bare(err))
		}
	}
	return nil
}

// CheckImageMounts is containerd's errors for image volumes. A sub path is looked for only in an
// image whose files are known; of others any path is taken to be there.
func (r *Runner) CheckImageMounts(mounts []*runtimeapi.Mount) error {
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
		im := r.Images.Find(m.Image.Image)
		if im == nil {
			return status.Errorf(codes.NotFound, "failed to mount image volume: failed to resolve image %q: not found", m.Image.Image)
		}
		if !im.Source.VolumeKnown() || m.ImageSubPath == "" {
			continue
		}
		f := memfs.NewFrom(memfs.Options{Loop: r.Loop}, r.Images.VolumeOf(im.Source))
		if _, err := f.Stat(path.Clean("/" + m.ImageSubPath)); err != nil {
			return refuse("image_sub_path %q of image %s: %v", m.ImageSubPath, m.Image.Image, hostfiles.Bare(err))
		}
	}
	return nil
}

// mountImage mounts an image volume. Of an image whose files nobody knows any
// part is an empty directory. What is mounted is the image's tree, read-only and shared.
func (r *Runner) mountImage(in *records.Interpreted, m *runtimeapi.Mount) error {
	v, im := in.View, r.Images.Find(m.Image.Image)
	if im != nil && !im.Source.VolumeKnown() {
		name := cmp.Or(m.Image.UserSpecifiedImage, m.Image.Image)
		r.Warner.WarnOnce(in.Container, "files\x00"+name, fmt.Sprintf("nobody knows the files of the image %s, which is mounted at %s; state them under images: {name: %q, files: {...}}", name, m.ContainerPath, name))
	}
	switch {
	case im == nil:
		return fs.ErrNotExist // it was removed meanwhile
	case !im.Source.VolumeKnown() && path.Clean("/"+m.ImageSubPath) != "/":
		return v.Namespace().BindImage(m.ContainerPath, memfs.New(memfs.Options{Tmpfs: []string{}}).Freeze(), "")
	}
	return v.Namespace().BindImage(m.ContainerPath, r.Images.VolumeOf(im.Source), m.ImageSubPath)
}

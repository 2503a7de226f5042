// Package util is what several volume plugins need: the atomic writer, file
// ownership and mount points nested in a volume. It mirrors upstream's
// pkg/volume/util.
package util

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// The bits that a volume's group gets (pkg/volume/volume_linux.go).
const (
	groupReadWrite = 0o660
	groupRead      = 0o440
	groupEnter     = 0o110
)

// SetVolumeOwnership gives a volume's files to the pod's fsGroup: the group may
// read them and, unless the volume is read-only, write; what is made in a
// directory belongs to the group. nil does nothing.
func SetVolumeOwnership(files filesystem.FS, dir string, readOnly bool, fsGroup *int64) error {
	if fsGroup == nil {
		return nil
	}
	info, err := files.Lstat(dir)
	if err != nil {
		return err
	}
	return setOwnership(files, dir, info, readOnly, int(*fsGroup))
}

// SetVolumeOwnershipBy is SetVolumeOwnership by a pod's policy: with OnRootMismatch nothing is
// changed if the volume's own directory is as it would be after that (requiresPermissionChange).
func SetVolumeOwnershipBy(files filesystem.FS, dir string, readOnly bool, fsGroup *int64, policy *v1.PodFSGroupChangePolicy) error {
	if fsGroup != nil && policy != nil && *policy == v1.FSGroupChangeOnRootMismatch {
		info, err := files.Stat(dir)
		if err != nil {
			return err
		}
		need := fs.FileMode(groupReadWrite | groupEnter)
		if readOnly {
			need = groupRead | groupEnter
		}
		_, gid, err := files.Owner(dir)
		if err != nil {
			return err
		}
		if gid == int(*fsGroup) && info.Mode()&need == need && info.Mode()&fs.ModeSetgid != 0 {
			return nil
		}
	}
	return SetVolumeOwnership(files, dir, readOnly, fsGroup)
}

// setOwnership changes a file; of a directory what is in it first. Links get the
// group, but no mode, which would be that of what they lead to.
func setOwnership(files filesystem.FS, name string, info fs.FileInfo, readOnly bool, gid int) error {
	if info.IsDir() {
		entries, err := files.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			child, err := e.Info()
			if err != nil {
				return err
			}
			if err := setOwnership(files, path.Join(name, e.Name()), child, readOnly, gid); err != nil {
				return err
			}
		}
	}
	if err := files.Lchown(name, -1, gid); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	mode := info.Mode() | groupReadWrite
	if readOnly {
		mode = info.Mode() | groupRead
	}
	if info.IsDir() {
		mode |= groupEnter | fs.ModeSetgid
	}
	return files.Chmod(name, mode&(fs.ModePerm|fs.ModeSetgid|fs.ModeSetuid|fs.ModeSticky))
}

// FSGroup is the group that a pod's volumes belong to; nil for none.
func FSGroup(pod *v1.Pod) *int64 {
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}

// FSUser is the user that all of a pod's containers run as, as far as their
// specs say so; nil if they don't or differ (pkg/volume/util/util.go).
// Only then a token can be made readable by its owner alone.
func FSUser(pod *v1.Pod) *int64 {
	var user *int64
	for c := range kubecontainer.Containers(&pod.Spec) {
		var u *int64
		if sc := pod.Spec.SecurityContext; sc != nil {
			u = sc.RunAsUser
		}
		if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
			u = c.SecurityContext.RunAsUser
		}
		if u == nil || user != nil && *user != *u {
			return nil
		}
		user = u
	}
	return user
}

// UsedVolumes returns the names of the volumes that any container of a pod
// mounts or uses as a device; nil for none.
// A volume that nobody uses is not mounted.
func UsedVolumes(pod *v1.Pod) map[string]bool {
	if len(pod.Spec.Volumes) == 0 {
		return nil
	}
	var used map[string]bool
	use := func(name string) {
		if used == nil {
			used = map[string]bool{}
		}
		used[name] = true
	}
	for c := range kubecontainer.Containers(&pod.Spec) {
		for i := range c.VolumeMounts {
			use(c.VolumeMounts[i].Name)
		}
		for i := range c.VolumeDevices {
			use(c.VolumeDevices[i].Name)
		}
	}
	return used
}

// IsBlock reports whether a volume is a block device.
func IsBlock(pv *v1.PersistentVolume) bool {
	return pv.Spec.VolumeMode != nil && *pv.Spec.VolumeMode == v1.PersistentVolumeBlock
}

// MakeNestedMountpoints makes, in a volume whose content is made by the
// kubelet, the directories on which containers mount other volumes
// (pkg/volume/util/nested_volumes.go).
// The runtime could not make them: the volume is read-only to containers.
func MakeNestedMountpoints(files filesystem.FS, name, dir string, pod *v1.Pod) error {
	var err error
	for c := range kubecontainer.Containers(&pod.Spec) {
		for i := range c.VolumeMounts {
			m := &c.VolumeMounts[i]
			if m.Name != name || m.SubPath != "" || m.SubPathExpr != "" {
				continue
			}
			outer := path.Clean(m.MountPath)
			for j := range c.VolumeMounts {
				inner := path.Clean(c.VolumeMounts[j].MountPath)
				rest, nested := strings.CutPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
				if j == i || !nested || err != nil {
					continue
				}
				if strings.HasPrefix(rest, "..") {
					err = fmt.Errorf("invalid container mount point %v", inner)
					continue
				}
				err = files.MkdirAll(path.Join(dir, rest), 0o755)
			}
		}
	}
	return err
}

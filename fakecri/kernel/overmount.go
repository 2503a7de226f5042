package kernel

import (
	"io/fs"
	"path"
	"slices"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// This file is what a runtime mounts over what a container has already, in the
// order of runc: paths that are made read-only, then paths that are masked.

// nullFS is a mount of /dev/null. Its one file reads as empty and takes everything, so a masked
// /proc/kcore shows nothing.
type nullFS struct{}

func (nullFS) lookup(_ *View, rel string) *synth {
	if rel != "/" {
		return nil
	}
	return &synth{mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, link: "null"}
}

func (nullFS) names(*View, string) []string { return nil }

// partFS is a directory or file of a synthFS, mounted elsewhere or with other
// options. It is for read-only paths such as /proc/sys, which stay what they are otherwise.
type partFS struct {
	of  synthFS
	top string
}

func (p partFS) lookup(v *View, rel string) *synth { return p.of.lookup(v, path.Join(p.top, rel)) }

func (p partFS) names(v *View, rel string) []string { return p.of.names(v, path.Join(p.top, rel)) }

// Mask hides what is at a path: a file is /dev/null then, a directory an empty
// read-only tmpfs. A path where nothing is stays as it is. The paths are those of the container's
// security context (procMount Default): runtime-spec's maskedPaths.
func (ns *Namespace) Mask(name string) error {
	at, there, err := ns.over(name)
	if !there {
		return err
	}
	x := &mount{path: at.path, source: "tmpfs", fstype: "tmpfs", synth: nullFS{}}
	if at.mode().IsDir() {
		x.synth, x.image, x.ro = nil, emptyImage(0o755), true
	}
	// What was mounted below is hidden too. Else they would show through: lookups ask the table
	// by path.
	ns.list = slices.DeleteFunc(ns.list, func(o *mount) bool { return o.path != x.path && below(o.path, x.path) })
	ns.list = append(ns.list, x)
	return nil
}

// MakeReadOnly makes what is at a path, and below it, read-only. A path where
// nothing is stays as it is. It mounts the same once more over itself: bind,ro as runc does it.
func (ns *Namespace) MakeReadOnly(name string) error {
	at, there, err := ns.over(name)
	if !there {
		return err
	}
	of := ns.list[at.mnt]
	rel := of.rel(at.path)
	x := &mount{path: at.path, source: of.source, fstype: of.fstype, opts: of.opts, ro: true, size: of.size}
	switch h := of.synth.(type) {
	case nil:
		if x.fs, err = ns.files(at.mnt).Sub(rel); err != nil {
			return err
		}
	case *hostMount:
		x.synth, x.bind = &hostMount{h.fs, h.at(rel)}, true
	default:
		x.synth = partFS{h, rel}
	}
	ns.list = append(ns.list, x)
	return nil
}

// over finds what is to be mounted over. Links are followed, as what they lead to is to be
// hidden.
func (ns *Namespace) over(name string) (at place, there bool, err error) {
	root := ns.root()
	at, errno := root.resolve(path.Clean("/"+name), true)
	switch {
	case errno == linux.ENOENT || errno == 0 && !at.exists():
		return at, false, nil
	case errno != 0:
		return at, false, pathError("mount", name, errno)
	}
	return at, true, nil
}

// BindImage mounts the files of an image, or the part of them at a path, read-
// only. It is the image volume of a pod (KEP-4639). part is a path in the image, "" or / for all
// of it.
func (ns *Namespace) BindImage(containerPath string, image *memfs.Image, part string) error {
	x := &mount{path: path.Clean("/" + containerPath), source: "overlay", fstype: "overlay", ro: true, image: image}
	if part = path.Clean("/" + part); part != "/" {
		sub, err := memfs.NewFrom(memfs.Options{Loop: ns.m.l}, image).Sub(part)
		if err != nil {
			return err
		}
		x.fs = sub
	}
	return ns.mount(x, x.top().Mode().IsDir())
}

// AddDevice makes a device file; driver is what Mknod is told. It is for the devices of the
// container's configuration.
func (ns *Namespace) AddDevice(name string, mode fs.FileMode, uid, gid int, driver string) error {
	v := ns.root()
	name = path.Clean("/" + name)
	if err := v.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if _, err := v.Lstat(name); err == nil { // runc puts it over what is there
		if err := v.Remove(name); err != nil {
			return err
		}
	}
	err := v.create("mknod", name, func(f hostfs.Tree, rel string) error { return f.Mknod(rel, mode, driver) })
	if err == nil && uid|gid != 0 {
		err = v.Lchown(name, uid, gid)
	}
	return err
}

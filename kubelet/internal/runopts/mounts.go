package runopts

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/util/expansion"
)

// etcHosts is where a container has its hosts file.
const etcHosts = "/etc/hosts"

// mounts are the container's volume mounts in their order, then that of its
// hosts file (upstream makeMounts).
// A container that mounts something at /etc/hosts itself gets no hosts file,
// nor does one whose pod has no address yet.
func (r *request) mounts(env []*runtimeapi.KeyValue, files bool, hostname, domain string) ([]*runtimeapi.Mount, error) {
	withHosts := files && (r.pod.Spec.HostNetwork || len(r.podIPs) > 0)
	n := len(r.c.VolumeMounts)
	if withHosts {
		n++
	}
	if n == 0 {
		return nil, nil
	}
	out := make([]*runtimeapi.Mount, 0, n+1) // one more for the termination message
	for i := range r.c.VolumeMounts {
		m := &r.c.VolumeMounts[i]
		withHosts = withHosts && m.MountPath != etcHosts
		mount, err := r.volumeMount(i, m, env)
		if err != nil {
			return nil, err
		}
		out = append(out, mount)
	}
	if withHosts {
		file, err := r.writeHosts(hostname, domain)
		if err != nil {
			return nil, err
		}
		out = append(out, &runtimeapi.Mount{ContainerPath: etcHosts, HostPath: file, SelinuxRelabel: true})
	}
	return out, nil
}

// volumeMount is the i-th volume mount.
// An image volume has no path here: the runtime mounts it.
func (r *request) volumeMount(i int, m *v1.VolumeMount, env []*runtimeapi.KeyValue) (*runtimeapi.Mount, error) {
	vol, ok := r.volumes()[m.Name]
	if !ok || vol.Path == "" && vol.Image == nil {
		return nil, fmt.Errorf("cannot find volume %q to mount into container %q", m.Name, r.c.Name)
	}
	subPath := m.SubPath
	if m.SubPathExpr != "" {
		var err error
		if subPath, err = expandSubPath(m.SubPathExpr, env); err != nil {
			return nil, err
		}
	}
	out := &runtimeapi.Mount{ContainerPath: m.MountPath, HostPath: vol.Path, Readonly: m.ReadOnly || vol.ReadOnly}
	if !path.IsAbs(out.ContainerPath) {
		out.ContainerPath = "/" + out.ContainerPath
	}
	var err error
	if out.Propagation, err = propagation(m.MountPropagation); err != nil {
		return nil, err
	}
	if out.RecursiveReadOnly, err = r.recursiveReadOnly(m); err != nil {
		return nil, err
	}
	if vol.Image != nil {
		out.Image, out.ImageSubPath, out.Readonly = vol.Image, subPath, true
		return out, nil
	}
	if subPath != "" {
		if out.HostPath, err = r.subPath(i, m, vol, subPath); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Lookup finds a variable in an environment that is sorted by name.
func Lookup(env []*runtimeapi.KeyValue, name string) (value string, ok bool) {
	i, ok := slices.BinarySearchFunc(env, name, func(kv *runtimeapi.KeyValue, name string) int { return strings.Compare(kv.Key, name) })
	if !ok {
		return "", false
	}
	return string(env[i].Value), true
}

// expandSubPath expands a subPathExpr: all that it names must be known and not
// empty.
// An empty value is an error, since the whole volume would be mounted instead.
func expandSubPath(expr string, env []*runtimeapi.KeyValue) (string, error) {
	var missing []string
	out := expansion.Expand(expr, func(name string) (string, bool) {
		v, _ := Lookup(env, name)
		if v == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return v, true
	})
	if len(missing) > 0 {
		slices.Sort(missing)
		return "", fmt.Errorf("missing value for %s", strings.Join(missing, ", "))
	}
	return out, nil
}

// propagation is Private unless the mount says otherwise.
func propagation(p *v1.MountPropagationMode) (runtimeapi.MountPropagation, error) {
	if p == nil {
		return runtimeapi.MountPropagation_PROPAGATION_PRIVATE, nil
	}
	switch *p {
	case v1.MountPropagationNone:
		return runtimeapi.MountPropagation_PROPAGATION_PRIVATE, nil
	case v1.MountPropagationHostToContainer:
		return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER, nil
	case v1.MountPropagationBidirectional:
		return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL, nil
	}
	return 0, fmt.Errorf("invalid MountPropagation mode: %q", *p)
}

// recursiveReadOnly reports whether submounts are to be read-only, too
// (KEP-3857). IfPossible asks for what the runtime can do, Enabled for an error
// if it can't.
func (r *request) recursiveReadOnly(m *v1.VolumeMount) (bool, error) {
	mode := m.RecursiveReadOnly
	if mode == nil || *mode == v1.RecursiveReadOnlyDisabled {
		return false, nil
	}
	if !m.ReadOnly {
		return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not read-only", m.Name)
	}
	if p := m.MountPropagation; p != nil && *p != v1.MountPropagationNone {
		return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not compatible with propagation %q", m.Name, *p)
	}
	class := ""
	if r.pod.Spec.RuntimeClassName != nil {
		class = *r.pod.Spec.RuntimeClassName
	}
	supported := r.g.o.RecursiveReadOnly != nil && r.g.o.RecursiveReadOnly(class)
	switch *mode {
	case v1.RecursiveReadOnlyIfPossible:
		return supported, nil
	case v1.RecursiveReadOnlyEnabled:
		if !supported {
			return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not supported by the runtime", m.Name)
		}
		return true, nil
	}
	return false, fmt.Errorf("unknown recursive read-only mode %q", *mode)
}

// Optional abilities of the file system.
type (
	linkReader interface {
		Lstat(name string) (fs.FileInfo, error)
		Readlink(name string) (string, error)
	}
	linker interface {
		Link(oldname, newname string) error
	}
)

// subPath makes the directory of a subPath if there is nothing, and returns
// what is to be mounted: what the path leads to now, which lies in the volume.
// Between the check and the mount a container of the pod could swap a directory
// for a link (CVE-2017-1002101); where the file system can bind, the mount is
// made from what was checked.
func (r *request) subPath(index int, m *v1.VolumeMount, vol kubecontainer.VolumeInfo, sub string) (string, error) {
	if path.IsAbs(sub) {
		return "", fmt.Errorf("error SubPath `%s` must not be an absolute path", sub)
	}
	if slices.Contains(strings.Split(sub, "/"), "..") {
		return "", fmt.Errorf("unable to provision SubPath `%s`: must not contain '..'", sub)
	}
	files := r.g.o.FS
	prepare := fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q", m.Name, r.c.Name)
	full := path.Join(vol.Path, sub)
	var err error
	if _, err := files.Stat(full); errors.Is(err, fs.ErrNotExist) {
		info, err := files.Stat(vol.Path)
		if err != nil {
			return "", err
		}
		if _, inside := r.resolve(vol.Path, path.Dir(full)); !inside || r.makeSubPath(vol.Path, full, info.Mode().Perm()) != nil {
			return "", fmt.Errorf("failed to create subPath directory for volumeMount %q of container %q", m.Name, r.c.Name)
		}
	}
	real, inside := r.resolve(vol.Path, full)
	if !inside {
		return "", prepare
	}
	if r.g.o.SubPaths != nil {
		if full, err = r.bindSubPath(index, m, vol.Path, real); err != nil {
			return "", fmt.Errorf("%w: %w", prepare, err)
		}
		return full, nil
	}
	info, err := files.Stat(real)
	if err != nil {
		return "", prepare
	}
	l, ok := files.(linker)
	if !ok || info.IsDir() {
		return real, nil
	}
	// A hard link keeps the file although its name goes, as a bind mount does.
	dir := path.Join(r.g.podDir(r.pod.UID), "volume-subpaths", m.Name, r.c.Name)
	target := path.Join(dir, strconv.Itoa(index))
	if err := files.MkdirAll(dir, 0o750); err != nil {
		return "", prepare
	}
	if err := files.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", prepare
	}
	if l.Link(real, target) != nil {
		return real, nil // on another file system
	}
	return target, nil
}

// makeSubPath makes the missing directories of a path in a volume.
func (r *request) makeSubPath(volume, full string, perm fs.FileMode) error {
	if r.g.o.SubPaths == nil {
		return r.g.o.FS.MkdirAll(full, perm)
	}
	real, inside := r.resolve(volume, full)
	if !inside {
		return fs.ErrPermission
	}
	sub, _ := below(path.Clean(volume), real)
	return r.g.o.SubPaths.MakeSubPath(volume, sub, perm)
}

// bindSubPath mounts a path in a volume where the container gets it from.
// The target has the mount's index for its name, as upstream's, so that a
// cleaner of either finds it.
func (r *request) bindSubPath(index int, m *v1.VolumeMount, volume, real string) (string, error) {
	dir := path.Join(r.g.podDir(r.pod.UID), "volume-subpaths", m.Name, r.c.Name)
	if err := r.g.o.FS.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	sub, _ := below(path.Clean(volume), real)
	target := path.Join(dir, strconv.Itoa(index))
	return target, r.g.o.SubPaths.BindSubPath(volume, sub, target)
}

// maxLinks is how many symbolic links a path may lead over.
const maxLinks = 40

// resolve follows the symbolic links of a path below the volume; it returns
// false if they lead out of it. A part that does not exist stays.
// A link may lead anywhere on the node, so what it leads to is judged, not what
// it says.
func (r *request) resolve(volume, name string) (string, bool) {
	links, ok := r.g.o.FS.(linkReader)
	if !ok {
		return name, true
	}
	volume = path.Clean(volume)
	for range maxLinks {
		rest, inside := below(volume, name)
		if !inside {
			return "", false
		}
		at, next := volume, ""
		for rest != "" {
			var part string
			part, rest, _ = strings.Cut(rest, "/")
			at += "/" + part
			info, err := links.Lstat(at)
			if err != nil || info.Mode()&fs.ModeSymlink == 0 {
				continue
			}
			to, err := links.Readlink(at)
			if err != nil {
				return "", false
			}
			if !path.IsAbs(to) {
				to = path.Join(path.Dir(at), to)
			}
			next = path.Join(to, rest)
			break
		}
		if next == "" {
			return name, true
		}
		name = next
	}
	return "", false
}

// below returns the path of name below the directory dir.
func below(dir, name string) (rest string, ok bool) {
	name = path.Clean(name)
	if name == dir {
		return "", true
	}
	return strings.CutPrefix(name, dir+"/")
}

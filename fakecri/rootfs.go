package fakecri

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// nodeFS returns the node's files.
func (r *nodeFiles) nodeFS() *memfs.FS {
	if r.fs == nil {
		r.fs = memfs.New(memfs.Options{Loop: r.l})
	}
	return r.fs
}

// makeMountSources makes the missing host paths of a request's mounts as
// directories, as containerd's CRI plugin does.
func (r *nodeFiles) makeMountSources(mounts []*runtimeapi.Mount) error {
	if r.fs == nil && r.host == nil {
		return nil
	}
	for _, m := range mounts {
		if m.HostPath == "" && m.Image != nil {
			continue
		}
		if m.HostPath == "" {
			return fmt.Errorf("failed to mkdir %q: mkdir : no such file or directory", m.HostPath)
		}
		_, err := r.statHost(m.HostPath)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("failed to stat %q: %w", m.HostPath, err)
		}
		if err := r.mkdirHost(m.HostPath); err != nil {
			return fmt.Errorf("failed to mkdir %q: %w", m.HostPath, err)
		}
	}
	return nil
}

// enterImage makes what a container's processes see of files, and finds out
// who they are and what their environment is.
func (r *runner) enterImage(in *interpreted, pk *podKernel) error {
	c := in.c
	src := c.image.source
	in.view = r.kern.kernel().NewView(kernel.ViewOptions{
		Image:      r.images.imageTrees().tree(r.l, src.tree(), src.Commands),
		Layer:      r.disks.layerOf(c).share,
		ReadOnly:   c.config.GetLinux().GetSecurityContext().GetReadonlyRootfs(),
		Privileged: c.config.GetLinux().GetSecurityContext().GetPrivileged(),
	})
	in.dir = c.config.WorkingDir
	if in.dir == "" {
		in.dir = src.WorkingDir
	}
	if in.dir == "" {
		in.dir = "/"
	}
	if err := r.mountAll(in, pk); err != nil {
		return err
	}
	if err := r.mountOver(in); err != nil {
		return err
	}
	if _, err := in.view.Stat(in.dir); errors.Is(err, fs.ErrNotExist) {
		if err := in.view.MkdirAll(in.dir, 0o755); err != nil {
			return fmt.Errorf("%smkdir %s: %w", strings.TrimSuffix(runcCreate, "unable to start container process: "), in.dir, bare(err))
		}
	}
	names := usersOf(in.view)
	cred, err := names.cred(c.id, c.config.GetLinux().GetSecurityContext(), src.User)
	if err != nil {
		return err
	}
	in.cred = cred
	in.env = r.environment(c, names.home(cred.UID))
	return nil
}

// bare is the error without the operation and path around it.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// mountAll mounts what containerd mounts into a container besides the root:
// the sandbox's files and what the request says, parents first.
func (r *runner) mountAll(in *interpreted, pk *podKernel) error {
	c := in.c
	mounts := make([]*runtimeapi.Mount, 0, len(c.config.Mounts)+4)
	for _, m := range r.kern.sandboxMounts(c.sandbox, pk) {
		taken := slices.ContainsFunc(c.config.Mounts, func(o *runtimeapi.Mount) bool { return path.Clean(o.ContainerPath) == m.ContainerPath })
		if !taken {
			m.Readonly = m.ContainerPath != "/dev/shm" && c.config.GetLinux().GetSecurityContext().GetReadonlyRootfs()
			mounts = append(mounts, m)
		}
	}
	own := len(mounts)
	mounts = append(mounts, c.config.Mounts...)
	memory := r.files.nodeFS()
	var ofSandbox []*runtimeapi.Mount
	if r.files.host != nil {
		ofSandbox = slices.Clone(mounts[:own])
	}
	depth := func(m *runtimeapi.Mount) int { return strings.Count(path.Clean(m.ContainerPath), "/") }
	slices.SortStableFunc(mounts, func(a, b *runtimeapi.Mount) int { return depth(a) - depth(b) })
	for _, m := range mounts {
		var err error
		switch {
		case m.Image != nil:
			err = r.mountImage(in.view, m)
		case r.files.host != nil && !slices.Contains(ofSandbox, m):
			err = in.view.Namespace().BindHost(m.ContainerPath, r.files.host, m.HostPath, m.Readonly)
			if err == nil && m.Readonly && !m.RecursiveReadOnly {
				err = in.view.Namespace().BindHostBelow(m.ContainerPath, r.files.host, m.HostPath)
			}
		default:
			err = in.view.Namespace().Bind(m.ContainerPath, memory, m.HostPath, m.Readonly)
		}
		if err != nil {
			return fmt.Errorf("%serror during container init: error mounting %q to rootfs at %q: %w", runcCreate, m.HostPath, m.ContainerPath, bare(err))
		}
	}
	return nil
}

// environment is the environment of a container's processes: the runtime's, the
// image's and the request's, of which the last counts where they say the same
// twice. HOME is runc's.
func (r *runner) environment(c *container, home string) []string {
	env := make([]string, 0, 4+len(c.image.source.Env)+len(c.config.Envs))
	index := map[string]int{}
	set := func(name, value string) {
		if i, ok := index[name]; ok {
			env[i] = name + "=" + value
			return
		}
		index[name] = len(env)
		env = append(env, name+"="+value)
	}
	set("PATH", strings.TrimPrefix(defaultPath, "PATH="))
	if c.config.Tty {
		set("TERM", "xterm")
	}
	set("HOSTNAME", r.kern.hostname(c.sandbox))
	for _, e := range c.image.source.Env {
		name, value, _ := strings.Cut(e, "=")
		set(name, value)
	}
	for _, e := range c.config.Envs {
		set(e.Key, string(e.Value))
	}
	if _, ok := index["HOME"]; !ok {
		set("HOME", home)
	}
	return env
}

// users are an image's users and groups.
type users struct{ passwd, group [][]string }

// fileReader is whatever has an image's files.
type fileReader interface {
	ReadFile(name string) ([]byte, error)
}

func usersOf(v fileReader) users {
	return users{passwd: entries(v, "/etc/passwd"), group: entries(v, "/etc/group")}
}

func entries(v fileReader, file string) (out [][]string) {
	data, err := v.ReadFile(file)
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Split(line, ":"); len(f) >= 3 {
			out = append(out, f)
		}
	}
	return out
}

func (u users) home(uid int) string {
	for _, f := range u.passwd {
		if f[2] == strconv.Itoa(uid) && len(f) > 5 && f[5] != "" {
			return f[5]
		}
	}
	return "/"
}

// noSuchName is containerd's error for a user or group that the image has not.
func noSuchName(id, what string) error {
	return fmt.Errorf("failed to create containerd container: mount callback failed on /var/lib/containerd/tmpmounts/containerd-mount%s: no %s found", id[:9], what)
}

// checkUser tells whether a container that is to be interpreted can run as the
// user that it names.
func (r *runner) checkUser(c *container) error {
	sc := c.config.GetLinux().GetSecurityContext()
	name := sc.GetRunAsUsername()
	if name == "" && sc.GetRunAsUser() == nil {
		name = c.image.source.User
	}
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return nil
	}
	if _, interpret := r.resolve(c); !interpret {
		return nil
	}
	src := c.image.source
	v := r.kern.kernel().NewView(kernel.ViewOptions{Image: r.images.imageTrees().tree(r.l, src.tree(), src.Commands)})
	_, err := usersOf(v).cred(c.id, sc, src.User)
	return err
}

// cred is whom a container's processes run as: the request's user, else the
// image's; with the groups that the image's files give that user.
func (u users) cred(id string, sc *runtimeapi.LinuxContainerSecurityContext, imageUser string) (kernel.Cred, error) {
	user, group, _ := strings.Cut(imageUser, ":")
	if v := sc.GetRunAsUser(); v != nil {
		user, group = strconv.FormatInt(v.Value, 10), ""
	} else if sc.GetRunAsUsername() != "" {
		user, group = sc.RunAsUsername, ""
	}
	if user == "" {
		user = "0"
	}
	if v := sc.GetRunAsGroup(); v != nil {
		group = strconv.FormatInt(v.Value, 10)
	}
	var cred kernel.Cred
	name := ""
	uid, err := strconv.Atoi(user)
	numeric := err == nil
	for _, f := range u.passwd {
		if f[0] == user || numeric && f[2] == user {
			name = f[0]
			uid, _ = strconv.Atoi(f[2])
			if len(f) > 3 {
				cred.GID, _ = strconv.Atoi(f[3])
			}
			break
		}
	}
	if !numeric && name == "" {
		return cred, noSuchName(id, "users")
	}
	cred.UID = uid
	if group != "" {
		gid, err := strconv.Atoi(group)
		for _, f := range u.group {
			if err != nil && f[0] == group {
				gid, err = strconv.Atoi(f[2])
			}
		}
		if err != nil {
			return cred, noSuchName(id, "groups")
		}
		cred.GID = gid
	}
	cred.Groups = append(cred.Groups, cred.GID)
	if sc.GetSupplementalGroupsPolicy() != runtimeapi.SupplementalGroupsPolicy_Strict && name != "" {
		for _, f := range u.group {
			if gid, err := strconv.Atoi(f[2]); err == nil && len(f) > 3 && slices.Contains(strings.Split(f[3], ","), name) && !slices.Contains(cred.Groups, gid) {
				cred.Groups = append(cred.Groups, gid)
			}
		}
	}
	for _, g := range sc.GetSupplementalGroups() {
		if !slices.Contains(cred.Groups, int(g)) {
			cred.Groups = append(cred.Groups, int(g))
		}
	}
	slices.Sort(cred.Groups) // so containerd hands them over
	return cred, nil
}

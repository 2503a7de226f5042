package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/hostfiles"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// enterImage makes what a container's processes see of files, and finds out
// who they are and what their environment is. The order is runc's: mounts, then devices and
// masks, then the working directory, then the user, which is looked up in the mounted
// /etc/passwd.
func (r *Runner) enterImage(in *records.Interpreted, pk *podkernel.Pod) error {
	c := in.Container
	src := c.Image.Source
	in.View = r.Kernel.Kernel().NewView(kernel.ViewOptions{
		// Shared by all containers of the image until one writes.
		Image:      r.Images.TreeOf(src),
		Layer:      r.Layers.Of(c).Share,
		ReadOnly:   c.Config.GetLinux().GetSecurityContext().GetReadonlyRootfs(),
		Privileged: c.Config.GetLinux().GetSecurityContext().GetPrivileged(),
	})
	in.Dir = cmp.Or(c.Config.WorkingDir, src.WorkingDir, "/")
	if err := r.mountAll(in, pk); err != nil {
		return err
	}
	if err := r.mountOver(in); err != nil {
		return err
	}
	// runc makes a working directory that is missing.
	if _, err := in.View.Stat(in.Dir); errors.Is(err, fs.ErrNotExist) {
		if err := in.View.MkdirAll(in.Dir, 0o755); err != nil {
			return fmt.Errorf("%smkdir %s: %w", strings.TrimSuffix(runcCreate, "unable to start container process: "), in.Dir, hostfiles.Bare(err))
		}
	}
	names := images.UsersOf(in.View)
	cred, err := names.Cred(c.ID, c.Config.GetLinux().GetSecurityContext(), src.User)
	if err != nil {
		return err
	}
	in.Cred = cred
	in.Env = r.Environment(c, names.Home(cred.UID))
	return nil
}

// mountAll mounts what containerd mounts into a container besides the root:
// the sandbox's files and what the request says, parents first. A mount of the request at the
// same path as one of the sandbox's replaces that, as the kubelet does with /etc/hosts.
func (r *Runner) mountAll(in *records.Interpreted, pk *podkernel.Pod) error {
	c := in.Container
	mounts := make([]*runtimeapi.Mount, 0, len(c.Config.Mounts)+4)
	for _, m := range r.Kernel.SandboxMounts(c.Sandbox, pk) {
		taken := slices.ContainsFunc(c.Config.Mounts, func(o *runtimeapi.Mount) bool { return path.Clean(o.ContainerPath) == m.ContainerPath })
		if !taken {
			m.Readonly = m.ContainerPath != "/dev/shm" && c.Config.GetLinux().GetSecurityContext().GetReadonlyRootfs()
			mounts = append(mounts, m)
		}
	}
	// The first of the list are the sandbox's.
	own := len(mounts)
	mounts = append(mounts, c.Config.Mounts...)
	memory := r.Files.Memory()
	var ofSandbox []*runtimeapi.Mount
	if r.Files.Host != nil {
		ofSandbox = slices.Clone(mounts[:own])
	}
	// Parents first, so that no mount hides one that was asked for below it.
	depth := func(m *runtimeapi.Mount) int { return strings.Count(path.Clean(m.ContainerPath), "/") }
	slices.SortStableFunc(mounts, func(a, b *runtimeapi.Mount) int { return depth(a) - depth(b) })
	for _, m := range mounts {
		var err error
		switch {
		case m.Image != nil:
			err = r.mountImage(in, m)
		// The sandbox's own files are the runtime's, in memory also on a machine.
		case r.Files.Host != nil && !slices.Contains(ofSandbox, m):
			err = in.View.Namespace().BindHost(m.ContainerPath, r.Files.Host, m.HostPath, m.Readonly)
			// A read-only bind that is not recursive leaves what is mounted inside writable.
			if err == nil && m.Readonly && !m.RecursiveReadOnly {
				err = in.View.Namespace().BindHostBelow(m.ContainerPath, r.Files.Host, m.HostPath)
			}
		default:
			err = in.View.Namespace().Bind(m.ContainerPath, memory, m.HostPath, m.Readonly)
		}
		if err != nil {
			return fmt.Errorf("%serror during container init: error mounting %q to rootfs at %q: %w", runcCreate, m.HostPath, m.ContainerPath, hostfiles.Bare(err))
		}
	}
	return nil
}

// Environment is the environment of a container's processes: the runtime's, the
// image's and the request's, of which the last counts where they say the same
// twice. HOME is runc's. The order is that of first appearance, which env in a container shows.
func (r *Runner) Environment(c *records.Container, home string) []string {
	env := make([]string, 0, 4+len(c.Image.Source.Env)+len(c.Config.Envs))
	index := map[string]int{}
	set := func(name, value string) {
		if i, ok := index[name]; ok {
			env[i] = name + "=" + value
			return
		}
		index[name] = len(env)
		env = append(env, name+"="+value)
	}
	// runc sets these before the image's.
	set("PATH", strings.TrimPrefix(images.DefaultPath, "PATH="))
	if c.Config.Tty {
		set("TERM", "xterm")
	}
	set("HOSTNAME", r.Kernel.Hostname(c.Sandbox))
	for _, e := range c.Image.Source.Env {
		name, value, _ := strings.Cut(e, "=")
		set(name, value)
	}
	for _, e := range c.Config.Envs {
		set(e.Key, string(e.Value))
	}
	if _, ok := index["HOME"]; !ok {
		set("HOME", home)
	}
	return env
}

// CheckUser reports whether a container that is to be interpreted can run as the
// user that it names. A name must be in the image's /etc/passwd, for which the image's files are
// needed: a container whose files nobody knows is not refused. Numbers need no entry.
func (r *Runner) CheckUser(c *records.Container) error {
	sc := c.Config.GetLinux().GetSecurityContext()
	name := sc.GetRunAsUsername()
	if name == "" && sc.GetRunAsUser() == nil {
		name = c.Image.Source.User
	}
	// By runc's rule a name that begins with a digit is a number.
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return nil
	}
	if _, interpret := r.Resolve(c); !interpret {
		return nil
	}
	src := c.Image.Source
	v := r.Kernel.Kernel().NewView(kernel.ViewOptions{Image: r.Images.TreeOf(src)})
	_, err := images.UsersOf(v).Cred(c.ID, sc, src.User)
	return err
}

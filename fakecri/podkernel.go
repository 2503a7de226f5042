package fakecri

import (
	"context"
	iofs "io/fs"
	"path"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// podKernel is what a sandbox has besides while processes of its node are
// interpreted.
type podKernel struct {
	net    *kernel.NetNS
	pids   *kernel.PIDNamespace    // made when a container shares it
	cgroup *kernel.Cgroup          // nil without a limit
	mounts []*runtimeapi.Mount     // made when a container is interpreted
	served map[*container][]func() // what stops the ports of stated programs
}

// nodeKernel is what processes see of the node, made when the first is
// interpreted.
type nodeKernel struct {
	l     *loop.Loop
	opts  kernelOptions
	files *nodeFiles
	recs  *recordStore

	machine    *kernel.Machine // nil while nothing is interpreted
	podKernels map[*sandbox]*podKernel
	sandboxOf  map[*kernel.NetNS]*sandbox // kept for OnListen only
	powered    *loop.Group                // timers and tasks that a power cut ends
	bootedAt   int64
	hadKernel  bool // since the start of the run, whatever was cut since

	// What the kernel asks of those who stand above it.
	memoryUsed     func() int64         // by the whole machine, in bytes
	grown          func(started bool)   // a process has come to use more
	serve          func(*container)     // opens the ports of a stated program
	podLimit       func(*sandbox) int64 // of memory, in bytes, 0 for none
	setCgroupLimit func(pk *podKernel, s *sandbox, limit int64)
}

// kernelOptions are those of Options.
type kernelOptions struct {
	Loop                                               *loop.Loop
	Hostname, NodeIP, Kernel, DiskDevice, CgroupDriver string
	Memory                                             int64
	CPUs                                               int
	OnListen                                           func(Listening)
}

func newNodeKernel(files *nodeFiles, recs *recordStore, opts kernelOptions) *nodeKernel {
	l := opts.Loop
	return &nodeKernel{l: l, opts: opts, files: files, recs: recs, powered: l.NewGroup("processes"), bootedAt: l.UnixNano()}
}

// powerCut ends all processes, and forgets all that the kernel knew.
func (r *nodeKernel) powerCut() {
	r.dropListeners()
	r.machine, r.podKernels = nil, nil
	r.powered.Kill()
	r.powered = r.l.NewGroup("processes")
}

// kernel returns the node's, which is there from the first interpreted process
// on. From then on stated programs can be talked to by processes too.
func (r *nodeKernel) kernel() *kernel.Machine {
	if r.machine != nil {
		return r.machine
	}
	r.machine = kernel.New(kernel.Options{
		Loop: r.l, FS: r.files.nodeFS(), Host: r.files.host, Hostname: r.opts.Hostname, HostIP: r.opts.NodeIP, Kernel: r.opts.Kernel, Device: r.opts.DiskDevice,
		Memory: r.opts.Memory, CPUs: r.opts.CPUs, BootTime: r.bootedAt, OnListen: r.listenHook(),
		MemoryUsed: r.memoryUsed, Grown: func() { r.grown(false) },
	})
	r.podKernels = map[*sandbox]*podKernel{}
	r.hadKernel = true
	for _, s := range r.recs.sandboxes {
		if s.state == sandboxReady {
			r.podKernelOf(s)
			for _, c := range s.containers {
				r.serve(c)
			}
		}
	}
	return r.machine
}

func (r *nodeKernel) podKernelOf(s *sandbox) *podKernel {
	m := r.kernel()
	pk := r.podKernels[s]
	if pk == nil {
		pk = &podKernel{}
		if s.hostNetwork() {
			pk.net = m.HostNet()
		} else {
			pk.net = m.NewNet(s.ip.String())
			r.noteNet(pk.net, s)
		}
		if limit := r.podLimit(s); limit > 0 {
			r.setCgroupLimit(pk, s, limit)
		}
		r.podKernels[s] = pk
	}
	return pk
}

// dropPodKernel takes a sandbox's namespaces away.
func (r *nodeKernel) dropPodKernel(s *sandbox) {
	pk := r.podKernels[s]
	if pk == nil {
		return
	}
	delete(r.podKernels, s)
	for _, c := range s.containers {
		pk.unserve(c)
	}
	if !s.hostNetwork() {
		pk.net.Close()
		delete(r.sandboxOf, pk.net)
	}
	if pk.mounts != nil {
		fs := r.files.nodeFS()
		if shm := sandboxShm(s); fs.Mounted(shm) {
			_ = fs.Unmount(shm)
		}
	}
}

// removeSandboxFiles removes what writeSandboxFiles wrote.
func (r *nodeKernel) removeSandboxFiles(s *sandbox) {
	_ = r.files.nodeFS().RemoveAll(path.Dir(sandboxShm(s)))
	_ = r.files.nodeFS().RemoveAll(sandboxDir(s))
}

// Where containerd keeps a sandbox's files.
func sandboxDir(s *sandbox) string {
	return "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/" + s.id
}

func sandboxShm(s *sandbox) string {
	return "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/" + s.id + "/shm"
}

// defaultShmSize is that of a pod's /dev/shm, in bytes.
const defaultShmSize = 64 << 20

// sandboxMounts returns copies of the mounts that each container of the sandbox
// gets unless its request mounts something else there.
func (r *nodeKernel) sandboxMounts(s *sandbox, pk *podKernel) []*runtimeapi.Mount {
	if pk.mounts == nil {
		r.writeSandboxFiles(s)
		dir := sandboxDir(s)
		for _, name := range []string{"hostname", "hosts", "resolv.conf"} {
			pk.mounts = append(pk.mounts, &runtimeapi.Mount{ContainerPath: "/etc/" + name, HostPath: path.Join(dir, name)})
		}
		fs := r.files.nodeFS()
		if shm := sandboxShm(s); fs.MkdirAll(shm, 0o755) == nil && fs.MountTmpfsSize(shm, defaultShmSize) == nil {
			_ = fs.Chmod(shm, 0o777|iofs.ModeSticky)
			pk.mounts = append(pk.mounts, &runtimeapi.Mount{ContainerPath: "/dev/shm", HostPath: shm})
		}
	}
	out := make([]*runtimeapi.Mount, len(pk.mounts))
	for i, m := range pk.mounts {
		out[i] = &runtimeapi.Mount{ContainerPath: m.ContainerPath, HostPath: m.HostPath}
	}
	return out
}

// writeSandboxFiles writes what containerd writes for a sandbox.
func (r *nodeKernel) writeSandboxFiles(s *sandbox) {
	fs, dir := r.files.nodeFS(), sandboxDir(s)
	if fs.MkdirAll(dir, 0o755) != nil {
		return
	}
	hosts, err := r.files.readHost("/etc/hosts")
	if err != nil {
		hosts = []byte("127.0.0.1\tlocalhost\n")
	}
	resolv := resolvConf(s.config.DnsConfig)
	if resolv == "" {
		host, _ := r.files.readHost("/etc/resolv.conf")
		resolv = string(host)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{"hostname", []byte(r.hostname(s) + "\n")}, {"hosts", hosts}, {"resolv.conf", []byte(resolv)}} {
		_ = fs.WriteFile(path.Join(dir, f.name), f.data, 0o644)
	}
}

// resolvConf is the resolver's configuration as containerd writes it; "" when
// there is none, and the host's is taken.
func resolvConf(d *runtimeapi.DNSConfig) string {
	var b strings.Builder
	if s := d.GetSearches(); len(s) > 0 {
		b.WriteString("search " + strings.Join(s, " ") + "\n")
	}
	if s := d.GetServers(); len(s) > 0 {
		b.WriteString("nameserver " + strings.Join(s, "\nnameserver ") + "\n")
	}
	if s := d.GetOptions(); len(s) > 0 {
		b.WriteString("options " + strings.Join(s, " ") + "\n")
	}
	return b.String()
}

// statedCommand is a command that an image states and nobody knows.
func statedCommand(name string) kernel.Command {
	return func(_ context.Context, p *kernel.Process) int {
		p.Container().Warn("the command " + name + " of the image is not interpreted; it exits 0")
		return 0
	}
}

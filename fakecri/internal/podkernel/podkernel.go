package podkernel

import (
	iofs "io/fs"
	"path"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/hostfiles"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Pod is what a sandbox has besides while processes of its node are
// interpreted.
type Pod struct {
	Net    *kernel.NetNS
	PIDs   *kernel.PIDNamespace            // made when a container shares it
	Cgroup *kernel.Cgroup                  // nil without a limit
	mounts []*runtimeapi.Mount             // made when a container is interpreted
	served map[*records.Container][]func() // what stops the ports of stated programs
}

// Node is what processes see of the node, made when the first is
// interpreted.
type Node struct {
	l       *loop.Loop
	Options Options
	files   *hostfiles.Files
	recs    *records.Store

	Machine   *kernel.Machine // nil while nothing is interpreted
	Pods      map[*records.Sandbox]*Pod
	sandboxOf map[*kernel.NetNS]*records.Sandbox // kept for OnListen only
	Powered   *loop.Group                        // timers and tasks that a power cut ends
	BootedAt  int64
	HadKernel bool // since the start of the run, whatever was cut since

	Accounts Accounts
	Serve    func(*records.Container) // opens the ports of a stated program
}

// Accounts is what the kernel asks of who keeps the sums of what is used.
type Accounts interface {
	NodeMemory() int64               // used by the whole machine, in bytes
	Grown(started bool)              // a process has come to use more
	PodLimit(*records.Sandbox) int64 // of memory, in bytes, 0 for none
	SetCgroupLimit(pk *Pod, s *records.Sandbox, limit int64)
}

// Options are those of Options.
type Options struct {
	Loop                                               *loop.Loop
	Hostname, NodeIP, Kernel, DiskDevice, CgroupDriver string
	Memory                                             int64
	CPUs                                               int
	OnListen                                           func(Listening)
	Far                                                kernel.Far
}

// New returns a node without a kernel.
func New(files *hostfiles.Files, recs *records.Store, opts Options) *Node {
	l := opts.Loop
	return &Node{l: l, Options: opts, files: files, recs: recs, Powered: l.NewGroup("processes"), BootedAt: l.UnixNano()}
}

// PowerCut ends all processes, and forgets all that the kernel knew.
func (r *Node) PowerCut() {
	r.dropListeners()
	r.Machine, r.Pods = nil, nil
	r.Powered.Kill()
	r.Powered = r.l.NewGroup("processes")
}

// Kernel returns the node's, which is there from the first interpreted process
// on. From then on stated programs can be talked to by processes too.
func (r *Node) Kernel() *kernel.Machine {
	if r.Machine != nil {
		return r.Machine
	}
	r.Machine = kernel.New(kernel.Options{
		Loop: r.l, FS: r.files.Memory(), Host: r.files.Host, Hostname: r.Options.Hostname, HostIP: r.Options.NodeIP, Kernel: r.Options.Kernel, Device: r.Options.DiskDevice,
		Memory: r.Options.Memory, CPUs: r.Options.CPUs, BootTime: r.BootedAt, OnListen: r.listenHook(), Far: r.Options.Far,
		MemoryUsed: r.Accounts.NodeMemory, Grown: func() { r.Accounts.Grown(false) },
	})
	r.Pods = map[*records.Sandbox]*Pod{}
	r.HadKernel = true
	for _, s := range r.recs.Sandboxes {
		if s.State == records.SandboxReady {
			r.Pod(s)
			for _, c := range s.Containers {
				r.Serve(c)
			}
		}
	}
	return r.Machine
}

// Pod returns what a sandbox has in the kernel, made when it is first needed.
func (r *Node) Pod(s *records.Sandbox) *Pod {
	m := r.Kernel()
	pk := r.Pods[s]
	if pk == nil {
		pk = &Pod{}
		if s.HostNetwork() {
			pk.Net = m.HostNet()
		} else {
			pk.Net = m.NewNet(s.IP.String())
			r.noteNet(pk.Net, s)
		}
		if limit := r.Accounts.PodLimit(s); limit > 0 {
			r.Accounts.SetCgroupLimit(pk, s, limit)
		}
		r.Pods[s] = pk
	}
	return pk
}

// DropPod takes a sandbox's namespaces away.
func (r *Node) DropPod(s *records.Sandbox) {
	pk := r.Pods[s]
	if pk == nil {
		return
	}
	delete(r.Pods, s)
	for _, c := range s.Containers {
		pk.Unserve(c)
	}
	if !s.HostNetwork() {
		pk.Net.Close()
		delete(r.sandboxOf, pk.Net)
	}
	if pk.mounts != nil {
		fs := r.files.Memory()
		if shm := sandboxShm(s); fs.Mounted(shm) {
			_ = fs.Unmount(shm)
		}
	}
}

// RemoveSandboxFiles removes what writeSandboxFiles wrote.
func (r *Node) RemoveSandboxFiles(s *records.Sandbox) {
	_ = r.files.Memory().RemoveAll(path.Dir(sandboxShm(s)))
	_ = r.files.Memory().RemoveAll(sandboxDir(s))
}

// Where containerd keeps a sandbox's files.
func sandboxDir(s *records.Sandbox) string {
	return "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/" + s.ID
}

// sandboxShm is where a pod's /dev/shm is mounted on the node.
func sandboxShm(s *records.Sandbox) string {
	return "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/" + s.ID + "/shm"
}

// defaultShmSize is that of a pod's /dev/shm, in bytes.
const defaultShmSize = 64 << 20

// SandboxMounts returns copies of the mounts that each container of the sandbox
// gets unless its request mounts something else there.
func (r *Node) SandboxMounts(s *records.Sandbox, pk *Pod) []*runtimeapi.Mount {
	if pk.mounts == nil {
		r.writeSandboxFiles(s)
		dir := sandboxDir(s)
		for _, name := range []string{"hostname", "hosts", "resolv.conf"} {
			pk.mounts = append(pk.mounts, &runtimeapi.Mount{ContainerPath: "/etc/" + name, HostPath: path.Join(dir, name)})
		}
		fs := r.files.Memory()
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
func (r *Node) writeSandboxFiles(s *records.Sandbox) {
	fs, dir := r.files.Memory(), sandboxDir(s)
	if fs.MkdirAll(dir, 0o755) != nil {
		return
	}
	hosts, err := r.files.Read("/etc/hosts")
	if err != nil {
		hosts = []byte("127.0.0.1\tlocalhost\n")
	}
	resolv := resolvConf(s.Config.DnsConfig)
	if resolv == "" {
		host, _ := r.files.Read("/etc/resolv.conf")
		resolv = string(host)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{"hostname", []byte(r.Hostname(s) + "\n")}, {"hosts", hosts}, {"resolv.conf", []byte(resolv)}} {
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

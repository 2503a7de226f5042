// Package runopts makes what a container is created with beside what its spec
// says by itself: its environment, its mounts, /etc/hosts and the place of its
// termination message. It mirrors GenerateRunContainerOptions and what it
// calls in upstream's pkg/kubelet/kubelet_pods.go.
//
// # What differs
//
// The environment is sorted by name; upstream's order is that of a map. A
// subPath is not bind-mounted below the pod's directory: the mount names what
// the path leads to at that moment, without symbolic links, or a hard link to it
// where the file system has them, so that what replaces it later is not seen
// either. What equal pods of a namespace share (the service variables) is made
// once for each change of the services.
//
// environment.go and envfile.go make the environment, mounts.go the mounts and
// subPaths, hosts.go the hosts file. A container's options are made by a
// request, which forgets what it read when they are made: the next start reads
// anew.
package runopts

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/network/dns"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// FS is what is needed of the node's files.
type FS interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
	Stat(name string) (fs.FileInfo, error)
	MkdirAll(path string, perm fs.FileMode) error
	Remove(name string) error
}

// Objects reads objects of a kind (configMaps, secrets) that registered pods
// refer to; it may wait.
type Objects[T any] interface {
	Get(ctx context.Context, namespace, name string) (T, error)
}

// Services are those of the cluster as the kubelet's informer knows them.
type Services interface {
	// HasSynced reports whether the first list is done.
	HasSynced() bool
	// Services returns all of them; the list is shared, and another one after
	// each change.
	Services() []*v1.Service
}

// Volumes tells what is mounted for a pod.
type Volumes interface {
	GetMountedVolumesForPod(uid types.UID) kubecontainer.VolumeMap
}

// Options are what a Generator is made of.
type Options struct {
	FS FS
	// SubPaths mounts subPaths; nil: the runtime is told of the path itself.
	SubPaths filesystem.SubPather
	// PodsDir is where pods have their directories.
	PodsDir string
	// ClusterDomain is the kubelet's setting of that name.
	ClusterDomain string
	// ConfigMaps and Secrets are nil without an API.
	ConfigMaps Objects[*v1.ConfigMap]
	Secrets    Objects[*v1.Secret]
	// Services is nil without an API: there are none then.
	Services Services
	// Volumes is nil while nothing mounts volumes.
	Volumes Volumes
	// HostIPs are the node's addresses.
	HostIPs func() []v1.HostIP
	// Annotated returns a pod with the annotations that containers see; nil: it
	// bears them.
	Annotated func(pod *v1.Pod) *v1.Pod
	// Allocatable is what the node has for pods.
	Allocatable func() v1.ResourceList
	// RecursiveReadOnly reports whether a runtime handler ("" is the default one)
	// can make mounts read-only recursively; nil means none can.
	RecursiveReadOnly func(runtimeClass string) bool
}

// Generator makes containers' options for one node.
type Generator struct {
	o        Options
	services serviceCache
}

// New returns a Generator.
func New(o Options) *Generator { return &Generator{o: o} }

// GenerateRunContainerOptions makes the options of a container of the pod, whose
// addresses are podIPs. With files it writes the pod's hosts file and makes the
// directory for the termination message; a container that never looks at them
// does without. Errors are those that a user sees as the message
// of CreateContainerConfigError.
func (g *Generator) GenerateRunContainerOptions(ctx context.Context, pod *v1.Pod, c *v1.Container, podIPs []string, files bool) (*kubecontainer.RunContainerOptions, error) {
	hostname, domain, err := dns.HostnameAndDomain(pod, g.o.ClusterDomain)
	if err != nil {
		return nil, err
	}
	in := &request{g: g, pod: pod, c: c, podIPs: podIPs}
	out := &kubecontainer.RunContainerOptions{}
	if out.Envs, err = in.environment(ctx); err != nil {
		return nil, err
	}
	if out.Mounts, err = in.mounts(out.Envs, files, hostname, domain); err != nil {
		return nil, err
	}
	if files && c.TerminationMessagePath != "" {
		dir := path.Join(g.podDir(pod.UID), "containers", c.Name)
		if err := g.o.FS.MkdirAll(dir, 0o750); err == nil { // else it has none
			out.PodContainerDir = dir
		}
	}
	return out, nil
}

// podDir is a pod's directory.
func (g *Generator) podDir(uid types.UID) string { return g.o.PodsDir + "/" + string(uid) }

// request is one container's options in the making.
type request struct {
	g      *Generator
	pod    *v1.Pod
	c      *v1.Container
	podIPs []string

	mounted     kubecontainer.VolumeMap
	haveMounted bool
}

// volumes are the pod's volumes, asked for once.
func (r *request) volumes() kubecontainer.VolumeMap {
	if !r.haveMounted && r.g.o.Volumes != nil {
		r.mounted, r.haveMounted = r.g.o.Volumes.GetMountedVolumesForPod(r.pod.UID), true
	}
	return r.mounted
}

// errNoClient is the error of a reference in standalone mode, with upstream's
// text; kind is as messages have it.
func errNoClient(kind, namespace, name string) error {
	return fmt.Errorf("couldn't get %s %v/%v, no kubeClient defined", kind, namespace, name)
}

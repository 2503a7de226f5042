package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/credentialprovider/plugin"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/devicemanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/dra"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/credentialprovider"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/images/pullmanager"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/logs"
	"github.com/drydock-sim/drydock/kubelet/internal/network/dns"
	"github.com/drydock-sim/drydock/kubelet/internal/runopts"
	"github.com/drydock-sim/drydock/kubelet/internal/runtimeclass"
	"github.com/drydock-sim/drydock/kubelet/internal/userns"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// ServiceWatcher watches the services of all namespaces and reconnects by
// itself until the group dies.
type ServiceWatcher interface {
	WatchServices(g *loop.Group, listed func([]*v1.Service), event func(watch.EventType, *v1.Service)) (stop func())
}

// fileUser is a runtime that knows which containers never look at the files
// that are made for them.
type fileUser interface {
	UsesFiles(podSandboxID string, config *runtimeapi.ContainerConfig) bool
}

// containerInputs is what containers are made of beside their pods' specs; it
// is the runtime manager's helper.
type containerInputs struct {
	node      *nodeView
	generator *runopts.Generator
	services  serviceInformer
	classes   *runtimeclass.Manager // nil without an API
	users     *userns.Manager
	pulls     *pullmanager.Manager
	devices   *devicemanager.Manager
	volumes   *podVolumes
	claims    func() (*dra.Manager, error)
}

// GenerateRunContainerOptions is runopts.Generator's, with what devices need before the
// rest.
func (in *containerInputs) GenerateRunContainerOptions(ctx context.Context, pod *v1.Pod, c *v1.Container, podIPs []string, files bool) (*kubecontainer.RunContainerOptions, error) {
	if err := in.devices.PreStart(ctx, pod, c); err != nil {
		return nil, err
	}
	opts, err := in.generator.GenerateRunContainerOptions(ctx, pod, c, podIPs, files)
	if err != nil {
		return nil, err
	}
	if d := in.devices.RunOptions(pod.UID, c.Name); d != nil {
		opts.Envs, opts.Mounts = slices.Concat(d.Envs, opts.Envs), slices.Concat(d.Mounts, opts.Mounts)
		opts.Devices, opts.CDIDevices, opts.Annotations = d.Devices, d.CDIDevices, d.Annotations
	}
	if err := in.addBlockDevices(pod, c, opts); err != nil {
		return nil, err
	}
	if err := in.addClaims(pod, c, opts); err != nil {
		return nil, err
	}
	return opts, nil
}

// addBlockDevices gives a container the block devices that it names (makeBlockVolumes).
func (in *containerInputs) addBlockDevices(pod *v1.Pod, c *v1.Container, opts *kubecontainer.RunContainerOptions) error {
	if len(c.VolumeDevices) == 0 {
		return nil
	}
	volumes := in.volumes.GetMountedVolumesForPod(pod.UID)
	for _, d := range c.VolumeDevices {
		v, ok := volumes[d.Name]
		if !ok || !v.Block {
			return fmt.Errorf("cannot find volume %q to pass into container %q", d.Name, c.Name)
		}
		permissions := "mrw"
		if v.ReadOnly {
			permissions = "r"
		}
		opts.Devices = append(slices.Clip(opts.Devices), &runtimeapi.Device{HostPath: v.Path, ContainerPath: d.DevicePath, Permissions: permissions})
	}
	return nil
}

// GetOrCreateUserNamespaceMappings gives a pod a user namespace, if its runtime
// handler can have one.
// A handler that says nothing of user namespaces has none.
func (in *containerInputs) GetOrCreateUserNamespaceMappings(pod *v1.Pod, handler string) (*runtimeapi.UserNamespace, error) {
	if f := in.node.handlerFeatures(handler); f == nil || f.UserNamespaces == nil || !*f.UserNamespaces {
		if handler == "" {
			return nil, fmt.Errorf("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
		}
		return nil, fmt.Errorf("can't set `spec.hostUsers: false`, RuntimeClass handler %q does not support user namespaces", handler)
	}
	return in.users.GetOrCreateUserNamespaceMappings(pod.UID)
}

func newContainerInputs(b *base, known *knownPods, node *nodeView, volumes *podVolumes) *containerInputs {
	in := &containerInputs{volumes: volumes, node: node}
	o := runopts.Options{
		FS: b.fs, PodsDir: b.podsDir, ClusterDomain: b.cfg.ClusterDomain, Volumes: volumes.Manager,
		HostIPs: node.hostIPs, Annotated: known.annotated,
		Allocatable: func() v1.ResourceList { return node.nodeResources().Allocatable },
		RecursiveReadOnly: func(class string) bool {
			handler := ""
			if in.classes != nil {
				handler = in.classes.Handler(class)
			}
			f := node.handlerFeatures(handler)
			return f != nil && f.RecursiveReadOnlyMounts != nil && *f.RecursiveReadOnlyMounts
		},
	}
	o.SubPaths, _ = b.opts.Mounter.(filesystem.SubPather)
	if b.client != nil {
		o.Services, o.ConfigMaps, o.Secrets = &in.services, volumes.configMaps, volumes.secrets
		in.services.start(b.g, b.client)
		in.classes = runtimeclass.New(b.g, b.client)
	}
	in.generator = runopts.New(o)
	ids := int64(0)
	if u := b.cfg.UserNamespaces; u != nil && u.IDsPerPod != nil {
		ids = *u.IDsPerPod
	}
	in.users = userns.New(userns.Options{FS: b.fs, PodsDir: b.podsDir, IDsPerPod: ids})
	in.pulls = pullmanager.New(pullmanager.Options{
		FS: b.fs, Dir: path.Join(b.opts.RootDir, "image_manager"), Now: b.l.Now,
		Policy: b.cfg.ImagePullCredentialsVerificationPolicy, Allowlist: b.cfg.PreloadedImagesVerificationAllowlist,
	})
	return in
}

// complete completes the runtime manager's options.
func (in *containerInputs) complete(o *kuberuntime.Options) {
	b := in.node.base
	o.Helper, o.NodeRef = in, b.nodeRef
	if in.classes != nil {
		o.RuntimeClasses = in.classes
	}
	if u, ok := b.opts.RuntimeService.(fileUser); ok && b.l.Elides() {
		o.UsesFiles = u.UsesFiles
	}
	o.Node.DNS = dns.Configurer{ClusterDNS: b.cfg.ClusterDNS, ClusterDomain: b.cfg.ClusterDomain}
	if r := b.cfg.ResolverConfig; r == nil || *r == "" {
		// Without a resolv.conf upstream falls back on the node's own address as
		// name server.
		o.Node.DNS.NoResolvConf = true
		for _, ip := range b.opts.NodeIPs {
			o.Node.DNS.NodeIPs = append(o.Node.DNS.NodeIPs, ip.String())
		}
	} else {
		o.Node.ResolvConf = *r
	}
	// These are the places where upstream's pkg/credentialprovider looks, but for
	// the working directory.
	keyring := &credentialprovider.Provider{FS: b.fs, Paths: []string{path.Join(b.opts.RootDir, "config.json"), "/root/.docker/config.json", "/.docker/config.json"}}
	if c := b.opts.CredentialProviders; c != nil {
		po := plugin.Options{
			Group: b.g, Loop: b.l, Config: c, Runner: b.opts.CredentialPlugins, Metrics: b.metrics, Log: b.log,
			ServiceAccountTokens: b.settings.gates.Enabled(features.KubeletServiceAccountTokenForCredentialProviders),
		}
		if b.client != nil {
			po.Accounts, po.Tokens = b.client, in.volumes.tokens
		}
		keyring.Plugins = plugin.New(po)
	}
	o.Images.Keyring = keyring
	if b.settings.gates.Enabled(features.KubeletEnsureSecretPulledImages) {
		o.Images.Pulls = in.pulls
	} else {
		o.Images.GateOff = true
	}
}

// startContainerLogs has the logs of containers rotated.
func (b *base) startContainerLogs() error {
	cfg := b.cfg
	size, err := logs.ParseMaxSize(cfg.ContainerLogMaxSize)
	if err != nil {
		return fmt.Errorf("failed to parse container log max size %q: %w", cfg.ContainerLogMaxSize, err)
	}
	o := logs.Options{
		Group: b.g, Runtime: b.opts.RuntimeService, FS: b.fs, Dir: b.cfg.PodLogsDir, MaxSize: size, MaxFiles: 5, MaxWorkers: 1,
		Period: 10 * time.Second, Timeout: cfg.RuntimeRequestTimeout.Duration, Log: b.log,
	}
	if n := cfg.ContainerLogMaxFiles; n != nil {
		o.MaxFiles = int(*n)
	}
	if n := cfg.ContainerLogMaxWorkers; n != nil {
		o.MaxWorkers = int(*n)
	}
	if d := cfg.ContainerLogMonitorInterval; d != nil {
		o.Period = d.Duration
	}
	logs.New(o).Start()
	return nil
}

// checkResolvConf tells at the start what of the node's resolv.conf pods can't
// have.
func (b *base) checkResolvConf() {
	r := b.cfg.ResolverConfig
	if r == nil || *r == "" {
		return
	}
	data, err := b.fs.ReadFile(*r)
	if err != nil {
		return
	}
	c := dns.Configurer{ClusterDomain: b.cfg.ClusterDomain}
	for _, text := range c.CheckLimits(*r, dns.ParseResolvConf(string(data))) {
		b.nodeEvent(v1.EventTypeWarning, "CheckLimitsForResolvConf", text)
	}
}

// serviceInformer has the cluster's services as the API last showed them.
type serviceInformer struct {
	list   []*v1.Service // by namespace and name; never written to
	synced bool
}

func (s *serviceInformer) start(g *loop.Group, w ServiceWatcher) {
	w.WatchServices(g, func(list []*v1.Service) { s.list, s.synced = list, true }, s.event)
}

// event replaces the list, because syncs in progress may hold the old one.
func (s *serviceInformer) event(t watch.EventType, svc *v1.Service) {
	i, found := slices.BinarySearchFunc(s.list, svc, func(a, b *v1.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	list := slices.Clone(s.list)
	switch {
	case t == watch.Deleted && found:
		list = slices.Delete(list, i, i+1)
	case t == watch.Deleted:
		return
	case found:
		list[i] = svc
	default:
		list = slices.Insert(list, i, svc)
	}
	s.list = list
}

// HasSynced reports whether the first list is done.
func (s *serviceInformer) HasSynced() bool { return s.synced }

// Services returns the services.
func (s *serviceInformer) Services() []*v1.Service { return s.list }

// addClaims gives a container the CDI devices of its claims.
func (in *containerInputs) addClaims(pod *v1.Pod, c *v1.Container, opts *kubecontainer.RunContainerOptions) error {
	if len(c.Resources.Claims) == 0 {
		return nil
	}
	claims, err := in.claims()
	if err != nil {
		return err
	}
	names, err := claims.CDIDevices(pod, c)
	if err != nil {
		return err
	}
	for _, name := range names {
		opts.CDIDevices = append(opts.CDIDevices, &runtimeapi.CDIDevice{Name: name})
	}
	return nil
}

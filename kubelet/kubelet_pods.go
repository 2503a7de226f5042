package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
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
	kl        *Kubelet
	generator *runopts.Generator
	services  serviceInformer
	classes   *runtimeclass.Manager // nil without an API
	users     *userns.Manager
	pulls     *pullmanager.Manager
}

// GenerateRunContainerOptions is runopts.Generator's.
func (in *containerInputs) GenerateRunContainerOptions(ctx context.Context, pod *v1.Pod, c *v1.Container, podIPs []string, files bool) (*kubecontainer.RunContainerOptions, error) {
	return in.generator.GenerateRunContainerOptions(ctx, pod, c, podIPs, files)
}

// GetOrCreateUserNamespaceMappings gives a pod a user namespace, if its runtime
// handler can have one.
// A handler that says nothing of user namespaces has none.
func (in *containerInputs) GetOrCreateUserNamespaceMappings(pod *v1.Pod, handler string) (*runtimeapi.UserNamespace, error) {
	if f := in.kl.handlerFeatures(handler); f == nil || f.UserNamespaces == nil || !*f.UserNamespaces {
		if handler == "" {
			return nil, fmt.Errorf("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
		}
		return nil, fmt.Errorf("can't set `spec.hostUsers: false`, RuntimeClass handler %q does not support user namespaces", handler)
	}
	return in.users.GetOrCreateUserNamespaceMappings(pod.UID)
}

// handlerFeatures are those of a runtime handler; nil if nothing is known of it.
func (kl *Kubelet) handlerFeatures(name string) *v1.NodeRuntimeHandlerFeatures {
	for i := range kl.runtimeUp.handlers {
		if kl.runtimeUp.handlers[i].Name == name {
			return kl.runtimeUp.handlers[i].Features
		}
	}
	return nil
}

// buildContainerInputs makes what containers are made of. The managers of
// configMaps, secrets and volumes are there by then.
func (kl *Kubelet) buildContainerInputs() {
	in := &kl.inputs
	in.kl = kl
	o := runopts.Options{
		FS: kl.fs, PodsDir: kl.podsDir, ClusterDomain: kl.cfg.ClusterDomain, Volumes: kl.volumes,
		HostIPs: kl.hostIPs, Annotated: kl.annotated,
		Allocatable: func() v1.ResourceList { return kl.nodeResources().Allocatable },
		RecursiveReadOnly: func(class string) bool {
			handler := ""
			if in.classes != nil {
				handler = in.classes.Handler(class)
			}
			f := kl.handlerFeatures(handler)
			return f != nil && f.RecursiveReadOnlyMounts != nil && *f.RecursiveReadOnlyMounts
		},
	}
	o.SubPaths, _ = kl.opts.Mounter.(filesystem.SubPather)
	if kl.client != nil {
		o.Services, o.ConfigMaps, o.Secrets = &in.services, kl.configMaps, kl.secrets
		in.services.start(kl.g, kl.client)
		in.classes = runtimeclass.New(kl.g, kl.client)
	}
	in.generator = runopts.New(o)
	ids := int64(0)
	if u := kl.cfg.UserNamespaces; u != nil && u.IDsPerPod != nil {
		ids = *u.IDsPerPod
	}
	in.users = userns.New(userns.Options{FS: kl.fs, PodsDir: kl.podsDir, IDsPerPod: ids})
	in.pulls = pullmanager.New(pullmanager.Options{
		FS: kl.fs, Dir: path.Join(kl.opts.RootDir, "image_manager"), Now: kl.l.Now,
		Policy: kl.cfg.ImagePullCredentialsVerificationPolicy, Allowlist: kl.cfg.PreloadedImagesVerificationAllowlist,
	})
}

// addContainerInputs completes the runtime manager's options.
func (kl *Kubelet) addContainerInputs(o *kuberuntime.Options) {
	in := &kl.inputs
	o.Helper, o.NodeRef = in, kl.node.ref
	if in.classes != nil {
		o.RuntimeClasses = in.classes
	}
	if u, ok := kl.opts.RuntimeService.(fileUser); ok && kl.l.Elides() {
		o.UsesFiles = u.UsesFiles
	}
	o.Node.DNS = dns.Configurer{ClusterDNS: kl.cfg.ClusterDNS, ClusterDomain: kl.cfg.ClusterDomain}
	if r := kl.cfg.ResolverConfig; r == nil || *r == "" {
		// Without a resolv.conf upstream falls back on the node's own address as
		// name server.
		o.Node.DNS.NoResolvConf = true
		if ip := kl.opts.Machine.NodeIP(); ip != "" {
			o.Node.DNS.NodeIPs = []string{ip}
		}
	} else {
		o.Node.ResolvConf = *r
	}
	// These are the places where upstream's pkg/credentialprovider looks, but for
	// the working directory.
	o.Images.Keyring = &credentialprovider.Provider{FS: kl.fs, Paths: []string{path.Join(kl.opts.RootDir, "config.json"), "/root/.docker/config.json", "/.docker/config.json"}}
	if kl.gates.Enabled(features.KubeletEnsureSecretPulledImages) {
		o.Images.Pulls = in.pulls
	} else {
		o.Images.GateOff = true
	}
}

// startContainerLogs has the logs of containers rotated.
func (kl *Kubelet) startContainerLogs() error {
	cfg := kl.cfg
	size, err := logs.ParseMaxSize(cfg.ContainerLogMaxSize)
	if err != nil {
		return fmt.Errorf("failed to parse container log max size %q: %w", cfg.ContainerLogMaxSize, err)
	}
	o := logs.Options{
		Group: kl.g, Runtime: kl.opts.RuntimeService, FS: kl.fs, Dir: kl.cfg.PodLogsDir, MaxSize: size, MaxFiles: 5, MaxWorkers: 1,
		Period: 10 * time.Second, Timeout: cfg.RuntimeRequestTimeout.Duration, Log: kl.log,
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
func (kl *Kubelet) checkResolvConf() {
	r := kl.cfg.ResolverConfig
	if r == nil || *r == "" {
		return
	}
	data, err := kl.fs.ReadFile(*r)
	if err != nil {
		return
	}
	c := dns.Configurer{ClusterDomain: kl.cfg.ClusterDomain}
	for _, text := range c.CheckLimits(*r, dns.ParseResolvConf(string(data))) {
		kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, "CheckLimitsForResolvConf", text)
	}
}

// pullSecrets reads the pod's image pull secrets. missing tells that some are
// not there, which an event says at each sync.
func (kl *Kubelet) pullSecrets(ctx context.Context, pod *v1.Pod) (secrets []v1.Secret, missing bool) {
	var failed []string
	// A secret that can't be read doesn't fail the pod: the image may be public,
	// or there already.
	for _, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		var s *v1.Secret
		err := fmt.Errorf("no kubeClient defined")
		if kl.secrets != nil {
			s, err = kl.secrets.Get(ctx, pod.Namespace, ref.Name)
		}
		if err != nil {
			kl.logf("Unable to retrieve pull secret, the image pull may not succeed. pod=%s secret=%s err=%v", podName(pod), ref.Name, err)
			failed = append(failed, ref.Name)
			continue
		}
		secrets = append(secrets, *s)
	}
	if len(failed) > 0 {
		kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
			fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(failed, ", ")))
	}
	return secrets, len(failed) > 0
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

//go:build linux

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet"
	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/internal/certificate"
	"github.com/drydock-sim/drydock/kubelet/internal/clientgo"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/server"
	"github.com/drydock-sim/drydock/kubelet/real"
	kubeletserver "github.com/drydock-sim/drydock/kubelet/server"
)

// check judges the configuration, and what of it says how to serve.
// It is judged before anything is done to the machine. The configuration is judged as a whole,
// wherever its parts came from.
func (cl *commandLine) check() error {
	c := cl.config
	if err := kubeletcfg.ValidateConfiguration(c, &kubeletcfg.Host{CgroupV1: cgroupV1()}); err != nil {
		return fmt.Errorf("failed to validate kubelet configuration, error: %w%s", err, cl.from())
	}
	if c.KubeletCgroups != "" && c.KubeReservedCgroup != "" && !strings.HasPrefix(c.KubeletCgroups, c.KubeReservedCgroup) {
		klog.InfoS("unsupported configuration:KubeletCgroups is not within KubeReservedCgroup")
	}
	if err := checkTLS(c); err != nil {
		return fmt.Errorf("failed to construct kubelet dependencies: %w", err)
	}
	return nil
}

// from names where a configuration came from; upstream has a dump of it here.
func (cl *commandLine) from() string {
	switch {
	case cl.flags.Config != "":
		return ", path: " + cl.flags.Config
	case cl.flags.ConfigDir != "":
		return ", path: " + cl.flags.ConfigDir
	}
	return ""
}

// checkTLS refuses cipher suites and versions that nobody knows. Go has its own cipher suites
// for TLS 1.3.
func checkTLS(c *kubeletconfig.KubeletConfiguration) error {
	if _, err := cliflag.TLSCipherSuites(c.TLSCipherSuites); err != nil {
		return err
	}
	v, err := cliflag.TLSVersion(c.TLSMinVersion)
	if err != nil {
		return err
	}
	if v == tls.VersionTLS13 && len(c.TLSCipherSuites) != 0 {
		klog.InfoS("Warning: TLS 1.3 cipher suites are not configurable, ignoring --tls-cipher-suites")
	}
	return nil
}

// run is upstream's run, in its order: what fails first there fails first here. It returns when
// the kubelet has ended.
func run(ctx context.Context, cl *commandLine, deps *Deps) error {
	dog, err := newWatchdog()
	if err != nil {
		return err
	}
	unlock, ctx, err := cl.lock(ctx)
	if err != nil || ctx.Err() != nil {
		return ignoreEnd(ctx, err)
	}
	defer unlock()
	name, err := nodeutil.GetHostname(cl.flags.HostnameOverride)
	if err != nil {
		return err
	}
	o := real.Options{
		Config: cl.config, NodeName: name, NodeLabels: cl.flags.NodeLabels,
		Defaulter: deps.Defaulter, Validator: deps.Validator, Log: logf,
		CgroupV1: cgroupV1(),
		// Upstream sets kernel parameters unless it is told to protect them.
		TuneKernel: cl.config.ProtectKernelDefaults, // only then: a kubelet that is tried out changes nothing for good
	}
	o.ImageCredentialProviderConfig, o.ImageCredentialProviderBinDir = cl.flags.CredentialProviderConfig, cl.flags.CredentialProviderBinDir
	o.GC, o.AllocatableIgnoresEviction = cl.flags.gcPolicy(), cl.flags.AllocatableIgnoresEvictions
	rotate, err := cl.connect(ctx, &o)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	if err := cl.checkHost(); err != nil {
		return err
	}
	if err := cl.finish(&o); err != nil {
		return err
	}
	serve, err := cl.newServers(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dog.start(ctx)
	// What runs beside the kubelet ends before the lock is let go of, for which the next one may
	// be waiting: it wants the same ports.
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	if rotate != nil {
		// Without a certificate there is no node, so it is asked for before the kubelet starts.
		beside.Go(func() {
			if err := rotate.Run(ctx); err != nil {
				cancel(&exitError{err})
			}
		})
	}
	o.Started = func(h *real.Handle) { cl.started(ctx, h, dog, serve, &beside, cancel) }
	err = deps.Run(ctx, o)
	if failed := (*exitError)(nil); errors.As(context.Cause(ctx), &failed) {
		return failed
	}
	return ignoreEnd(ctx, err)
}

// exitError ends a kubelet that can't serve, or has no certificate, as upstream's process exits.
type exitError struct{ err error }

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// newServers makes the kubelet's servers, with their certificate and who may ask; nil:
// the configuration wants none.
func (cl *commandLine) newServers(node string) (*server.Servers, error) {
	if !ptr.Deref(cl.config.EnableServer, true) {
		return nil, nil
	}
	o := server.Options{Config: cl.config, NodeName: node, Hostname: node, CertDir: cl.flags.CertDir, Certificates: cl.certificates}
	o.Flags.FlagSet("flags").AddFlagSet(cl.set)
	if cl.api != nil {
		client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(cl.api), "kubelet"))
		if err != nil {
			return nil, fmt.Errorf("failed to initialize kubelet client: %w", err)
		}
		o.Client = client
	}
	return server.New(o)
}

// ignoreEnd makes the end that was asked for no error.
// A kubelet that was told to stop has not failed. Any other error is one, also after a signal.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// lock takes the lock file, if there is one; the context that it returns ends
// when somebody else wants it, too. The lock comes before everything that touches the machine.
func (cl *commandLine) lock(ctx context.Context) (unlock func(), _ context.Context, err error) {
	path := cl.flags.LockFile
	if path == "" {
		if cl.flags.ExitOnLockContention {
			return nil, ctx, errors.New("cannot exit on lock file contention: no lock file specified")
		}
		return func() {}, ctx, nil
	}
	klog.InfoS("Acquiring file lock", "path", path)
	f, err := acquireLock(ctx, path)
	if err != nil {
		return nil, ctx, err
	}
	stop, cancel := func() {}, func() {}
	if cl.flags.ExitOnLockContention {
		klog.InfoS("Watching for inotify events", "path", path)
		ctx, cancel = context.WithCancel(ctx)
		if stop, err = watchLock(path, cancel); err != nil {
			cancel()
			_ = f.Close()
			return nil, ctx, err
		}
	}
	return func() {
		stop()
		cancel()
		_ = f.Close()
	}, ctx, nil
}

// connect says how the API is reached, and checks who may ask the kubelet. With a certificate that
// is rotated it returns the rotation; without, it waits here for a first one if there is none
// (buildKubeletClientConfig).
// The client is made with the kubelet's loop, which doesn't exist yet. Its errors have upstream's
// texts.
func (cl *commandLine) connect(ctx context.Context, o *real.Options) (*certificate.Client, error) {
	c, f := cl.config, cl.flags
	if f.Kubeconfig == "" && f.BootstrapKubeconfig == "" {
		klog.InfoS("Standalone mode, no API client")
		return nil, checkAuth(c)
	}
	dir, err := filepath.Abs(f.CertDir) // a kubeconfig's paths are relative to itself
	if err != nil {
		return nil, err
	}
	files := &certificate.Files{Kubeconfig: f.Kubeconfig, Bootstrap: f.BootstrapKubeconfig, Dir: dir}
	if c.RotateCertificates {
		klog.InfoS("Client rotation is on, will bootstrap in background")
		rotate, cfg, err := certificate.NewClient(files, o.NodeName, c.ContentType, cl.certificates)
		if err != nil {
			return nil, err
		}
		cl.use(o, cfg)
		return rotate, checkMode(c)
	}
	if f.BootstrapKubeconfig != "" {
		if err := files.Request(ctx, o.NodeName); err != nil {
			return nil, err
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("invalid kubeconfig: %w", err)
	}
	cl.use(o, cfg)
	return nil, checkMode(c)
}

// use has the kubelet reach the API so.
func (cl *commandLine) use(o *real.Options, cfg *rest.Config) {
	cl.api = cfg
	o.NewClient = func(l *loop.Loop, _ *loop.Group) (kubelet.Client, error) { return clientgo.New(l, cfg, cl.config) }
}

// checkAuth refuses what needs an API server where there is none
// (cmd/kubelet/app/auth.go). A client CA needs no API server, tokens do.
func checkAuth(c *kubeletconfig.KubeletConfiguration) error {
	if file := c.Authentication.X509.ClientCAFile; file != "" {
		if _, err := certutil.CertsFromFile(file); err != nil {
			return fmt.Errorf("unable to load client CA file %s: %w", file, err)
		}
	}
	if ptr.Deref(c.Authentication.Webhook.Enabled, false) {
		return errors.New("no client provided, cannot use webhook authentication")
	}
	if c.Authorization.Mode == kubeletconfig.KubeletAuthorizationModeWebhook {
		return errors.New("no client provided, cannot use webhook authorization")
	}
	return checkMode(c)
}

// checkMode refuses authorization modes that there aren't.
func checkMode(c *kubeletconfig.KubeletConfiguration) error {
	switch c.Authorization.Mode {
	case kubeletconfig.KubeletAuthorizationModeAlwaysAllow, kubeletconfig.KubeletAuthorizationModeWebhook:
		return nil
	case "":
		return errors.New("no authorization mode specified")
	}
	return fmt.Errorf("unknown authorization mode %s", c.Authorization.Mode)
}

// checkHost refuses what this machine can't do, and values that can't be used. It comes after the
// lock, as upstream's.
func (cl *commandLine) checkHost() error {
	c := cl.config
	if ptr.Deref(c.CgroupsPerQOS, true) && c.CgroupRoot == "" {
		klog.InfoS("--cgroups-per-qos enabled, but --cgroup-root was not specified.  Defaulting to /")
		c.CgroupRoot = "/"
	}
	if c.ReservedSystemCPUs != "" {
		if err := checkCPUs(c.ReservedSystemCPUs); err != nil {
			return err
		}
	}
	if errs := features.ErrorsOf(kubeletcfg.ValidateValues(c)); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	if c.MemorySwap.SwapBehavior == "LimitedSwap" && cgroupV1() {
		return errors.New("swap feature is enabled and LimitedSwap but it is only supported with cgroupv2")
	}
	if !ptr.Deref(c.FailSwapOn, true) {
		return nil
	}
	on, err := swapOn()
	if err == nil && on {
		err = errors.New("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false")
	}
	return err
}

// clouds is upstream's text for a cloud provider that it no longer has built
// in.
const clouds = `cloud provider %q was specified, but built-in cloud providers are disabled. Please set --cloud-provider=external and migrate to an external cloud provider`

// finish fills in paths and addresses.
// Flags are relative to the working directory, unlike a file's paths.
func (cl *commandLine) finish(o *real.Options) error {
	c := cl.config
	ips, invalid, err := nodeutil.ParseNodeIPArgument(cl.flags.NodeIP, cl.flags.CloudProvider)
	if err != nil {
		return fmt.Errorf("bad --node-ip %q: %w", cl.flags.NodeIP, err)
	}
	if len(invalid) > 0 {
		klog.InfoS("Could not parse some node IP(s), ignoring them", "IPs", invalid)
	}
	o.NodeIPs = ips
	switch p := cl.flags.CloudProvider; p {
	case "":
	case "external":
		o.ExternalCloudProvider = true
	default:
		return fmt.Errorf("failed to create kubelet: "+clouds, p)
	}
	if cl.flags.RootDir == "" {
		return errors.New("failed to create kubelet: invalid root directory \"\"")
	}
	if o.RootDir, err = filepath.Abs(cl.flags.RootDir); err != nil {
		return err
	}
	// The core has absolute paths only; a flag's are relative to where we are.
	if c.StaticPodPath != "" {
		if c.StaticPodPath, err = filepath.Abs(c.StaticPodPath); err != nil {
			return err
		}
	}
	if cl.flags.SeccompDefault {
		c.SeccompDefault = ptr.To(true)
	}
	if c.StaticPodURL != "" {
		o.Sources = func(_ *loop.Loop, _ *loop.Group, ko *kubelet.Options) error {
			ko.Fetcher = newFetcher()
			return nil
		}
	}
	return nil
}

// started runs what needs a running kubelet: health checks and systemd.
// Only now systemd is told that the kubelet is ready, and its watchdog judged
// by the sync loop. What serves runs on goroutines of beside, until ctx ends.
func (cl *commandLine) started(ctx context.Context, h *real.Handle, dog *watchdog, servers *server.Servers, beside *sync.WaitGroup, fail context.CancelCauseFunc) {
	c := cl.config
	syncLoop := kubeletserver.Check{Name: "syncloop", Check: h.SyncLoopHealthy}
	log := server.Log(ctx)
	checks := []kubeletserver.Check{kubeletserver.Ping(), log, syncLoop}
	dog.setChecks(checks)
	klog.InfoS("Started kubelet")
	if port := ptr.Deref(c.HealthzPort, 0); port > 0 {
		address := net.JoinHostPort(c.HealthzBindAddress, strconv.Itoa(int(port)))
		beside.Go(func() {
			server.Serve(ctx, address, kubeletserver.NewHealthz([]kubeletserver.Check{kubeletserver.Ping()}, []kubeletserver.Check{log, syncLoop}))
		})
	}
	if servers != nil {
		beside.Go(func() {
			if err := servers.Serve(ctx, h, checks); err != nil {
				klog.ErrorS(err, "Failed to listen and serve")
				fail(&exitError{fmt.Errorf("failed to listen and serve: %w", err)})
			}
		})
	}
	notifyReady()
}

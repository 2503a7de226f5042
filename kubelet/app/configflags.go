//go:build linux

package app

import (
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// deprecatedForConfig is upstream's text, which scripts may look for.
const deprecatedForConfig = "This parameter should be set via the config file specified by the Kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information."

// AddConfigFlags adds the flags that set fields of a configuration, which has
// its defaults set. All but a few are deprecated in favour of --config, and are
// shown in the help all the same. The flags write into c itself, so parsing them is laying them
// over it.
func AddConfigFlags(to *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	addSourceFlags(fs, c)
	addServerFlags(fs, c)
	addClientFlags(fs, c)
	addNodeFlags(fs, c)
	addPodFlags(fs, c)
	addReservationFlags(fs, c)
	logsapi.AddFlags(&c.Logging, fs)
	fs.VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		// Upstream doesn't deprecate these five.
		case "v", "vmodule", "log-flush-frequency", "provider-id", "fail-cgroupv1":
		default:
			f.Deprecated = deprecatedForConfig
		}
	})
	to.AddFlagSet(fs)
}

// What pods there are, and the runtime. Defaults in help are those of the configuration that is
// handed over; the usage texts are our own.
func addSourceFlags(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	fs.StringVar(&c.StaticPodPath, "pod-manifest-path", c.StaticPodPath, "File or directory of static pods. Files whose names begin with a dot are skipped.")
	fs.DurationVar(&c.SyncFrequency.Duration, "sync-frequency", c.SyncFrequency.Duration, "Most time between two syncs of a running container.")
	fs.DurationVar(&c.FileCheckFrequency.Duration, "file-check-frequency", c.FileCheckFrequency.Duration, "Time between two looks for static pods in files.")
	fs.DurationVar(&c.HTTPCheckFrequency.Duration, "http-check-frequency", c.HTTPCheckFrequency.Duration, "Time between two looks for static pods at the URL.")
	fs.StringVar(&c.StaticPodURL, "manifest-url", c.StaticPodURL, "URL of static pods.")
	fs.Var(cliflag.NewColonSeparatedMultimapStringString(&c.StaticPodURLHeader), "manifest-url-header", "Headers of the requests to --manifest-url, name:value pairs separated by ','. Given several times, all apply.")
	fs.StringVar(&c.ContainerRuntimeEndpoint, "container-runtime-endpoint", c.ContainerRuntimeEndpoint, "Socket of the container runtime, such as unix:///run/containerd/containerd.sock.")
	fs.StringVar(&c.ImageServiceEndpoint, "image-service-endpoint", c.ImageServiceEndpoint, "Socket of the image service; empty for that of the container runtime.")
	fs.DurationVar(&c.RuntimeRequestTimeout.Duration, "runtime-request-timeout", c.RuntimeRequestTimeout.Duration, "Timeout of calls of the runtime but the long ones: pull, logs, exec, attach.")
	fs.Int32Var(c.RegistryPullQPS, "registry-qps", *c.RegistryPullQPS, "Image pulls per second; 0 for no limit.")
	fs.Int32Var(&c.RegistryBurst, "registry-burst", c.RegistryBurst, "Image pulls that may come at once, while --registry-qps is kept to on average.")
	fs.BoolVar(c.SerializeImagePulls, "serialize-image-pulls", *c.SerializeImagePulls, "Pull one image at a time.")
	fs.DurationVar(&c.ImageMinimumGCAge.Duration, "minimum-image-ttl-duration", c.ImageMinimumGCAge.Duration, "Least age of an unused image before it is removed.")
	fs.Int32Var(c.ImageGCHighThresholdPercent, "image-gc-high-threshold", *c.ImageGCHighThresholdPercent, "Percentage of disk usage above which images are removed; 0 to 100.")
	fs.Int32Var(c.ImageGCLowThresholdPercent, "image-gc-low-threshold", *c.ImageGCLowThresholdPercent, "Percentage of disk usage down to which images are removed; 0 to 100.")
}

// What the kubelet serves, and who may ask.
func addServerFlags(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	authn, authz := &c.Authentication, &c.Authorization
	fs.BoolVar(c.EnableServer, "enable-server", *c.EnableServer, "Serve the kubelet's API.")
	fs.Var(&ipValue{&c.Address}, "address", "Address of the kubelet's API; 0.0.0.0 or :: for all interfaces.")
	fs.Int32Var(&c.Port, "port", c.Port, "Port of the kubelet's API.")
	fs.Int32Var(&c.ReadOnlyPort, "read-only-port", c.ReadOnlyPort, "Port of the read-only API without authentication; 0 for none.")
	fs.BoolVar(authn.Anonymous.Enabled, "anonymous-auth", *authn.Anonymous.Enabled, "Let anonymous requests through to the kubelet's API, as user system:anonymous of group system:unauthenticated.")
	fs.BoolVar(authn.Webhook.Enabled, "authentication-token-webhook", *authn.Webhook.Enabled, "Have the API server authenticate bearer tokens (TokenReview).")
	fs.DurationVar(&authn.Webhook.CacheTTL.Duration, "authentication-token-webhook-cache-ttl", authn.Webhook.CacheTTL.Duration, "How long answers of TokenReview are kept.")
	fs.StringVar(&authn.X509.ClientCAFile, "client-ca-file", authn.X509.ClientCAFile, "Authorities whose client certificates authenticate by their common name.")
	fs.StringVar((*string)(&authz.Mode), "authorization-mode", string(authz.Mode), "AlwaysAllow or Webhook (SubjectAccessReview).")
	fs.DurationVar(&authz.Webhook.CacheAuthorizedTTL.Duration, "authorization-webhook-cache-authorized-ttl", authz.Webhook.CacheAuthorizedTTL.Duration, "How long the webhook's yes is kept.")
	fs.DurationVar(&authz.Webhook.CacheUnauthorizedTTL.Duration, "authorization-webhook-cache-unauthorized-ttl", authz.Webhook.CacheUnauthorizedTTL.Duration, "How long the webhook's no is kept.")
	fs.StringVar(&c.TLSCertFile, "tls-cert-file", c.TLSCertFile, "Certificate of the kubelet's API, with intermediate ones after it. Without it and --tls-private-key-file one is made in --cert-dir.")
	fs.StringVar(&c.TLSPrivateKeyFile, "tls-private-key-file", c.TLSPrivateKeyFile, "Private key of --tls-cert-file.")
	fs.BoolVar(&c.ServerTLSBootstrap, "rotate-server-certificates", c.ServerTLSBootstrap, "Request and rotate the serving certificate from the API server.")
	fs.StringSliceVar(&c.TLSCipherSuites, "tls-cipher-suites", c.TLSCipherSuites, "Cipher suites of the kubelet's API, separated by ','. Preferred: "+strings.Join(cliflag.PreferredTLSCipherNames(), ", ")+". Insecure: "+strings.Join(cliflag.InsecureTLSCipherNames(), ", ")+".")
	fs.StringVar(&c.TLSMinVersion, "tls-min-version", c.TLSMinVersion, "Least version of TLS: "+strings.Join(cliflag.TLSPossibleVersions(), ", ")+".")
	fs.BoolVar(c.EnableDebuggingHandlers, "enable-debugging-handlers", *c.EnableDebuggingHandlers, "Serve logs and run commands in containers.")
	fs.BoolVar(&c.EnableContentionProfiling, "contention-profiling", c.EnableContentionProfiling, "Profile blocking, if profiling is enabled.")
	fs.Int32Var(c.HealthzPort, "healthz-port", *c.HealthzPort, "Port of /healthz; 0 for none.")
	fs.Var(&ipValue{&c.HealthzBindAddress}, "healthz-bind-address", "Address of /healthz; 0.0.0.0 or :: for all interfaces.")
	fs.DurationVar(&c.StreamingConnectionIdleTimeout.Duration, "streaming-connection-idle-timeout", c.StreamingConnectionIdleTimeout.Duration, "Has no effect.")
}

// How the API server is used, and what it is told about the node.
func addClientFlags(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	fs.BoolVar(&c.RotateCertificates, "rotate-certificates", c.RotateCertificates, "Rotate the client certificate from the API server when it is about to expire.")
	fs.Int32Var(c.EventRecordQPS, "event-qps", *c.EventRecordQPS, "Events per second; 0 for the default of clients.")
	fs.Int32Var(&c.EventBurst, "event-burst", c.EventBurst, "Events that may come at once, while --event-qps is kept to on average.")
	fs.StringVar(&c.ContentType, "kube-api-content-type", c.ContentType, "Content type of requests to the API server.")
	fs.Int32Var(c.KubeAPIQPS, "kube-api-qps", *c.KubeAPIQPS, "Requests per second to the API server, but for events and the node's heartbeat; 0 for the default of clients.")
	fs.Int32Var(&c.KubeAPIBurst, "kube-api-burst", c.KubeAPIBurst, "Requests to the API server that may come at once.")
	fs.BoolVar(c.RegisterNode, "register-node", *c.RegisterNode, "Register the node with the API server.")
	fs.Var(&taintsValue{&c.RegisterWithTaints}, "register-with-taints", "Taints of the node at its registration, key=value:effect separated by ','.")
	fs.StringVar(&c.ProviderID, "provider-id", c.ProviderID, "Identifier of the machine at its cloud provider (spec.providerID).")
	fs.DurationVar(&c.NodeStatusUpdateFrequency.Duration, "node-status-update-frequency", c.NodeStatusUpdateFrequency.Duration, "Time between two looks at the node's status.")
	fs.Int32Var(c.NodeStatusMaxImages, "node-status-max-images", *c.NodeStatusMaxImages, "How many images the node's status has; -1 for all.")
	fs.BoolVar(c.EnableControllerAttachDetach, "enable-controller-attach-detach", *c.EnableControllerAttachDetach, "Leave attaching volumes to the controller.")
	fs.Var(cliflag.NewMapStringBool(&c.FeatureGates), "feature-gates", "Feature gates, key=value pairs separated by ','. Options are:\n"+strings.Join(features.Help(), "\n"))
}

// The machine: cgroups, managers, kernel.
func addNodeFlags(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	fs.BoolVar(c.FailSwapOn, "fail-swap-on", *c.FailSwapOn, "Refuse to start while swap is on.")
	fs.BoolVar(c.FailCgroupV1, "fail-cgroupv1", *c.FailCgroupV1, "Refuse to start on a host that uses cgroup v1.")
	fs.Int32Var(c.OOMScoreAdj, "oom-score-adj", *c.OOMScoreAdj, "The kubelet's own oom_score_adj; -1000 to 1000.")
	fs.Int64Var(&c.MaxOpenFiles, "max-open-files", c.MaxOpenFiles, "How many files the kubelet may have open.")
	fs.StringVar(&c.KubeletCgroups, "kubelet-cgroups", c.KubeletCgroups, "Absolute name of the cgroups that the kubelet runs in.")
	fs.StringVar(&c.SystemCgroups, "system-cgroups", c.SystemCgroups, "Absolute name of the cgroups for processes that are in none; needs --cgroup-root.")
	fs.BoolVar(c.CgroupsPerQOS, "cgroups-per-qos", *c.CgroupsPerQOS, "Make cgroups for the QoS classes and the pods.")
	fs.StringVar(&c.CgroupDriver, "cgroup-driver", c.CgroupDriver, "cgroupfs or systemd; the runtime's answer wins.")
	fs.StringVar(&c.CgroupRoot, "cgroup-root", c.CgroupRoot, "Root cgroup of pods; empty for the runtime's default.")
	fs.StringVar(&c.CPUManagerPolicy, "cpu-manager-policy", c.CPUManagerPolicy, "none or static.")
	fs.Var(cliflag.NewMapStringStringNoSplit(&c.CPUManagerPolicyOptions), "cpu-manager-policy-options", "Options of the CPU manager's policy, one key=value pair; may be given several times.")
	fs.DurationVar(&c.CPUManagerReconcilePeriod.Duration, "cpu-manager-reconcile-period", c.CPUManagerReconcilePeriod.Duration, "Time between two reconciliations of the CPU manager.")
	fs.StringVar(&c.MemoryManagerPolicy, "memory-manager-policy", c.MemoryManagerPolicy, "None or Static.")
	fs.Var(&reservedMemoryValue{list: &c.ReservedMemory}, "reserved-memory", "Memory that is kept back per NUMA node, such as 0:memory=1Gi,hugepages-1Gi=2Gi; several separated by ';' or given several times.")
	fs.StringVar(&c.TopologyManagerPolicy, "topology-manager-policy", c.TopologyManagerPolicy, "none, best-effort, restricted or single-numa-node.")
	fs.StringVar(&c.TopologyManagerScope, "topology-manager-scope", c.TopologyManagerScope, "container or pod.")
	fs.Var(cliflag.NewMapStringString(&c.TopologyManagerPolicyOptions), "topology-manager-policy-options", "Options of the topology manager's policy, key=value pairs separated by ','.")
	fs.BoolVar(c.MakeIPTablesUtilChains, "make-iptables-util-chains", *c.MakeIPTablesUtilChains, "Make sure that the iptables utility rules are there.")
	fs.BoolVar(&c.KernelMemcgNotification, "kernel-memcg-notification", c.KernelMemcgNotification, "Have the kernel tell when memory eviction thresholds are crossed.")
	fs.BoolVar(&c.ProtectKernelDefaults, "protect-kernel-defaults", c.ProtectKernelDefaults, "Fail if kernel parameters differ from what the kubelet wants, rather than set them.")
	fs.BoolVar(c.LocalStorageCapacityIsolation, "local-storage-capacity-isolation", *c.LocalStorageCapacityIsolation, "Account for ephemeral storage.")
	fs.DurationVar(&c.VolumeStatsAggPeriod.Duration, "volume-stats-agg-period", c.VolumeStatsAggPeriod.Duration, "Time between two looks at the usage of volumes; negative for none.")
	fs.StringVar(&c.VolumePluginDir, "volume-plugin-dir", c.VolumePluginDir, "Directory of third-party volume plugins.")
}

// What pods get.
func addPodFlags(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	fs.StringVar(&c.ClusterDomain, "cluster-domain", c.ClusterDomain, "Domain of the cluster, which containers search too.")
	fs.StringSliceVar(&c.ClusterDNS, "cluster-dns", c.ClusterDNS, "Addresses of DNS servers for pods with dnsPolicy ClusterFirst, separated by ','.")
	fs.StringVar(c.ResolverConfig, "resolv-conf", *c.ResolverConfig, "File that containers' DNS configuration starts from; empty for none.")
	fs.StringVar(&c.HairpinMode, "hairpin-mode", c.HairpinMode, "promiscuous-bridge, hairpin-veth or none.")
	fs.Int32Var(&c.MaxPods, "max-pods", c.MaxPods, "How many pods may run.")
	fs.Int32Var(&c.PodsPerCore, "pods-per-core", c.PodsPerCore, "How many pods may run per core, within --max-pods; 0 for no such limit.")
	fs.StringVar(&c.PodCIDR, "pod-cidr", c.PodCIDR, "Addresses of pods, in standalone mode only.")
	fs.Int64Var(c.PodPidsLimit, "pod-max-pids", *c.PodPidsLimit, "How many processes a pod may have; -1 for the node's number.")
	fs.BoolVar(&c.RunOnce, "runonce", c.RunOnce, "Is refused.")
	fs.BoolVar(c.CPUCFSQuota, "cpu-cfs-quota", *c.CPUCFSQuota, "Enforce CPU limits by CFS quota.")
	fs.DurationVar(&c.CPUCFSQuotaPeriod.Duration, "cpu-cfs-quota-period", c.CPUCFSQuotaPeriod.Duration, "Period of CFS quota (cpu.cfs_period_us).")
	fs.StringVar(&c.ContainerLogMaxSize, "container-log-max-size", c.ContainerLogMaxSize, "Size of a container's log at which it is rotated, such as 10Mi.")
	fs.Int32Var(c.ContainerLogMaxFiles, "container-log-max-files", *c.ContainerLogMaxFiles, "How many log files a container may have, at least 2.")
	fs.StringSliceVar(&c.AllowedUnsafeSysctls, "allowed-unsafe-sysctls", c.AllowedUnsafeSysctls, "Unsafe sysctls, or patterns of them that end in *, that pods may use, separated by ','.")
	fs.Var(cliflag.NewLangleSeparatedMapStringString(&c.EvictionHard), "eviction-hard", "Thresholds of immediate eviction, such as memory.available<1Gi, separated by ','.")
	fs.Var(cliflag.NewLangleSeparatedMapStringString(&c.EvictionSoft), "eviction-soft", "Thresholds of eviction after a grace period, such as memory.available<1.5Gi, separated by ','.")
	fs.Var(cliflag.NewMapStringString(&c.EvictionSoftGracePeriod), "eviction-soft-grace-period", "Grace periods of --eviction-soft, such as memory.available=1m30s, separated by ','.")
	fs.DurationVar(&c.EvictionPressureTransitionPeriod.Duration, "eviction-pressure-transition-period", c.EvictionPressureTransitionPeriod.Duration, "How long a pressure condition stays after the pressure.")
	fs.Int32Var(&c.EvictionMaxPodGracePeriod, "eviction-max-pod-grace-period", c.EvictionMaxPodGracePeriod, "Most seconds that a pod gets at soft eviction; negative for the pod's own.")
	fs.Var(cliflag.NewMapStringString(&c.EvictionMinimumReclaim), "eviction-minimum-reclaim", "How much eviction frees at least, such as imagefs.available=2Gi, separated by ','.")
}

// What is kept back for others than pods.
func addReservationFlags(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	fs.Var(cliflag.NewMapStringString(&c.QOSReserved), "qos-reserved", "<Warning: Alpha feature> Percentages by which requests of a QoS class are kept from lower ones, such as memory=50%.")
	fs.StringVar(&c.ReservedSystemCPUs, "reserved-cpus", c.ReservedSystemCPUs, "CPUs or ranges of them for the system and Kubernetes, such as 0-3,8; replaces the CPU of --system-reserved and --kube-reserved.")
	fs.Var(cliflag.NewMapStringString(&c.SystemReserved), "system-reserved", "What is kept for the system, such as cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=1000.")
	fs.Var(cliflag.NewMapStringString(&c.KubeReserved), "kube-reserved", "What is kept for Kubernetes, such as cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=1000.")
	fs.StringSliceVar(&c.EnforceNodeAllocatable, "enforce-node-allocatable", c.EnforceNodeAllocatable, "Levels at which allocatable resources are enforced: none, or pods, system-reserved, system-reserved-compressible, kube-reserved, kube-reserved-compressible.")
	fs.StringVar(&c.SystemReservedCgroup, "system-reserved-cgroup", c.SystemReservedCgroup, "Absolute name of the cgroup on which --system-reserved is enforced.")
	fs.StringVar(&c.KubeReservedCgroup, "kube-reserved-cgroup", c.KubeReservedCgroup, "Absolute name of the cgroup on which --kube-reserved is enforced.")
}

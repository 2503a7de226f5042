//go:build linux

package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// Flags are the flags that are no fields of a KubeletConfiguration
// (cmd/kubelet/app/options). They belong to one start.
type Flags struct {
	Config, ConfigDir string
	// Without a Kubeconfig the kubelet runs standalone.
	Kubeconfig          string
	BootstrapKubeconfig string
	// HostnameOverride and NodeIP stand for what the machine says of itself.
	HostnameOverride string
	NodeIP           string
	CertDir          string
	CloudProvider    string
	RootDir          string
	SeccompDefault   bool
	// NodeLabels are for the registration of the node only.
	NodeLabels map[string]string
	// LockFile makes kubelets take turns, see lock.go.
	LockFile                 string
	ExitOnLockContention     bool
	RuntimeCgroups           string
	CredentialProviderConfig string
	CredentialProviderBinDir string
	// The garbage collection of dead containers; a negative number is no limit.
	MinimumContainerTTL time.Duration
	MaxDeadPerContainer int32
	MaxDead             int32
	MounterPath         string
	// AllocatableIgnoresEvictions leaves hard eviction thresholds out of what
	// the node keeps back.
	AllocatableIgnoresEvictions bool
}

// NewFlags returns the flags' defaults. They are upstream's (NewKubeletFlags).
func NewFlags() *Flags {
	return &Flags{
		CertDir: kubelet.DefaultRootDir + "/pki", RootDir: kubelet.DefaultRootDir,
		NodeLabels: map[string]string{}, MaxDeadPerContainer: 1, MaxDead: -1,
	}
}

// deprecatedForEviction is upstream's text.
const deprecatedForEviction = "Use --eviction-hard or --eviction-soft instead. Will be removed in a future version."

// AddFlags adds the flags to a set. Flags that are deprecated are shown in the
// help all the same. Descriptions are our own, names and forms are upstream's.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.RuntimeCgroups, "runtime-cgroups", f.RuntimeCgroups, "Absolute name of the cgroups that the runtime runs in, for its statistics.")
	fs.StringVar(&f.CredentialProviderConfig, "image-credential-provider-config", f.CredentialProviderConfig, "Configuration of image credential provider plugins: a file, or a directory of .json, .yaml and .yml files that are merged in lexical order.")
	fs.StringVar(&f.CredentialProviderBinDir, "image-credential-provider-bin-dir", f.CredentialProviderBinDir, "Directory of the binaries of image credential provider plugins.")
	fs.StringVar(&f.Config, "config", f.Config, "File with the kubelet's configuration, a KubeletConfiguration of kubelet.config.k8s.io/v1beta1. Flags override what it says.")
	fs.StringVar(&f.ConfigDir, "config-dir", f.ConfigDir, "Directory of drop-in files that override --config: those named *.conf, in lexical order, sub-directories included.")
	fs.StringVar(&f.Kubeconfig, "kubeconfig", f.Kubeconfig, "File that says how to reach the API server. Without it the kubelet runs standalone.")
	fs.StringVar(&f.BootstrapKubeconfig, "bootstrap-kubeconfig", f.BootstrapKubeconfig, "File that is used to get the first client certificate if --kubeconfig doesn't exist.")
	fs.StringVar(&f.HostnameOverride, "hostname-override", f.HostnameOverride, "Name of the node, instead of the machine's host name.")
	fs.StringVar(&f.NodeIP, "node-ip", f.NodeIP, "Address of the node, or a dual-stack pair of them separated by a comma. Unset: the machine's default address, IPv4 first; '::' prefers IPv6.")
	fs.StringVar(&f.CertDir, "cert-dir", f.CertDir, "Directory of the TLS certificates. Not used with --tls-cert-file and --tls-private-key-file.")
	fs.StringVar(&f.CloudProvider, "cloud-provider", f.CloudProvider, "Empty for no cloud provider, 'external' for an external one.")
	fs.StringVar(&f.RootDir, "root-dir", f.RootDir, "Directory of the kubelet's files: pods, volumes, checkpoints.")
	fs.BoolVar(&f.SeccompDefault, "seccomp-default", f.SeccompDefault, "Give all workloads the seccomp profile RuntimeDefault unless they say otherwise.")
	labels := cliflag.ConfigurationMap(f.NodeLabels)
	fs.Var(&labels, "node-labels", "Labels of the node at its registration, key=value pairs separated by ','. Those of kubernetes.io and k8s.io must begin with one of "+
		strings.Join(labelNamespaces, ", ")+" or be one of "+strings.Join(labelNames, ", ")+".")
	fs.StringVar(&f.LockFile, "lock-file", f.LockFile, "<Warning: Alpha feature> File that the kubelet locks for as long as it runs.")
	fs.BoolVar(&f.ExitOnLockContention, "exit-on-lock-contention", f.ExitOnLockContention, "Exit when somebody else opens the lock file.")

	fs.DurationVar(&f.MinimumContainerTTL, "minimum-container-ttl-duration", f.MinimumContainerTTL, "Least age of a finished container before it is removed, such as 10s.")
	fs.Int32Var(&f.MaxDeadPerContainer, "maximum-dead-containers-per-container", f.MaxDeadPerContainer, "How many dead instances of a container are kept.")
	fs.Int32Var(&f.MaxDead, "maximum-dead-containers", f.MaxDead, "How many dead containers are kept in all; negative for no limit.")
	fs.StringVar(&f.MounterPath, "experimental-mounter-path", f.MounterPath, "Binary that mounts; empty for mount.")
	fs.BoolVar(&f.AllocatableIgnoresEvictions, "experimental-allocatable-ignore-eviction", f.AllocatableIgnoresEvictions, "Leave hard eviction thresholds out of the node's allocatable resources.")
	for _, d := range [...]struct{ name, text string }{
		{"minimum-container-ttl-duration", deprecatedForEviction},
		{"maximum-dead-containers-per-container", deprecatedForEviction},
		{"maximum-dead-containers", deprecatedForEviction},
		{"experimental-mounter-path", "will be removed in 1.25 or later. in favor of using CSI."},
		{"experimental-allocatable-ignore-eviction", "will be removed in 1.25 or later."},
	} {
		fs.Lookup(d.name).Deprecated = d.text
	}
}

// gcPolicy says which dead containers stay.
// A negative number means no limit, as in upstream's flags. It is by container and over all, see
// pkg/kubelet/container/container_gc.go.
func (f *Flags) gcPolicy() *kuberuntime.GCPolicy {
	return &kuberuntime.GCPolicy{MinAge: f.MinimumContainerTTL, MaxPerPodContainer: int(f.MaxDeadPerContainer), MaxContainers: int(f.MaxDead)}
}

// What labels of kubernetes.io and k8s.io a kubelet may give its node
// (k8s.io/kubelet/pkg/apis/well_known_labels.go).
var (
	labelNamespaces = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}
	labelNames      = []string{
		"beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os",
		"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
		"kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os",
		"node.kubernetes.io/instance-type", "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
	}
)

// Validate judges the node's labels.
// The NodeRestriction admission plugin would refuse other labels of these
// domains: better at the start than at the registration.
func (f *Flags) Validate() error {
	var unknown, invalid []string
	// Sorted, so that the error is the same each time.
	keys := make([]string, 0, len(f.NodeLabels))
	for k := range f.NodeLabels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if !ownLabel(k) {
			unknown = append(unknown, k)
		}
		if errs := validation.IsQualifiedName(k); len(errs) > 0 {
			invalid = append(invalid, fmt.Sprintf("'%s' - %s", k, strings.Join(errs, ", ")))
		}
		v := f.NodeLabels[k]
		if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
			invalid = append(invalid, fmt.Sprintf("'%s' - %s", v, strings.Join(errs, ", ")))
		}
	}
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: %v\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (%s) or be in the specifically allowed set (%s)",
			unknown, strings.Join(labelNamespaces, ", "), strings.Join(labelNames, ", "))
	case len(invalid) > 0:
		return fmt.Errorf("invalid node labels: %s", strings.Join(invalid, "; "))
	}
	return nil
}

// ownLabel reports whether a kubelet may give its node a label.
// Labels without a namespace, or of others', are free.
func ownLabel(key string) bool {
	namespace, _, ok := strings.Cut(key, "/")
	if !ok {
		return true
	}
	in := func(domain string) bool { return namespace == domain || strings.HasSuffix(namespace, "."+domain) }
	return !in("kubernetes.io") && !in("k8s.io") || slices.ContainsFunc(labelNamespaces, in) || slices.Contains(labelNames, key)
}

//go:build linux

package app

import (
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

type configuration = kubeletconfig.KubeletConfiguration

// commandOf parses a command line and reads its files.
func commandOf(t testing.TB, args ...string) (*commandLine, string, error) {
	t.Helper()
	var out strings.Builder
	cl, err := newCommandLine(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.parse(args); err != nil {
		return cl, out.String(), err
	}
	return cl, out.String(), cl.load(args)
}

// upstreamFlags are name, type and default of the flags of v1.36; a name that
// begins with "!" is not deprecated.
const upstreamFlags = `
!config string
!config-dir string
!kubeconfig string
!bootstrap-kubeconfig string
!hostname-override string
!node-ip string
!cert-dir string /var/lib/kubelet/pki
!cloud-provider string
!root-dir string /var/lib/kubelet
!seccomp-default bool false
!node-labels mapStringString
!lock-file string
!exit-on-lock-contention bool false
!runtime-cgroups string
!image-credential-provider-config string
!image-credential-provider-bin-dir string
minimum-container-ttl-duration duration 0s
maximum-dead-containers-per-container int32 1
maximum-dead-containers int32 -1
experimental-mounter-path string
experimental-allocatable-ignore-eviction bool false
!housekeeping-interval duration 10s
application-metrics-count-limit int 100
boot-id-file string /proc/sys/kernel/random/boot_id
container-hints string /etc/cadvisor/container_hints.json
containerd string /run/containerd/containerd.sock
containerd-namespace string k8s.io
enable-load-reader bool false
event-storage-age-limit string default=0
event-storage-event-limit string default=0
global-housekeeping-interval duration 1m0s
log-cadvisor-usage bool false
machine-id-file string /etc/machine-id,/var/lib/dbus/machine-id
storage-driver-user string root
storage-driver-password string root
storage-driver-host string localhost:8086
storage-driver-db string cadvisor
storage-driver-table string stats
storage-driver-secure bool false
storage-driver-buffer-duration duration 1m0s
!version version false
!help bool false
!v Level 0
!vmodule pattern=N,...
!log-flush-frequency duration 5s
logging-format string text
log-text-split-stream bool false
log-text-info-buffer-size quantity 0
log-json-split-stream bool false
log-json-info-buffer-size quantity 0
enable-server bool true
fail-swap-on bool true
pod-manifest-path string
sync-frequency duration 1m0s
file-check-frequency duration 20s
http-check-frequency duration 20s
manifest-url string
manifest-url-header colonSeparatedMultimapStringString
address ip 0.0.0.0
port int32 10250
read-only-port int32 10255
!fail-cgroupv1 bool true
container-runtime-endpoint string unix:///run/containerd/containerd.sock
image-service-endpoint string
anonymous-auth bool true
authentication-token-webhook bool false
authentication-token-webhook-cache-ttl duration 2m0s
client-ca-file string
authorization-mode string AlwaysAllow
authorization-webhook-cache-authorized-ttl duration 5m0s
authorization-webhook-cache-unauthorized-ttl duration 30s
tls-cert-file string
tls-private-key-file string
rotate-server-certificates bool false
tls-cipher-suites stringSlice []
tls-min-version string
rotate-certificates bool false
registry-qps int32 5
registry-burst int32 10
event-qps int32 50
event-burst int32 100
enable-debugging-handlers bool true
contention-profiling bool false
healthz-port int32 10248
healthz-bind-address ip 127.0.0.1
oom-score-adj int32 -999
cluster-domain string
volume-plugin-dir string /usr/libexec/kubernetes/kubelet-plugins/volume/exec/
cluster-dns stringSlice []
streaming-connection-idle-timeout duration 4h0m0s
node-status-update-frequency duration 10s
minimum-image-ttl-duration duration 2m0s
image-gc-high-threshold int32 85
image-gc-low-threshold int32 80
volume-stats-agg-period duration 1m0s
feature-gates mapStringBool
kubelet-cgroups string
system-cgroups string
!provider-id string
cgroups-per-qos bool true
cgroup-driver string cgroupfs
cgroup-root string
cpu-manager-policy string none
cpu-manager-policy-options mapStringString
cpu-manager-reconcile-period duration 10s
qos-reserved mapStringString
topology-manager-policy string none
runtime-request-timeout duration 2m0s
hairpin-mode string promiscuous-bridge
max-pods int32 110
pod-cidr string
pod-max-pids int64 -1
resolv-conf string /etc/resolv.conf
runonce bool false
cpu-cfs-quota bool true
cpu-cfs-quota-period duration 100ms
enable-controller-attach-detach bool true
make-iptables-util-chains bool true
container-log-max-size string 10Mi
container-log-max-files int32 5
allowed-unsafe-sysctls stringSlice []
node-status-max-images int32 50
kernel-memcg-notification bool false
local-storage-capacity-isolation bool true
max-open-files int64 1000000
kube-api-content-type string application/vnd.kubernetes.protobuf
kube-api-qps int32 50
kube-api-burst int32 100
serialize-image-pulls bool true
eviction-hard mapStringString
eviction-soft mapStringString
eviction-soft-grace-period mapStringString
eviction-pressure-transition-period duration 5m0s
eviction-max-pod-grace-period int32 0
eviction-minimum-reclaim mapStringString
pods-per-core int32 0
protect-kernel-defaults bool false
reserved-cpus string
topology-manager-scope string container
topology-manager-policy-options mapStringString
system-reserved mapStringString
kube-reserved mapStringString
enforce-node-allocatable stringSlice [pods]
system-reserved-cgroup string
kube-reserved-cgroup string
memory-manager-policy string None
reserved-memory reserved-memory
register-node bool true
register-with-taints []v1.Taint
`

func TestFlagsAreUpstreams(t *testing.T) {
	if err := registerFormats(); err != nil {
		t.Fatal(err)
	}
	cl, err := newCommandLine(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(upstreamFlags)) {
		f := append(strings.Fields(line), "")
		name, kept := strings.CutPrefix(f[0], "!")
		want[name] = true
		flag := cl.set.Lookup(name)
		switch {
		case flag == nil:
			t.Errorf("there is no --%s", name)
		case flag.Value.Type() != f[1] || flag.DefValue != f[2]:
			t.Errorf("--%s is %s %q, want %s %q", name, flag.Value.Type(), flag.DefValue, f[1], f[2])
		case flag.Deprecated == "" != kept:
			t.Errorf("--%s: deprecated %q", name, flag.Deprecated)
		case flag.Hidden || flag.Usage == "":
			t.Errorf("--%s is not in the help", name)
		}
	}
	cl.set.VisitAll(func(f *pflag.Flag) {
		if !want[f.Name] {
			t.Errorf("upstream has no --%s", f.Name)
		}
	})
	help := cl.set.FlagUsagesWrapped(2)
	for _, want := range []string{"-v, --v Level", "-h, --help", "--version version[=true]", "AllBeta=true|false (BETA - default=false)"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help has no %q", want)
		}
	}
}

func TestFlagErrors(t *testing.T) {
	for _, tc := range []struct{ arg, want string }{
		{"--foo", "failed to parse kubelet flag: unknown flag: --foo"},
		{"--pod-infra-container-image=x", "unknown flag: --pod-infra-container-image"},
		{"-x", "failed to parse kubelet flag: unknown shorthand flag: 'x' in -x"},
		{"--max-pods=many", `failed to parse kubelet flag: invalid argument "many" for "--max-pods" flag`},
		{"--config", "failed to parse kubelet flag: flag needs an argument: --config"},
		{"run", "unknown command run"},
		{"--eviction-hard=memory.available", "malformed pair, expect string<string"},
		{"--system-reserved=cpu", "malformed pair, expect string=string"},
		{"--manifest-url-header=a", "malformed pair, expect string:string"},
		{"--feature-gates=AllAlpha", "malformed pair, expect string=bool"},
		{"--feature-gates=AllAlpha=maybe", "invalid value of AllAlpha: maybe, err: "},
		{"--address=here", `"here" is not a valid IP address`},
		{"--reserved-memory=0", "expected numaNodeID:type=quantity[,type=quantity...], got 0"},
		{"--reserved-memory=a:memory=1Gi", "failed to convert the NUMA node ID, expected integer, got a"},
		{"--reserved-memory=0:disk=1Gi", `memory type conversion error, unknown type: "disk"`},
		{"--reserved-memory=0:memory=x", "failed to parse the quantity: x"},
		{"--register-with-taints=a=b", "invalid taint spec: a=b"},
		{"--register-with-taints=a=b:Never", "invalid taint effect: Never, unsupported taint effect"},
		{"--register-with-taints=a=b:NoExecute,a=c:NoExecute", "duplicated taints with the same key and effect"},
		{"--version=v1.2.3", `must match major/minor/patch of default version "v1.36.3"`},
		{"--feature-gates=Nope=true", "failed to set feature gates from initial flags-based config: unrecognized feature gate: Nope"},
		{"--feature-gates=SidecarContainers=false", "cannot set feature gate SidecarContainers to false, feature is locked to true"},
		{"--node-labels=kubernetes.io/x=y", "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [kubernetes.io/x]"},
		{"--node-labels=a.k8s.io/x=y", "labels specified with --node-labels: [a.k8s.io/x]"},
		{"--node-labels=a b=c", "failed to validate kubelet flags: invalid node labels: 'a b' - "},
		{"--node-labels=a=-", "invalid node labels: '-' - "},
	} {
		if _, _, err := commandOf(t, tc.arg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.arg, err, tc.want)
		}
	}
	if _, _, err := commandOf(t, "--node-labels=kubernetes.io/os=x,a.node.kubernetes.io/b=c,kubelet.kubernetes.io/d=e,bare,x.y/z=1"); err != nil {
		t.Error(err)
	}
}

func TestFlagValues(t *testing.T) {
	cl, out, err := commandOf(t,
		"--max_pods=7", "--register-with-taints=a=b:NoExecute", "--register-with-taints=c=:NoSchedule,d:PreferNoSchedule",
		"--reserved-memory=0:memory=1Gi;1:memory=2Gi", "--reserved-memory=2:memory=3Gi",
		"--eviction-hard=memory.available<1Gi", "--eviction-hard=nodefs.available<5%,pid.available<10%",
		"--manifest-url-header=a:1,b:2", "--manifest-url-header=a:3", "--node-labels=x=1,bare",
		"--cluster-dns=1.1.1.1", "--cluster-dns=2.2.2.2,3.3.3.3", "--address=::", "--cpu-manager-policy-options=a=b,c",
		"--feature-gates=AllAlpha=true,KubeletPSI=true", "-v", "3")
	if err != nil {
		t.Fatal(err)
	}
	c := cl.config
	if c.MaxPods != 7 || c.Address != "::" || c.Logging.Verbosity != 3 || !c.FeatureGates["AllAlpha"] {
		t.Errorf("scalars %+v", c)
	}
	if want := []v1.Taint{{Key: "c", Effect: "NoSchedule"}, {Key: "d", Effect: "PreferNoSchedule"}}; !reflect.DeepEqual(c.RegisterWithTaints, want) {
		t.Errorf("a second use replaces taints: %v", c.RegisterWithTaints)
	}
	if len(c.ReservedMemory) != 3 || c.ReservedMemory[2].NumaNode != 2 {
		t.Errorf("reserved memory %v", c.ReservedMemory)
	}
	if want := map[string]string{"memory.available": "1Gi", "nodefs.available": "5%", "pid.available": "10%"}; !reflect.DeepEqual(c.EvictionHard, want) {
		t.Errorf("eviction %v", c.EvictionHard)
	}
	if want := map[string][]string{"a": {"1", "3"}, "b": {"2"}}; !reflect.DeepEqual(c.StaticPodURLHeader, want) {
		t.Errorf("header %v", c.StaticPodURLHeader)
	}
	if want := map[string]string{"x": "1", "bare": ""}; !reflect.DeepEqual(cl.flags.NodeLabels, want) {
		t.Errorf("labels %v", cl.flags.NodeLabels)
	}
	if want := map[string]string{"a": "b,c"}; !reflect.DeepEqual(c.CPUManagerPolicyOptions, want) {
		t.Errorf("options %v", c.CPUManagerPolicyOptions)
	}
	if !slices.Equal(c.ClusterDNS, []string{"1.1.1.1", "2.2.2.2", "3.3.3.3"}) {
		t.Errorf("DNS %v", c.ClusterDNS)
	}
	if n := strings.Count(out, "Flag --eviction-hard has been deprecated, This parameter should be set via the config file"); n != 2 || strings.Contains(out, "--node-labels has") {
		t.Errorf("deprecations:\n%s", out)
	}
}

func pflagSet(t testing.TB) *pflag.FlagSet {
	t.Helper()
	cl, err := newCommandLine(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return cl.set
}

func TestIgnored(t *testing.T) {
	cl, _, err := commandOf(t, "--enable-server=false")
	if err != nil {
		t.Fatal(err)
	}
	if got := Ignored(cl.config, cl.set); got != nil {
		t.Errorf("of the defaults: %v", got)
	}
	cl, _, err = commandOf(t, "--config="+filepath.Join(write(t, map[string]string{"k": head}), "k"))
	if err != nil {
		t.Fatal(err)
	}
	if got := Ignored(cl.config, cl.set); got != nil {
		t.Errorf("of an empty file: %v", got)
	}
	cl, _, err = commandOf(t, "--enable-server=false", "--image-credential-provider-config=x", "--log-cadvisor-usage", "--read-only-port=0", "--max-pods=3", "--system-reserved-cgroup=/s", "--enforce-node-allocatable=pods,system-reserved", "--version=v1.36.3-x", "--feature-gates=EventedPLEG=true,ClientsAllowCBOR=true,AllAlpha=true,CRIListStreaming=false,ContainerStopSignals=true", "--eviction-hard=memory.available<1Gi")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"featureGates: AllAlpha=true,ClientsAllowCBOR=true has no effect: this kubelet has what is on by default",
		"--log-cadvisor-usage has no effect: there is no cAdvisor in this kubelet",
		"--version: the node reports v1.36.3",
	}
	if got := Ignored(cl.config, cl.set); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, f := range ignoredFlags {
		if cl.set.Lookup(f.name) == nil {
			t.Errorf("there is no --%s", f.name)
		}
	}
}

// waitFor polls for something that other goroutines do.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: waited in vain", what)
}

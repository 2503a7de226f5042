//go:build linux

package app

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// write makes files below a temporary directory and returns it.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// TestPrecedence lays defaults, file, drop-ins and flags over each other.
func TestPrecedence(t *testing.T) {
	dir := write(t, map[string]string{
		"empty.yaml":       head,
		"base.yaml":        head + "maxPods: 20\nregistryBurst: 3\nclusterDNS: [1.1.1.1, 2.2.2.2]\nevictionHard: {memory.available: 1Gi}\nfeatureGates: {AllAlpha: false, MemoryQoS: true}\nkubeReserved: {cpu: \"1\", memory: 1Gi}\n",
		"merge.yaml":       head + "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n",
		"d/10-a.conf":      head + "maxPods: 30\nevictionHard: {pid.available: 5%}\nkubeReserved: {cpu: \"2\"}\n",
		"d/20-b/x.conf":    head + "maxPods: 40\nclusterDNS: [3.3.3.3]\nnoSuchField: 1\n",
		"d/20-b.conf":      head + "maxPods: 50\n",
		"d/30.conf":        head + "registryBurst: null\nkubeReserved: {memory: null}\n",
		"d/99-ignored.yml": "not even YAML: [",
	})
	f := func(name string) string { return "--config=" + filepath.Join(dir, name) }
	drop := "--config-dir=" + filepath.Join(dir, "d")
	for _, tc := range []struct {
		name string
		args []string
		ok   func(c *configuration) bool
	}{
		{"flags only", nil, func(c *configuration) bool {
			return *c.Authentication.Anonymous.Enabled && !*c.Authentication.Webhook.Enabled && c.Authorization.Mode == "AlwaysAllow" && c.ReadOnlyPort == 10255 && c.EvictionHard == nil
		}},
		{"an empty file", []string{f("empty.yaml")}, func(c *configuration) bool {
			return !*c.Authentication.Anonymous.Enabled && *c.Authentication.Webhook.Enabled && c.Authorization.Mode == "Webhook" && c.ReadOnlyPort == 0 && len(c.EvictionHard) == 5
		}},
		{"drop-ins only", []string{drop}, func(c *configuration) bool {
			return *c.Authentication.Anonymous.Enabled && c.ReadOnlyPort == 10255 && reflect.DeepEqual(c.EvictionHard, map[string]string{"pid.available": "5%"})
		}},
		{"a file", []string{f("base.yaml")}, func(c *configuration) bool {
			return c.MaxPods == 20 && reflect.DeepEqual(c.EvictionHard, map[string]string{"memory.available": "1Gi"})
		}},
		{"merged thresholds", []string{f("merge.yaml")}, func(c *configuration) bool {
			return len(c.EvictionHard) == 5 && c.EvictionHard["memory.available"] == "1Gi" && c.EvictionHard["nodefs.available"] == "10%"
		}},
		{"drop-ins over defaults of the file", []string{f("empty.yaml"), drop}, func(c *configuration) bool {
			return len(c.EvictionHard) == 6 && c.EvictionHard["pid.available"] == "5%"
		}},
		// "20-b" sorts before "20-b.conf"; null gives the default back.
		{"drop-ins in order", []string{f("base.yaml"), drop}, func(c *configuration) bool {
			return c.MaxPods == 50 && c.RegistryBurst == 10 && slices.Equal(c.ClusterDNS, []string{"3.3.3.3"}) &&
				reflect.DeepEqual(c.KubeReserved, map[string]string{"cpu": "2"}) && len(c.EvictionHard) == 2
		}},
		{"flags last", []string{f("base.yaml"), drop, "--max-pods=60", "--cluster-dns=9.9.9.9", "--eviction-hard=nodefs.available<1%", "--kube-reserved=pid=5", "--cgroup-root=/x"}, func(c *configuration) bool {
			return c.MaxPods == 60 && slices.Equal(c.ClusterDNS, []string{"9.9.9.9"}) && reflect.DeepEqual(c.EvictionHard, map[string]string{"nodefs.available": "1%"}) &&
				reflect.DeepEqual(c.KubeReserved, map[string]string{"pid": "5"}) && c.CgroupRoot == "/x"
		}},
		{"lists of several flags", []string{f("base.yaml"), "--cluster-dns=8.8.8.8", "--cluster-dns=9.9.9.9"}, func(c *configuration) bool {
			return slices.Equal(c.ClusterDNS, []string{"8.8.8.8", "9.9.9.9"})
		}},
		{"gates are merged", []string{f("base.yaml"), "--feature-gates=AllAlpha=true,EventedPLEG=true"}, func(c *configuration) bool {
			return reflect.DeepEqual(c.FeatureGates, map[string]bool{"AllAlpha": true, "EventedPLEG": true, "MemoryQoS": true})
		}},
		{"a flag at the default wins", []string{f("base.yaml"), "--max-pods=110"}, func(c *configuration) bool { return c.MaxPods == 110 }},
		{"gates of flags decide defaults of the file", []string{f("empty.yaml"), "--feature-gates=KubeletCrashLoopBackOffMax=false"}, func(c *configuration) bool {
			return c.CrashLoopBackOff.MaxContainerRestartPeriod == nil
		}},
	} {
		cl, _, err := commandOf(t, tc.args...)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if !tc.ok(cl.config) {
			t.Errorf("%s: anonymous %v, read-only %d, maxPods %d, burst %d, DNS %v, eviction %v, reserved %v, gates %v", tc.name, *cl.config.Authentication.Anonymous.Enabled,
				cl.config.ReadOnlyPort, cl.config.MaxPods, cl.config.RegistryBurst, cl.config.ClusterDNS, cl.config.EvictionHard, cl.config.KubeReserved, cl.config.FeatureGates)
		}
	}
	cl, _, err := commandOf(t, drop)
	if err != nil || !slices.Equal(cl.skipped, []string{filepath.Join(dir, "d/99-ignored.yml")}) {
		t.Errorf("skipped %v, %v", cl.skipped, err)
	}
}

func TestRelativePaths(t *testing.T) {
	dir := write(t, map[string]string{"c/k.yaml": head + "staticPodPath: pods\ntlsCertFile: a.crt\ntlsPrivateKeyFile: /abs.key\nresolvConf: r\nvolumePluginDir: v\npodLogsDir: ../logs\nauthentication: {x509: {clientCAFile: ca}}\n"})
	cl, _, err := commandOf(t, "--config="+filepath.Join(dir, "c/k.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := cl.config
	got := []string{c.StaticPodPath, c.TLSCertFile, c.TLSPrivateKeyFile, *c.ResolverConfig, c.VolumePluginDir, c.PodLogsDir, c.Authentication.X509.ClientCAFile}
	at := func(p string) string { return filepath.Join(dir, p) }
	if want := []string{at("c/pods"), at("c/a.crt"), "/abs.key", at("c/r"), at("c/v"), at("logs"), at("c/ca")}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	cl, _, err = commandOf(t, "--config="+filepath.Join(dir, "c/k.yaml"), "--pod-manifest-path=here")
	if err != nil || cl.config.StaticPodPath != "here" {
		t.Errorf("a flag's path is relative to the working directory: %q, %v", cl.config.StaticPodPath, err)
	}
}

func TestConfigStrictness(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		err, warns string
	}{
		{"fine", head + "syncFrequency: 30s\n", "", ""},
		{"JSON", `{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","maxPods":3}`, "", ""},
		{"empty", "", `k.yaml" was empty`, ""},
		{"unknown field", head + "maxPod: 3\n", "", `unknown field "maxPod"`},
		{"duplicate field", head + "maxPods: 3\nmaxPods: 4\n", "", `key "maxPods" already set in map`},
		{"wrong case", head + "maxpods: 3\n", "", `unknown field "maxpods"`},
		{"wrong type", head + "maxPods: many\n", "failed to decode: ", ""},
		{"wrong type and unknown", head + "maxPods: many\nfoo: 1\n", "failed to decode: ", ""},
		{"wrong duration", head + "syncFrequency: soon\n", "failed to decode: ", ""},
		{"no kind", "maxPods: 3\n", "failed to decode: ", ""},
		{"another version", strings.Replace(head, "v1beta1", "v1", 1), `no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"`, ""},
		{"another kind", strings.Replace(head, "KubeletConfiguration", "Pod", 1), `no kind "Pod" is registered for version "kubelet.config.k8s.io/v1beta1"`, ""},
		{"another kind of the group", strings.Replace(head, "KubeletConfiguration", "SerializedNodeConfigSource", 1), "failed to cast object to KubeletConfiguration, unexpected type: ", ""},
		{"no YAML", "a: [", "failed to decode: ", ""},
		{"a gate that there is not", head + "featureGates: {Nope: true}\n", "unrecognized feature gate: Nope", ""},
	} {
		dir := write(t, map[string]string{"k.yaml": tc.text})
		file := filepath.Join(dir, "k.yaml")
		cl, _, err := commandOf(t, "--config="+file)
		switch {
		case tc.err == "" && err != nil, tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("%s: %v, want %q", tc.name, err, tc.err)
		case tc.err != "" && !strings.HasPrefix(err.Error(), "failed to load kubelet config file, path: "+file+", error: failed to load Kubelet config file "):
			t.Errorf("%s: %v", tc.name, err)
		case tc.warns == "" && cl.lenient != nil, tc.warns != "" && (cl.lenient == nil || !strings.Contains(cl.lenient.Error(), tc.warns)):
			t.Errorf("%s: strict error %v, want %q", tc.name, cl.lenient, tc.warns)
		}
	}
	cl, _, err := commandOf(t, "--config="+filepath.Join(write(t, map[string]string{"k": head + "maxPod: 1\nmaxPods: 4\n"}), "k"))
	if err != nil || cl.config.MaxPods != 4 {
		t.Errorf("what is known counts: %v, %v", cl.config.MaxPods, err)
	}
}

func TestDropInErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", `x.conf" was empty`},
		{"maxPods: 3\n", "x.conf, no apiVersion/kind"},
		{"kind: KubeletConfiguration\n", "x.conf, unknown apiVersion/kind: /, Kind=KubeletConfiguration"},
		{strings.Replace(head, "v1beta1", "v2", 1), "x.conf, unknown apiVersion/kind: kubelet.config.k8s.io/v2, Kind=KubeletConfiguration"},
		{head + "maxPods: 3\nmaxPods: 4\n", `key "maxPods" already set in map`},
		{head + "maxPods: many\n", "failed to unmarshal merged JSON into kubelet configuration: "},
		{"a: [", "failed to load kubelet dropin file, path: "},
	} {
		dir := write(t, map[string]string{"x.conf": tc.text})
		_, _, err := commandOf(t, "--config-dir="+dir)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "failed to merge kubelet configs: ") {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
	if _, _, err := commandOf(t, "--config-dir=/no/such/dir"); err == nil || !strings.Contains(err.Error(), `failed to walk through kubelet dropin directory "/no/such/dir"`) {
		t.Errorf("no directory: %v", err)
	}
	dir := write(t, map[string]string{"elsewhere/x.conf": head + "maxPods: 3\n", "d/README": ""})
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "d/link")); err != nil {
		t.Fatal(err)
	}
	cl, _, err := commandOf(t, "--config-dir="+filepath.Join(dir, "d"))
	if err != nil || cl.config.MaxPods != 110 {
		t.Errorf("links to directories are not entered: %d, %v", cl.config.MaxPods, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{head + "maxPods: 3\n", head + "foo: 1\n", head + "evictionHard: {memory.available: 1Gi}\nlogging: {flushFrequency: 5}\n", "a: [", `{"kind":1}`, head + "featureGates: {AllBeta: false}\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Decode(data, nil)
		if err == nil {
			if c.SyncFrequency.Duration == 0 || c.MaxPods == 0 || c.HealthzPort == nil {
				t.Error("a configuration without defaults")
			}
			if err := overlay(c, []string{"--max-pods=5"}); err != nil || c.MaxPods != 5 {
				t.Errorf("flags over it: %v", err)
			}
			Ignored(c, pflagSet(t))
		}
		patch, err := decodeDropIn(data)
		if err != nil {
			return
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.conf"), patch, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, _, err := MergeDir(NewConfiguration(), dir, nil); err == nil && c.SyncFrequency.Duration == 0 {
			t.Error("a merged configuration without defaults")
		}
	})
}

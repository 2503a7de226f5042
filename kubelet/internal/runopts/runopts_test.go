package runopts

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// objects has configMaps and secrets by their names.
type objects struct {
	configMaps map[string]*v1.ConfigMap
	secrets    map[string]*v1.Secret
	reads      int
}

type configMapReader struct{ *objects }

func (o configMapReader) Get(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	o.reads++
	if cm := o.configMaps[name]; cm != nil {
		return cm, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmap"}, name)
}

type secretReader struct{ *objects }

func (o secretReader) Get(_ context.Context, _, name string) (*v1.Secret, error) {
	o.reads++
	if s := o.secrets[name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secret"}, name)
}

type services struct {
	list   []*v1.Service
	synced bool
}

func (s *services) HasSynced() bool         { return s.synced }
func (s *services) Services() []*v1.Service { return s.list }

type volumes kubecontainer.VolumeMap

func (v volumes) GetMountedVolumesForPod(types.UID) kubecontainer.VolumeMap {
	return kubecontainer.VolumeMap(v)
}

type rig struct {
	g       *Generator
	fs      *memfs.FS
	objects objects
	volumes volumes
	serves  services
}

func newRig(t *testing.T) *rig {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	r := &rig{fs: memfs.New(memfs.Options{Loop: l}), volumes: volumes{}}
	r.objects = objects{
		configMaps: map[string]*v1.ConfigMap{"cm": {Data: map[string]string{"a": "1", "bad-name": "3"}, BinaryData: map[string][]byte{"bin": {1}}}},
		secrets:    map[string]*v1.Secret{"s": {Data: map[string][]byte{"a": []byte("x"), "k": []byte("$(A)")}}},
	}
	r.serves = services{synced: true, list: []*v1.Service{service("default", "kubernetes", "10.96.0.1", 443)}}
	r.g = New(Options{
		FS: r.fs, PodsDir: "/pods", ClusterDomain: "cluster.local", ConfigMaps: configMapReader{&r.objects}, Secrets: secretReader{&r.objects},
		Services: &r.serves, Volumes: r.volumes,
		HostIPs:           func() []v1.HostIP { return []v1.HostIP{{IP: "192.168.0.1"}, {IP: "fd00::1"}} },
		Allocatable:       func() v1.ResourceList { return v1.ResourceList{v1.ResourceCPU: resource.MustParse("2500m")} },
		RecursiveReadOnly: func(class string) bool { return class == "rro" },
	})
	if err := r.fs.MkdirAll("/pods/u", 0o750); err != nil {
		t.Fatal(err)
	}
	return r
}

func service(namespace, name, ip string, port int32) *v1.Service {
	s := &v1.Service{Spec: v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Port: port}}}}
	s.Namespace, s.Name = namespace, name
	return s
}

func testPod() *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{NodeName: "n", ServiceAccountName: "sa", EnableServiceLinks: new(false), Containers: []v1.Container{{Name: "c"}}}}
	p.Name, p.Namespace, p.UID = "p", "ns", "u"
	p.Labels, p.Annotations = map[string]string{"app": "web"}, map[string]string{"note": "hi"}
	return p
}

func (r *rig) generate(p *v1.Pod, ips ...string) (*kubecontainer.RunContainerOptions, error) {
	return r.g.GenerateRunContainerOptions(context.Background(), p, &p.Spec.Containers[0], ips, true)
}

// text writes an environment without what services give.
func text(env []*runtimeapi.KeyValue) string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv.Key, "KUBERNETES_") {
			out = append(out, kv.Key+"="+string(kv.Value))
		}
	}
	return strings.Join(out, " ")
}

func ref(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }

func TestEnvironment(t *testing.T) {
	field := func(name, path string) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}}
	}
	limit := func(name, res, divisor string) v1.EnvVar {
		f := &v1.ResourceFieldSelector{Resource: res}
		if divisor != "" {
			f.Divisor = resource.MustParse(divisor)
		}
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{ResourceFieldRef: f}}
	}
	fromCM := func(name, cm, key string, optional *bool) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: ref(cm), Key: key, Optional: optional}}}
	}
	fromSecret := func(name, s, key string, optional *bool) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: ref(s), Key: key, Optional: optional}}}
	}
	cmSource := func(prefix, name string, optional *bool) v1.EnvFromSource {
		return v1.EnvFromSource{Prefix: prefix, ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref(name), Optional: optional}}
	}
	yes := new(true)
	for _, tc := range []struct {
		name string
		from []v1.EnvFromSource
		env  []v1.EnvVar
		want string // or the error
	}{
		{"as recorded", nil, []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)2"}, {Name: "C", Value: "$$(A)"}, {Name: "D", Value: "$(ZZZ)x"}, {Name: "E", Value: "$(D)$(B)"}},
			"A=1 B=12 C=$(A) D=$(ZZZ)x E=$(ZZZ)x12"},
		{"later ones are not known yet", nil, []v1.EnvVar{{Name: "B", Value: "$(C)"}, {Name: "C", Value: "2"}, {Name: "B2", Value: "$(C)"}}, "B=$(C) B2=2 C=2"},
		{"the last of a name", nil, []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, {Name: "A", Value: "2"}}, "A=2 B=1"},
		{"a service's variable", nil, []v1.EnvVar{{Name: "A", Value: "$(KUBERNETES_SERVICE_HOST)"}}, "A=10.96.0.1"},
		{"envFrom", []v1.EnvFromSource{cmSource("P_", "cm", nil), cmSource("", "none", yes), {SecretRef: &v1.SecretEnvSource{LocalObjectReference: ref("s")}}},
			[]v1.EnvVar{{Name: "B", Value: "$(P_a)$(k)"}}, "B=1$(A) P_a=1 P_bad-name=3 a=x k=$(A)"},
		{"env over envFrom", []v1.EnvFromSource{cmSource("", "cm", nil)}, []v1.EnvVar{{Name: "a", Value: "mine"}}, "a=mine bad-name=3"},
		{"envFrom missing", []v1.EnvFromSource{cmSource("", "none", nil)}, nil, `configmap "none" not found`},
		{"secret missing", nil, []v1.EnvVar{fromSecret("A", "none", "a", nil)}, `secret "none" not found`},
		{"secret missing, optional", nil, []v1.EnvVar{fromSecret("A", "none", "a", yes)}, ""},
		{"key missing", nil, []v1.EnvVar{fromCM("A", "cm", "zz", nil)}, "couldn't find key zz in ConfigMap ns/cm"},
		{"key missing, optional", nil, []v1.EnvVar{fromCM("A", "cm", "zz", yes)}, ""},
		{"secret key missing", nil, []v1.EnvVar{fromSecret("A", "s", "zz", nil)}, "couldn't find key zz in Secret ns/s"},
		{"values of references stay", nil, []v1.EnvVar{{Name: "A", Value: "1"}, fromSecret("K", "s", "k", nil)}, "A=1 K=$(A)"},
		{"fields", nil, []v1.EnvVar{field("A", "metadata.name"), field("B", "metadata.labels['app']"), field("C", "metadata.annotations['none']"),
			field("D", "spec.nodeName"), field("E", "spec.serviceAccountName"), field("F", "status.hostIP"), field("G", "status.hostIPs"),
			field("H", "status.podIP"), field("I", "status.podIPs"), field("J", "metadata.uid"), field("K", "metadata.namespace")},
			"A=p B=web C= D=n E=sa F=192.168.0.1 G=192.168.0.1,fd00::1 H=10.0.0.7 I=10.0.0.7,fd00::7 J=u K=ns"},
		{"no such field", nil, []v1.EnvVar{field("A", "spec.bogus")}, "field label not supported: spec.bogus"},
		{"resources", nil, []v1.EnvVar{limit("A", "limits.cpu", ""), limit("B", "limits.cpu", "1m"), limit("C", "limits.memory", ""), limit("D", "requests.memory", "1Mi"), limit("E", "requests.cpu", "1m")},
			"A=1 B=250 C=67108864 D=30 E=100"},
		{"limit of the node", nil, []v1.EnvVar{limit("A", "limits.ephemeral-storage", "")}, "A=0"},
		{"bad resource", nil, []v1.EnvVar{limit("A", "limits.bogus", "")}, "unsupported container resource : limits.bogus"},
	} {
		r := newRig(t)
		p := testPod()
		c := &p.Spec.Containers[0]
		c.EnvFrom, c.Env = tc.from, tc.env
		c.Resources = v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("30Mi")},
			Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("64Mi")},
		}
		out, err := r.generate(p, "10.0.0.7", "fd00::7")
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = text(out.Envs)
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestEnvironmentPrerequisites(t *testing.T) {
	r := newRig(t)
	p := testPod()
	p.Spec.EnableServiceLinks = nil
	if _, err := r.generate(p); err == nil || err.Error() != "nil pod.spec.enableServiceLinks encountered, cannot construct envvars" {
		t.Error(err)
	}
	p = testPod()
	r.serves.synced = false
	if _, err := r.generate(p); err == nil || err.Error() != "services have not yet been read at least once, cannot construct envvars" {
		t.Error(err)
	}
	r.g.o.ConfigMaps = nil
	r.serves.synced = true
	p.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref("cm")}}}
	if _, err := r.generate(p); err == nil || err.Error() != "couldn't get configMap ns/cm, no kubeClient defined" {
		t.Error(err)
	}
}

// TestServiceVariablesAreShared: pods of a namespace without an environment of
// their own share one, and see the services change.
func TestServiceVariablesAreShared(t *testing.T) {
	r := newRig(t)
	one, _ := r.generate(testPod())
	two, _ := r.generate(testPod())
	if len(one.Envs) != 7 || &one.Envs[0] != &two.Envs[0] {
		t.Fatalf("%d variables", len(one.Envs))
	}
	r.serves.list = []*v1.Service{service("default", "kubernetes", "10.96.0.1", 443), service("ns", "my-db", "10.96.0.9", 5432), service("ns", "none", "None", 1)}
	p := testPod()
	if out, _ := r.generate(p); text(out.Envs) != "" {
		t.Error(text(out.Envs))
	}
	p.Spec.EnableServiceLinks = new(true)
	out, _ := r.generate(p)
	if got, want := text(out.Envs), "MY_DB_PORT=tcp://10.96.0.9:5432 MY_DB_PORT_5432_TCP=tcp://10.96.0.9:5432 MY_DB_PORT_5432_TCP_ADDR=10.96.0.9 "+
		"MY_DB_PORT_5432_TCP_PORT=5432 MY_DB_PORT_5432_TCP_PROTO=tcp MY_DB_SERVICE_HOST=10.96.0.9 MY_DB_SERVICE_PORT=5432"; got != want {
		t.Error(got)
	}
}

func TestParseEnvFile(t *testing.T) {
	for _, tc := range []struct{ text, key, want string }{
		{"A='1'\nB='2'\n", "B", "2"},
		{"# A='0'\n\n  A='1' # one\n", "A", "1"},
		{"A='a\n# not a comment\nb'\nB='2'", "A", "a\n# not a comment\nb"},
		{"A='a\nb'\nB='2'", "B", "2"},
		{"A= '1'\n", "A", ""},
		{"A='1'\nB=\"2\"\n", "A", "1"}, // what comes behind is not read
		{"B=\"2\"\nA='1'\n", "A", "error"},
		{"A ='1'\n", "A", "error"},
		{"='1'\n", "A", "error"},
		{"A\n", "A", "error"},
		{"A='1'x\n", "A", "error"},
		{"A='1\n", "A", "error"},
		{"B='x'", "A", ""},
		{"A=''", "A", ""},
		{"A='a\r\nb' # c\r\nB='2'\r\n", "A", "a\nb"},
	} {
		got, err := parseEnvFile(tc.text, tc.key)
		if err != nil {
			got = "error"
		}
		if got != tc.want {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
}

func FuzzParseEnvFile(f *testing.F) {
	f.Add("A='1'\nB='x\ny' # c\n", "B")
	f.Fuzz(func(t *testing.T, text, key string) {
		v, err := parseEnvFile(text, key)
		if err != nil && v != "" {
			t.Errorf("a value and an error: %q, %v", v, err)
		}
		if v != "" && !strings.Contains(lines(text), "'"+v+"'") {
			t.Errorf("%q is not in the file", v)
		}
	})
}

func TestFileKey(t *testing.T) {
	r := newRig(t)
	_ = r.fs.MkdirAll("/v/d", 0o755)
	_ = r.fs.WriteFile("/v/d/e", []byte("A='1'\n"), 0o644)
	_ = r.fs.WriteFile("/secret", []byte("A='0'\n"), 0o600)
	r.volumes["v"] = kubecontainer.VolumeInfo{Path: "/v"}
	for _, tc := range []struct {
		ref  v1.FileKeySelector
		want string
	}{
		{v1.FileKeySelector{VolumeName: "v", Path: "d/e", Key: "A"}, "X=1"},
		{v1.FileKeySelector{VolumeName: "v", Path: "d/e", Key: "B"}, `environment variable key "B" not found in file "d/e"`},
		{v1.FileKeySelector{VolumeName: "v", Path: "d/e", Key: "B", Optional: new(true)}, ""},
		{v1.FileKeySelector{VolumeName: "v", Path: "none", Key: "A"}, "couldn't parse env file"},
		{v1.FileKeySelector{VolumeName: "v", Path: "../secret", Key: "A"}, "couldn't parse env file"},
		{v1.FileKeySelector{VolumeName: "w", Path: "d/e", Key: "A"}, `cannot find the volume "w" referenced by FileKeyRef`},
	} {
		p := testPod()
		p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "X", ValueFrom: &v1.EnvVarSource{FileKeyRef: &tc.ref}}}
		out, err := r.generate(p)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = text(out.Envs)
		}
		if got != tc.want {
			t.Errorf("%+v: %s", tc.ref, got)
		}
	}
}

func TestHosts(t *testing.T) {
	const head = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	alias := []v1.HostAlias{{IP: "1.2.3.4", Hostnames: []string{"a.b", "c"}}}
	for _, tc := range []struct {
		name string
		set  func(p *v1.Pod)
		ips  []string
		want string // "" for no mount
	}{
		{"plain", func(*v1.Pod) {}, []string{"10.0.0.7"}, head + "10.0.0.7\tp\n"},
		{"with a domain, two addresses", func(p *v1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "h", "s" }, []string{"10.0.0.7", "fd00::7"},
			head + "10.0.0.7\th.s.ns.svc.cluster.local\th\nfd00::7\th.s.ns.svc.cluster.local\th\n"},
		{"aliases", func(p *v1.Pod) { p.Spec.HostAliases = alias }, []string{"10.0.0.7"},
			head + "10.0.0.7\tp\n\n# Entries added by HostAliases.\n1.2.3.4\ta.b\tc\n"},
		{"host network", func(p *v1.Pod) { p.Spec.HostNetwork, p.Spec.HostAliases = true, alias }, nil,
			"# Kubernetes-managed hosts file (host network).\n127.0.0.1 node\n\n# Entries added by HostAliases.\n1.2.3.4\ta.b\tc\n"},
		{"no address", func(*v1.Pod) {}, nil, ""},
		{"mounted by itself", func(p *v1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/etc/hosts"}}
		}, []string{"10.0.0.7"}, ""},
	} {
		r := newRig(t)
		_ = r.fs.MkdirAll("/etc", 0o755)
		_ = r.fs.WriteFile("/etc/hosts", []byte("127.0.0.1 node\n"), 0o644)
		r.volumes["v"] = kubecontainer.VolumeInfo{Path: "/v"}
		p := testPod()
		tc.set(p)
		out, err := r.generate(p, tc.ips...)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, m := range out.Mounts {
			if m.ContainerPath == "/etc/hosts" && m.HostPath == "/pods/u/etc-hosts" {
				b, _ := r.fs.ReadFile(m.HostPath)
				got = string(b)
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// TestWithoutFiles: a container that never looks at its files has none.
func TestWithoutFiles(t *testing.T) {
	r := newRig(t)
	p := testPod()
	c := &p.Spec.Containers[0]
	c.TerminationMessagePath = "/dev/termination-log"
	out, err := r.g.GenerateRunContainerOptions(context.Background(), p, c, []string{"10.0.0.7"}, false)
	if err != nil || out.Mounts != nil || out.PodContainerDir != "" || len(out.Envs) == 0 {
		t.Error(out, err)
	}
	if entries, _ := r.fs.ReadDir("/pods/u"); len(entries) > 0 {
		t.Errorf("%d files", len(entries))
	}
}

func TestTerminationMessageDir(t *testing.T) {
	r := newRig(t)
	p := testPod()
	if out, _ := r.generate(p); out.PodContainerDir != "" {
		t.Error(out.PodContainerDir)
	}
	p.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
	out, _ := r.generate(p)
	if i, err := r.fs.Stat(out.PodContainerDir); out.PodContainerDir != "/pods/u/containers/c" || err != nil || i.Mode().Perm() != 0o750 {
		t.Error(out.PodContainerDir, err)
	}
}

func TestMounts(t *testing.T) {
	mode := func(m v1.MountPropagationMode) *v1.MountPropagationMode { return &m }
	rro := func(m v1.RecursiveReadOnlyMode) *v1.RecursiveReadOnlyMode { return &m }
	for _, tc := range []struct {
		mount v1.VolumeMount
		class string
		want  string // host path and flags, or the error
	}{
		{v1.VolumeMount{Name: "v", MountPath: "/m"}, "", "/v private"},
		{v1.VolumeMount{Name: "v", MountPath: "m", ReadOnly: true}, "", "/v ro private"},
		{v1.VolumeMount{Name: "cm", MountPath: "/m"}, "", "/cm ro private"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", MountPropagation: mode(v1.MountPropagationHostToContainer)}, "", "/v host_to_container"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", MountPropagation: mode(v1.MountPropagationBidirectional)}, "", "/v bidirectional"},
		{v1.VolumeMount{Name: "none", MountPath: "/m"}, "", `cannot find volume "none" to mount into container "c"`},
		{v1.VolumeMount{Name: "v", MountPath: "/m", SubPath: "a/b"}, "", "/v/a/b private"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", SubPathExpr: "$(POD)/x"}, "", "/v/p/x private"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", SubPathExpr: "$(Z)$(EMPTY)$(POD)"}, "", "missing value for EMPTY, Z"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", SubPathExpr: "a/$(UP)"}, "", "unable to provision SubPath `a/..`: must not contain '..'"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", SubPath: "/a"}, "", "error SubPath `/a` must not be an absolute path"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", SubPath: "out"}, "", `failed to prepare subPath for volumeMount "v" of container "c"`},
		{v1.VolumeMount{Name: "v", MountPath: "/m", SubPath: "out/new"}, "", `failed to create subPath directory for volumeMount "v" of container "c"`},
		{v1.VolumeMount{Name: "v", MountPath: "/m", SubPath: "file/x"}, "", `failed to prepare subPath for volumeMount "v" of container "c"`},
		{v1.VolumeMount{Name: "cm", MountPath: "/m", SubPath: "d"}, "", "/cm/..1/d ro private"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: rro(v1.RecursiveReadOnlyIfPossible)}, "", "/v ro private"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: rro(v1.RecursiveReadOnlyIfPossible)}, "rro", "/v ro rro private"},
		{v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: rro(v1.RecursiveReadOnlyEnabled)}, "", `volume "v" requested recursive read-only mode, but it is not supported by the runtime`},
		{v1.VolumeMount{Name: "v", MountPath: "/m", RecursiveReadOnly: rro(v1.RecursiveReadOnlyEnabled)}, "rro", `volume "v" requested recursive read-only mode, but it is not read-only`},
		{v1.VolumeMount{Name: "i", MountPath: "/m", SubPath: "s"}, "", " ro private"},
	} {
		r := newRig(t)
		for _, d := range []string{"/v", "/cm/..1/d", "/outside"} {
			_ = r.fs.MkdirAll(d, 0o777)
		}
		_ = r.fs.WriteFile("/v/file", nil, 0o644)
		_ = r.fs.Symlink("/outside", "/v/out")
		_ = r.fs.Symlink("..1", "/cm/..data")
		_ = r.fs.Symlink("..data/d", "/cm/d")
		r.volumes["v"], r.volumes["cm"] = kubecontainer.VolumeInfo{Path: "/v"}, kubecontainer.VolumeInfo{Path: "/cm", ReadOnly: true}
		r.volumes["i"] = kubecontainer.VolumeInfo{Image: &runtimeapi.ImageSpec{Image: "x"}}
		p := testPod()
		p.Spec.RuntimeClassName = &tc.class
		c := &p.Spec.Containers[0]
		c.Env = []v1.EnvVar{{Name: "POD", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}, {Name: "EMPTY"}, {Name: "UP", Value: ".."}}
		c.VolumeMounts = []v1.VolumeMount{tc.mount}
		out, err := r.generate(p)
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = describe(out.Mounts[0])
			if out.Mounts[0].ContainerPath != "/m" {
				t.Error(out.Mounts[0].ContainerPath)
			}
		}
		if got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.mount, got, tc.want)
		}
		if i, err := r.fs.Stat("/v/a/b"); tc.mount.SubPath == "a/b" && (err != nil || i.Mode().Perm() != 0o777) {
			t.Error("the directory of the subPath", err)
		}
		if entries, _ := r.fs.ReadDir("/outside"); len(entries) > 0 {
			t.Error("something was made outside the volume")
		}
	}
}

func describe(m *runtimeapi.Mount) string {
	out := m.HostPath
	if m.Readonly {
		out += " ro"
	}
	if m.RecursiveReadOnly {
		out += " rro"
	}
	return out + " " + strings.ToLower(strings.TrimPrefix(m.Propagation.String(), "PROPAGATION_"))
}

// TestSubPathFileStays: the file that a subPath leads to stays what it is when
// the volume is updated.
func TestSubPathFileStays(t *testing.T) {
	r := newRig(t)
	if _, ok := any(r.fs).(linker); !ok {
		t.Skip("the file system has no hard links")
	}
	_ = r.fs.MkdirAll("/cm/..1", 0o755)
	_ = r.fs.WriteFile("/cm/..1/a", []byte("old"), 0o644)
	_ = r.fs.Symlink("..1", "/cm/..data")
	_ = r.fs.Symlink("..data/a", "/cm/a")
	r.volumes["cm"] = kubecontainer.VolumeInfo{Path: "/cm", ReadOnly: true}
	p := testPod()
	p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cm", MountPath: "/f/a", SubPath: "a"}}
	for range 2 { // also when the container starts again
		out, err := r.generate(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Mounts[0].HostPath; got != path.Join("/pods/u/volume-subpaths/cm/c", fmt.Sprint(0)) {
			t.Fatal(got)
		}
		_ = r.fs.RemoveAll("/cm/..1")
		if b, err := r.fs.ReadFile(out.Mounts[0].HostPath); string(b) != "old" {
			t.Fatal(string(b), err)
		}
		_ = r.fs.MkdirAll("/cm/..1", 0o755)
		_ = r.fs.WriteFile("/cm/..1/a", []byte("old"), 0o644)
	}
}

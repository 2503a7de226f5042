package kubelet

import (
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

func TestDefaultsAreValid(t *testing.T) {
	cfg := &kubeletconfig.KubeletConfiguration{}
	SetDefaults(cfg)
	if err := Validate(cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.EvictionHard["imagefs.available"] != "15%" || *cfg.SerializeImagePulls != true || cfg.SyncFrequency.Duration != time.Minute {
		t.Errorf("defaults %+v", cfg)
	}
	again := cfg.DeepCopy()
	SetDefaults(again)
	if !reflect.DeepEqual(again, cfg) {
		t.Error("defaults change what is set")
	}
}

func TestDependentDefaults(t *testing.T) {
	two := int32(2)
	cfg := &kubeletconfig.KubeletConfiguration{
		NodeStatusUpdateFrequency: metav1.Duration{Duration: 20 * time.Second}, MaxParallelImagePulls: &two,
		EvictionHard: map[string]string{"memory.available": "1Gi"},
	}
	SetDefaults(cfg)
	if cfg.NodeStatusReportFrequency.Duration != 20*time.Second {
		t.Error("the report frequency follows an update frequency that is set")
	}
	if *cfg.SerializeImagePulls {
		t.Error("parallel pulls switch serial ones off")
	}
	if len(cfg.EvictionHard) != 1 {
		t.Errorf("thresholds that are set get no others: %v", cfg.EvictionHard)
	}
	merge := true
	cfg.MergeDefaultEvictionSettings = &merge
	SetDefaults(cfg)
	if len(cfg.EvictionHard) != 5 || cfg.EvictionHard["memory.available"] != "1Gi" {
		t.Errorf("merged thresholds %v", cfg.EvictionHard)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	pct := func(n int32) *int32 { return &n }
	for _, tc := range []struct {
		change func(*kubeletconfig.KubeletConfiguration)
		want   string
	}{
		{func(c *kubeletconfig.KubeletConfiguration) { c.MaxPods = -1 }, "maxPods: Invalid value: -1"},
		{func(c *kubeletconfig.KubeletConfiguration) { c.AllowedUnsafeSysctls = []string{"vm.*"} }, `the sysctls "vm.*" are not known to be namespaced`},
		{func(c *kubeletconfig.KubeletConfiguration) { c.EvictionHard = map[string]string{"memory.avail": "1Mi"} }, "unsupported eviction signal memory.avail"},
		{func(c *kubeletconfig.KubeletConfiguration) {
			c.EvictionHard = map[string]string{"nodefs.available": "120%"}
		}, "evictionHard[nodefs.available]"},
		{func(c *kubeletconfig.KubeletConfiguration) {
			c.EvictionSoft = map[string]string{"memory.available": "1Gi"}
		}, "grace period must be specified"},
		{func(c *kubeletconfig.KubeletConfiguration) { c.KubeReserved = map[string]string{"gpu": "1"} }, `cannot reserve "gpu" resource`},
		{func(c *kubeletconfig.KubeletConfiguration) { c.SystemReserved = map[string]string{"cpu": "x"} }, "systemReserved"},
		{func(c *kubeletconfig.KubeletConfiguration) { c.CPUManagerPolicy = "dynamic" }, "cpuManagerPolicy: Unsupported value"},
		{func(c *kubeletconfig.KubeletConfiguration) { c.ImageGCLowThresholdPercent = pct(90) }, "imageGCLowThresholdPercent"},
		{func(c *kubeletconfig.KubeletConfiguration) { c.MaxParallelImagePulls = pct(3) }, "maxParallelImagePulls"},
		{func(c *kubeletconfig.KubeletConfiguration) {
			c.CrashLoopBackOff.MaxContainerRestartPeriod = &metav1.Duration{Duration: time.Hour}
		}, "crashLoopBackOff.maxContainerRestartPeriod"},
		{func(c *kubeletconfig.KubeletConfiguration) {
			c.RegisterWithTaints = []v1.Taint{{Key: "a", Effect: "Never"}}
		}, "registerWithTaints[0].effect"},
		{func(c *kubeletconfig.KubeletConfiguration) {
			c.FeatureGates = map[string]bool{"SidecarContainers": false}
		}, "featureGates[SidecarContainers]"},
		{func(c *kubeletconfig.KubeletConfiguration) { c.EnforceNodeAllocatable = []string{"none", "pods"} }, "enforceNodeAllocatable[0]"},
		{func(c *kubeletconfig.KubeletConfiguration) { c.SyncFrequency.Duration = -1 }, "syncFrequency"},
	} {
		cfg := &kubeletconfig.KubeletConfiguration{}
		SetDefaults(cfg)
		tc.change(cfg)
		if err := Validate(cfg); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "invalid configuration: ") {
			t.Errorf("want %q, got %v", tc.want, err)
		}
	}
}

func TestUnsupported(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	pod := testPod(func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{RestartPolicy: &always}}
		p.Spec.Containers = []v1.Container{{LivenessProbe: &v1.Probe{}, VolumeDevices: []v1.VolumeDevice{{}}, Env: []v1.EnvVar{
			{Name: "A", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{}}},
			{Name: "B", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{}}},
		}}}
		p.Spec.Volumes = []v1.Volume{{Name: "data"}}
	})
	got := strings.Join(Unsupported(pod), "\n")
	want := "spec.containers[0].volumeDevices: there are no block devices, since there are no persistent volumes yet\n" +
		"spec.volumes[0] (data): volumes of this kind are not supported yet"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if out := Unsupported(testPod()); out != nil {
		t.Errorf("a plain pod: %v", out)
	}
}

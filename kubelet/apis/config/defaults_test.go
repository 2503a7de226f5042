package config

import (
	"reflect"
	"testing"
	"time"

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

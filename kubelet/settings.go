package kubelet

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/eviction"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
)

// Settings are what follows from a configuration and a machine's capacity
// alone. They are worked out once and never written to, so that all kubelets
// with the same two can share them.
type Settings struct {
	gates    features.Gates
	reserved *cm.Reservations
	sysctls  *lifecycle.Sysctls
	declared []string // features
	// annotations are those of a new node.
	annotations map[string]string
	// withheld is what of the capacity is not for pods.
	withheld v1.ResourceList
	// resources are the node's, with and without local storage.
	resources struct{ all, noStorage *nodestatus.Resources }
	eviction  eviction.Config
	// thresholds is nil if there is something wrong with them, of which the
	// eviction manager tells when it is made.
	thresholds *eviction.ThresholdSet
}

// NewSettings refuses what is wrong with a configuration. ignoreEviction is
// Options.AllocatableIgnoresEviction. It keeps both arguments.
func NewSettings(cfg *kubeletconfig.KubeletConfiguration, capacity v1.ResourceList, ignoreEviction bool) (*Settings, error) {
	if err := kubeletcfg.Validate(cfg); err != nil {
		return nil, err
	}
	if cfg.SyncFrequency.Duration <= 0 {
		return nil, fmt.Errorf("invalid sync frequency %d", cfg.SyncFrequency.Duration)
	}
	s := &Settings{annotations: nodestatus.Annotations(ptr.Deref(cfg.EnableControllerAttachDetach, true)), eviction: evictionConfig(cfg)}
	var err error
	if s.reserved, err = cm.NewReservations(cfg); err != nil {
		return nil, err
	}
	s.reserved.IgnoreEviction = ignoreEviction
	if s.sysctls, err = lifecycle.NewSysctls(cfg.AllowedUnsafeSysctls); err != nil {
		return nil, err
	}
	if s.gates, err = features.Resolve(cfg.FeatureGates); err != nil {
		return nil, err
	}
	s.declared = declaredFeatures(s.gates)
	if ignoreEviction {
		s.eviction.Allocatable = false
	}
	if set, err := eviction.NewThresholdSet(&s.eviction); err == nil {
		s.thresholds = set
	}
	s.withheld = s.reserved.Total(capacity)
	s.resources.noStorage = s.nodeResources(cfg, capacity, false)
	s.resources.all = s.nodeResources(cfg, capacity, ptr.Deref(cfg.LocalStorageCapacityIsolation, true))
	return s, nil
}

// declaredFeatures are the node's, sorted: those of gates that are on. They go into the node's
// status, for the scheduler and admission to compare with what pods ask for (KEP-5328).
func declaredFeatures(gates features.Gates) []string {
	if !gates.Enabled(features.NodeDeclaredFeatures) {
		return nil
	}
	return nodedeclaredfeatures.DefaultFramework.DiscoverNodeFeatures(&nodedeclaredfeatures.NodeConfiguration{FeatureGates: gates})
}

func (s *Settings) nodeResources(cfg *kubeletconfig.KubeletConfiguration, machine v1.ResourceList, withStorage bool) *nodestatus.Resources {
	capacity := make(v1.ResourceList, len(machine)+1)
	for name, q := range machine { //drydock:unordered copies a map
		if name != v1.ResourceEphemeralStorage || withStorage {
			capacity[name] = q
		}
	}
	cores := machine[v1.ResourceCPU]
	capacity[v1.ResourcePods] = *resource.NewQuantity(cm.PodCapacity(cores.Value(), cfg), resource.DecimalSI)
	return &nodestatus.Resources{Capacity: capacity, Allocatable: s.reserved.Allocatable(capacity)}
}

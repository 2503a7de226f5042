package schedulerconfig

import (
	"os"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *configv1.KubeSchedulerConfiguration {
	t.Helper()
	cfg := &configv1.KubeSchedulerConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(text), cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestDefault holds the default profile, point by point, in upstream's order.
func TestDefault(t *testing.T) {
	p := Default().Profiles[0]
	if got, want := strings.Join(p.points[Filter], " "), "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"; got != want {
		t.Errorf("filters are %s, want %s", got, want)
	}
	if got, want := strings.Join(p.points[PostFilter], " "), "DynamicResources DefaultPreemption"; got != want {
		t.Errorf("post-filters are %s, want %s", got, want)
	}
	for name, want := range map[string]int64{TaintToleration: 3, NodeAffinity: 2, NodeResourcesFit: 1, VolumeBinding: 1, PodTopologySpread: 2, InterPodAffinity: 2,
		NodeResourcesBalancedAllocation: 1, ImageLocality: 1, DynamicResources: 2, NodePorts: 0} {
		if got := p.Weight(name); got != want {
			t.Errorf("%s has weight %d, want %d", name, got, want)
		}
	}
	if NoEffect(nil) != nil || len(Default().Profiles) != 1 || len(NoEffect(&configv1.KubeSchedulerConfiguration{})) > 0 {
		t.Error("an empty configuration has parts without effect")
	}
}

// TestPoints lays plugins over the defaults (framework/runtime/framework_test.go has the like).
func TestPoints(t *testing.T) {
	for _, tt := range []struct {
		name, plugins string
		point         Point
		want          string
	}{
		{"disabled everywhere", "multiPoint: {disabled: [{name: ImageLocality}]}", Score, "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity DynamicResources NodeResourcesBalancedAllocation"},
		{"disabled at a point", "score: {disabled: [{name: NodeResourcesFit}]}", Score, "TaintToleration NodeAffinity VolumeBinding PodTopologySpread InterPodAffinity DynamicResources NodeResourcesBalancedAllocation ImageLocality"},
		{"and still at the others", "score: {disabled: [{name: NodeResourcesFit}]}", PreFilter, "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"},
		{"all but one", `score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality}]}`, Score, "ImageLocality"},
		{"none but these", `multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodePorts}]}`, Filter, "NodePorts"},
		{"a weight at multiPoint keeps the place", "multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}", Filter, "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"},
		{"named at a point comes first", "score: {enabled: [{name: ImageLocality, weight: 5}]}", Score, "ImageLocality TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity DynamicResources NodeResourcesBalancedAllocation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Resolve(parse(t, "profiles: [{plugins: {"+tt.plugins+"}}]"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(c.Profiles[0].points[tt.point], " "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	c, err := Resolve(parse(t, "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 5}]}, multiPoint: {enabled: [{name: NodeAffinity, weight: 7}, {name: ImageLocality, weight: 9}]}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Profiles[0]; p.Weight(ImageLocality) != 5 || p.Weight(NodeAffinity) != 7 {
		t.Errorf("weights are %d and %d, want 5 and 7", p.Weight(ImageLocality), p.Weight(NodeAffinity))
	}
}

// TestRefused is a table of mistakes with what upstream v1.36.3 says of each, the text after the
// field: testdata/refused.yaml.
func TestRefused(t *testing.T) {
	data, err := os.ReadFile("testdata/refused.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table []struct {
		Config map[string]any `json:"config"`
		// Error: a part of what is said.
		Error []string `json:"error"`
	}
	if err := yaml.UnmarshalStrict(data, &table); err != nil {
		t.Fatal(err)
	}
	for i, tt := range table {
		text, _ := yaml.Marshal(tt.Config)
		_, err := Resolve(parse(t, string(text)))
		if err == nil {
			t.Errorf("%d: nothing is wrong with\n%s", i, text)
			continue
		}
		for _, want := range tt.Error {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%d: got  %v\nwant %s", i, err, want)
			}
		}
	}
}

func TestNoEffect(t *testing.T) {
	got := strings.Join(NoEffect(parse(t, `
parallelism: 8
leaderElection: {leaderElect: false}
profiles:
- plugins:
    multiPoint: {disabled: [{name: ImageLocality}, {name: Coscheduling}], enabled: [{name: NodePorts, weight: 3}]}
    score: {disabled: [{name: NodePorts}]}
    filter: {disabled: [{name: PodTopologySpread}]}
  pluginConfig:
  - {name: NodeName, args: {x: 1}}
  - {name: DynamicResources, args: {filterTimeout: 3s}}
`)), "\n")
	want := strings.TrimSpace(`
parallelism has no effect: one node is looked at after another, as by one worker
leaderElection has no effect: there is one scheduler
profiles[0].pluginConfig[0] has no effect: NodeName takes no arguments
profiles[0].pluginConfig[1].args.filterTimeout has no effect: filtering takes no time
profiles[0].plugins.multiPoint.disabled[1] has no effect: Coscheduling is not there by default
profiles[0].plugins.multiPoint.enabled[0].weight has no effect: nothing is scored there
profiles[0].plugins.score.disabled[0] has no effect: NodePorts is not there by default`)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

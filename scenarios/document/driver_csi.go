package document

import (
	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// CSIDriver is a driver of CSI. It stages, publishes and expands volumes, and tells what is used of them. What is behind it is in the scenario's `storage`.
type CSIDriver struct {
	// How many volumes a node can have. The driver does not say unless said.
	MaxVolumes int64 `json:"maxVolumes,omitempty"`
	// Volumes are published right away, without being staged for the node first.
	NoStage bool `json:"noStage,omitempty"`
	// How long calls take, by method: a time or a range. No time unless said.
	Latency map[string]value.Range `json:"latency,omitempty" keys:"csi"`
}

func (d *CSIDriver) methods() []string { return action.CSIMethods() }

// Check wants methods that there are.
func (d *CSIDriver) Check(at decode.Place) {
	for _, m := range decode.SortedKeys(d.Latency) {
		value.OneOf(at.Field("latency").Key(m), "method of the driver", m, action.CSIMethods())
	}
	value.NotNegative(at.Field("maxVolumes"), int(d.MaxVolumes))
}

func (d *CSIDriver) plugin(name string, n *sim.Node) plugins.Driver {
	out := plugins.CSI{
		Driver: name, NodeID: n.Name(), MaxVolumes: d.MaxVolumes, Storage: n.Storage(name), Latency: spans(d.Latency),
		Capabilities: []csi.NodeServiceCapability_RPC_Type{
			csi.NodeServiceCapability_RPC_EXPAND_VOLUME, csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_VOLUME_CONDITION,
		},
	}
	if !d.NoStage {
		out.Capabilities = append(out.Capabilities, csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	}
	if out.Storage == nil {
		return out
	}
	if key := out.Storage.TopologyKey(); key != "" {
		out.Topology = map[string]string{key: n.Labels()[key]}
	}
	return out
}

func spans(by map[string]value.Range) map[string]plugins.Span {
	out := make(map[string]plugins.Span, len(by))
	for m, r := range by { //drydock:unordered each key is set once
		out[m] = plugins.Span{Min: r.Min, Max: r.Max}
	}
	return out
}

package parity

import (
	"encoding/json"
	"testing"
)

// TestCSIActions: a driver that starts and stops shows in the CSINode object, and a volume
// is there.
func TestCSIActions(t *testing.T) {
	c, err := ReadPlugins([]byte(`{"name": "x", "plugins": ["x.csi.test"], "duration": 12, "actions": [
		{"at": 0.5, "action": "plugin", "op": "csi-start", "driver": "x.csi.test", "caps": ["STAGE_UNSTAGE_VOLUME"], "maxVolumes": 2, "topology": {"z": "z1"}},
		{"at": 1.1, "action": "volume", "name": "v", "driver": "x.csi.test", "attrs": {"k": "v"}},
		{"at": 6, "action": "plugin", "op": "csi-stop", "driver": "x.csi.test"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Replay(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var methods []string
	for _, call := range o.Plugins {
		methods = append(methods, call.Method)
	}
	var drivers []any
	for _, n := range o.CSINode {
		drivers = append(drivers, n.Drivers)
	}
	got, err := json.Marshal([]any{methods, drivers})
	if err != nil {
		t.Fatal(err)
	}
	want := `[["GetInfo","NodeGetInfo","NotifyRegistrationStatus","(stopped)"],` +
		`[[{"name":"x.csi.test","nodeID":"node-0-id","topologyKeys":["z"],"allocatable":{"count":2}}],[]]]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

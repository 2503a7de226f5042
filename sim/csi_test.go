package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// TestCSIDriversRegister shows what the API says of a node's drivers of CSI while they
// come, fail and go.
func TestCSIDriversRegister(t *testing.T) {
	c, err := sim.New(sim.Options{Seed: 1, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n, err := c.AddNode(sim.NodeOptions{Name: "node-0", Plugins: &plugins.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	last := map[string]string{}
	say := func(kind, what string) {
		if last[kind] != what {
			last[kind] = what
			got = append(got, kind+" "+what)
		}
	}
	c.API().OnChange(func(e apiserver.Change) {
		switch o := e.New.(type) {
		case *storagev1.CSINode:
			text, err := json.Marshal(o.Spec.Drivers)
			if err != nil {
				t.Error(err)
			}
			say("csinode", string(text))
		case *v1.Node:
			say("node", strings.TrimSpace(fmt.Sprint(o.Annotations["csi.volume.kubernetes.io/nodeid"], " ", o.Labels["zone.test/z"])))
		}
	}, apiserver.KindCSINode, apiserver.KindNode)
	n.At(30*time.Second, func() {
		n.Plugins().AddRules(plugins.Rule{Plugin: "a.csi.test", Method: "NodeGetInfo", Times: 1, Code: codes.Internal, Message: "not now"})
		n.Plugins().StartDriver(plugins.CSI{Driver: "a.csi.test", NodeID: "id", MaxVolumes: 3, Topology: map[string]string{"zone.test/z": "z1"}})
	})
	n.At(40*time.Second, n.StopKubelet)
	n.At(45*time.Second, n.StartKubelet)
	n.At(60*time.Second, func() {
		if err := n.Plugins().StopDriver("a.csi.test"); err != nil {
			t.Error(err)
		}
	})
	if err := c.RunUntil(90 * time.Second); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`node {"a.csi.test":"id"} z1`,
		`csinode null`, // it is made, and then written to
		`csinode [{"name":"a.csi.test","nodeID":"id","topologyKeys":["zone.test/z"],"allocatable":{"count":3}}]`,
		`csinode []`,
		`node z1`, // labels stay
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

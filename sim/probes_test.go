package sim_test

import (
	"fmt"
	"github.com/drydock-sim/drydock/ground/loop"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// A program that ends right before a probe makes that probe fail, which shows
// before the PLEG has seen the end: also where the probes before it, which all
// went well, were left out.
func TestProbeOfWhatHasJustEnded(t *testing.T) {
	with, probes := justEnded(t, false)
	without, all := justEnded(t, true)
	if len(without) == 0 {
		t.Error("no probe failed")
	}
	if !reflect.DeepEqual(with, without) {
		t.Errorf("probes failed, with elision, of %v, without of %v", with, without)
	}
	if probes != all {
		t.Errorf("%d probes with elision, %d without", probes, all)
	}
}

// justEnded runs ten programs that end at different parts of a second, and
// returns whose probes failed, and how many probes there were.
func justEnded(t *testing.T, noElide bool) (failed map[string]bool, probes uint64) {
	t.Helper()
	c, err := sim.New(sim.Options{Seed: 1, Elision: map[bool]loop.ElisionMode{true: loop.NoElide}[noElide], ControlPlane: controlplane.Options{Disable: []string{"*"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var programs []fakecri.Program
	for i := range 10 {
		d := 30*time.Second + time.Duration(i)*100*time.Millisecond
		programs = append(programs, fakecri.Program{Match: fakecri.Match{Pod: fmt.Sprint("short-", i)}, Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: d, Max: d}}})
	}
	if _, err := c.AddNode(sim.NodeOptions{Name: "worker", Runtime: fakecri.Options{
		Images: []fakecri.Image{{Name: "app:1", Present: true}}, Programs: programs}}); err != nil {
		t.Fatal(err)
	}
	mustRunTo(t, c, 10*time.Second)
	for i := range 10 {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("short-", i)}, Spec: v1.PodSpec{
			NodeName: "worker", RestartPolicy: v1.RestartPolicyNever,
			Containers: []v1.Container{{Name: "main", Image: "app:1", ReadinessProbe: &v1.Probe{
				PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}}}}}}
		if _, err := c.API().Create(pod); err != nil {
			t.Fatal(err)
		}
	}
	mustRunTo(t, c, time.Minute)
	failed = map[string]bool{}
	for _, e := range c.API().Events() {
		if e.Reason == "Unhealthy" {
			failed[e.InvolvedObject.Name] = true
		}
	}
	return failed, c.Probes()
}

func mustRunTo(t *testing.T, c *sim.Cluster, at time.Duration) {
	t.Helper()
	if err := c.RunUntil(at); err != nil {
		t.Fatal(err)
	}
}

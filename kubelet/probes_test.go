package kubelet_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/prober"
)

// network is the fake runtime's as the kubelet wants it.
type network struct{ rt *fakecri.Runtime }

func (n network) HTTP(ctx context.Context, id string, req *http.Request) (int, http.Header, []byte, error) {
	return n.rt.HTTP(ctx, id, req)
}

func (n network) DialTCP(ctx context.Context, id, host string, port int) error {
	return n.rt.DialTCP(ctx, id, host, port)
}

func (n network) GRPCHealth(ctx context.Context, id, host string, port int, service string) (string, error) {
	return n.rt.GRPCHealth(ctx, id, host, port, service)
}

func (n network) QuickHTTP(id string, req *http.Request) (a prober.HTTPAnswer, ok bool) {
	a.Status, a.Header, a.Body, a.Took, a.Holds, ok, a.Err = n.rt.QuickHTTP(id, req)
	return a, ok
}

func (n network) QuickTCP(id, host string, port int) (a prober.TCPAnswer, ok bool) {
	a.Took, a.Holds, ok, a.Err = n.rt.QuickDialTCP(id, host, port)
	return a, ok
}

func (n network) QuickGRPC(id, host string, port int, service string) (a prober.GRPCAnswer, ok bool) {
	a.Status, a.Took, a.Holds, ok, a.Err = n.rt.QuickGRPCHealth(id, host, port, service)
	return a, ok
}

// probedProgram starts after 12 s, listens from 20 s on and is dead at 150 s.
var probedProgram = fakecri.Program{Match: fakecri.Match{Image: "probed:1"}, Behaviour: fakecri.Behaviour{
	Ports: []fakecri.Port{{Port: 80, After: 20 * time.Second, Latency: fakecri.Range{Min: 5 * time.Millisecond, Max: 5 * time.Millisecond}}},
	Exec: []fakecri.ExecRule{
		{Command: "started", Exit: 1, Until: 12 * time.Second},
		{Command: "alive", Exit: 1, After: 150 * time.Second},
		{Command: "hook", Takes: fakecri.Range{Min: 2 * time.Second, Max: 2 * time.Second}},
	},
}}

const probedManifest = `apiVersion: v1
kind: Pod
metadata: {name: probed}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: "probed:1"
    startupProbe: {exec: {command: [started]}, periodSeconds: 3, timeoutSeconds: 1, failureThreshold: 10, successThreshold: 1}
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3, successThreshold: 1}
    readinessProbe: {httpGet: {path: /, port: 80, scheme: HTTP}, periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3, successThreshold: 1}
    lifecycle: {preStop: {exec: {command: [hook]}}, postStart: {exec: {command: [hook]}}}
`

func (w *world) writeProbed() {
	w.t.Helper()
	if err := w.fs.WriteFile("/etc/manifests/probed.yaml", []byte(probedManifest), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// A liveness probe that fails long after the pod has come to rest has it
// restarted, though nothing else of the pod changes.
func TestProbesWakeARestingPod(t *testing.T) {
	w := newWorld(t, false)
	w.start()
	w.run(2)
	w.writeProbed()
	w.run(200)
	w.expect("life", w.calls(0, "StartContainer", "StopContainer"),
		"2 StartContainer container default/probed-node-0/main", "180 StopContainer container default/probed-node-0/main", "180 StartContainer container default/probed-node-0/main")
	w.remove("probed")
	w.run(260)
	if n := w.kl.Stats().Probes; n == 0 || w.rt == nil {
		t.Error("no probes are counted")
	}
	before := w.kl.Stats().Probes
	w.run(400)
	if after := w.kl.Stats().Probes; after != before {
		t.Errorf("%d probes of a pod that is gone", after-before)
	}
}

// With probes and hooks, too, what is left out does not show.
func TestElisionIsInvisibleWithProbes(t *testing.T) {
	var records [2][]*trace.Record
	var stats [2]kubelet.Stats
	for i := range records {
		w := newWorld(t, i == 1)
		w.start()
		w.run(2)
		w.writeProbed()
		w.run(240)
		w.group.Kill()
		w.run(250)
		w.start()
		w.run(600)
		w.remove("probed")
		w.run(640)
		records[i], stats[i] = w.records, w.kl.Stats()
	}
	sameRecords(t, records[0], records[1])
	if stats[0].Probes != stats[1].Probes || stats[0].Resyncs == 0 {
		t.Errorf("with elision %+v, without %+v", stats[0], stats[1])
	}
}

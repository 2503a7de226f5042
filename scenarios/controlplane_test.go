package scenarios_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
)

// asked is a cluster without controllers of which users ask something.
const asked = `
apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: asked}
spec:
  duration: 3m
  controlPlane: {disable: ["*"]}
  nodes: [{name: worker}]
  programs:
  - {match: {pod: slow}, onTerm: {after: 50s}}
  timeline:
  - at: 1s
    apply:
      manifest:
      - {apiVersion: v1, kind: Pod, metadata: {name: POD}, spec: {nodeName: worker, terminationGracePeriodSeconds: 60, VOLUMES containers: [{name: app, image: "app:1"}]}}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "app:1"}]}}
  - {at: 20s, ACTION}
`

// TestAskedInVain wants the errors that kubectl or the API have.
func TestAskedInVain(t *testing.T) {
	for _, tt := range []struct{ name, pod, volumes, action, want string }{
		{"unmanaged pod", "bare", "", `drain: {}`, `unable to drain node "worker" due to error: cannot delete Pods that declare no controller (use --force to override): default/bare`},
		{"local storage", "bare", "volumes: [{name: a, emptyDir: {}}],", `drain: {force: true}`, `unable to drain node "worker" due to error: cannot delete Pods with local storage (use --delete-emptydir-data to override): default/bare`},
		{"timeout", "slow", "", `drain: {force: true, timeout: 10s}`, `unable to drain node "worker" due to error: error when waiting for pod "slow" in namespace "default" to terminate: context deadline exceeded`},
		{"timeout of a deletion", "slow", "", `drain: {force: true, disableEviction: true, timeout: 10s}`, `unable to drain node "worker" due to error: context deadline exceeded`},
		{"no history", "bare", "", `rollout: {command: undo, name: web}`, `no rollout history found for deployment "web"`},
		{"no such revision", "bare", "", `rollout: {command: undo, name: web, toRevision: 7}`, `unable to find specified revision 7 in history`},
		{"not paused", "bare", "", `rollout: {command: resume, name: web}`, `deployments.apps "web" is not paused`},
		{"no such workload", "bare", "", `scale: {kind: StatefulSet, name: db, replicas: 3}`, `statefulsets.apps "db" not found`},
		{"no such pod", "bare", "", `evict: {name: gone}`, `pods "gone" not found`},
		{"not refused", "bare", "", `evict: {name: bare, refused: true}`, `the eviction of pod default/bare was not refused`},
		{"drained", "slow", "", `drain: {force: true}`, ""},
		{"scaled", "bare", "", `scale: {name: web, replicas: 5}`, ""},
		{"restarted", "bare", "", `rollout: {command: restart, name: web}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := strings.NewReplacer("POD", tt.pod, "VOLUMES", tt.volumes, "ACTION", tt.action).Replace(asked)
			r := run(t, parse(t, doc), scenarios.RunOptions{})
			switch {
			case tt.want == "" && len(r.Errors) > 0:
				t.Errorf("errors: %q", r.Errors)
			case tt.want != "" && !slices.ContainsFunc(r.Errors, func(e string) bool { return strings.HasSuffix(e, ": "+tt.want) }):
				t.Errorf("errors: %q, want %q", r.Errors, tt.want)
			}
		})
	}
}

// TestRefusedEviction says which budget is in the way.
func TestRefusedEviction(t *testing.T) {
	r := run(t, parse(t, `
apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: guarded}
spec:
  duration: 1m
  nodes: [{name: worker}]
  timeline:
  - at: 1s
    apply:
      manifest:
      - {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: strict}, spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}
      - {apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {nodeName: worker, containers: [{name: app, image: "app:1"}]}}
  - {at: 20s, evict: {name: web}}
`), scenarios.RunOptions{})
	const want = "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget strict needs 1 healthy pods and has 1 currently"
	if len(r.Errors) != 1 || !strings.HasSuffix(r.Errors[0], ": "+want) {
		t.Errorf("errors: %q", r.Errors)
	}
}

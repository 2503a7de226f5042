package scenarios_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
)

// TestMistakesAreTold runs manifests with mistakes in them: the output says what
// is wrong in the words of the machine.
func TestMistakesAreTold(t *testing.T) {
	const scenario = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: mistake}
spec:
  duration: 20s
  nodes: [{name: worker}]
  timeline:
  - at: 1s
    apply:
      manifest:
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec:
          containers:
          - {name: app, image: busybox, `
	for name, tt := range map[string]struct{ container, want string }{
		"syntax":        {`command: [sh, -c, "if true; do echo hi; fi"]`, `exits with code 2 (Error), saying "sh: syntax error: unexpected \"do\""`},
		"quotes":        {"command: [sh, -c], args: ['echo \"hi']", `exits with code 2 (Error), saying "sh: syntax error: unterminated quoted string"`},
		"not in ash":    {`command: [sh, -c, "a=(1 2)"]`, "warning: container app of pod default/web, image busybox: sh: a construct that ash does not have: arrays"},
		"command":       {`command: [sh, -c, "frobnicate -x"]`, `exits with code 127 (Error), saying "sh: frobnicate: not found"`},
		"told of":       {`command: [sh, -c, "frobnicate -x; sleep 100"]`, "the command frobnicate is not known here"},
		"entry point":   {`command: [frobnicate]`, `exec: "frobnicate": executable file not found in $PATH`},
		"env":           {`envFrom: [{configMapRef: {name: settings}}]`, `Error: configmap "settings" not found`},
		"probe":         {`command: [sleep, "100"], readinessProbe: {periodSeconds: 1, exec: {command: [sh, -c, "curl -f localhost"]}}`, "Readiness probe failed: sh: curl: not found"},
		"its last word": {`command: [sh, -c, "echo one >&2; echo two >&2; echo three; exit 3"]`, `exits with code 3 (Error), saying "two"`},
		"no complaint":  {`command: [sh, -c, "echo careful >&2"]`, "exits with code 0 (Completed)\n"},
	} {
		var out bytes.Buffer
		res := run(t, parse(t, scenario+tt.container+"}\n"), scenarios.RunOptions{Timeline: &out})
		res.WriteText(&out, false)
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: no %s in\n%s", name, tt.want, out.String())
		}
	}
}

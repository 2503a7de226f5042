package parity

import (
	"fmt"
	"strings"
	"testing"
)

// oddCase is a pod that ends at once, and acts on what is not there any more.
const oddCase = `{"name": "odd", "runs": [], "actions": [
 {"at": 0, "action": "create", "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd", "namespace": "default"},
  "spec": {"nodeName": "node-0", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
   {"name": "main", "image": "registry.local/busybox:1.35", "command": ["sh", "-c", "exit 0"],
    "readinessProbe": {"httpGet": {"port": 80}}}]}}},
 %s]}`

func TestActsOnNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		actions string
		fails   string
	}{
		"stopping what has exited":    {actions: `{"at": 8, "action": "stop-container", "container": "main"}`},
		"removing what isn't there":   {actions: `{"at": 8, "action": "remove-container", "container": "other"}`},
		"deleting twice":              {actions: `{"at": 8, "action": "delete", "gracePeriodSeconds": 0}, {"at": 9, "action": "delete", "gracePeriodSeconds": null}`},
		"deleting twice, refused":     {actions: `{"at": 8, "action": "delete", "gracePeriodSeconds": 0}, {"at": 9, "action": "delete", "gracePeriodSeconds": 0, "rejectedByAPI": true}`},
		"a patch of what isn't there": {actions: `{"at": 8, "action": "patch", "patch": [{"op": "remove", "path": "/metadata/labels"}]}`, fails: "patch at 8s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := Parse(fmt.Appendf(nil, oddCase, c.actions))
			if err != nil {
				t.Fatal(err)
			}
			_, err = k.Replay(Options{})
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want one with %q", err, c.fails)
			}
		})
	}
}

// TestEventsBeforeTheIP is about a probe that fails before the pod's status has
// its IP: the events' messages are blurred all the same.
func TestEventsBeforeTheIP(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(fmt.Sprintf(oddCase, `{"at": 5, "action": "delete", "gracePeriodSeconds": null}`), "exit 0", "sleep 100")
	k, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := k.Replay(Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range seen.Events {
		if e.Reason == "Unhealthy" {
			found = true
			if !strings.Contains(e.Message, "<pod-ip>:80") {
				t.Errorf("event at %vs: %s", e.At, e.Message)
			}
		}
	}
	if !found {
		t.Error("no failed probe was seen")
	}
}

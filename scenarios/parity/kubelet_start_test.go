package parity

import (
	"strings"
	"testing"
)

const manifestOf = `"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME", "namespace": "default"}, "spec": {"nodeName": "node-0", SPEC
 "containers": [{"name": "main", "image": "registry.local/busybox:1.35", "command": ["sh", "-c", "sleep 300"]}]}`

func aPod(name, spec string) string {
	return "{" + strings.NewReplacer("NAME", name, "SPEC", spec).Replace(manifestOf) + "}"
}

// TestKubeletStart is about how long a kubelet takes to be at work: its process
// starts, then it looks for its node each second, while relists run a little
// behind that. What ended while it was down is seen by the relist before, and
// so declared ended a relist later.
func TestKubeletStart(t *testing.T) {
	t.Parallel()
	k, err := Parse([]byte(`{"name": "node-start", "runs": [], "actions": [
 {"at": 0, "action": "create", "pod": ` + aPod("job", `"restartPolicy": "Never",`) + `},
 {"at": 10, "action": "kubelet-kill"}, {"at": 11, "action": "stop-all"},
 {"at": 12, "action": "create", "pod": ` + aPod("late", "") + `},
 {"at": 20, "action": "kubelet-start"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := k.Replay(Options{})
	if err != nil {
		t.Fatal(err)
	}
	late := seen.Pods["default/late"].Status
	if len(late) < 2 || late[1].At < 21.2 || late[1].At > 21.4 {
		t.Errorf("the pod that was made meanwhile: %+v", late)
	}
	var job []string
	for _, s := range seen.Pods["default/job"].Status {
		if s.At > 20 {
			job = append(job, s.Phase)
			if s.Phase == "Failed" && (s.At < 22.2 || s.At > 22.6) {
				t.Errorf("the job's end is declared at %vs", s.At)
			}
		}
	}
	if got := strings.Join(job, " "); got != "Running Failed" {
		t.Errorf("the job's phases since: %s", got)
	}
}

// TestNoAppArmor is about the recorded machine, whose kernel has none.
func TestNoAppArmor(t *testing.T) {
	t.Parallel()
	k, err := Parse([]byte(`{"name": "armour", "runs": [], "actions": [
 {"at": 0, "action": "create", "pod": ` + aPod("armour", `"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},`) + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := k.Replay(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if last := seen.Status[len(seen.Status)-1]; last.Reason != "AppArmor" || !strings.HasSuffix(last.Message, "AppArmor is not enabled on the host") {
		t.Errorf("status %+v", last)
	}
}

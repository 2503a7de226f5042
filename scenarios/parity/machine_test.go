package parity

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestMachine holds what containers see of the recorded machine and its images,
// by what they leave as their termination message.
func TestMachine(t *testing.T) {
	for _, tc := range []struct{ name, image, command, spec, want string }{
		{"environment", "full", "env | sort | grep -v KUBERNETES_", "{}", "HOME=/\nHOSTNAME=case\nPATH=/bin\nPWD=/\nSHLVL=1\n"},
		{"the API's service", "full", "echo $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT_HTTPS", "{}", "10.96.0.1 443\n"},
		{"nobody has a name", "full", "id; whoami 2>&1; ls -ld /tmp | awk '{print $1,$3,$4}'", "{}", "uid=0 gid=0 groups=0\nwhoami: unknown uid 0\ndrwxrwxrwt 0 0\n"},
		{"standalone", "1.35", "seq 3 | sort -r | head -n 1; type seq", "{}", "3\nseq is seq\n"},
		{"the machine's hosts", "full", "hostname; tail -n 1 /etc/hosts", `{"hostNetwork": true}`, "vm\n127.0.0.1 vm\n"},
	} {
		text := `{"name": "case", "duration": 5, "runs": [], "actions": [{"at": 0, "action": "create", "pod": {
			"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "case", "namespace": "default"}, "spec": {
			"nodeName": "node-0", "enableServiceLinks": false, "restartPolicy": "Never", "containers": [{"name": "main",
			"image": "registry.local/busybox:` + tc.image + `", "imagePullPolicy": "IfNotPresent",
			"command": ["sh", "-c", "{ ` + tc.command + `; } > /dev/termination-log"]}]}}}]}`
		text = strings.Replace(text, `"spec": {`, `"spec": {`+strings.Trim(tc.spec, "{}")+comma(tc.spec), 1)
		c, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		seen, err := c.Replay(Options{})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		all, err := json.Marshal(seen)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(tc.want)
		if !strings.Contains(string(all), string(want)) {
			t.Errorf("%s: no message %s in %.3000s", tc.name, want, all)
		}
	}
}

func comma(spec string) string {
	if spec == "{}" {
		return ""
	}
	return ", "
}

// TestMachineBlock: what a case says was available is what the machine leaves.
func TestMachineBlock(t *testing.T) {
	const text = `{
"name": "node-x", "actions": [],
"machine": {"nodefs.availableBeforePods": "10Gi", "memory.availableBeforePods": "AMOUNT"}}`
	if _, err := Read([]byte(strings.Replace(text, "AMOUNT", "much", 1))); err == nil || err.Error() != `3:10: machine: memory.availableBeforePods: "much" is no quantity` {
		t.Errorf("got %v", err)
	}
	c, err := Read([]byte(strings.Replace(text, "AMOUNT", "2Gi", 1)))
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.nodeOptions()
	if err != nil {
		t.Fatal(err)
	}
	disk := o.Capacity["ephemeral-storage"]
	memory := o.Capacity["memory"]
	if got, want := o.Usage.Disk.At(0, 0), disk.Value()-10*(1<<30); got != want {
		t.Errorf("disk: uses %d, want %d", got, want)
	}
	if got, want := o.Usage.Memory.At(0, 0), memory.Value()-2*(1<<30)-uncounted; got != want {
		t.Errorf("memory: uses %d, want %d", got, want)
	}
}

// TestMachineSignals: every signal of eviction may be what a case says was left.
func TestMachineSignals(t *testing.T) {
	c, err := Read([]byte(`{"name": "node-x", "actions": [], "machine": {
"nodefs.inodesFreeBeforePods": "20M", "pid.availableBeforePods": 1000}}`))
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.nodeOptions()
	if err != nil {
		t.Fatal(err)
	}
	if free := o.Filesystems.Root.Inodes - o.Usage.Inodes.At(0, 0); free != 20_000_000 {
		t.Errorf("inodes: %d free, want 20M", free)
	}
	if left := o.PIDMax - o.Usage.PIDs.At(0, 0); left != 1000 || o.PIDMax != maxPIDs {
		t.Errorf("processes: %d of %d left, want 1000 of %d", left, o.PIDMax, maxPIDs)
	}
	if _, err := Read([]byte(`{"name": "node-x", "actions": [], "machine": {"pid.availableBeforePods": []}}`)); err == nil {
		t.Error("a list is taken for a quantity")
	}
}

// TestNames: nothing depends on what a case is called.
func TestNames(t *testing.T) {
	for _, name := range []string{"node-image-gc", "node-soft-eviction", "node-memory-eviction"} {
		c := readCase(t, recordings+"/"+name+".json")
		seen, err := c.Replay(Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.Name = "node-other"
		other, err := c.Replay(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := encode(seen), encode(other); !slices.Equal(a, b) {
			t.Errorf("%s: under another name the replay is another", name)
		}
	}
}

// TestPriorityClasses: the recorded cluster has two more.
func TestPriorityClasses(t *testing.T) {
	memory := func(class, name, bytes string) string {
		return `{"at": 0, "action": "create", "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "` + name + `", "namespace": "default"}, "spec": {"nodeName": "node-0",
 "priorityClassName": "` + class + `", "containers": [{"name": "main", "image": "registry.local/busybox:mem", "command": ["usemem", "` + bytes + `"]}]}}}`
	}
	c, err := Read([]byte(`{"name": "node-x", "machine": {"memory.availableBeforePods": "20Gi"},
"config": {"evictionHard": {"memory.available": "20000Mi", "nodefs.available": "1%", "imagefs.available": "1%"}},
"actions": [` + memory("high", "high", "600000000") + "," + memory("low", "low", "300000000") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := c.Replay(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"low": true, "high": false} {
		evicted := false
		for _, e := range seen.Pods["default/"+name].Events {
			evicted = evicted || e.Reason == "Evicted"
		}
		if evicted != want {
			t.Errorf("%s: evicted %v, want %v", name, evicted, want)
		}
	}
}
